#!/usr/bin/env python3
"""The graph of one rank gives in ONNX Runtime what is stored, and all files pass onnx's checker: valid.py ONE CASE FILE..."""
import glob
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper as nh


def tensors(data, kind):
    found = [onnx.load_tensor(os.path.join(data, f"{kind}_{i}.pb")) for i in range(len(glob.glob(os.path.join(data, f"{kind}_*.pb"))))]
    return {t.name: nh.to_array(t) for t in found}


for path in sys.argv[1:2] + sys.argv[3:]:
    onnx.checker.check_model(path)
session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
for data in sorted(glob.glob(os.path.join(sys.argv[2], "test_data_set_*"))):
    want = tensors(data, "output")
    for name, got in zip(want, session.run(list(want), tensors(data, "input"))):
        np.testing.assert_allclose(got, want[name], rtol=1e-4, atol=1e-5, err_msg=name)
