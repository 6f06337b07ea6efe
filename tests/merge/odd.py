#!/usr/bin/env python3
"""Odd models, byte by byte: what merging must give back though no exporter writes it.

odd.py FOLDER writes FOLDER/inline/model.onnx, FOLDER/layers/model.onnx, and FOLDER/external/model.onnx with the files it refers to. Standard
library only.
"""
import os
import random
import struct
import sys

RNG = random.Random(7)


# ---- the wire format ----

def varint(n, least=1):
    out = b""
    while n >= 0x80 or len(out) + 1 < least:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def block(field, data, least=1):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data), least) + data


def entry(key, value):
    return block(1, key) + block(2, value)


# ---- ONNX ----

def floats(n):
    return struct.pack(f"<{n}f", *(RNG.uniform(-1, 1) for _ in range(n)))


def dims(*sizes):
    return b"".join(number(1, n) for n in sizes)


def tensor(name, sizes, *fields, dtype=1):
    return dims(*sizes) + number(2, dtype) + b"".join(fields) + block(8, name)


def raw(n):
    return block(9, floats(n))


def node(op, inputs, outputs, *attributes, domain=None):
    out = b"".join(block(1, i) for i in inputs) + b"".join(block(2, o) for o in outputs) + block(4, op)
    return out + b"".join(block(5, a) for a in attributes) + (block(7, domain) if domain else b"")


def attribute(name, field, value, kind):
    return block(1, name) + block(field, value) + number(20, kind)


def value_info(name, *sizes, dtype=1):
    shape = b"".join(block(1, block(2, n) if isinstance(n, str) else number(1, n)) for n in sizes)
    return block(1, name) + block(2, block(1, number(1, dtype) + block(2, shape)))


X_AND_Y = block(11, value_info("x", "B", 64)) + block(12, value_info("y", "B", 64))


def model(nodes, initializers, extra=b"", graph_extra=b"", opset=17, ends=X_AND_Y, domain="own"):
    graph = b"".join(block(1, n) for n in nodes) + block(2, "g") + b"".join(initializers) + ends + graph_extra
    imports = block(8, number(2, opset)) + block(8, block(1, domain) + number(2, 1))
    return number(1, 8) + block(2, "odd") + block(7, graph) + imports + extra


def initializer(*parts):
    return block(5, b"".join(parts))


def chain(weights):
    """x -> MatMul w0 -> Relu -> MatMul w1 -> ... -> y"""
    nodes, at = [], "x"
    for i, w in enumerate(weights):
        last = i + 1 == len(weights)
        nodes.append(node("MatMul", [at, w], [f"m{i}"]))
        nodes.append(node("Relu", [f"m{i}"], ["end" if last else f"r{i}"]))
        at = f"r{i}"
    return nodes


# ---- the models ----

def inline_model():
    names = ["plain", "/layer.0/größe/重み", "n" * 3000, "first.raw", "after.raw", "stale.before", "stale.after", "long.length"]
    stale = block(13, entry("location", "nowhere")) + block(13, entry("offset", "12"))
    initializers = [
        initializer(tensor(names[0], (64, 64), raw(4096))),
        initializer(tensor(names[1], (64, 64), raw(4096))),
        initializer(tensor(names[2], (64, 64), raw(4096))),
        initializer(raw(4096), tensor(names[3], (64, 64))),
        initializer(tensor(names[4], (64, 64), raw(4096), block(12, "a doc"), block(16, entry("k", "v")), block(99, b"unknown"))),
        initializer(number(14, 0), stale, tensor(names[5], (64, 64), raw(4096))),
        initializer(tensor(names[6], (64, 64), raw(4096)), stale, number(14, 0)),
        block(5, tensor(names[7], (64, 64), block(9, floats(4096), 5))),
        block(5, tensor("unused", (300,), raw(300)), 4),
        initializer(tensor("unused.too", (30, 10), raw(300))),
        initializer(tensor("typed", (64, 64), block(4, floats(4096)))),
        initializer(tensor("half", (64,), block(5, b"".join(varint(n) for n in range(64))), dtype=10)),
        initializer(tensor("longs", (200,), block(7, b"".join(varint(n * n) for n in range(200))), dtype=7)),
        initializer(tensor("empty", (0, 64), block(9, b""))),
        initializer(tensor("big.longs", (400,), block(9, struct.pack("<400q", *range(400))), dtype=7)),
    ]
    constant = attribute("value", 5, tensor("c", (64, 64), raw(4096)), 4)
    inner = attribute("value", 5, tensor("c", (64,), block(4, floats(64))), 4)
    body = [node("Constant", [], ["k"], attribute("value", 5, tensor("plain", (64, 64), raw(4096)), 4)), node("MatMul", ["a", "k"], ["b"])]
    function = block(1, "twist") + block(4, "a") + block(5, "b") + b"".join(block(7, n) for n in body) + block(9, number(2, 17)) + block(10, "own")
    nodes = chain(names + ["typed"]) + [
        node("Transpose", ["plain"], ["turned"]), node("MatMul", ["end", "turned"], ["tied"]),
        node("Constant", [], ["big"], constant), node("MatMul", ["tied", "big"], ["with.constant"]),
        node("Constant", [], ["small"], inner), node("Add", ["small", "with.constant"], ["sum"]),
        node("twist", ["sum"], ["y"], domain="own")]
    graph_extra = block(10, "a graph") + block(13, value_info("sum", "B", 64)) + block(77, b"later")
    extra = block(25, function) + block(14, entry("metadata", "kept")) + block(6, "a model") + number(500, 1 << 40)
    return model(nodes, initializers, extra, graph_extra)


