#!/usr/bin/env python3
"""Older forms of ops, functions and ways to hold constants: a model and what the loader and writer make of it compute the same.

forms.py ROUNDTRIP. Each case is a model built with the onnx package; ONNX Runtime runs it before and after the round trip. Exit
status 77 (skipped) where onnx, onnxruntime or numpy is missing.
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto as T, helper as h, numpy_helper
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

onnxruntime.set_default_logger_severity(4)
RNG = np.random.default_rng(1)
X = RNG.standard_normal((2, 6, 4)).astype(np.float32)
CASES = []


def model(nodes, opset, outputs, initializers=(), functions=(), inputs=None, types=None, domains=()):
    inputs = {"x": X} if inputs is None else inputs
    given = [h.make_tensor_value_info(k, h.np_dtype_to_tensor_dtype(v.dtype), [f"{k}{i}" for i in range(v.ndim)]) for k, v in inputs.items()]
    results = [h.make_tensor_value_info(o, (types or {}).get(o, T.FLOAT), None) for o in outputs]
    graph = h.make_graph(nodes, "g", given, results, list(initializers))
    imports = [h.make_opsetid("", opset)] + [h.make_opsetid(d, 1) for d in domains]
    return h.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=8 if opset < 19 else 10), inputs


def case(name, nodes, opset, outputs, *args, **kwargs):
    CASES.append((f"{name} at opset {opset}", *model(nodes, opset, outputs, *args, **kwargs)))


def node(op, inputs, outputs, **attributes):
    return h.make_node(op, inputs, outputs, **attributes)


def const(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def old_forms():
    for opset in (7, 9, 11, 12):
        case("Unsqueeze, Squeeze", [node("Unsqueeze", ["x"], ["a"], axes=[0, 2]), node("Squeeze", ["a"], ["y"], axes=[0])], opset, ["y"])
        case("ReduceSum", [node("ReduceSum", ["x"], ["y"], axes=[1], keepdims=0)], opset, ["y"])
        case("Split", [node("Split", ["x"], ["y", "z"], axis=1, split=[2, 4])], opset, ["y", "z"])
        case("Split in halves", [node("Split", ["x"], ["y", "z"], axis=1)], opset, ["y", "z"])
        case("Softmax of the last axis", [node("Softmax", ["x"], ["y"], axis=2)], opset, ["y"])
        case("Softmax flattened", [node("Softmax", ["x"], ["y"])], opset, ["y"])
        case("LogSoftmax", [node("LogSoftmax", ["x"], ["y"], axis=1)], opset, ["y"])
        case("Dropout", [node("Dropout", ["x"], ["y"])], opset, ["y"])
    body = h.make_graph([node("Sub", ["next", "sum"], ["out"]), node("Mul", ["out", "out"], ["all"])], "body",
                        [h.make_tensor_value_info(n, T.FLOAT, [4]) for n in ("sum", "next")], [h.make_tensor_value_info(n, T.FLOAT, [4]) for n in ("out", "all")])
    for directions in ([0], [1]):
        case(f"Scan over a batch, direction {directions}", [node("Scan", ["", "i", "x"], ["y", "z"], body=body, num_scan_inputs=1, directions=directions)], 8,
             ["y", "z"], inputs={"i": X[:, 0], "x": X})
    for opset in (7, 9):
        case("Slice", [node("Slice", ["x"], ["y"], axes=[1, 2], starts=[1, -3], ends=[1000, -1])], opset, ["y"])
        case("Slice without axes", [node("Slice", ["x"], ["y"], starts=[0, 1], ends=[1, 3])], opset, ["y"])
        case("Clip", [node("Clip", ["x"], ["y"], min=-0.5, max=0.25)], opset, ["y"])
        case("Pad", [node("Pad", ["x"], ["y"], pads=[0, 1, 0, 0, 0, 2], value=1.5)], opset, ["y"])
        case("TopK", [node("TopK", ["x"], ["y", "z"], k=3, axis=1)], opset, ["y"])
    for op in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"):
        for opset in (7, 11, 13, 17):
            case(op, [node(op, ["x"], ["y"], axes=[-1 if opset > 10 else 2])], opset, ["y"])
    case("ReduceMean of all", [node("ReduceMean", ["x"], ["y"], keepdims=0)], 13, ["y"])
    case("Split", [node("Split", ["x", "s"], ["y", "z"], axis=1)], 13, ["y", "z"], [const("s", np.array([2, 4]))])
    case("Split in halves", [node("Split", ["x"], ["y", "z"], axis=1)], 17, ["y", "z"])
    case("Softmax", [node("Softmax", ["x"], ["y"])], 13, ["y"])


def early(op, opset, expected, inputs, outputs=("y",), kind=T.FLOAT, initializers=(), **attributes):
    """A form that ONNX Runtime does not know: numpy says what is expected."""
    built = model([node(op, list(inputs), list(outputs), **attributes)], opset, ["y"], initializers, types={"y": kind})
    CASES.append((f"{op} at opset {opset}", *built, expected))


def early_forms():
    """Before opset 7, and groups of channels with a scale for each."""
    channels = np.float32([1, -2, 3, -4, 5, -6])
    c = [const("c", channels)]
    for opset in (1, 6):
        early("Add", opset, X + channels[:, None], ["x", "c"], initializers=c, broadcast=1, axis=1)
        early("Mul", opset, X * channels[:, None], ["x", "c"], initializers=c, broadcast=1, axis=-2)
        early("Sub", opset, X - X[0, 0], ["x", "d"], initializers=[const("d", X[0, 0])], broadcast=1)
        early("PRelu", opset, np.where(X < 0, channels[:, None] * X, X), ["x", "c"], initializers=c)
        early("PRelu", opset, np.where(X < 0, -2 * X, X), ["x", "c"], initializers=[const("c", channels[1:2])])
    early("Relu", 1, np.maximum(X, 0), ["x"], consumed_inputs=[0])
    early("Cast", 1, X.astype(np.float64), ["x"], kind=T.DOUBLE, to="DOUBLE")
    early("Reshape", 1, X.reshape(4, 12), ["x"], shape=[4, -1])
    early("Concat", 1, np.concatenate([X, X], 1), ["x", "x"])
    early("Pad", 1, np.pad(X, ((0, 0), (1, 0), (0, 2))), ["x"], paddings=[0, 1, 0, 0, 0, 2])
    early("Tile", 1, np.tile(X, (1, 3, 1)), ["x", "n", "a"], initializers=[const("n", np.float32(3)), const("a", np.float32(1))])
    for opset, groups in ((18, 3), (20, 1), (18, 6), (20, 2)):
        scale, rows = np.linspace(-2, 3, groups).astype(np.float32), X.reshape(2, groups, -1).astype(np.float64)
        normal = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + 1e-3)
        early("GroupNormalization", opset, (normal * scale[:, None] + scale[::-1, None]).astype(np.float32).reshape(X.shape), ["x", "s", "b"],
              initializers=[const("s", scale), const("b", scale[::-1])], num_groups=groups, epsilon=1e-3)
    early("Selu", 1, np.where(X > 0, 1.0507 * X, 1.0507 * 1.6732 * (np.exp(X) - 1)), ["x"])
    image = X[None]
    CASES.append(("Upsample at opset 1", *model([node("Upsample", ["x"], ["y"], height_scale=2.0, width_scale=3.0)], 1, ["y"], inputs={"x": image}),
                  image.repeat(2, 2).repeat(3, 3)))
    case("Upsample", [node("Upsample", ["x"], ["y"], scales=[1.0, 2.0, 3.0])], 8, ["y"])
    m, inputs = model([node("Relu", ["x"], ["y"])], 9, ["y"])
    for d, dim in enumerate(m.graph.input[0].type.tensor_type.shape.dim):
        dim.dim_param = "?"
        if d == 1:
            dim.dim_value = -1
    CASES.append(("dimensions of which nothing is known", m, inputs))


def training_forms():
    channels = np.arange(1, 7, dtype=np.float32)
    given = [const(n, channels * k) for n, k in (("s", 1), ("b", -1), ("m", 0.5), ("v", 2))]
    mean, var = X.mean((0, 2)), X.var((0, 2))
    want = (X - mean[:, None]) / np.sqrt(var[:, None] + 1e-5) * channels[:, None] - channels[:, None]
    tested = (X - channels[:, None] / 2) / np.sqrt(channels[:, None] * 2 + 1e-5) * channels[:, None] - channels[:, None]
    operands, five = ["x", "s", "b", "m", "v"], ["y", "mean", "var", "saved_mean", "saved_var"]
    early("BatchNormalization", 6, tested, operands, five, initializers=given, is_test=1)
    early("BatchNormalization", 6, want, operands, five, initializers=given)
    early("BatchNormalization", 9, want, operands, five, initializers=given)
    for out, expected in (("y", want), ("mean", channels * 0.25 + mean * 0.5), ("var", channels + var * 0.5)):
        built = model([node("BatchNormalization", operands, five[:3], training_mode=1, momentum=0.5)], 15, [out], given)
        CASES.append((f"{out} of BatchNormalization in training", *built, expected))
    case("Dropout whose mask nobody reads", [node("Dropout", ["x"], ["y", "mask"])], 9, ["y"])
    zero = [const("r", np.float32(0)), const("t", np.array(True))]
    case("Dropout in training that drops nothing", [node("Dropout", ["x", "r", "t"], ["y", "mask"])], 13, ["y", "mask"], zero, types={"mask": T.BOOL})


def constants():
    case("value_int and value_floats", [node("Constant", [], ["f"], value_floats=[1.0, 2.0, 3.0, 4.0]), node("Constant", [], ["i"], value_int=1),
                                        node("Gather", ["x", "i"], ["a"], axis=1), node("Mul", ["a", "f"], ["y"])], 13, ["y"])
    case("value_ints and value_float", [node("Constant", [], ["s"], value_ints=[4, -1]), node("Constant", [], ["f"], value_float=0.5),
                                        node("Reshape", ["x", "s"], ["a"]), node("Mul", ["a", "f"], ["y"])], 13, ["y"])
    typed = [h.make_tensor("f", T.FLOAT, [4], [1, 2, 3, 4]), h.make_tensor("b", T.BOOL, [4], [True, False, True, True]),
             h.make_tensor("h", T.FLOAT16, [4], np.array([1, -2, 0.5, 3], np.float16)), h.make_tensor("d", T.DOUBLE, [4], [0.5, 1, 2, 4]),
             h.make_tensor("u", T.UINT32, [4], [7, 8, 9, 4294967295]), h.make_tensor("c", T.INT8, [4], [-128, -1, 0, 127]),
             h.make_tensor("l", T.INT64, [2], [-1, 4])]
    casts = [node("Cast", [n], [n + "f"], to=T.FLOAT) for n in "hduc"]
    sums = [node("Where", ["b", "x", "f"], ["w"]), node("Sum", ["w", "hf", "df", "uf", "cf"], ["v"]), node("Reshape", ["v", "l"], ["y"])]
    case("typed initializers", casts + sums, 13, ["y"], typed)
    case("nodes out of order", [node("Relu", ["a"], ["y"]), node("Neg", ["x"], ["a"])], 13, ["y"])
    case("ConstantOfShape", [node("Shape", ["x"], ["s"]), node("ConstantOfShape", ["s"], ["c"], value=h.make_tensor("v", T.FLOAT, [1], [2.5])),
                             node("Add", ["c", "x"], ["y"])], 9, ["y"])
    m, inputs = model([node("Mul", ["x", "w"], ["y"])], 9, ["y"], [const("w", np.float32([1, 2, 3, 4]))])
    m.graph.input.append(h.make_tensor_value_info("w", T.FLOAT, [4]))
    CASES.append(("an initializer that is also an input", m, inputs))


def with_ref(n, name, ref, kind):
    a = n.attribute.add()
    a.name, a.ref_attr_name, a.type = name, ref, kind
    return n


def functions():
    A = onnx.AttributeProto
    opset = [h.make_opsetid("", 13), h.make_opsetid("f", 1)]
    leaky = h.make_function("f", "Leaky", ["a"], ["b"], [with_ref(node("LeakyRelu", ["a"], ["b"]), "alpha", "slope", A.FLOAT)], opset, ["slope"])
    twice = h.make_function("f", "Twice", ["a", "c"], ["b", "a2"], [
        with_ref(node("Leaky", ["a"], ["t"], domain="f"), "slope", "s", A.FLOAT), node("Leaky", ["t"], ["u"], domain="f", slope=0.5),
        node("Clip", ["u", "", "c"], ["b"]), node("Identity", ["a"], ["a2"])], opset, [], [h.make_attribute("s", 0.1)])
    same = h.make_function("f", "Same", ["a"], ["a"], [], opset)
    old = h.make_function("f", "Old", ["a"], ["b"], [node("Unsqueeze", ["a"], ["b"], axes=[0])], [h.make_opsetid("", 11)])
    top = const("m", np.float32(0.2))
    case("nested functions", [node("Twice", ["x", "m"], ["y", "z"], domain="f", s=0.3), node("Leaky", ["y"], ["t"], domain="f", slope=2.0)], 13,
         ["y", "z", "t"], [top], [leaky, twice], domains=["f"])
    case("functions with absent operand and defaults", [node("Twice", ["x"], ["y", "z"], domain="f")], 13, ["y"], [], [leaky, twice], domains=["f"])
    CASES.append(("a function that returns its parameter", *model([node("Same", ["x"], ["y"], domain="f")], 13, ["y"], [], [same], domains=["f"]), X))
    CASES.append(("a function of an older opset", *model([node("Old", ["x"], ["y"], domain="f")], 17, ["y"], [], [old], domains=["f"]), X[None]))


def run(path, inputs, outputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(outputs, inputs)


def check(tool, folder, m, inputs, expected=None):
    outputs = [o.name for o in m.graph.output]
    before, after = os.path.join(folder, "before.onnx"), os.path.join(folder, "after.onnx")
    if os.path.exists(after):   # files are made new
        os.remove(after)
    onnx.save(m, before)
    subprocess.run([tool, before, after], check=True, stdout=subprocess.DEVNULL)
    saved = onnx.load(after)
    assert [o.name for o in saved.graph.output] == outputs and max(i.version for i in saved.opset_import if not i.domain) >= 23
    symbols = [d.dim_param for v in saved.graph.input for d in v.type.tensor_type.shape.dim]
    assert all(symbols) and len(set(symbols)) == len(symbols), symbols
    want = [expected] if expected is not None else run(before, inputs, outputs)
    for a, b in zip(run(after, inputs, outputs), want):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def tensors(tool, folder):
    source, target = os.path.join(folder, "t.pb"), os.path.join(folder, "t.npy")
    for dtype in "f4 f8 f2 i8 i4 i2 i1 u8 u4 u2 u1 ?".split():
        for shape in ((), (3,), (2, 0, 3), (2, 3, 4)):
            a = (RNG.standard_normal(shape) * 50).astype(dtype)
            with open(source, "wb") as f:
                f.write(numpy_helper.from_array(a, "name").SerializeToString())
            subprocess.run([tool, "--tensor", source, target], check=True, stdout=subprocess.DEVNULL)
            b = np.load(target)
            assert b.dtype == a.dtype and b.shape == a.shape and np.array_equal(a, b), (dtype, shape)
            np.save(source + ".npy", np.asfortranarray(a) if a.ndim else a)
            subprocess.run([tool, "--npy", source + ".npy", target], check=True, stdout=subprocess.DEVNULL)
            b = np.load(target)
            assert b.dtype == a.dtype and b.shape == a.shape and np.array_equal(a, b), ("npy", dtype, shape)


def main():
    tool, bad = sys.argv[1], 0
    old_forms()
    early_forms()
    training_forms()
    constants()
    functions()
    with tempfile.TemporaryDirectory() as folder:
        for name, *rest in CASES:
            try:
                check(tool, folder, *rest)
            except Exception as error:  # noqa: BLE001: every case is reported
                bad += 1
                print(f"FAILED {name}: {error}")
        tensors(tool, folder)
    print(f"{len(CASES)} models, {bad} failed; tensors agree with numpy")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
