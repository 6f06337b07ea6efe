#!/usr/bin/env python3
"""Make tests/control/merged-t5: a tiny decoder whose steps with and without a past are the branches of an If, as optimum merges them, with
inputs and the outputs that ONNX Runtime computes: the first pass, then a step.

    python tests/control/merged.py tests/control/merged-t5

Needs from PyPI: torch transformers optimum-onnx onnx onnxruntime.
"""
import os
import shutil
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
import torch
import transformers as hf
from onnx import numpy_helper as nh
from optimum.exporters.onnx import main_export

HEADS, SIZE, READ = 4, 8, 7


def export(out):
    torch.manual_seed(7)
    config = hf.T5Config(vocab_size=64, d_model=32, d_kv=SIZE, d_ff=48, num_layers=1, num_heads=HEADS, decoder_start_token_id=0)
    model = hf.T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * (0.3 if weight.dim() < 2 else 1.2 / weight.shape[-1] ** 0.5) + (weight.dim() < 2))
    with tempfile.TemporaryDirectory() as saved, tempfile.TemporaryDirectory() as raw:
        model.save_pretrained(saved)
        main_export(saved, raw, task="text2text-generation-with-past", do_validation=False, device="cpu")
        shutil.copy(os.path.join(raw, "decoder_model_merged.onnx"), out)


def save(folder, kind, names, values):
    os.makedirs(folder, exist_ok=True)
    for i, (name, value) in enumerate(zip(names, values)):
        with open(os.path.join(folder, f"{kind}_{i}.pb"), "wb") as file:
            file.write(nh.from_array(value, name).SerializeToString())


def feed(session, cache, new, past, rng):
    sizes = {"batch_size": 2, "decoder_sequence_length": new, "past_decoder_sequence_length": past}
    made = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else sizes.get(d, READ) for d in i.shape]
        if i.name == "use_cache_branch":
            made[i.name] = np.array([cache])
        elif "mask" in i.name:
            made[i.name] = np.ones(shape, np.int64)
        elif "int64" in i.type:
            made[i.name] = rng.integers(1, 64, shape, dtype=np.int64)
        else:
            made[i.name] = rng.standard_normal(shape).astype(np.float32)
    return made


out = sys.argv[1]
os.makedirs(out, exist_ok=True)
path = os.path.join(out, "model.onnx")
export(path)
onnx.checker.check_model(path)
session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
rng = np.random.default_rng(5)
for k, (cache, new, past) in enumerate([(False, 5, 0), (True, 1, 5)]):
    inputs = feed(session, cache, new, past, rng)
    folder = os.path.join(out, f"test_data_set_{k}")
    save(folder, "input", inputs.keys(), inputs.values())
    save(folder, "output", [o.name for o in session.get_outputs()], session.run(None, inputs))
