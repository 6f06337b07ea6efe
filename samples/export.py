#!/usr/bin/env python3
"""Make sample models: transformers with random weights, exported to ONNX, with inputs and the outputs ONNX Runtime computes.

    python samples/export.py OUT [ARCH ...] [--size tiny|bench] [--layers N] [--exporter optimum|dynamo] [--dtype f32|f16|bf16]

ARCH: gpt2 llama qwen2 qwen3-moe mistral bert deberta vit t5 (all by default). tiny is what samples/ holds; bench has 110 to 250 million parameters, for timing.
--layers changes the depth only, for planning time. --dtype f16 exports the model in half precision, as OUT/ARCH-f16; bf16 is the f16 graph
with every type changed, since torch's exporter and ONNX Runtime's CPU kernels lack it: its expected outputs are those of the same graph
in f32 with the same bf16 weights and inputs, rounded to bf16. Every model becomes OUT/ARCH/model.onnx with test_data_set_0 (a prompt) and, where it
has a cache, test_data_set_1 (one step on a past), in the layout of ONNX's own tests.

Needs from PyPI: ml_dtypes torch transformers optimum-onnx onnx onnxruntime onnxscript.
"""
import argparse
import os
import shutil
import tempfile

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import torch
import transformers as hf
from onnx import numpy_helper

# architecture -> class, config class, export task, {size: config fields}, name of the depth field
ARCHS = {
    "gpt2": (hf.GPT2LMHeadModel, hf.GPT2Config, "text-generation-with-past", "n_layer", {
        "tiny": dict(vocab_size=256, n_positions=64, n_embd=64, n_layer=2, n_head=4),
        "bench": dict()}),
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig, "text-generation-with-past", "num_hidden_layers", {
        "tiny": dict(vocab_size=256, hidden_size=128, intermediate_size=192, num_hidden_layers=2, num_attention_heads=8,
                     num_key_value_heads=4, max_position_embeddings=128),
        "bench": dict(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, num_attention_heads=16,
                      num_key_value_heads=4, max_position_embeddings=2048)}),
    "qwen2": (hf.Qwen2ForCausalLM, hf.Qwen2Config, "text-generation-with-past", "num_hidden_layers", {
        "tiny": dict(vocab_size=256, hidden_size=96, intermediate_size=200, num_hidden_layers=2, num_attention_heads=6,
                     num_key_value_heads=2, max_position_embeddings=128)}),
    "mistral": (hf.MistralForCausalLM, hf.MistralConfig, "text-generation-with-past", "num_hidden_layers", {
        "tiny": dict(vocab_size=211, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=6,
                     num_key_value_heads=2, max_position_embeddings=128, sliding_window=4, tie_word_embeddings=True)}),
    "qwen3-moe": (hf.Qwen3MoeForCausalLM, hf.Qwen3MoeConfig, "text-generation-with-past", "num_hidden_layers", {
        "tiny": dict(vocab_size=128, hidden_size=48, intermediate_size=70, moe_intermediate_size=36, num_experts=4, num_experts_per_tok=2,
                     decoder_sparse_step=2, norm_topk_prob=True, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=12,
                     max_position_embeddings=64),
        "bench": dict(vocab_size=8192, hidden_size=768, moe_intermediate_size=768, num_experts=16, num_experts_per_tok=2, norm_topk_prob=True,
                      num_hidden_layers=4, num_attention_heads=12, num_key_value_heads=4, head_dim=64, max_position_embeddings=1024)}),
    "bert": (hf.BertForMaskedLM, hf.BertConfig, "fill-mask", "num_hidden_layers", {
        "tiny": dict(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                     max_position_embeddings=64),
        "bench": dict()}),
    "deberta": (hf.DebertaV2ForSequenceClassification, hf.DebertaV2Config, "text-classification", "num_hidden_layers", {
        "tiny": dict(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, position_buckets=16,
                     max_position_embeddings=64, relative_attention=True, pos_att_type=["p2c", "c2p"], share_att_key=True,
                     norm_rel_ebd="layer_norm", position_biased_input=False, type_vocab_size=0, num_labels=10, pad_token_id=0),
        "bench": dict(vocab_size=128100, position_buckets=256, max_position_embeddings=512, relative_attention=True,
                      pos_att_type=["p2c", "c2p"], share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False,
                      type_vocab_size=0, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)}),
    "vit": (hf.ViTForImageClassification, hf.ViTConfig, "image-classification", "num_hidden_layers", {
        "tiny": dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8,
                     num_labels=10)}),
    "t5": (hf.T5ForConditionalGeneration, hf.T5Config, "text2text-generation-with-past", "num_layers", {
        "tiny": dict(vocab_size=256, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0)}),
}


def build(arch, size, layers):
    model_class, config_class, task, depth, sizes = ARCHS[arch]
    fields = dict(sizes[size])
    if layers:
        fields[depth] = layers
        if arch == "t5":
            fields["num_decoder_layers"] = layers
    torch.manual_seed(7)
    model = model_class(config_class(**fields)).eval()
    # Biases and norms away from 0 and 1: a slice at the wrong place must show in the outputs.
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() < 2:
                weight.copy_(torch.randn_like(weight) * 0.3 + (1.0 if weight.mean() > 0.5 else 0.0))
            else:
                weight.mul_(1.0 / max(float(weight.std()), 1e-6) * (1.2 / weight.shape[-1] ** 0.5))
    return model, task


