#!/usr/bin/env python3
"""Models with multi-device annotations, as bytes of ONNX's messages: make.py FOLDER writes FOLDER/CASE.onnx of every case.

Relu and Sigmoid of y = Relu(x w1) w2 with two configurations, `two` for 2 devices and `four`; each other case has one thing that is wrong or extreme.
"""
import os
import struct
import sys


def varint(n):
    n &= 2 ** 64 - 1
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, *parts):
    body = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def text(field, s):
    return message(field, s.encode())


def value_info(field, name, *dims):
    shape = b"".join(message(1, text(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return message(field, text(1, name), message(2, message(1, number(1, 1), message(2, shape))))


def weight(name, *dims):
    n = dims[0] * dims[1]
    raw = struct.pack("<%df" % n, *((i * 7) % 11 - 5 for i in range(n)))
    return message(5, *(number(1, d) for d in dims), number(2, 1), text(8, name), message(9, raw))


def part(count, size=None):
    return message(2, *([] if size is None else [text(2, size) if isinstance(size, str) else number(1, size)]), number(3, count))


def axis(d, *parts):
    return message(4, number(1, d), *parts)


def spec(tensor, *rest, devices=(0, 1)):
    return message(2, text(1, tensor), *(number(2, d) for d in devices), *rest)


def annotation(configuration, *specs):
    return message(10, text(1, configuration), *specs)


def configuration(name, devices, *names):
    return message(26, text(1, name), number(2, devices), *(text(3, n) for n in names))


def node(op, name, inputs, output, *annotations):
    return message(1, *(text(1, i) for i in inputs), text(2, output), text(3, name), text(4, op), *annotations)


COLUMNS = spec("w1", axis(1, part(2)))
CONFIGURATIONS = [configuration("two", 2, "a", "b"), configuration("four", 4)]
CASES = {      # configurations, annotations of the node `up`
    "good": (CONFIGURATIONS, [annotation("two", COLUMNS), annotation("four", spec("w1", axis(1, part(4)), devices=range(4)))]),
    "no-devices": ([configuration("two", 0)], []),
    "negative-devices": ([configuration("two", -1)], []),
    "device-names": ([configuration("two", 2, "a", "b", "c")], []),
    "unnamed": ([message(26, number(2, 2))], []),
    "two-of-a-name": ([configuration("two", 2), configuration("two", 4)], []),
    "many": ([configuration("c%d" % i, 2) for i in range(2000)], []),
    "unknown-configuration": (CONFIGURATIONS, [annotation("three", COLUMNS)]),
    "annotated-twice": (CONFIGURATIONS, [annotation("two", COLUMNS), annotation("two", COLUMNS)]),
    "no-tensor": (CONFIGURATIONS, [annotation("two", message(2, number(2, 0)))]),
    "foreign-tensor": (CONFIGURATIONS, [annotation("two", spec("w2", axis(1, part(2))))]),
    "spec-twice": (CONFIGURATIONS, [annotation("two", COLUMNS, COLUMNS)]),
    "no-axis": (CONFIGURATIONS, [annotation("two", spec("w1", message(4, part(2))))]),
    "axis-too-large": (CONFIGURATIONS, [annotation("two", spec("w1", axis(2 ** 63 - 1, part(2))))]),
    "axis-too-small": (CONFIGURATIONS, [annotation("two", spec("w1", axis(-2 ** 63, part(2))))]),
    "no-shards": (CONFIGURATIONS, [annotation("two", spec("w1", axis(1, part(0))))]),
    "negative-shards": (CONFIGURATIONS, [annotation("two", spec("w1", axis(1, part(-2))))]),
    "huge-shards": (CONFIGURATIONS, [annotation("two", spec("w1", axis(1, part(2 ** 62))))]),
    "size-zero": (CONFIGURATIONS, [annotation("two", spec("w1", axis(1, part(2, 0))))]),
    "size-negative": (CONFIGURATIONS, [annotation("two", spec("w1", axis(1, part(2, -8))))]),
    "size-overflow": (CONFIGURATIONS, [annotation("two", spec("w1", axis(1, part(2, 2 ** 62), part(1, 2 ** 62))))]),
    "size-other": (CONFIGURATIONS, [annotation("two", spec("w1", axis(1, part(2, 6))))]),
    "size-symbol": (CONFIGURATIONS, [annotation("two", spec("w1", axis(1, part(2, "batch)*"))))]),
    "many-parts": (CONFIGURATIONS, [annotation("two", spec("w1", axis(1, *[part(1, "B")] * 5000)))]),
    "many-devices": (CONFIGURATIONS, [annotation("two", spec("w1", axis(1, part(50000)), devices=[0, 1] * 25000))]),
    "many-specs": (CONFIGURATIONS, [annotation("two", *[COLUMNS] * 50000)]),
    "device-out-of-range": (CONFIGURATIONS, [annotation("two", spec("w1", axis(1, part(2)), devices=(0, 7)))]),
    "device-negative": (CONFIGURATIONS, [annotation("two", spec("w1", axis(1, part(2)), devices=(-1, 0)))]),
}


def model(configurations, annotations):
    graph = [node("MatMul", "up", ["x", "w1"], "h", *annotations), node("Relu", "act", ["h"], "a"), node("MatMul", "down", ["a", "w2"], "y"),
             node("Relu", "one", ["y"], "z1"), node("Sigmoid", "two", ["y"], "z2"),
             text(2, "mlp"), weight("w1", 4, 80), weight("w2", 80, 4), value_info(11, "x", "B", 4), value_info(12, "z1", "B", 4),
             value_info(12, "z2", "B", 4)]
    return number(1, 11) + message(7, *graph) + message(8, number(2, 21)) + b"".join(configurations)


if __name__ == "__main__":
    for case, (configurations, annotations) in CASES.items():
        with open(os.path.join(sys.argv[1], case + ".onnx"), "wb") as out:
            out.write(model(configurations, annotations))
