#!/usr/bin/env python3
"""Bad model files: each is refused with one sentence that names what is wrong, and none crashes the loader.

hostile.py ROUNDTRIP [SEED COUNT]. Named cases, then COUNT random corruptions (default 150). Exit status 77 (skipped) where the
onnx package is missing.
"""
import os
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from onnx import TensorProto as T, helper as h, numpy_helper
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)


def model(nodes, opset=18, initializers=(), inputs=(("x", T.FLOAT, ["B", 4]),), outputs=("y",), functions=(), domains=()):
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info(*i) for i in inputs],
                         [h.make_tensor_value_info(o, T.FLOAT, None) for o in outputs], list(initializers))
    imports = [h.make_opsetid("", opset)] + [h.make_opsetid(d, 1) for d in domains]
    return h.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=8)


def node(op, inputs, outputs, **attributes):
    return h.make_node(op, inputs, outputs, **attributes)


def external(location, offset=None, length=None, dims=(4,), dtype=T.FLOAT):
    t = T()
    t.name, t.data_type, t.data_location = "w", dtype, T.EXTERNAL
    t.dims.extend(dims)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            t.external_data.add(key=key, value=str(value))
    return model([node("Add", ["x", "w"], ["y"])], initializers=[t])


def raw(dims, data, dtype=T.FLOAT):
    t = T()
    t.name, t.data_type, t.raw_data = "w", dtype, data
    t.dims.extend(dims)
    return model([node("Add", ["x", "w"], ["y"])], initializers=[t])


def varint(n):
    out = b""
    while n >= 128:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def training_nest(depth):
    body = b""
    for _ in range(depth):  # GraphProto.node.attribute.g
        for tag in (b"\x32", b"\x2a", b"\x0a"):
            body = tag + varint(len(body)) + body
    body = b"\x0a" + varint(len(body)) + body
    return model([node("Relu", ["x"], ["y"])]).SerializeToString() + b"\xa2\x01" + varint(len(body)) + body


def function(name, nodes, inputs=("a",), outputs=("b",)):
    return h.make_function("f", name, list(inputs), list(outputs), nodes, [h.make_opsetid("", 18), h.make_opsetid("f", 1)])


def sequence_input():
    m = model([node("Relu", ["x"], ["y"])])
    m.graph.input[0].CopyFrom(h.make_tensor_sequence_value_info("x", T.FLOAT, [2]))
    return m


def bomb():
    calls = [function(f"F{i}", [node(f"F{i - 1}", ["a"], ["t"], domain="f"), node(f"F{i - 1}", ["t"], ["b"], domain="f")]) for i in range(1, 40)]
    return model([node("F39", ["x"], ["y"], domain="f")], functions=[function("F0", [node("Relu", ["a"], ["b"])])] + calls, domains=["f"])


def body(nodes, outputs=("r",), inputs=(), constants=()):
    return h.make_graph(nodes, "b", [h.make_tensor_value_info(i, T.FLOAT, None) for i in inputs], [h.make_tensor_value_info(o, T.FLOAT, None) for o in outputs], constants)


def branches(then, other=None):
    return model([node("If", ["c"], ["y"], then_branch=then, else_branch=other or body([node("Neg", ["x"], ["r"])]))],
                 inputs=(("x", T.FLOAT, ["B", 4]), ("c", T.BOOL, [])))


def nested(depth):
    inner = body([node("Neg", ["x"], ["r"])])
    for _ in range(depth):
        inner = body([node("If", ["c"], ["r"], then_branch=inner, else_branch=body([node("Neg", ["x"], ["r"])]))])
    return branches(inner)


def loop_over_sequence():
    turn = body([node("Identity", ["k"], ["m"]), node("Identity", ["s"], ["t"])], ["m", "t"], ["i", "k", "s"])
    turn.input[2].CopyFrom(h.make_tensor_sequence_value_info("s", T.FLOAT, None))
    return model([node("Loop", ["", "c", "x"], ["y"], body=turn)], inputs=(("x", T.FLOAT, ["B", 4]), ("c", T.BOOL, [])))


