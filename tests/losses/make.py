#!/usr/bin/env python3
"""The graphs of tests/losses.tap: a head and a loss of its scores, as torch's exporters write it, and what it must give.

    make.py DIR CLASSES [SCALE [DTYPE]]       DIR/FORM/model.graph, input_K.pb and output_0.pb of every form

References are the formulas of torch's documentation (CrossEntropyLoss, NLLLoss), computed by plain loops over the scores in double precision.
SCALE multiplies the head; DTYPE is the type of operands and scores.
"""
import math
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import make as golden  # noqa: E402

ROWS, WIDTH, IGNORED = 128, 2, -100
golden.FORMATS["f16"] = ("e", 10)

# Nodes from `logits` [128, C] (of form 3: [4, 32, C]) and `labels` to `loss`; what the loss is. `last` are the axes [-1], `one` [1].
CONSTANTS = [("last", [-1]), ("one", [1]), ("first", [0])]
PICKED = """log = LogSoftmax(logits)
at = Unsqueeze(labels, one)
found = GatherElements(log, at) {axis = 1}
picked = Squeeze(found, one)
"""
SUMS = """most = ReduceMax(logits, last)
shifted = Sub(logits, most)
e = Exp(shifted)
sum = ReduceSum(e, last)
logsum = Log(sum)
"""
FORMS = {
    "none": ("loss = SoftmaxCrossEntropyLoss(logits, labels) {ignore_index = -100, reduction = \"none\"}", dict(reduction="none", ignored=True)),
    "mean": ("loss = SoftmaxCrossEntropyLoss(logits, labels) {ignore_index = -100}", dict(ignored=True)),
    "sum": ("loss = SoftmaxCrossEntropyLoss(logits, labels) {ignore_index = -100, reduction = \"sum\"}", dict(reduction="sum", ignored=True)),
    "weighted": ("loss = SoftmaxCrossEntropyLoss(logits, labels, weight) {ignore_index = -100}", dict(weighted=True, ignored=True)),
    "places": ("""turned = Transpose(logits) {perm = [0, 2, 1]}
loss = SoftmaxCrossEntropyLoss(turned, labels) {ignore_index = -100}""", dict(rank=3, ignored=True)),
    "causal": ("""padded = Pad(labels, pads, ignored)
next = Slice(padded, one, end, one, one)
flat = Reshape(logits, table)
targets = Reshape(next, last)
loss = SoftmaxCrossEntropyLoss(flat, targets) {ignore_index = -100}""", dict(rank=3, shifted=True, ignored=True)),
    "causal-slices": ("""scores = Slice(logits, first, last, one, one)
next = Slice(labels, one, end, one, one)
flat = Reshape(scores, table)
targets = Reshape(next, last)
loss = SoftmaxCrossEntropyLoss(flat, targets) {ignore_index = -100}""", dict(rank=3, shifted=True, ignored=True)),
    "nll": ("""log = LogSoftmax(logits)
loss = NegativeLogLikelihoodLoss(log, labels) {ignore_index = -100}""", dict(ignored=True)),
    "nll-weighted": ("""log = LogSoftmax(logits)
loss = NegativeLogLikelihoodLoss(log, labels, weight) {ignore_index = -100, reduction = "none"}""",
                     dict(reduction="none", weighted=True, ignored=True)),
    "gather": (PICKED + """mean = ReduceMean(picked) {keepdims = 0}
loss = Neg(mean)""", {}),
    "masked": (PICKED.replace("Unsqueeze(labels", "Unsqueeze(known") + """neg = Neg(picked)
counts = GreaterOrEqual(labels, zero)
factor = Cast(counts) {to = TYPE}
counted = Mul(neg, factor)
total = ReduceSum(counted) {keepdims = 0}
number = ReduceSum(factor) {keepdims = 0}
loss = Div(total, number)""", dict(ignored=True, before="known = Clip(labels, zero)\n")),
    "gather-nd": ("""log = LogSoftmax(logits)
rows = Unsqueeze(counting, last)
columns = Unsqueeze(labels, last)
tuples = Concat(rows, columns) {axis = -1}
picked = GatherND(log, tuples)
mean = ReduceMean(picked) {keepdims = 0}
loss = Neg(mean)""", dict(before="n = Shape(labels)\ncount = Squeeze(n)\ncounting = Range(zero, count, step)\n")),
    "logsumexp": (SUMS + """lse = Add(logsum, most)
flat = Squeeze(lse, last)
at = Unsqueeze(labels, one)
found = GatherElements(logits, at) {axis = 1}
picked = Squeeze(found, one)
row = Sub(flat, picked)
loss = ReduceMean(row) {keepdims = 0}""", {}),
    "written-out": (SUMS + """at = Unsqueeze(labels, one)
found = GatherElements(shifted, at) {axis = 1}
row = Sub(logsum, found)
loss = ReduceMean(row) {keepdims = 0}""", {}),
    "probability": ("""p = Softmax(logits)
at = Unsqueeze(labels, one)
found = GatherElements(p, at) {axis = 1}
log = Log(found)
mean = ReduceMean(log) {keepdims = 0}
loss = Neg(mean)""", {}),
    "one-hot": ("""hot = OneHot(labels, classes, values)
factor = Cast(hot) {to = TYPE}
log = LogSoftmax(logits)
counted = Mul(factor, log)
row = ReduceSum(counted, last) {keepdims = 0}
mean = ReduceMean(row) {keepdims = 0}
loss = Neg(mean)""", {}),
    "smoothed": (PICKED + """nll = Neg(picked)
means = ReduceMean(log, last) {keepdims = 0}
uniform = Neg(means)
own = Mul(nll, rest)
share = Mul(uniform, smoothing)
row = Add(own, share)
loss = ReduceMean(row) {keepdims = 0}""", dict(smoothing=0.1)),
    "z-loss": (SUMS + """ce = SoftmaxCrossEntropyLoss(logits, labels) {ignore_index = -100}
lse = Add(logsum, most)
square = Mul(lse, lse)
z = ReduceMean(square) {keepdims = 0}
share = Mul(z, little)
loss = Add(ce, share)""", dict(z=1e-4)),
}


