#!/usr/bin/env python3
"""Make a folder for ONNX Runtime GenAI of a llama of samples/export.py: genai_of.py MODEL.onnx OUT (needs onnx).

MODEL may be the rank file of `tpc-shard MODEL --tp 1 --weights int4`, too. The file stays where it is; OUT has links to it and to its data.
"""
import json
import os
import sys

import onnx

source, out = os.path.abspath(sys.argv[1]), sys.argv[2]
model = onnx.load(source, load_external_data=False)
kv = [i for i in model.graph.input if i.name.startswith("past_key_values.")]
heads, size = kv[0].type.tensor_type.shape.dim[1].dim_value, kv[0].type.tensor_type.shape.dim[3].dim_value
logits = next(o for o in model.graph.output if o.name == "logits").type.tensor_type.shape.dim[2].dim_value
os.makedirs(out)
os.symlink(source, os.path.join(out, "model.onnx"))
for name in {e.value for t in model.graph.initializer for e in t.external_data if e.key == "location"}:
    os.symlink(os.path.join(os.path.dirname(source), name), os.path.join(out, name))
names = {i.name for i in model.graph.input}
inputs = {key: key for key in ("input_ids", "attention_mask", "position_ids") if key in names}
inputs.update(past_key_names="past_key_values.%d.key", past_value_names="past_key_values.%d.value")
decoder = {"session_options": {"intra_op_num_threads": int(os.environ.get("THREADS", 1))}, "filename": "model.onnx", "head_size": size,
           "hidden_size": 16 * size, "inputs": inputs, "num_attention_heads": 16, "num_hidden_layers": len(kv) // 2, "num_key_value_heads": heads,
           "outputs": {"logits": "logits", "present_key_names": "present.%d.key", "present_value_names": "present.%d.value"}}
config = {"model": {"type": "llama", "context_length": 2048, "vocab_size": logits or 32000, "bos_token_id": 1, "pad_token_id": 0, "eos_token_id": 31999,
                    "decoder": decoder},
          "search": {"do_sample": False, "max_length": 2048, "past_present_share_buffer": False}}
json.dump(config, open(os.path.join(out, "genai_config.json"), "w"), indent=1)