def old_scan():
    return model([node("Scan", ["x", "x"], ["y"], body=body([node("Neg", ["v"], ["r"])], inputs=["v"]), num_scan_inputs=1)], opset=8)


def noted(size):
    heads = node("LinearAttention", ["x", "x", "x"], ["y"], q_num_heads=0, kv_num_heads=0)
    entry = heads.metadata_props.add()
    entry.key, entry.value = "tpc.head_size", size
    return model([heads], opset=27, inputs=(("x", T.FLOAT, ["B", 4, 0]),))


def sparse(values, at, dims, name="w"):
    m = model([node("Add", ["x", "w"], ["y"])])
    s = m.graph.sparse_initializer.add()
    s.dims.extend(dims)
    if values is not None:
        s.values.CopyFrom(numpy_helper.from_array(np.array(values), name))
    if at is not None:
        s.indices.CopyFrom(numpy_helper.from_array(np.array(at), "at"))
    return m


def sparse_tensors():
    two = np.float32([1, 2])
    yield "sparse initializer 0 has no name", sparse(None, [0, 1], [4])
    yield "sparse initializer 'w' has no indices", sparse(two, None, [4])
    yield "sparse initializer 'w' has index 4, expected 0 to 3", sparse(two, [0, 4], [4])
    yield "sparse initializer 'w' has index -1, expected 0 to 3", sparse(two, [-1, 2], [4])
    yield "sparse initializer 'w' has index 2, expected 0 to 1", sparse(two, [[0, 1], [0, 2]], [4, 2])
    yield "sparse initializer 'w' has its value 1 out of order", sparse(two, [2, 2], [4])
    for at in ([0, 1, 2], [[0, 0], [0, 1]], np.int32([0, 1])):
        yield "sparse initializer 'w' has indices that fit neither its 2 values nor its 1 dimensions", sparse(two, at, [4])
    yield "sparse initializer 'w' is a sparse tensor of 4294967296 bytes, at most 2147483648 are handled", sparse(two, [0, 1], [1 << 30])
    yield "sparse initializer 'w' has dimensions whose product is out of range", sparse(two, [0, 1], [1 << 40, 1 << 40])
    yield "sparse initializer 'w' is a sparse tensor of string, which tpc does not handle", sparse(["a", "b"], [0, 1], [4])
    far = sparse(two, [0, 1], [4])
    far.graph.sparse_initializer[0].values.CopyFrom(external("w.data").graph.initializer[0])
    yield "w.data", far


