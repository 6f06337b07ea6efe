#!/usr/bin/env python3
"""The graphs of tests/golden.tap that are too large to write by hand, and what they must give.

    make.py CASE N DIR                        DIR/model.graph, input_K.pb, and output_K.pb where the case has a reference
    make.py data DIR TENSOR... -- TENSOR...   input_K.pb and output_K.pb; a TENSOR is 'f32[2, 3] 1 2 ...', repeated until it is full;
                                              after '++' comes another DIR

A reference is computed here, from the same weights in double precision (integers: exactly), by plain loops that know no splits.
"""
import math
import os
import random
import re
import struct
import sys

FORMATS = {"f32": ("f", 1), "i64": ("q", 7)}      # of struct; the type's number in a TensorProto


def elements(dims):
    return math.prod(dims)


def packed(dtype, values):
    return struct.pack("<%d%s" % (len(values), FORMATS[dtype][0]), *values)


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def write_tensor(path, dtype, dims, values):
    raw = packed(dtype, values)
    with open(path, "wb") as out:
        out.write(b"".join(b"\x08" + varint(d) for d in dims) + b"\x10" + varint(FORMATS[dtype][1]) + b"\x4a" + varint(len(raw)) + raw)


def write_tensors(folder, kind, tensors):
    for k, (dtype, dims, values) in enumerate(tensors):
        write_tensor(os.path.join(folder, f"{kind}_{k}.pb"), dtype, dims, values)


