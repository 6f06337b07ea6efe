"""few_bits.py BUILD: elements of 2 and 4 bits compute what ONNX's reference evaluator computes, whole and on two and three ranks: as
weights that ops read where they lie, as weights that are moved first, as values, inputs and outputs, and in .npy files.

Exit status 77 (skipped) where onnx, ml_dtypes or numpy is missing.
"""
import os
import subprocess
import sys
import tempfile

try:
    import joined
    import ml_dtypes
    import numpy as np
    import onnx
    from onnx import TensorProto as T, helper as h, numpy_helper
    from onnx.reference import ReferenceEvaluator

    TYPES = {"INT4": ml_dtypes.int4, "UINT4": ml_dtypes.uint4, "INT2": ml_dtypes.int2, "UINT2": ml_dtypes.uint2, "FLOAT4E2M1": ml_dtypes.float4_e2m1fn}
except (ImportError, AttributeError) as error:
    print("skipped:", error)
    sys.exit(77)

RNG = np.random.default_rng(5)
TOOLS = None


def few(name, *shape):
    """Random elements of all values."""
    bits = 2 if name.endswith("2") else 4
    return RNG.integers(0, 1 << bits, shape).astype(np.uint8).view(TYPES[name])


def real(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def model(nodes, inputs, outputs, weights):
    given = [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in inputs.items()]
    graph = h.make_graph(nodes, "g", given, [h.make_tensor_value_info(n, t, None) for n, t in outputs.items()],
                         [numpy_helper.from_array(np.asarray(v), n) for n, v in weights.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 25)], ir_version=13), inputs


def cases(kind):
    t = getattr(T, kind)
    node = h.make_node
    for k, n in ((8, 12), (7, 5), (9, 40)):
        yield f"a product, {k} by {n}", *model(
            [node("DequantizeLinear", ["q", "s"], ["w"], axis=1), node("MatMul", ["x", "w"], ["y"])],
            {"x": real(3, k)}, {"y": T.FLOAT}, {"q": few(kind, k, n), "s": real(n) ** 2 + np.float32(0.1)})
        yield f"a transposed weight, {k} by {n}", *model(
            [node("Transpose", ["q"], ["r"]), node("DequantizeLinear", ["r", "s"], ["w"], axis=1), node("MatMul", ["x", "w"], ["y"])],
            {"x": real(3, n)}, {"y": T.FLOAT}, {"q": few(kind, k, n), "s": real(k) ** 2 + np.float32(0.1)})
        yield f"rows of a table, {k} by {n}", *model(
            [node("Gather", ["q", "i"], ["r"]), node("Concat", ["r", "q"], ["c"], axis=0), node("Cast", ["c"], ["y"], to=T.FLOAT), node("Identity", ["c"], ["z"])],
            {"i": RNG.integers(0, k, 5)}, {"y": T.FLOAT, "z": t}, {"q": few(kind, k, n)})
    for shape in ((3, 7), (5,), (), (0, 3), (4, 8)):
        yield f"values of shape {shape}", *model(
            [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y"]), node("Cast", ["v"], ["f"], to=T.FLOAT),
             node("Identity", ["v"], ["o"])],
            {"x": 4 * real(*shape), "v": few(kind, *shape)}, {"q": t, "y": T.FLOAT, "f": T.FLOAT, "o": t},
            {"s": np.float32(0.5), "z": np.zeros((), TYPES[kind])})
    if kind != "FLOAT4E2M1":
        yield "bits as another type", *model(
            [node("BitCast", ["v"], ["o"], to=getattr(T, kind[1:] if kind[0] == "U" else "U" + kind)), node("Cast", ["o"], ["y"], to=T.INT32)],
            {"v": few(kind, 4, 5)}, {"y": T.INT32}, {})


def write(folder, kind, arrays):
    for i, (name, value) in enumerate(arrays):
        with open(os.path.join(folder, f"{kind}_{i}.pb"), "wb") as file:
            file.write(numpy_helper.from_array(np.asarray(value), name).SerializeToString())


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})  # hundreds of tiny runs
    return (done.stdout + done.stderr).strip().splitlines()[-1] if done.returncode else None


def check(folder, made, inputs):
    run, shard = TOOLS
    names = [o.name for o in made.graph.output]
    path, data, out = (os.path.join(folder, n) for n in ("m.onnx", "data", "out"))
    os.makedirs(data)
    onnx.save(made, path)
    write(data, "input", inputs.items())
    write(data, "output", zip(names, ReferenceEvaluator(made).run(names, inputs)))
    why = call(run, path, "--test-data", data)
    for n in ("2", "3"):
        why = why or call(shard, path, "--tp", n, "-o", out + n, "-q") or call(run, out + n, "--local", n, "--test-data", data)
    return why


def tried(made, inputs):
    with tempfile.TemporaryDirectory() as folder:
        return check(folder, made, inputs)


def npy(folder, kind):
    """What is read from a .npy file, as numbers or as ml_dtypes writes it, is what is written."""
    run, _ = TOOLS
    made, inputs = model([h.make_node("Identity", ["v"], ["o"])], {"v": few(kind, 3, 5)}, {"o": getattr(T, kind)}, {})
    path, file, out = (os.path.join(folder, n) for n in ("m.onnx", "v.npy", "out"))
    onnx.save(made, path)
    v = inputs["v"]
    integer = v.astype(np.int8) if kind.startswith("INT") else v.view(np.uint8)
    for form in (v, integer):
        np.save(file, form)
        why = call(run, path, "--input", f"v={file}", "--output", out)
        if why:
            return why
        back = np.load(os.path.join(out, "o.npy"))
        if back.dtype != integer.dtype or not np.array_equal(back, integer) or not np.array_equal(back.view(TYPES[kind]), v):
            return f"{back.dtype} {back} instead of {integer.dtype} {integer}"
    np.save(file, np.full((3, 5), 99, np.int8))
    why = call(run, path, "--input", f"v={file}", "--output", out)
    return None if why and "element 0 is 99" in why else f"99 is not refused: {why}"


def main():
    global TOOLS
    TOOLS = [os.path.join(sys.argv[1], n) for n in ("tpc-run", "tpc-shard")]
    made = [(f"{kind}, {name}", model, inputs) for kind in TYPES for name, model, inputs in cases(kind)]
    wrong = joined.faults([case[1:] for case in made], tried)
    for i, why in wrong.items():
        print(f"FAILED {made[i][0]}: {why}")
    bad, count = len(wrong), len(made)
    for kind in TYPES:
        count += 1
        with tempfile.TemporaryDirectory() as folder:
            why = npy(folder, kind)
        if why:
            bad += 1
            print(f"FAILED {kind}, .npy: {why}")
    print(f"{count} cases, {bad} failed")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