def cases(good):
    bytes_of = good.SerializeToString()
    relu = [node("Relu", ["x"], ["y"])]
    yield "the file is empty", b""
    yield "not an ONNX file", b"this is no model, only some text\n"
    yield "cut off", bytes_of[:-7]
    yield "holds no graph", b"\x08\x08"
    yield "a second graph", bytes_of + b"\x3a\x00"
    yield "nested more than", training_nest(60)
    yield "defined already", model(relu + relu)
    yield "defined already", model(relu, initializers=[numpy_helper.from_array(np.float32([1]), "w")] * 2)
    yield "which nothing produces", model([node("Add", ["x", "nowhere"], ["y"])])
    yield "graph outputs reads 'z', which nothing produces", model(relu, outputs=["y", "z"])
    yield "graph output 'y' is listed twice", model(relu, outputs=["y", "y"])
    yield "attribute 'slope' is not known for Relu", model([node("Relu", ["x"], ["y"], slope=1.0)])
    yield "attribute 'head_size' is not known for Attention", model([node("Attention", ["x", "x", "x"], ["y"], q_num_heads=0, kv_num_heads=0, head_size=4)], opset=23)
    for size in ("four", "-4", "4 ", "99999999999999999999"):
        yield f"metadata 'tpc.head_size' is '{size}', expected an integer of 0 or more", noted(size)
    yield "attribute 'axis' is FLOAT, expected INT", model([node("Softmax", ["x"], ["y"], axis=1.0)])
    yield "lacks its attribute 'to'", model([node("Cast", ["x"], ["y"])])
    yield "has 1 operands, expected 2", model([node("Add", ["x"], ["y"])])
    yield "lacks its operand 'A'", model([node("Add", ["", "x"], ["y"])])
    yield "'m', which node 'd' (Dropout) gives in training only, by opset 9", model([
        h.make_node("Dropout", ["x"], ["a", "m"], name="d"), node("Add", ["a", "m"], ["y"])], opset=9)
    for why, s in sparse_tensors():
        yield why, s
    yield "is of opset 99, tpc knows", model(relu, opset=99)
    yield "needs domain 'elsewhere'", model([node("Foo", ["x"], ["y"], domain="elsewhere")])
    yield "export the model with opset 9 or later", model([node("MeanVarianceNormalization", ["x"], ["y"])], opset=8)
    yield "'s' is f32[6], expected a number for each of 3 groups, as opset 18 has it", model(
        [node("GroupNormalization", ["x", "s", "s"], ["y"], num_groups=3)], inputs=(("x", T.FLOAT, [2, 6, 4]), ("s", T.FLOAT, [6])))
    yield "(GroupNormalization) has 3 operands and num_groups = 0, expected 3 and a number from 1", model(
        [node("GroupNormalization", ["x", "x", "x"], ["y"], num_groups=0)])
    yield "is a sequence: give the number of its elements", sequence_input()
    yield "reads 'nowhere', which nothing produces", branches(body([node("Neg", ["nowhere"], ["r"])]))
    yield "depends on its own output: the graph has a cycle", branches(body([node("Neg", ["y"], ["r"])]))
    yield "depends on its own output: the graph has a cycle", branches(body([node("Add", ["x", "s"], ["r"]), node("Neg", ["r"], ["s"])]))
    yield "bodies are nested more than 16 deep", nested(20)
    yield "'s' is a sequence, expected a tensor", loop_over_sequence()
    yield "gives the lengths of its sequences, which tpc does not handle", old_scan()
    yield "lacks its else_branch", model([node("If", ["c"], ["y"], then_branch=body([node("Neg", ["x"], ["r"])]))], inputs=(("x", T.FLOAT, [4]), ("c", T.BOOL, [])))
    yield "has 9 dimensions, at most 8", model(relu, inputs=(("x", T.FLOAT, [1] * 9),))
    yield "data type COMPLEX64", model(relu, inputs=(("x", T.COMPLEX64, [1]),))
    yield "has 12 bytes of raw data, its type and dimensions need 16", raw([4], b"\0" * 12)
    yield "has 2000 bytes of raw data, its type and dimensions need 4000", raw([1000], b"\0" * 2000)
    yield "product is out of range", raw([1 << 40, 1 << 40], b"")
    yield "product is out of range", raw([1 << 62, 4], b"")
    yield "of size -1, expected 0 or more", raw([-1], b"\0" * 4)
    yield "has 0 elements in float_data", model(relu, initializers=[T(name="w", data_type=T.FLOAT, dims=[1 << 33])])
    yield "data type COMPLEX64", raw([4], b"\0" * 32, T.COMPLEX64)
    yield "leaves the model's folder", external("../secret")
    yield "leaves the model's folder", external("a/../../secret")
    yield "relative to the model", external("/etc/passwd")
    yield "outside the model's folder", external("link")
    yield "no regular file", external("folder")
    yield "does not exist", external("nothing.bin", 0, 16)
    yield "without a location", external(None)
    yield "offset '-4', expected a number", external("data.bin", -4, 16)
    yield "length '16x', expected a number", external("data.bin", 0, "16x")
    yield "which has 64 bytes", external("data.bin", 56, 16)
    yield "which has 64 bytes", external("data.bin", 1 << 62, 16)
    yield "has 12 bytes of external data, its type and dimensions need 16", external("data.bin", 0, 12)
    yield "calls itself", model([node("F", ["x"], ["y"], domain="f")], functions=[function("F", [node("F", ["a"], ["b"], domain="f")])], domains=["f"])
    yield "more than 200000 nodes", bomb()
    yield "does not produce its result", model([node("F", ["x"], ["y"], domain="f")], functions=[function("F", [])], domains=["f"])
    yield "", model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])])  # a cycle


