#!/usr/bin/env python3
"""Write a model of samples/export.py llama as GGUF in f32, for llama.cpp: gguf_of.py MODEL.onnx OUT.gguf (needs onnx and gguf).

The weights are the model's. The tokenizer is made up: 256 bytes, then words that no text has, as many as the vocabulary is large. A text of
N bytes is N tokens, as with a tokenizer.json whose tokens are bytes.
"""
import sys

import gguf
import numpy as np
import onnx
from onnx import numpy_helper

HEAD = 64


def linear(model):
    """The weight of each product, [in, out], by the module's name."""
    held = {t.name: t for t in model.graph.initializer}
    found = {}
    for n in model.graph.node:
        if n.op_type == "MatMul" and n.input[1] in held:
            found[n.name.strip("/").removesuffix("/MatMul").replace("/", ".")] = held[n.input[1]]
    return found, held


def turned(weight, heads):
    """From halves that rotate together, as Hugging Face has them, to pairs, as llama.cpp does."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


model = onnx.load(sys.argv[1])
products, held = linear(model)
rows = lambda name: numpy_helper.to_array(products[name]).T.astype(np.float32)
layers = sum(name.endswith("q_proj") for name in products)
embed = numpy_helper.to_array(held["model.embed_tokens.weight"])
vocabulary, width = embed.shape
heads, kv = (rows(f"model.layers.0.self_attn.{p}_proj").shape[0] // HEAD for p in "qk")
w = gguf.GGUFWriter(sys.argv[2], "llama")
w.add_block_count(layers)
w.add_context_length(2048)
w.add_embedding_length(width)
w.add_feed_forward_length(rows("model.layers.0.mlp.gate_proj").shape[0])
w.add_head_count(heads)
w.add_head_count_kv(kv)
w.add_layer_norm_rms_eps(1e-6)
w.add_rope_dimension_count(HEAD)
w.add_rope_freq_base(10000)
w.add_vocab_size(vocabulary)
w.add_tokenizer_model("llama")
texts = [b"<unk>", b"<s>", b"</s>"] + [f"<0x{b:02X}>".encode() for b in range(256)] + [f"w{i}".encode() for i in range(vocabulary - 259)]
types = [2, 3, 3] + [6] * 256 + [1] * (vocabulary - 259)
w.add_token_list(texts)
w.add_token_scores([-1e4] * vocabulary)
w.add_token_types(types)
w.add_add_space_prefix(False)
w.add_add_bos_token(False)
w.add_unk_token_id(0)
w.add_bos_token_id(1)
w.add_eos_token_id(2)
w.add_tensor("token_embd.weight", embed)
w.add_tensor("output_norm.weight", numpy_helper.to_array(held["model.norm.weight"]))
w.add_tensor("output.weight", rows("lm_head"))
for i in range(layers):
    at = f"model.layers.{i}"
    for name, ours in ("attn_norm", "input_layernorm"), ("ffn_norm", "post_attention_layernorm"):
        w.add_tensor(f"blk.{i}.{name}.weight", numpy_helper.to_array(held[f"{at}.{ours}.weight"]))
    for name, count in ("q", heads), ("k", kv):
        w.add_tensor(f"blk.{i}.attn_{name}.weight", turned(rows(f"{at}.self_attn.{name}_proj"), count))
    for name, ours in ("attn_v", "self_attn.v"), ("attn_output", "self_attn.o"), ("ffn_gate", "mlp.gate"), ("ffn_up", "mlp.up"), ("ffn_down", "mlp.down"):
        w.add_tensor(f"blk.{i}.{name}.weight", rows(f"{at}.{ours}_proj"))
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