def parse(text):
    dtype, dims, values = re.fullmatch(r"(\w+)\[([\d, ]*)\] (.*)", text).groups()
    dims = [int(d) for d in dims.split(",") if d.strip()]
    given = [int(v) if dtype == "i64" else float(v) for v in values.split()]
    n = elements(dims)
    return dtype, dims, (given * (n // len(given) + 1))[:n]


# ---- graphs --------------------------------------------------------------------------------------------------------------

class Model:
    """A graph in text form, its inputs and the outputs it must give. Numbers are rounded to f32 as they are made."""

    def __init__(self, seed, head=""):
        self.random = random.Random(seed)
        self.lines, self.inputs, self.outputs = ["  opset 23", head], [], []

    def numbers(self, dims, low, high, whole):
        draw = (lambda: self.random.randint(low, high)) if whole else (lambda: self.random.uniform(low, high))
        return list(struct.unpack("<%df" % elements(dims), packed("f32", [draw() for _ in range(elements(dims))])))

    def weight(self, name, *dims, low=-1, high=1, whole=False):
        values = self.numbers(dims, low, high, whole)      # origin: as an initializer has, which no pass folds
        self.lines.append("  const %s: f32[%s] = hex \"%s\" origin %s"
                          % (name, ", ".join(map(str, dims)), packed("f32", values).hex(), name))
        return values

    def ints(self, name, *values):
        self.lines.append("  const %s: i64[%d] = [%s]" % (name, len(values), ", ".join(map(str, values))))

    def input(self, name, *dims, low=-1, high=1, whole=False, dtype="f32"):
        values = self.numbers(dims, low, high, whole)
        self.lines.append("  input %s: %s[%s]" % (name, dtype, ", ".join(map(str, dims))))
        self.inputs.append((dtype, dims, values if dtype == "f32" else [int(v) for v in values]))
        return self.inputs[-1][2]

    def symbolic(self, name, dtype, dims):
        self.lines.append("  input %s: %s[%s]" % (name, dtype, dims))

    def node(self, name, text):
        self.lines.append("  node %s: %s: ? = %s" % (name, name, text))
        return name

    def output(self, name, dims=None, values=None):
        self.lines.append("  output %s" % name)
        if values is not None:
            self.outputs.append(("f32", dims, values))

    def write(self, folder):
        with open(os.path.join(folder, "model.graph"), "w") as out:
            out.write("graph golden {\n%s\n}\n" % "\n".join(filter(None, self.lines)))
        write_tensors(folder, "input", self.inputs)
        write_tensors(folder, "output", self.outputs)


def product(a, b, rows, inner, columns, bias=None):
    """a[rows, inner] b[inner, columns] + bias[columns]"""
    bias = bias or [0] * columns
    by_column = [b[j::columns] for j in range(columns)]
    return [sum(x * y for x, y in zip(a[i * inner:(i + 1) * inner], by_column[j])) + bias[j] for i in range(rows) for j in range(columns)]


def rows_of(table, width, ids):
    return [x for i in ids for x in table[i * width:(i + 1) * width]]


# ---- cases ---------------------------------------------------------------------------------------------------------------

def linear(n, seed, batch, width_in, width_out):
    m = Model(seed)
    x, w, b = m.input("x", batch, width_in), m.weight("w", width_in, width_out), m.weight("b", width_out)
    m.node("p", "MatMul(x, w)")
    m.node("y", "Add(p, b)")
    m.output("y", [batch, width_out], product(x, w, batch, width_in, width_out, b))
    return m


def stack(n):
    """embedding(10, 12), linear(12, 16), linear(16, 8) on ids [4, 12]"""
    m = Model(7)
    ids = m.input("ids", 4, 12, low=0, high=9, whole=True, dtype="i64")
    e = m.weight("e", 10, 12)
    w1, b1, w2, b2 = m.weight("w1", 12, 16), m.weight("b1", 16), m.weight("w2", 16, 8), m.weight("b2", 8)
    m.node("emb", "Gather(e, ids)")
    m.node("up", "MatMul(emb, w1)")
    m.node("h", "Add(up, b1)")
    m.node("down", "MatMul(h, w2)")
    m.node("y", "Add(down, b2)")
    h = product(rows_of(e, 12, ids), w1, 48, 12, 16, b1)
    m.output("y", [4, 12, 8], product(h, w2, 48, 16, 8, b2))
    return m


def embedding(n):
    m = Model(8)
    ids, e = m.input("ids", 17, 23, low=0, high=47, whole=True, dtype="i64"), m.weight("e", 48, 16)
    m.node("y", "Gather(e, ids)")
    m.output("y", [17, 23, 16], rows_of(e, 16, ids))
    return m


def batchnorm(n):
    """linear(3, 5) with its weight as torch keeps it, then a norm over the 5 channels"""
    m = Model(9)
    x, w, b = m.input("x", 7, 3), m.weight("w", 5, 3), m.weight("b", 5)
    scale, shift, mean, var = m.weight("scale", 5), m.weight("shift", 5), m.weight("mean", 5), m.weight("var", 5, low=0.5, high=2)
    m.node("p", "Gemm(x, w, b) {transB = 1}")
    m.node("y", "BatchNormalization(p, scale, shift, mean, var)")
    turned = [w[j * 3 + k] for k in range(3) for j in range(5)]
    p = product(x, turned, 7, 3, 5, b)
    m.output("y", [7, 5], [(v - mean[i % 5]) / math.sqrt(var[i % 5] + 1e-5) * scale[i % 5] + shift[i % 5] for i, v in enumerate(p)])
    return m


def entropy(n):
    """scores [13, 11 n, 17] in thousands"""
    m, classes = Model(11), 11 * n
    x, labels = m.input("x", 13, classes, 17, low=-3000, high=3000), m.input("labels", 13, 17, low=0, high=classes - 1, whole=True, dtype="i64")
    m.node("s", "Relu(x)")
    m.node("loss", 'SoftmaxCrossEntropyLoss(s, labels) {reduction = "none"}')
    losses = []
    for i, label in enumerate(labels):
        row = [max(0, v) for v in x[i // 17 * 17 * classes + i % 17::17][:classes]]
        losses.append(max(row) + math.log(sum(math.exp(v - max(row)) for v in row)) - row[label])
    m.output("loss", [13, 17], losses)
    return m


def losses(dims):
    """log softmax of scores [8, 16] or [8, 16, 6], none, mean and sum of it, each weighted by class and not; two labels are ignored"""
    def case(n):
        m = Model(18)
        places = dims[2:] or [1]
        x, w = m.input("x", *dims), m.weight("w", 16, low=0.1)
        labels = m.input("labels", 8, *dims[2:], low=0, high=15, whole=True, dtype="i64")
        labels[1] = labels[-2] = -100
        m.node("s", "Relu(x)")
        columns = [[max(0, v) for v in x[b * 16 * places[0] + p:(b + 1) * 16 * places[0]:places[0]]] for b in range(8) for p in range(places[0])]
        for name, weight in ("plain", None), ("weighted", w):
            factor = [0 if k < 0 else weight[k] if weight else 1 for k in labels]
            loss = [f and f * (math.log(sum(map(math.exp, c))) - c[k]) for f, c, k in zip(factor, columns, labels)]
            for how, size, value in ("none", [8] + dims[2:], loss), ("mean", [], [sum(loss) / sum(factor)]), ("sum", [], [sum(loss)]):
                m.node(how + name, 'SoftmaxCrossEntropyLoss(s, labels%s) {reduction = "%s", ignore_index = -100}' % (", w" if weight else "", how))
                m.output(how + name, size, value)
        return m
    return case


def integers(n):
    """operands in [-8, 8], 512 deep: no sum reaches 2^24, so every order gives the same bits"""
    m = Model(10)
    x, w = m.input("x", 7, 512, low=-8, high=8, whole=True), m.weight("w", 512, 24, low=-8, high=8, whole=True)
    m.node("y", "MatMul(x, w)")
    y = product(x, w, 7, 512, 24)
    assert 512 < max(map(abs, y)) < 2 ** 24
    m.output("y", [7, 24], y)
    return m


def tied_vocabulary(n):
    """A table of 50257 rows, looked up in and multiplied with; whole numbers."""
    m = Model(12)
    ids, e = m.input("ids", 7, low=0, high=50256, whole=True, dtype="i64"), m.weight("e", 50257, 3, low=-8, high=8, whole=True)
    m.inputs[0][2][:3] = ids[:3] = [0, 50256, 25129]
    m.node("x", "Gather(e, ids)")
    m.node("head", "Transpose(e) {perm = [1, 0]}")
    m.node("logits", "MatMul(x, head)")
    x = rows_of(e, 3, ids)
    m.output("logits", [7, 50257], [sum(x[3 * i + k] * e[3 * j + k] for k in range(3)) for i in range(7) for j in range(50257)])
    return m


def heads(m, part, x, width, count, size):
    m.weight(part, width, count * size)
    m.ints(part + "s", 0, 0, count, size)
    m.node(part + "p", "MatMul(%s, %s)" % (x, part))
    m.node(part + "r", "Reshape(%sp, %ss)" % (part, part))
    return m.node(part + "t", "Transpose(%sr) {perm = [0, 2, 1, 3]}" % part)


def block(m, i, x, query, kv, size, width, inner):
    """attention by heads (query heads share kv) and an MLP, each with its norm, around residuals; names end in i"""
    for name in "g", "h":
        m.weight(name + i, width, low=0.5, high=1.5)
    m.node("n" + i, "RMSNormalization(%s, g%s)" % (x, i))
    q, k, v = [heads(m, part + i, "n" + i, width, kv if part in "kv" else query, size) for part in "qkv"]
    m.node("a" + i, "Attention(%s, %s, %s) {is_causal = 1}" % (q, k, v))
    m.node("at" + i, "Transpose(a%s) {perm = [0, 2, 1, 3]}" % i)
    m.ints("joined" + i, 0, 0, query * size)
    m.node("aj" + i, "Reshape(at%s, joined%s)" % (i, i))
    m.weight("o" + i, query * size, width)
    m.node("ao" + i, "MatMul(aj%s, o%s)" % (i, i))
    m.node("r" + i, "Add(%s, ao%s)" % (x, i))
    m.node("nm" + i, "RMSNormalization(r%s, h%s)" % (i, i))
    m.weight("up" + i, width, inner)
    m.node("u" + i, "MatMul(nm%s, up%s)" % (i, i))
    m.node("act" + i, "Relu(u%s)" % i)
    m.weight("down" + i, inner, width)
    m.node("d" + i, "MatMul(act%s, down%s)" % (i, i))
    return m.node("y" + i, "Add(r%s, d%s)" % (i, i))


def layer(n, query, kv, size, width, inner):
    m = Model(13, "  dim B >= 1\n  dim S >= 1")
    m.symbolic("x", "f32", "B, S, %d" % width)
    m.output(block(m, "", "x", query, kv, size, width, inner))
    return m


def attending(n):
    """written-out attention of 16 rows over themselves, then probabilities of 8 classes"""
    m = Model(18)
    m.input("x", 16, 8)
    m.weight("q", 8, 8), m.weight("head", 8, 8)
    m.node("query", "MatMul(x, q)")
    m.node("key", "Transpose(x) {perm = [1, 0]}")
    m.node("scores", "MatMul(query, key)")
    m.node("attention", "Softmax(scores)")
    m.node("mix", "MatMul(attention, x)")
    m.node("logits", "MatMul(mix, head)")
    m.node("log", "LogSoftmax(logits)")
    m.output("log")
    return m


def readers(n):
    """one value, eight readers"""
    m = Model(19)
    m.input("x", *[2] * 8)
    m.node("a", "Relu(x)")
    for i in range(8):
        m.node("r%d" % i, "Neg(a)")
        m.output("r%d" % i)
    return m


def norm(n):
    m = Model(14)
    m.input("x", 6, 5, 12)
    for name in "g", "b":
        m.weight(name, 12)
    m.node("y", "LayerNormalization(x, g, b)")
    m.output("y")
    return m


def module(n):
    """two linears whose results are added, between what comes before and behind"""
    m = Model(17)
    for x, w in ("x", "w"), ("z", "v"):
        m.input(x, 8, 12), m.weight(w, 12, 16)
        m.node("before." + x, "Relu(%s)" % x)
        m.node("m." + x, "MatMul(before.%s, %s)" % (x, w))
    m.node("m.sum", "Add(m.x, m.z)")
    m.node("behind", "Relu(m.sum)")
    m.output("behind")
    return m


def chain(n):
    """gate and up, down, then two more linears: three in a row with what lies between"""
    m = Model(18)
    m.input("x", 4, 6, 8)
    for name, rows, columns in ("gate", 8, 24), ("up", 8, 24), ("down", 24, 8), ("third", 8, 12):
        m.weight("w." + name, rows, columns)
    m.node("gate", "MatMul(x, w.gate)")
    m.node("up", "MatMul(x, w.up)")
    m.node("open", "Sigmoid(gate)")
    m.node("both", "Mul(open, up)")
    m.node("down", "MatMul(both, w.down)")
    m.node("kept", "Add(x, down)")
    m.node("third", "MatMul(kept, w.third)")
    m.output("third")
    return m


def statistics(n):
    """forms of a norm: a mean and a largest element among elementwise nodes"""
    m = Model(19)
    m.input("x", 6, 5, 12), m.weight("g", 12), m.ints("last", -1)
    m.node("norm.mean", "ReduceMean(x, last)")
    m.node("norm.most", "ReduceMax(x) {keepdims = 0}")
    m.node("norm.less", "Sub(x, norm.mean)")
    m.node("norm.part", "Div(norm.less, norm.most)")
    m.node("norm.y", "Mul(norm.part, g)")
    m.output("norm.y")
    return m


def uncovered(n):
    """a linear before an operation that nothing splits along its columns"""
    m = Model(20)
    m.input("x", 7, 13 * n), m.weight("w", 13 * n, 17 * n)
    m.node("p", "MatMul(x, w)")
    m.node("y", "Hardmax(p)")
    m.output("y")
    return m


def pairs(n):
    """two pairs of linears, 6 to 18 to 6 each"""
    m = Model(15)
    x, rows = m.input("x", 5, 6), 5
    for i in 1, 2:
        up, down = m.weight("up%d" % i, 6, 18), m.weight("down%d" % i, 18, 6)
        m.node("u%d" % i, "MatMul(%s, up%d)" % ("x" if i == 1 else "d1", i))
        m.node("r%d" % i, "Relu(u%d)" % i)
        m.node("d%d" % i, "MatMul(r%d, down%d)" % (i, i))
        x = product([max(0, v) for v in product(x, up, rows, 6, 18)], down, rows, 18, 6)
    m.output("d2", [5, 6], x)
    return m


def mlp(n):
    """linear(10, 16), Relu, linear(16, 10) on [8, 10]"""
    m = Model(19)
    x, w1, b1, w2, b2 = m.input("x", 8, 10), m.weight("w1", 10, 16), m.weight("b1", 16), m.weight("w2", 16, 10), m.weight("b2", 10)
    m.node("u", "MatMul(x, w1)")
    m.node("h", "Add(u, b1)")
    m.node("r", "Relu(h)")
    m.node("d", "MatMul(r, w2)")
    m.node("y", "Add(d, b2)")
    m.output("y", [8, 10], product([max(0, v) for v in product(x, w1, 8, 10, 16, b1)], w2, 8, 16, 10, b2))
    return m


def toy(n, loss=False):
    """torch's toy transformer: 2 layers of width 16, 4 heads, MLPs of 64, 8 tokens, learned positions, the head tied to the table; ids [8, 8]"""
    m = Model(16)
    m.input("ids", 8, 8, low=0, high=7, whole=True, dtype="i64")
    m.input("positions", 8, low=0, high=7, whole=True, dtype="i64")
    m.weight("table", 8, 16), m.weight("places", 8, 16)
    m.node("te", "Gather(table, ids)")
    m.node("pe", "Gather(places, positions)")
    x = m.node("x0", "Add(te, pe)")
    for i in "1", "2":
        x = block(m, i, x, 4, 4, 4, 16, 64)
    m.weight("gf", 16)
    m.node("n", "RMSNormalization(%s, gf)" % x)
    m.node("head", "Transpose(table) {perm = [1, 0]}")
    m.node("logits", "MatMul(n, head)")
    if loss:
        m.input("labels", 64, low=0, high=7, whole=True, dtype="i64")
        m.ints("flat", 64, 8)
        m.node("scores", "Reshape(logits, flat)")
        m.node("loss", "SoftmaxCrossEntropyLoss(scores, labels)")
        m.output("loss")
    m.output("logits")
    return m


CASES = {
    "stack": stack, "embedding": embedding, "batchnorm": batchnorm, "integers": integers, "entropy": entropy, "norm": norm, "attending": attending, "readers": readers, "module": module, "chain": chain, "statistics": statistics, "uncovered": uncovered, "pairs": pairs, "toy": toy, "toy-loss": lambda n: toy(n, loss=True), "tied-vocabulary": tied_vocabulary,
    "column": lambda n: linear(n, 1, 7, 13 * n, 17 * n), "row": lambda n: linear(n, 2, 7, 13 * n, 17 * n),
    "mlp": mlp, "losses-2": losses([8, 16]), "losses-3": losses([8, 16, 6]),
    "narrow-column": lambda n: linear(n, 4, 5, 2, 3 * n), "narrow-row": lambda n: linear(n, 5, 5, 3 * n, 2),
    "few": lambda n: linear(n, 3, 5, 3, 5),
    "heads-3": lambda n: layer(n, 3, 3, 5, 15, 37), "kv-2": lambda n: layer(n, 6, 2, 7, 42, 53), "heads-2": lambda n: layer(n, 2, 1, 3, 5, 7),
}


def write_data(folder, *tensors):
    cut = tensors.index("--")
    write_tensors(folder, "input", map(parse, tensors[:cut]))
    write_tensors(folder, "output", map(parse, tensors[cut + 1:]))


def main():
    case, *rest = sys.argv[1:]
    if case == "data":
        while "++" in rest:
            cut = rest.index("++")
            write_data(*rest[:cut])
            rest = rest[cut + 1:]
        write_data(*rest)
    else:
        CASES[case](int(rest[0])).write(rest[1])


if __name__ == "__main__":
    main()
