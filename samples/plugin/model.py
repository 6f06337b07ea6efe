"""model.py DIR: DIR/gated.onnx, a gated feed-forward layer on the operators of gate.c with random weights, and test_data_set_0 with what numpy
computes."""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, INNER, LABELS, SLOPE = 32, 96, 64, 1.5
rng = np.random.default_rng(0)


def weight(*shape):
    return (rng.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32)


weights = {"up": weight(WIDTH, INNER), "g": weight(WIDTH, INNER), "bias": weight(INNER), "down": weight(INNER, WIDTH), "centres": weight(WIDTH, LABELS)}
nodes = [
    helper.make_node("MatMul", ["x", "up"], ["u"], name="up_proj"),
    helper.make_node("MatMul", ["x", "g"], ["v"], name="gate_proj"),
    helper.make_node("Gate", ["u", "v", "bias"], ["a"], name="gate", domain="example", slope=SLOPE),
    helper.make_node("MatMul", ["a", "down"], ["d"], name="down_proj"),
    helper.make_node("Distances", ["d", "centres"], ["y"], name="labels", domain="example"),
]
graph = helper.make_graph(nodes, "gated", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", WIDTH])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", LABELS])],
                          [numpy_helper.from_array(value, name) for name, value in weights.items()])
x = rng.standard_normal((5, WIDTH)).astype(np.float32)
a = x @ weights["up"] / (1 + np.exp(-SLOPE * (x @ weights["g"]) - weights["bias"]))
y = np.abs((a @ weights["down"])[:, :, None] - weights["centres"]).sum(1)

data = os.path.join(sys.argv[1], "test_data_set_0")
os.makedirs(data, exist_ok=True)
onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("example", 1)]),
          os.path.join(sys.argv[1], "gated.onnx"))
for name, value in (("input_0", x), ("output_0", y.astype(np.float32))):
    with open(os.path.join(data, name + ".pb"), "wb") as f:
        f.write(numpy_helper.from_array(value, "x" if name == "input_0" else "y").SerializeToString())
