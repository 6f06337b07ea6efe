#!/usr/bin/env python3
"""Make the cases of tests/control.tap: small graphs with If, Loop, Scan and functions around them, with inputs and the outputs that ONNX
Runtime computes, in the layout of ONNX's own tests.

    python tests/control/make.py tests/control
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

rng = np.random.default_rng(3)


def info(name, shape, kind=T.FLOAT):
    return h.make_tensor_value_info(name, kind, shape)


def const(name, value):
    return nh.from_array(np.asarray(value), name)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def graph(name, nodes, inputs, outputs, constants=()):
    return h.make_graph(nodes, name, inputs, outputs, list(constants))


def node(op, inputs, outputs, **attributes):
    return h.make_node(op, inputs.split(), outputs.split(), **attributes)


CASES = {}


def case(make):
    CASES[make.__name__.replace("_", "-")] = make
    return make


@case
def if_captures():
    """Branches of different length; weights inside are large enough to be moved out."""
    then = graph("t", [node("MatMul", "x w", "a"), node("Relu", "a", "b")], [], [info("b", ["n", 32])], [const("w", f32(16, 32))])
    other = graph("e", [node("MatMul", "x w", "p"), node("Add", "p bias", "q"), node("Concat", "q q", "r", axis=0)], [], [info("r", ["m", 32])],
                  [const("w", f32(16, 32))])
    nodes = [node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s zero", "c"), node("If", "c", "y", then_branch=then, else_branch=other), node("Tanh", "y", "z")]
    g = graph("g", nodes, [info("x", ["B", 16])], [info("z", ["N", 32]), info("y", ["N", 32])], [const("zero", np.float32(0)), const("bias", f32(32))])
    return g, [{"x": np.abs(f32(3, 16))}, {"x": -np.abs(f32(2, 16))}]


@case
def if_outer_output():
    """A branch gives back what it captures, and a constant; a result that nobody reads."""
    then = graph("t", [node("Identity", "x", "same")], [], [info("same", ["B", 4]), info("k", [2])], [const("k", f32(2))])
    other = graph("e", [node("Neg", "x", "q"), node("Identity", "u", "v")], [], [info("q", ["B", 4]), info("v", [2])])
    nodes = [node("If", "c", "y unused", then_branch=then, else_branch=other), node("Add", "y x", "z")]
    g = graph("g", nodes, [info("c", [1], T.BOOL), info("x", ["B", 4]), info("u", [2])], [info("z", ["B", 4])])
    return g, [{"c": np.array([b]), "x": f32(3, 4), "u": f32(2)} for b in (True, False)]


@case
def if_nested():
    """An If in an If that captures from both graphs around it, shadowing a name of the outermost."""
    deep = graph("d", [node("Add", "x m", "h"), node("Mul", "h a", "deep")], [], [info("deep", ["B", 4])])
    flat = graph("f", [node("Sub", "x a", "flat")], [], [info("flat", ["B", 4])])
    then = graph("t", [node("Exp", "x", "a"), node("If", "d", "i", then_branch=deep, else_branch=flat)], [], [info("i", ["B", 4])])
    other = graph("e", [node("Mul", "x x", "j")], [], [info("j", ["B", 4])])
    g = graph("g", [node("Add", "x x", "m"), node("If", "c", "y", then_branch=then, else_branch=other)],
              [info("x", ["B", 4]), info("c", [], T.BOOL), info("d", [], T.BOOL)], [info("y", ["B", 4])])
    return g, [{"x": f32(2, 4), "c": np.array(c), "d": np.array(d)} for c, d in ((True, True), (True, False), (False, True))]


def turn(nodes, carried, stacked, constants=()):
    ins = [info("i", [], T.INT64), info("c", [], T.BOOL)] + [info(a, s) for a, _, s in carried]
    outs = [info("more", [], T.BOOL)] + [info(b, s) for _, b, s in carried] + [info(b, s) for b, s in stacked]
    return graph("turn", nodes, ins, outs, constants)


@case
def loop_count():
    """M turns, a carried value, a stacked result, a capture; M is an input and may be 0."""
    body = turn([node("Identity", "c", "more"), node("MatMul", "v w", "a"), node("Tanh", "a", "v2"), node("ReduceSum", "v2", "r", keepdims=0)], [("v", "v2", ["B", 8])], [("r", [])])
    g = graph("g", [node("Loop", "m yes x", "y s", body=body)], [info("m", [], T.INT64), info("x", ["B", 8])], [info("y", ["B", 8]), info("s", ["M"])],
              [const("w", f32(8, 8)), const("yes", np.array(True))])
    return g, [{"m": np.array(m, np.int64), "x": f32(2, 8)} for m in (4, 1, 0)]


@case
def loop_while():
    """Ends by its condition; what is carried grows every turn."""
    nodes = [node("Concat", "v x", "v2", axis=0), node("Shape", "v2", "n", end=1), node("Squeeze", "n", "k"), node("Less", "k most", "more"), node("Cast", "i", "fi", to=T.FLOAT)]
    body = turn(nodes, [("v", "v2", [None, 4])], [("fi", [])], [const("most", np.int64(9))])
    g = graph("g", [node("Loop", " c x", "y s", body=body), node("Relu", "y", "z")], [info("c", [], T.BOOL), info("x", ["B", 4])], [info("z", ["N", 4]), info("s", ["K"])])
    g.node[0].input[:] = ["", "c", "x"]
    return g, [{"c": np.array(True), "x": f32(2, 4)}, {"c": np.array(False), "x": f32(3, 4)}]


@case
def loop_swap():
    """Two carried values change places; the turn number is used; the condition has one element, not none."""
    nodes = [node("Identity", "c", "more"), node("Identity", "b", "a2"), node("Cast", "i", "f", to=T.FLOAT), node("Add", "a f", "b2")]
    body = turn(nodes, [("a", "a2", [3]), ("b", "b2", [3])], [("b", [3])])
    body.input[1].CopyFrom(info("c", [1], T.BOOL))
    body.output[0].CopyFrom(info("more", [1], T.BOOL))
    g = graph("g", [node("Loop", "m yes x u", "y v s", body=body)], [info("m", [1], T.INT64), info("x", [3]), info("u", [3])], [info("y", [3]), info("v", [3]), info("s", ["K", 3])],
              [const("yes", np.array([True]))])
    return g, [{"m": np.array([5], np.int64), "x": f32(3), "u": f32(3)}]


@case
def loop_in_if_in_loop():
    """Bodies in bodies; the innermost reads a weight of the main graph and the turn of the outer loop."""
    inner = graph("turn2", [node("Identity", "c2", "more2"), node("MatMul", "v2 w", "p"), node("Tanh", "p", "q"), node("Add", "q f", "v3")],
                  [info("i2", [], T.INT64), info("c2", [], T.BOOL), info("v2", ["B", 16])], [info("more2", [], T.BOOL), info("v3", ["B", 16])])
    then = graph("t", [node("Loop", "two yes v", "t", body=inner)], [], [info("t", ["B", 16])])
    other = graph("e", [node("Neg", "v", "e")], [], [info("e", ["B", 16])])
    nodes = [node("Identity", "c", "more"), node("Cast", "i", "f", to=T.FLOAT), node("Mod", "i two", "odd"), node("Cast", "odd", "b", to=T.BOOL),
             node("If", "b", "w2", then_branch=then, else_branch=other)]
    body = turn(nodes, [("v", "w2", ["B", 16])], [])
    g = graph("g", [node("MatMul", "x w", "y"), node("Loop", "m yes y", "z", body=body), node("MatMul", "z w", "out")], [info("m", [], T.INT64), info("x", ["B", 16])], [info("out", ["B", 16])],
              [const("w", f32(16, 16)), const("yes", np.array(True)), const("two", np.int64(2))])
    return g, [{"m": np.array(3, np.int64), "x": f32(2, 16)}]


@case
def scan_sum():
    """ONNX's own example: a running sum."""
    body = graph("b", [node("Add", "s x", "s2"), node("Identity", "s2", "o")], [info("s", [2]), info("x", [2])], [info("s2", [2]), info("o", [2])])
    g = graph("g", [node("Scan", "init xs", "last all", body=body, num_scan_inputs=1)], [info("init", [2]), info("xs", ["T", 2])], [info("last", [2]), info("all", ["T", 2])])
    return g, [{"init": f32(2), "xs": f32(t, 2)} for t in (3, 1)]


