#!/usr/bin/env python3
"""Make the cases of tests/experts.tap: a router and one MoE or QMoE, with the outputs ONNX Runtime computes.

    python tests/experts/make.py          writes tests/experts/NAME/model.onnx and test_data_set_0

Needs from PyPI: onnx onnxruntime.
"""
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
EXPERTS, HIDDEN, INNER, BLOCK = 5, 32, 64, 16
rng = np.random.default_rng(3)


def normal(*shape):
    return (rng.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32)


def integers(*shape):
    return rng.integers(0, 256, shape, dtype=np.uint8)


def scales(rows, columns):
    return ((0.1 + rng.random((EXPERTS, rows, columns // BLOCK))) / 8 / columns ** 0.5).astype(np.float32)


def four_bits(rows, columns):
    return integers(EXPERTS, rows, columns // 2), scales(rows, columns)


def zero_points(rows, columns):
    return integers(EXPERTS, rows, columns // BLOCK // 2)


def moe():
    weights = {"fc1": normal(EXPERTS, INNER, HIDDEN), "b1": normal(EXPERTS, INNER), "fc2": normal(EXPERTS, HIDDEN, INNER), "b2": normal(EXPERTS, HIDDEN)}
    return helper.make_node("MoE", ["x", "scores", *weights], ["y"], "experts", domain="com.microsoft", activation_type="gelu", k=2,
                            normalize_routing_weights=1), weights


def qmoe():
    fc1, s1 = four_bits(2 * INNER, HIDDEN)
    fc2, s2 = four_bits(HIDDEN, INNER)
    weights = {"fc1": fc1, "s1": s1, "b1": normal(EXPERTS, 2 * INNER), "fc2": fc2, "s2": s2, "b2": normal(EXPERTS, HIDDEN),
               "z1": zero_points(2 * INNER, HIDDEN), "z2": zero_points(HIDDEN, INNER)}
    operands = ["x", "scores", "fc1", "s1", "b1", "fc2", "s2", "b2", "", "", "", "z1", "z2"]
    return helper.make_node("QMoE", operands, ["y"], "experts", domain="com.microsoft", activation_type="swiglu", swiglu_fusion=1, k=2,
                            normalize_routing_weights=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0, expert_weight_bits=4, block_size=BLOCK), weights


def write(name, experts, weights):
    shape = ["batch", "sequence", HIDDEN]
    weights = {**weights, "gate": 2 * normal(HIDDEN, EXPERTS), "rows": np.array([-1, HIDDEN])}
    nodes = [helper.make_node("Reshape", ["x", "rows"], ["flat"], "flatten"), helper.make_node("MatMul", ["flat", "gate"], ["scores"], "router"), experts]
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
                              [numpy_helper.from_array(w, n) for n, w in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
    case = os.path.join(HERE, name, "test_data_set_0")
    os.makedirs(case, exist_ok=True)
    onnx.save(model, os.path.join(HERE, name, "model.onnx"))
    x = rng.standard_normal((2, 9, HIDDEN)).astype(np.float32)
    y, = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    onnx.save_tensor(numpy_helper.from_array(x, "x"), os.path.join(case, "input_0.pb"))
    onnx.save_tensor(numpy_helper.from_array(y, "y"), os.path.join(case, "output_0.pb"))


write("moe", *moe())
write("qmoe", *qmoe())