def export_optimum(model, task, out, arch, dtype):
    from optimum.exporters.onnx import main_export

    with tempfile.TemporaryDirectory() as saved, tempfile.TemporaryDirectory() as raw:
        model.save_pretrained(saved)
        main_export(saved, raw, task=task, do_validation=False, no_post_process=True, dtype="fp32" if dtype == "f32" else "fp16")
        for file in sorted(f for f in os.listdir(raw) if f.endswith(".onnx")):
            part = file[:-len(".onnx")].removesuffix("_model")
            folder = os.path.join(out, (arch if part == "model" else f"{arch}-{part}") + ("" if dtype == "f32" else f"-{dtype}"))
            os.makedirs(folder, exist_ok=True)
            shutil.move(os.path.join(raw, file), os.path.join(folder, "model.onnx"))
            for extra in os.listdir(raw):
                if extra.startswith(file + "_data"):
                    shutil.move(os.path.join(raw, extra), os.path.join(folder, extra))
            yield folder


def export_dynamo(model, out, arch):
    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids):
            return self.model(input_ids=input_ids, use_cache=False).logits

    folder = os.path.join(out, arch + "-dynamo")
    os.makedirs(folder, exist_ok=True)
    dynamic = torch.export.Dim.DYNAMIC
    torch.onnx.export(Logits(), (torch.zeros((2, 12), dtype=torch.int64),), os.path.join(folder, "model.onnx"), dynamo=True,
                      input_names=["input_ids"], output_names=["logits"], dynamic_shapes={"input_ids": {0: dynamic, 1: dynamic}})
    yield folder


def with_floats(model, before, after):
    """The model with every float tensor of one type in another."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    kind = {"f32": onnx.TensorProto.FLOAT, "f16": onnx.TensorProto.FLOAT16, "bf16": onnx.TensorProto.BFLOAT16}
    numpy_type = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[after]
    graph = model.graph

    def change(tensor):
        if tensor.data_type == kind[before]:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32).astype(numpy_type), tensor.name))

    for tensor in graph.initializer:
        change(tensor)
    for info in [*graph.input, *graph.output, *graph.value_info]:
        if info.type.tensor_type.elem_type == kind[before]:
            info.type.tensor_type.elem_type = kind[after]
    for node in graph.node:
        for a in node.attribute:
            change(a.t)
            if node.op_type == "Cast" and a.name == "to" and a.i == kind[before]:
                a.i = kind[after]
    return model


def make_input(spec, batch, new, past, vocab, rng):
    def extent(d):
        if isinstance(d, int):
            return d
        if "batch" in d:
            return batch
        if "encoder" in d and "decoder" not in d:
            return 6
        if "past" in d and "+" not in d:
            return past
        return past + new if "+" in d or "total" in d else new

    if spec.name == "pixel_values":
        return rng.standard_normal((batch, 3, 32, 32), dtype=np.float32)
    shape = [extent(d) for d in spec.shape]
    if "mask" in spec.name:
        return np.ones(shape, np.int64)
    if spec.name == "position_ids":
        return np.arange(past, past + new, dtype=np.int64)[None].repeat(shape[0], 0)
    if spec.name == "token_type_ids":
        return rng.integers(0, 2, shape)
    if "int64" in spec.type:
        return rng.integers(0, vocab, shape)
    x = rng.standard_normal(shape, dtype=np.float32)
    return x.astype(np.float16) if "float16" in spec.type else x


def write_cases(folder, vocab, dtype):
    path = os.path.join(folder, "model.onnx")
    if dtype == "bf16":
        model = with_floats(onnx.load(path), "f16", "bf16")
        onnx.save(model, path)
        session = onnxruntime.InferenceSession(with_floats(model, "bf16", "f32").SerializeToString(), providers=["CPUExecutionProvider"])
    else:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def as_stored(x):
        return x.astype(ml_dtypes.bfloat16) if dtype == "bf16" and x.dtype == np.float32 else x

    def as_run(x):
        return x.astype(np.float32) if x.dtype == ml_dtypes.bfloat16 else x

    cached = any(i.name.startswith("past") for i in session.get_inputs())
    for k, (new, past) in enumerate([(7, 0), (1, 5)] if cached else [(7, 0), (5, 0)]):
        rng = np.random.default_rng(k)
        feed = {i.name: as_stored(make_input(i, 2, new, past, vocab, rng)) for i in session.get_inputs()}
        case = os.path.join(folder, f"test_data_set_{k}")
        os.makedirs(case, exist_ok=True)
        tensors = [("input", n, feed[n]) for n in feed]
        outputs = session.run(None, {n: as_run(x) for n, x in feed.items()})
        tensors += [("output", o.name, as_stored(y)) for o, y in zip(session.get_outputs(), outputs)]
        index = {"input": 0, "output": 0}
        for kind, name, array in tensors:
            onnx.save_tensor(numpy_helper.from_array(array, name), os.path.join(case, f"{kind}_{index[kind]}.pb"))
            index[kind] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("archs", nargs="*", metavar="ARCH")
    parser.add_argument("--size", default="tiny", choices=["tiny", "bench"])
    parser.add_argument("--layers", type=int)
    parser.add_argument("--exporter", default="optimum", choices=["optimum", "dynamo"])
    parser.add_argument("--dtype", default="f32", choices=["f32", "f16", "bf16"])
    args = parser.parse_args()
    if args.exporter == "dynamo" and args.dtype != "f32":
        parser.error("--dtype f16 and bf16 need --exporter optimum")
    for arch in args.archs or [a for a in ARCHS if args.size in ARCHS[a][4]]:
        model, task = build(arch, args.size, args.layers)
        folders = export_optimum(model, task, args.out, arch, args.dtype) if args.exporter == "optimum" else export_dynamo(model, args.out, arch)
        for folder in folders:
            write_cases(folder, getattr(model.config, "vocab_size", 2), args.dtype)
            print(folder, flush=True)


if __name__ == "__main__":
    main()
