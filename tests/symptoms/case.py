"""Small models whose right outputs numpy, torch or ONNX's reference knows; never tpc. A case is a function that returns a Case."""

import os

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

try:
    import torch
except ImportError:
    torch = None

N = h.make_node
F, D, H16, B16, I8, U8, I32, I64, BOOL = T.FLOAT, T.DOUBLE, T.FLOAT16, T.BFLOAT16, T.INT8, T.UINT8, T.INT32, T.INT64, T.BOOL
rng = np.random.default_rng(7)
FRESH = rng.bit_generator.state


class Case:
    """A model, its inputs and its expected outputs, each (name, array, shape or None). With a loss: labels among the inputs, sums of the loss and
    gradients among the outputs, of the model compiled by --train. Refused: the model has no right output; part of the sentence that says so.
    Kept: inputs with initializers, which are given."""

    def __init__(self, model, inputs, outputs, loss=None, refused=None):
        self.model, self.inputs, self.outputs, self.loss, self.refused = model, inputs, outputs, loss, refused
        values = {i.name for i in model.graph.initializer}
        self.kept = [name for name, _, _ in inputs if name in values]

    def write(self, folder):
        """model.onnx and test_data_set_0 in the folder."""
        data = os.path.join(folder, "test_data_set_0")
        os.makedirs(data)
        onnx.save(self.model, os.path.join(folder, "model.onnx"))
        for kind, values in (("input", self.inputs), ("output", self.outputs)):
            for i, (name, array, _) in enumerate(values):
                with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as f:
                    f.write(nh.from_array(np.asarray(array), name).SerializeToString())


def case(nodes, inputs, outputs, init=(), opset=21, ms=False, functions=(), ir=10, extra=()):
    """A graph of these nodes. ms: of Microsoft's operators, too."""

    def info(name, array, shape):
        array = np.asarray(array)
        return h.make_tensor_value_info(name, h.np_dtype_to_tensor_dtype(array.dtype), array.shape if shape is None else shape)

    graph = h.make_graph(list(nodes), "g", [info(*i) for i in inputs], [info(*o) for o in outputs], list(init))
    opsets = [h.make_opsetid("", opset)] + ([h.make_opsetid("com.microsoft", 1)] if ms else []) + list(extra)
    model = h.make_model(graph, opset_imports=opsets, functions=list(functions))
    model.ir_version = ir or 10
    return Case(model, inputs, outputs)


def trained(whole, loss, inputs, outputs):
    """The same model, trained: its loss and gradients."""
    return Case(whole.model, inputs, outputs, loss)


def refused(whole, sentence):
    """The same model, which is to be refused by a sentence with this part."""
    return Case(whole.model, whole.inputs, whole.outputs, refused=sentence)


def needs_torch(function):
    function.needs_torch = True
    return function


def w(name, array):
    """A weight."""
    return nh.from_array(np.asarray(array), name)


def r(*shape, s=1.0):
    """Random numbers of f32 with deviation s."""
    return (rng.standard_normal(shape) * s).astype(np.float32)


def all_cases(module):
    """Functions of a module, in the order of its text."""
    return [f for f in vars(module).values() if getattr(f, "__module__", "") == module.__name__ and not f.__name__.startswith("_")]


def build(function, folder):
    """Writes a case, which starts from the same random numbers in any order of cases. A case with files next to its model takes the folder."""
    os.makedirs(folder)
    rng.bit_generator.state = FRESH
    whole = function(folder) if function.__code__.co_argcount else function()
    whole.write(folder)
    return whole


def by_reference(nodes, inputs, outputs, init=(), opset=21, **how):
    """A case whose outputs ONNX's reference computes; outputs: names."""
    from onnx.reference import ReferenceEvaluator

    arrays = dict((name, array) for name, array, _ in inputs)
    graph = case(nodes, inputs, [], init, opset, **how).model
    for name in outputs:
        graph.graph.output.append(h.make_empty_tensor_value_info(name))
    values = ReferenceEvaluator(graph).run(None, arrays)
    return case(nodes, inputs, [(name, np.ascontiguousarray(value), None) for name, value in zip(outputs, values)], init, opset, **how)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