# ---- references ---------------------------------------------------------------------------------------------------------------

def log_softmax(row):
    most = max(row)
    log = most + math.log(sum(math.exp(x - most) for x in row))
    return [x - log for x in row]


def reference(logs, labels, weight, reduction="mean", smoothing=0, z=0, rows=()):
    """l = -w[y] log p[y], smoothed (1 - a) l - a / K sum(w log p); the mean divides by the weights of labels that count."""
    losses, total = [], 0
    for log, y in zip(logs, labels):
        counts = y != IGNORED
        own = -weight[y] * log[y] if counts else 0
        spread = -sum(w * x for w, x in zip(weight, log)) / len(log) if counts else 0
        losses.append((1 - smoothing) * own + smoothing * spread)
        total += weight[y] if counts else 0
    if reduction == "none":
        return losses
    value = sum(losses) / (total if reduction == "mean" else 1)
    return [value + z * sum((row[0] - log[0]) ** 2 for row, log in zip(rows, logs)) / len(logs)]


# ---- graphs -------------------------------------------------------------------------------------------------------------------

def floats(m, dtype, low, high, n):
    draws = [m.random.uniform(low, high) for _ in range(n)]
    return list(struct.unpack("<%d%s" % (n, golden.FORMATS[dtype][0]), golden.packed(dtype, draws)))


def operand(m, kind, name, dtype, dims, values):
    if kind == "input":
        m.lines.append("  input %s: %s[%s]" % (name, dtype, ", ".join(map(str, dims))))
        m.inputs.append((dtype, dims, values))
    else:
        m.lines.append("  const %s: %s[%s] = hex \"%s\" origin %s" % (name, dtype, ", ".join(map(str, dims)), golden.packed(dtype, values).hex(), name))
    return values


def add_nodes(m, text, dtype):
    for line in text.replace("TYPE", str(golden.FORMATS[dtype][1])).splitlines():
        name, made = line.split(" = ", 1)
        m.node(name, made)


def form(name, classes, scale, dtype):
    text, how = FORMS[name]
    lead = [4, 32] if how.get("rank") == 3 else [ROWS]
    m = golden.Model(21)
    x = operand(m, "input", "x", dtype, lead + [WIDTH], floats(m, dtype, -1, 1, ROWS * WIDTH))
    labels = [m.random.randrange(classes) for _ in range(ROWS)]
    labels[5] = labels[77] = IGNORED if how.get("ignored") else labels[5]
    operand(m, "input", "labels", "i64", lead, labels)
    head = operand(m, "const", "head", dtype, [WIDTH, classes], floats(m, dtype, -scale, scale, WIDTH * classes))
    weight = operand(m, "const", "weight", dtype, [classes], floats(m, dtype, 0.2, 1, classes)) if how.get("weighted") else [1] * classes
    for key, values in CONSTANTS:
        m.ints(key, *values)
    m.ints("pads", 0, 0, 0, 1), m.ints("values", 0, 1), m.ints("table", -1, classes), m.ints("end", 2 ** 63 - 1)
    for key, value in ("zero", 0), ("step", 1), ("ignored", IGNORED), ("classes", classes):
        m.lines.append("  const %s: i64[] = [%d]" % (key, value))
    for key, value in ("rest", 0.9), ("smoothing", 0.1), ("little", 1e-4):
        operand(m, "const", key, dtype, [], [value])
    add_nodes(m, how.get("before", ""), dtype)
    m.node("logits", "MatMul(x, head)")
    add_nodes(m, text, dtype)
    pairs = [[x[i * WIDTH + k] for k in range(WIDTH)] for i in range(ROWS)]
    scores = [[sum(p[k] * head[k * classes + c] for k in range(WIDTH)) for c in range(classes)] for p in pairs]
    if how.get("shifted"):
        labels = [IGNORED if i % 32 == 31 else labels[i + 1] for i in range(ROWS)]
    options = {k: how[k] for k in ("reduction", "smoothing", "z") if k in how}
    value = reference([log_softmax(s) for s in scores], labels, weight, rows=scores, **options)
    m.lines.append("  output loss")
    m.outputs.append((dtype, lead if how.get("reduction") == "none" else [], value))
    return m


def main():
    folder, classes = sys.argv[1], int(sys.argv[2])
    scale, dtype = float(sys.argv[3]) if len(sys.argv) > 3 else 1, sys.argv[4] if len(sys.argv) > 4 else "f32"
    for name in FORMS:
        os.makedirs(os.path.join(folder, name))
        form(name, classes, scale, dtype).write(os.path.join(folder, name))


if __name__ == "__main__":
    main()