@case
def scan_axes():
    """A recurrent cell over axis 1, backwards, with a second operand along axis 0; stacked along axis 1, and backwards along axis 0."""
    nodes = [node("MatMul", "hh w", "a"), node("Add", "a x", "b"), node("Add", "b k", "d"), node("Tanh", "d", "h2"), node("Identity", "h2", "o"), node("ReduceMax", "h2", "p", keepdims=0)]
    body = graph("b", nodes, [info("hh", ["B", 6]), info("x", ["B", 6]), info("k", [6])], [info("h2", ["B", 6]), info("o", ["B", 6]), info("p", [])])
    scan = node("Scan", "h0 xs ks", "h os ps", body=body, num_scan_inputs=2, scan_input_axes=[1, 0], scan_input_directions=[1, 0], scan_output_axes=[1, 0], scan_output_directions=[0, 1])
    g = graph("g", [scan], [info("h0", ["B", 6]), info("xs", ["B", "T", 6]), info("ks", ["T", 6])], [info("h", ["B", 6]), info("os", ["B", "T", 6]), info("ps", ["T"])], [const("w", f32(6, 6))])
    return g, [{"h0": f32(2, 6), "xs": f32(2, 4, 6), "ks": f32(4, 6)}]


@case
def function_if():
    """Functions in functions; an attribute by reference reaches a node in a branch; so does a parameter that the call leaves out."""
    lines = ("""<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[B, 4] x, bool c) => (float[B, 4] y) { low = Constant <value_float = -0.5> ()  h = f.pick <slope = 0.25> (x, c, low)  y = f.twice (h) }
        <domain: "f", opset_import: ["" : 21, "f" : 1]> twice (a) => (b) { t = f.scale <by = 3.0> (a)  b = Add (a, t) }
        <domain: "f", opset_import: ["" : 21]> scale <by> (a) => (b) { k = Constant <value_float: float = @by> ()  b = Mul (a, k) }
        <domain: "f", opset_import: ["" : 21, "f" : 1]> pick <slope> (a, c, low, high) => (b) {
            b = If (c) <then_branch = t () => (r2) { q2 = LeakyRelu <alpha: float = @slope> (a)  r2 = Clip (q2, low, high) }, else_branch = e () => (r) { q = f.scale <by = 2.0> (a)  r = Sub (a, q) }> }""")
    return onnx.parser.parse_model(lines), [{"x": f32(3, 4), "c": np.array(c)} for c in (True, False)]


def write(folder, g, inputs):
    model = g if isinstance(g, onnx.ModelProto) else h.make_model(g, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    os.makedirs(folder, exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for k, feed in enumerate(inputs):
        data = os.path.join(folder, f"test_data_set_{k}")
        os.makedirs(data, exist_ok=True)
        for kind, names, values in (("input", list(feed), list(feed.values())), ("output", [o.name for o in session.get_outputs()], session.run(None, feed))):
            for i, (name, value) in enumerate(zip(names, values)):
                with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as file:
                    file.write(nh.from_array(value, name).SerializeToString())


for name, make in CASES.items():
    if len(sys.argv) < 3 or name in sys.argv[2:]:
        write(os.path.join(sys.argv[1], name), *make())