def external_model(folder):
    data = floats(6 * 4096)
    big, small = floats(4096), floats(64)
    os.makedirs(folder + "/sub/er")
    with open(folder + "/weights.bin", "wb") as f:
        f.write(data)
    with open(folder + "/sub/er/w.bin", "wb") as f:
        f.write(bytes(4096) + big + bytes(100) + small)

    def at(name, sizes, location, offset=None, length=None, dtype=1):
        entries = [("location", location)] + ([("offset", str(offset))] if offset is not None else []) + ([("length", str(length))] if length is not None else [])
        return tensor(name, sizes, *(block(13, entry(*e)) for e in entries), number(14, 1), dtype=dtype)

    size = 4096 * 4
    initializers = [
        initializer(at("whole", (64, 64), "weights.bin", 0, size)),
        initializer(at("overlap", (64, 64), "weights.bin", size // 2, size)),
        initializer(at("shared", (64, 64), "weights.bin", 0, size)),
        initializer(at("unused", (64, 64), "weights.bin", 2 * size, size)),
        initializer(at("wide", (128, 64), "weights.bin", 3 * size, 2 * size)),
        initializer(at("rest", (64, 64), "./weights.bin", 5 * size)),
        initializer(at("empty", (0,), "weights.bin", 100, 0)),
        initializer(at("deep", (64, 64), "sub/er/w.bin", 4096, size)),
        initializer(at("bias", (64,), "sub/er/w.bin", 4096 + size + 100)),
        initializer(tensor("inside", (64, 64), raw(4096))),
    ]
    constant = attribute("value", 5, at("c", (64, 64), "weights.bin", size, size), 4)
    nodes = chain(["whole", "overlap", "shared", "rest", "deep", "inside"]) + [
        node("Constant", [], ["k"], constant), node("MatMul", ["end", "k"], ["a"]), node("Add", ["bias", "a"], ["b"]),
        node("Concat", ["b", "b"], ["twice"], block(1, "axis") + number(3, 1) + number(20, 2)), node("MatMul", ["twice", "wide"], ["y"])]
    return model(nodes, initializers)


def layers_model():
    """embedding(10, 12), linear(12, 16), linear(16, 8) on ids [4, 12]; beside the linears gate|up in one weight and a fused product"""
    sizes = {"e": (10, 12), "w1": (12, 16), "b1": (16,), "w2": (16, 8), "b2": (8,), "gate|up": (12, 32), "down": (8, 16), "bias": (8,)}
    initializers = [initializer(tensor(name, size, raw(size[0] * (size + (1,))[1]))) for name, size in sizes.items()]
    nodes = [
        node("Gather", ["e", "ids"], ["x"]),
        node("MatMul", ["x", "w1"], ["h0"]), node("Add", ["h0", "b1"], ["h"]), node("MatMul", ["h", "w2"], ["y0"]), node("Add", ["y0", "b2"], ["y"]),
        node("MatMul", ["x", "gate|up"], ["both"]), node("Split", ["both"], ["gate", "up"], block(1, "axis") + number(3, 2) + number(20, 2)),
        node("Sigmoid", ["gate"], ["open"]), node("Mul", ["open", "up"], ["m"]),
        node("FusedMatMul", ["m", "down"], ["z0"], block(1, "transB") + number(3, 1) + number(20, 2),
             block(1, "alpha") + varint(2 << 3 | 5) + struct.pack("<f", 0.5) + number(20, 1), domain="com.microsoft"),
        node("Add", ["z0", "bias"], ["z"])]
    ends = block(11, value_info("ids", 4, 12, dtype=7)) + block(12, value_info("y", 4, 12, 8)) + block(12, value_info("z", 4, 12, 8))
    return model(nodes, initializers, ends=ends, domain="com.microsoft")


def main():
    for kind in ("inline", "layers", "external"):
        folder = f"{sys.argv[1]}/{kind}"
        os.makedirs(folder)
        content = inline_model() if kind == "inline" else layers_model() if kind == "layers" else external_model(folder)
        with open(folder + "/model.onnx", "wb") as f:
            f.write(content)


main()
