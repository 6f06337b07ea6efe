"""scale.py STRUCTURE COUNT FILE: an ONNX file with very many of one thing, written byte by byte: no package is needed.

skips: nodes that also read a random earlier value. The others are names of what there is much of; see the functions."""

import sys


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def info(name, *dims):
    shape = b"".join(block(1, block(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return block(1, name) + block(2, block(1, number(1, 1) + block(2, shape)))


def node(op, inputs, outputs, attributes=()):
    parts = [block(1, i) for i in inputs] + [block(2, o) for o in outputs] + [block(4, op)]
    return block(1, b"".join(parts + [block(5, a) for a in attributes]))


def integer(name, value):
    return block(1, name) + number(3, value) + number(20, 2)


def zeros(name, *dims):
    count = 1
    for d in dims:
        count *= d
    return block(5, b"".join(number(1, d) for d in dims) + number(2, 1) + block(8, name) + block(9, bytes(4 * count)))


def inputs(*names):
    return b"".join(block(11, n) for n in names)


def outputs(*names):
    return b"".join(block(12, n) for n in names)


X, Y = inputs(info("x", 4)), outputs(info("y", 4))
RELU = node("Relu", ["x"], ["y"])


def skips(n):
    state, parts = 1, [zeros(f"w{i}", 256, 256) for i in range(8)]

    def draw(below):
        nonlocal state
        state = (state * 69069 + 1) % 2**32
        return (state >> 16) % below

    for i in range(1, n + 1):
        last = f"v{i - 1}"
        op, other = (("Mul", None), ("MatMul", f"w{draw(8)}"), ("Add", None), ("Relu", ""))[i % 4]
        other = f"v{draw(i)}" if other is None else other
        parts.append(node(op, [last, other] if other else [last], [f"v{i}"]))
    return b"".join(parts) + inputs(info("v0", "B", 256)) + outputs(info(f"v{n}", "B", 256))


def symbols(n):
    nodes = b"".join(node("Relu", [f"x{i}"], [f"y{i}"]) for i in range(n))
    return nodes + b"".join(inputs(info(f"x{i}", f"s{i}")) + outputs(info(f"y{i}", f"s{i}")) for i in range(n))


def added_inputs(n):
    sums = b"".join(node("Add", [f"t{i - 1}" if i > 1 else "x0", f"x{i}"], [f"t{i}" if i < n - 1 else "y"]) for i in range(1, n))
    return sums + b"".join(inputs(info(f"x{i}", f"s{i}", 8)) for i in range(n)) + outputs(info("y", "s0", 8))


def added_products(n):
    one = lambda i: zeros(f"a{i}", 8, 16) + zeros(f"b{i}", 16, 8) + node("MatMul", [f"x{i}", f"a{i}"], [f"h{i}"]) + \
        node("MatMul", [f"h{i}", f"b{i}"], [f"p{i}"]) + inputs(info(f"x{i}", f"s{i}", 8))
    sums = b"".join(node("Add", [f"t{i - 1}" if i > 1 else "p0", f"p{i}"], [f"t{i}" if i < n - 1 else "y"]) for i in range(1, n))
    return b"".join(one(i) for i in range(n)) + sums + outputs(info("y", "s0", 8))


def attributes(n):
    return node("Unknown", ["x"], ["y"], [integer(f"a{i}", i) for i in range(n)]) + X + Y


def graph_inputs(n):
    return RELU + X + Y + b"".join(inputs(info(f"x{i}", f"s{i % 50}")) for i in range(n))


def graph_outputs(n):
    nodes = b"".join(node("Identity", ["x"], [f"y{i}"]) for i in range(n))
    return nodes + X + b"".join(outputs(info(f"y{i}", 4)) for i in range(n))


def split(n):
    names = [f"p{i}" for i in range(n)]
    return node("Split", ["x"], names, [integer("num_outputs", n)]) + node("Concat", names, ["y"], [integer("axis", 0)]) + \
        inputs(info("x", n)) + outputs(info("y", n))


def concat(n):
    return node("Concat", ["x"] * n, ["y"], [integer("axis", 0)]) + X + outputs(info("y", 4 * n))


def domains(n):
    nodes = b"".join(node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(n // 4))
    return nodes + X + outputs(info(f"v{n // 4}", 4))


def identities(n):
    return b"".join(node("Identity", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(n)) + X + outputs(info(f"v{n}", 4))


def initializers(n):
    return RELU + X + Y + b"".join(zeros(f"w{i}", 1) for i in range(n))


def metadata(_):
    return RELU + X + Y


def chain(n):
    return b"".join(node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(n)) + X + outputs(info(f"v{n}", 4))


def scalar(name, dtype):
    return block(1, name) + block(2, block(1, number(1, dtype) + block(2, b"")))


def graph(nodes):
    return block(2, "b") + nodes


def branch(name, content):
    return block(1, name) + block(6, content) + number(20, 5)


def choice(names, then, other):
    return node("If", ["c"], names, [branch("then_branch", then), branch("else_branch", other)])


def ifs(n):
    one = lambda op, v: graph(node(op, [v], ["r"]) + outputs(block(1, "r")))
    values = ["x"] + [f"v{i}" for i in range(n)]
    return b"".join(choice([w], one("Relu", v), one("Neg", v)) for v, w in zip(values, values[1:])) + \
        inputs(scalar("c", 9)) + X + outputs(info(values[n], 4))


def branch_outputs(n):
    results, names = [f"r{i}" for i in range(n)], [f"y{i}" for i in range(n)]
    one = lambda op: graph(b"".join(node(op, ["x"], [r]) for r in results) + b"".join(outputs(block(1, r)) for r in results))
    return choice(names, one("Relu"), one("Neg")) + node("Sum", names, ["y"]) + inputs(scalar("c", 9)) + X + Y


def carried(n):
    names = [f"y{i}" for i in range(n)]
    body = inputs(scalar("i", 7), scalar("k", 9), *(info(f"a{i}", 4) for i in range(n))) + node("Identity", ["k"], ["kk"]) + \
        b"".join(node("Neg", [f"a{i}"], [f"b{i}"]) for i in range(n)) + outputs(block(1, "kk"), *(info(f"b{i}", 4) for i in range(n)))
    trip = block(5, number(2, 7) + block(8, "trip") + block(9, (5).to_bytes(8, "little")))
    return trip + node("Loop", ["trip", ""] + ["x"] * n, names, [branch("body", graph(body))]) + node("Sum", names, ["y"]) + X + Y


def inner_nodes(n):
    body = graph(b"".join(node("Relu", [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(n)) + inputs(info("x", 4)) + outputs(info(f"v{n}", 4)))
    return node("Unknown", ["x"], ["y"], [branch("body", body)]) + X + Y


def functions(n):
    call = lambda i: block(1, block(1, f"v{i}" if i else "x") + block(2, f"v{i + 1}") + block(4, f"F{i}") + block(7, "own"))
    return b"".join(call(i) for i in range(n)) + X + outputs(info(f"v{n}", 4))


def function(i):
    body = block(7, block(1, "a") + block(2, "b") + block(4, "Relu"))
    return block(25, block(1, f"F{i}") + block(4, "a") + block(5, "b") + body + block(9, number(2, 23)) + block(10, "own"))


def main():
    name, count = sys.argv[1], int(sys.argv[2])
    model = number(1, 10) + block(7, block(2, "g") + globals()[name](count)) + block(8, number(2, 23))
    if name == "domains":
        model += b"".join(block(8, block(1, f"d{i}") + number(2, 1)) for i in range(count))
    if name == "metadata":
        model += b"".join(block(14, block(1, f"k{i}") + block(2, "v")) for i in range(count))
    if name == "functions":
        model += block(8, block(1, "own") + number(2, 1)) + b"".join(function(i) for i in range(count))
    with open(sys.argv[3], "wb") as f:
        f.write(model)


main()
