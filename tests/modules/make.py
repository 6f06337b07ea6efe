"""Writes dynamo.onnx, torch's dynamo export of two layers of attention and gated MLP, named as transformers' llama names its modules; and
forms.onnx, of nodes with a module for which the loader and the compiler make others: a function's, a Softmax of old, a Gemm.

    python tests/modules/make.py FOLDER          needs torch and onnx
"""
import os
import sys

import onnx
import torch
from onnx import TensorProto, helper

KEY = "pkg.torch.onnx.name_scopes"

WIDTH, HEADS, HIDDEN, LAYERS, TOKENS = 8, 4, 16, 2, 3


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (p(x).view(*x.shape[:-1], HEADS, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        mix = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(mix.transpose(1, 2).reshape(x.shape))


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = (torch.nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down_proj = torch.nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        return self.down_proj(torch.nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn, self.mlp = Attention(), Mlp()

    def forward(self, x):
        x = x + self.self_attn(x)
        return x + self.mlp(x)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Model()

    def forward(self, x):
        return self.model(x)


def dynamo(path):
    torch.manual_seed(0)
    program = torch.onnx.export(Network().eval(), (torch.zeros(2, TOKENS, WIDTH),), dynamo=True, opset_version=20,
                                dynamic_shapes=({0: "batch", 1: "tokens"},), input_names=["x"], output_names=["y"])
    for node in program.model.graph:              # of no use here, and most of the bytes
        for key in set(node.metadata_props) - {KEY}:
            del node.metadata_props[key]
    program.save(path)


def of_module(module, *args, **more):
    node = helper.make_node(*args, **more)
    node.metadata_props.add(key=KEY, value=repr(["", module.split(".")[0], module, "traced"]))
    return node


def forms(path):
    inner = [helper.make_node("MatMul", ["x", "w"], ["p"], name="product"), helper.make_node("Softmax", ["p"], ["y"], name="mix")]
    function = helper.make_function("own", "Product", ["x", "w"], ["y"], inner, [helper.make_opsetid("", 12)])
    nodes = [of_module("net.call", "Product", ["x", "w"], ["a"], name="call", domain="own"),
             of_module("net.gemm", "Reshape", ["a", "rows"], ["r"], name="flatten"),
             of_module("net.gemm", "Gemm", ["r", "w", "b"], ["g"], name="gemm"),
             of_module("net.gemm", "Reshape", ["g", "back"], ["s"], name="restore"),
             of_module("net.soft", "Softmax", ["s"], ["y"], name="soft")]
    tensors = [helper.make_tensor("w", TensorProto.FLOAT, [4, 4], [0.5] * 16), helper.make_tensor("b", TensorProto.FLOAT, [4], [0.5] * 4),
               helper.make_tensor("rows", TensorProto.INT64, [2], [-1, 4]), helper.make_tensor("back", TensorProto.INT64, [3], [-1, 3, 4])]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", 3, 4])] for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "forms", *ends, initializer=tensors), functions=[function], ir_version=8,
                              opset_imports=[helper.make_opsetid("", 12), helper.make_opsetid("own", 1)])
    onnx.save(model, path)


dynamo(os.path.join(sys.argv[1], "dynamo.onnx"))
forms(os.path.join(sys.argv[1], "forms.onnx"))
