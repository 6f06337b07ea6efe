#!/usr/bin/env python3
"""loss.py MODEL TOKENS LOSS: ONNX Runtime's loss of a window of 24 tokens (u32) is LOSS."""
import sys

import numpy as np
import onnxruntime

tokens = np.fromfile(sys.argv[2], np.uint32).astype(np.int64)[None]
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
feed = {"input_ids": tokens[:, :-1], "attention_mask": np.ones((1, 24), np.int64), "position_ids": np.arange(24)[None]}
past = {i.name: np.zeros((1, 4, 0, 16), np.float32) for i in session.get_inputs() if i.name.startswith("past")}
x = session.run(["logits"], feed | past)[0][0].astype(np.float64)
loss = np.mean(np.log(np.exp(x).sum(-1)) - x[np.arange(24), tokens[0, 1:]])
print(loss, sys.argv[3])
sys.exit(not abs(loss - float(sys.argv[3])) <= 1e-4 * loss)
