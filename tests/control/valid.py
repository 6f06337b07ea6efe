#!/usr/bin/env python3
"""The graph of one rank gives in ONNX Runtime what is stored, and all files pass onnx's checker: valid.py WRITTEN CASES

WRITTEN has CASE.1 and CASE.3, the rank files of one rank and of three, for each folder of CASES."""
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


def check(written, case):
    for path in glob.glob(f"{written}.[13]/rank-*.onnx"):
        onnx.checker.check_model(path)
    session = ort.InferenceSession(f"{written}.1/rank-0.onnx", providers=["CPUExecutionProvider"])
    for data in sorted(glob.glob(os.path.join(case, "test_data_set_*"))):
        want = tensors(data, "output")
        for name, got in zip(want, session.run(list(want), tensors(data, "input"))):
            np.testing.assert_allclose(got, want[name], rtol=1e-4, atol=1e-5, err_msg=f"{case}: {name}")


checked = [os.path.dirname(d) for d in glob.glob(os.path.join(sys.argv[2], "*", ""))]
for case in checked:
    check(os.path.join(sys.argv[1], os.path.basename(case)), case)
print(len(checked), "cases")
sys.exit(not checked)
