#!/usr/bin/env python3
"""Milliseconds (minimum) of one ONNX Runtime pass: bench_ort.py MODEL.onnx --rows S --past P, sizes as tpc-run --dim has them."""
import argparse
import time

import numpy as np
import onnxruntime as ort

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("model")
p.add_argument("--threads", type=int, default=1)
p.add_argument("--repeat", type=int, default=6)
p.add_argument("--rows", type=int, required=True)
p.add_argument("--past", type=int, required=True)
a = p.parse_args()
options = ort.SessionOptions()
options.intra_op_num_threads, options.inter_op_num_threads = a.threads, 1
session = ort.InferenceSession(a.model, options, providers=["CPUExecutionProvider"])
size = {"batch_size": 1, "sequence_length": a.rows, "past_sequence_length": a.past}
size["past_sequence_length + sequence_length"] = size["past_sequence_length + 1"] = size["total_sequence_length"] = a.past + a.rows
rng = np.random.default_rng(0)
feed = {}
for i in session.get_inputs():
    shape = [d if isinstance(d, int) else size[d] for d in i.shape]
    if "float" in i.type:
        feed[i.name] = rng.standard_normal(shape, dtype=np.float32)
    elif "mask" in i.name:
        feed[i.name] = np.ones(shape, np.int64)
    elif "position" in i.name:
        feed[i.name] = np.broadcast_to(np.arange(a.past, a.past + a.rows, dtype=np.int64), shape)
    else:
        feed[i.name] = rng.integers(0, 200, shape, dtype=np.int64)
session.run(None, feed)
best = None
for _ in range(a.repeat):
    start = time.perf_counter()
    session.run(None, feed)
    took = time.perf_counter() - start
    best = took if best is None else min(best, took)
print(f"{1e3 * best:.3f}")