def accepted():
    yield external("data.bin", 4, 16)
    yield external("data.bin", 48)
    yield external("sub/a..b.bin", 0, 16)


def run(tool, path, *options, data=None):
    for out in [path + ".out"] + [data] * bool(data):   # files are made new
        if os.path.exists(out):
            os.remove(out)
    done = subprocess.run([tool, *options, path, path + ".out"] + [data] * bool(data), capture_output=True, timeout=300, check=False)
    return done.returncode, done.stderr.decode(errors="replace").strip()


def write(path, content):
    with open(path, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.SerializeToString())


def prepare(folder):
    os.mkdir(folder + "/folder")
    os.mkdir(folder + "/sub")
    os.symlink("/etc/passwd", folder + "/link")
    for name in ("/data.bin", "/sub/a..b.bin"):
        with open(folder + name, "wb") as f:
            f.write(bytes(64))


def corrupt(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(data))
        kind = rng.randrange(3)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << rng.randrange(8)
        else:
            del data[at:at + rng.randrange(1, 9)]
    return bytes(data)


def linked(tool, folder):
    """Model and data as links to blobs elsewhere, as download caches keep them."""
    os.makedirs(folder + "/cache/blobs")
    os.makedirs(folder + "/cache/snapshot")
    write(folder + "/cache/blobs/1", external("w.bin", 0, 16))
    write(folder + "/cache/blobs/2", bytes(16))
    os.symlink("../blobs/1", folder + "/cache/snapshot/model.onnx")
    os.symlink("../blobs/2", folder + "/cache/snapshot/w.bin")
    return run(tool, folder + "/cache/snapshot/model.onnx")


def main():
    tool, bad, seen = sys.argv[1], [], 0
    seed, count = (int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 3 else (1, 150)
    weights = numpy_helper.from_array(np.ones((4, 400), np.float32), "w")
    good = model([node("MatMul", ["x", "w"], ["a"]), node("Softmax", ["a"], ["b"]), node("Cast", ["b"], ["y"], to=T.FLOAT)], initializers=[weights])
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder)
        path = folder + "/model.onnx"
        for want, content in cases(good):
            write(path, content)
            status, text = run(tool, path)
            seen += 1
            if status != 1 or want not in text or "\n" in text or path not in text:
                bad.append(f"expected '{want}', status 1: {status} {text[-400:]}")
        for content in accepted():
            write(path, content)
            status, text = run(tool, path)
            seen += 1
            if status:
                bad.append(f"expected success: {status} {text[-400:]}")
        write(path, external("nothing.bin", 0, 4000, [1000]))
        status, text = run(tool, path, "-i", data=folder + "/unwritten.data")
        if status or os.path.exists(folder + "/unwritten.data"):
            bad.append(f"missing data without need: {status} {text}")
        status, text = linked(tool, folder)
        if status:
            bad.append(f"links in a cache: {status} {text}")
        rng, whole = random.Random(seed), good.SerializeToString()
        for i in range(count):
            write(path, corrupt(rng, whole))
            status, text = run(tool, path)
            if status not in (0, 1):
                bad.append(f"corruption {i}: status {status} {text[-400:]}")
    print("\n".join(bad) or f"{seen} cases and {count} corruptions")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
