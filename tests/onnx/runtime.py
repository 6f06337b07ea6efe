"""runtime.py MODEL DATA TYPE: ONNX Runtime runs MODEL on a folder of test data, within 8 units roundoff of TYPE (f16, bf16, int8)."""
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper


def tensors(folder, kind):
    k = 0
    while os.path.exists(path := os.path.join(folder, f"{kind}_{k}.pb")):
        tensor = onnx.load_tensor(path)
        yield tensor.name, numpy_helper.to_array(tensor)
        k += 1


model, folder, kind = sys.argv[1:]
unit = {"f16": 2.0**-11, "bf16": 2.0**-8, "int8": 2.0**-7}[kind]
onnx.checker.check_model(model, full_check=True)
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
want = dict(tensors(folder, "output"))
for name, got in zip(want, session.run(list(want), dict(tensors(folder, "input")))):
    worst = np.abs(got - want[name]).max(initial=0) / max(1, np.abs(want[name]).max(initial=0))
    assert worst <= 8 * unit, f"{name}: {worst}"
