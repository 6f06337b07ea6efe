#!/usr/bin/env python3
"""Writes tests/handlers/cases.txt: for every operation that optimum's handlers and DTensor's op rules know, the graph that torch exports
for it, where its operands and its result are put, and the collectives that the plan may take. Needs torch, onnx, onnxscript.

    make.py TPC-SHARD OUT
"""
import logging
import os
import subprocess
import sys
import tempfile
import warnings

import torch
import torch.nn.functional as F

aten = torch.ops.aten


class Function(torch.nn.Module):
    """A function of tensors; tensors of consts become initializers, which a plan places like weights."""

    def __init__(self, f, consts):
        super().__init__()
        self.f = f
        self.names = list(consts)
        for name, value in consts.items():
            self.register_buffer(name, value)

    def forward(self, *args):
        return self.f(*args, *(getattr(self, name) for name in self.names))


def floats(*dims):
    return torch.rand(dims) + 0.5


def ints(*dims, most=7):
    return torch.randint(0, most, dims)


CASES = []


def case(name, f, inputs, demands, collectives="", consts=None):
    """demands: 'x=S(2) out=S(2)'; an upper-case name is a weight. collectives: 'AllReduce 1', of the whole plan."""
    CASES.append((name, f, inputs, demands, collectives, consts or {}))


WIDE = {"x": floats(16, 7, 1025)}             # where two small reductions are cheaper than gathering
X, Y = {"x": floats(2, 7, 8)}, {"x": floats(2, 7, 8), "y": floats(2, 7, 8)}
I2 = {"x": ints(2, 7, 8), "y": ints(2, 7, 8)}


# ---- optimum: elementwise ---------------------------------------------------------------------------------------------------------

UNARY = {
    "pow.Tensor_Scalar": lambda x: x ** 3, "rsqrt": torch.rsqrt, "clone": lambda x: x.clone(), "abs": torch.abs,
    "_to_copy": lambda x: x.to(torch.float64), "acos": lambda x: torch.acos(x - 1), "acosh": lambda x: torch.acosh(x + 2),
    "alias": lambda x: aten.alias(x), "asin": lambda x: torch.asin(x - 1), "asinh": torch.asinh, "atan": torch.atan,
    "atanh": lambda x: torch.atanh(x - 1), "ceil": lambda x: torch.ceil(x * 3), "clamp": lambda x: torch.clamp(x, 0.7, 1.1),
    "cos": torch.cos, "cosh": torch.cosh, "erf": torch.erf, "exp": torch.exp, "trunc": lambda x: torch.trunc(x * 5 - 4), "tanh": torch.tanh,
    "tan": torch.tan, "add.Scalar": lambda x: x + 2, "sub.Scalar": lambda x: x - 2, "mul.Scalar": lambda x: x * 3, "div.Scalar": lambda x: x / 3,
    "div.Scalar_mode": lambda x: torch.div(x, 0.3, rounding_mode="floor"), "remainder.Scalar": lambda x: torch.remainder(x, 0.7),
    "fmod.Scalar": lambda x: torch.fmod(x, 0.7), "fill.Scalar": lambda x: torch.fill(x, 3.0) + x, "sqrt": torch.sqrt, "sin": torch.sin,
    "sinh": torch.sinh, "sign": lambda x: torch.sign(x - 1), "sigmoid": torch.sigmoid, "round": lambda x: torch.round(x * 5),
    "relu": lambda x: torch.relu(x - 1), "reciprocal": torch.reciprocal, "neg": torch.neg,
    "native_dropout": lambda x: F.dropout(x, 0.5, False) + x, "log": torch.log, "log10": torch.log10, "log2": torch.log2, "log1p": torch.log1p,
    "leaky_relu": lambda x: F.leaky_relu(x - 1), "isnan": lambda x: torch.isnan(torch.log(x - 1)), "isinf": lambda x: torch.isinf(1 / torch.floor(x)),
    "hardtanh": F.hardtanh, "gelu": F.gelu, "floor": lambda x: torch.floor(x * 3), "logical_not": lambda x: torch.logical_not(x > 1),
}
for name, f in UNARY.items():
    case(name, f, X, "x=S(2) out=S(2)")
for name, f in {"ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}.items():
    case(name + ".Scalar", lambda x, f=f: f(x, 1.0), X, "x=S(1) out=S(1)")
for name, f in {"and": torch.bitwise_and, "or": torch.bitwise_or, "xor": torch.bitwise_xor}.items():
    case("bitwise_%s.Scalar" % name, lambda x, f=f: f(x, 5), {"x": ints(2, 7, 8)}, "x=S(2) out=S(2)")
    case("bitwise_%s.Tensor" % name, f, I2, "x=S(1) out=S(1)")
case("bitwise_not", torch.bitwise_not, {"x": ints(2, 7, 8)}, "x=S(2) out=S(2)")

BINARY = {
    "atan2": torch.atan2, "add.Tensor": torch.add, "div.Tensor": torch.div, "div.Tensor_mode": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "eq.Tensor": lambda x, y: torch.eq(x.round(), y.round()), "fmod.Tensor": torch.fmod, "ge.Tensor": torch.ge, "gt.Tensor": torch.gt,
    "le.Tensor": torch.le, "logical_and": lambda x, y: torch.logical_and(x > 1, y > 1), "logical_or": lambda x, y: torch.logical_or(x > 1, y > 1),
    "logical_xor": lambda x, y: torch.logical_xor(x > 1, y > 1), "lt.Tensor": torch.lt, "maximum": torch.maximum, "minimum": torch.minimum,
    "mul.Tensor": torch.mul, "ne.Tensor": lambda x, y: torch.ne(x.round(), y.round()), "pow.Tensor_Tensor": torch.pow,
    "remainder.Tensor": torch.remainder, "sub.Tensor": torch.sub,
}
for name, f in BINARY.items():
    case(name, f, Y, "x=S(2) y=S(2) out=S(2)")

# ---- optimum: reductions, moves, leaves -------------------------------------------------------------------------------------------

case("amax", lambda x: torch.amax(x, 1, True), X, "x=S(2) out=S(2)")
case("amin", lambda x: torch.amin(x, 1), X, "x=S(2) out=S(1)")
case("any.dim", lambda x: torch.any(x > 1.4, 1), X, "x=S(2) out=S(1)")
case("_log_softmax", lambda x: torch.log_softmax(x, 2), X, "x=S(1) out=S(1)")
case("_softmax", lambda x: torch.softmax(x, 2), X, "x=S(1) out=S(1)")
case("cumsum", lambda x: torch.cumsum(x, 1), X, "x=S(2) out=S(2)")
case("mean.dim", lambda x: torch.mean(x, 1, True), X, "x=S(2) out=S(2)")
case("var.dim", lambda x: torch.var(x, 1), X, "x=S(2) out=S(1)")
case("sum.dim_IntList", lambda x: torch.sum(x, [0, 1]), X, "x=S(2) out=S(0)")
case("prod.dim_int", lambda x: torch.prod(x, 0), X, "x=S(2) out=S(1)")
case("view", lambda x: x.view(14, 8), X, "x=S(2) out=S(1)")
case("unsqueeze", lambda x: x.unsqueeze(-1), X, "x=S(2) out=S(2)")
case("squeeze.default", lambda x: torch.squeeze(x), {"x": floats(1, 7, 8)}, "x=S(2) out=S(1)")
case("squeeze.dim", lambda x: x.squeeze(1), {"x": floats(7, 1, 8)}, "x=S(2) out=S(1)")
case("permute", lambda x: x.permute(2, 0, 1), X, "x=S(2) out=S(0)")
case("slice.Tensor", lambda x: x[:, 1:5], X, "x=S(2) out=S(2)")
case("expand", lambda x: x.expand(3, 2, 7, 8), X, "x=S(2) out=S(3)")
case("cat", lambda x, y: torch.cat([x, y], 1), Y, "x=S(2) y=S(2) out=S(2)")
case("constant_pad_nd", lambda x: F.pad(x, (0, 0, 1, 2)), X, "x=S(2) out=S(2)")
case("copy", lambda x, y: aten.copy(x, y) + x, Y, "x=S(2) y=S(2) out=S(2)")
Q = {"q": floats(2, 6, 7, 4), "k": floats(2, 6, 7, 4), "v": floats(2, 6, 7, 4)}
case("scaled_dot_product_attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), Q, "q=S(1) k=S(1) v=S(1) out=S(1)")
W = {"W": floats(8, 12), "B": floats(12)}
case("Linear, columns", lambda x, w, b: x @ w + b, X, "x=R W=S(1) out=S(2)", consts=W)
case("Linear, rows", lambda x, w, b: x @ w + b, X, "x=S(2) W=S(0) out=R", "AllReduce 1", W)
case("Linear, rows, sequence", lambda x, w, b: x @ w + b, X, "x=S(2) W=S(0) out=S(1)", "ReduceScatter 1", W)
IDS, TABLE = {"x": ints(2, 7)}, {"TABLE": floats(11, 8)}
case("Embedding", lambda x, t: F.embedding(x, t), IDS, "x=R TABLE=S(0) out=R", "AllReduce 1", TABLE)
case("Embedding, sequence", lambda x, t: F.embedding(x, t), IDS, "x=R TABLE=S(0) out=S(1)", "ReduceScatter 1", TABLE)
LOSS = {"x": floats(64, 1025), "y": ints(64)}
case("cross_entropy", lambda x, y: F.cross_entropy(x, y), LOSS, "x=S(1) out=R", "AllReduce 2")
case("activation module", torch.nn.SiLU(), X, "x=S(2) out=S(2)")

# ---- what optimum's search ends at -------------------------------------------------------------------------------------------------

case("sum.dim_IntList, split", lambda x: torch.sum(x, 2), X, "x=S(2) out=R", "AllReduce 1")
case("mean.dim, split unevenly", lambda x: torch.mean(x, 1), X, "x=S(1) out=R", "AllReduce 1")
case("var.dim, split unevenly", lambda x: torch.var(x, 2), WIDE, "x=S(2) out=R", "AllReduce 2")
case("amax, split", lambda x: torch.amax(x, 2), X, "x=S(2) out=P(max)")
case("prod.dim_int, split", lambda x: torch.prod(x, 2), X, "x=S(2) out=P(prod)")
case("any.dim, split", lambda x: torch.any(x > 1.4, 2), X, "x=S(2) out=R", "AllReduce 1")
case("_softmax, split", lambda x: torch.softmax(x, 2), WIDE, "x=S(2) out=S(2)", "AllReduce 2")
case("_log_softmax, split", lambda x: torch.log_softmax(x, 2), WIDE, "x=S(2) out=S(2)", "AllReduce 2")
case("cumsum, split", lambda x: torch.cumsum(x, 2), WIDE, "x=S(2) out=S(2)", "AllGather 1")
case("slice.Tensor, split", lambda x: x[:, :5], X, "x=S(1) out=S(1)")
case("unsqueeze, last", lambda x: x.unsqueeze(-1), X, "x=S(1) out=S(1)")
case("binary of ranks 4 and 2", torch.add, {"x": floats(2, 3, 7, 8), "y": floats(7, 8)}, "x=S(3) y=S(1) out=S(3)")
case("binary with a replicated mask", lambda x, y: torch.where(y > 1, x, x - 1), Y, "x=S(2) y=R out=S(2)")
case("activation module Softmax", torch.nn.Softmax(-1), WIDE, "x=S(2) out=S(2)", "AllReduce 2")
case("scaled_dot_product_attention with a mask of heads", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
     {**Q, "m": floats(2, 6, 7, 7)}, "q=S(1) k=S(1) v=S(1) m=R out=S(1)")

# ---- DTensor: _pointwise_ops ------------------------------------------------------------------------------------------------------------

PRODUCT, TWO = {"W": floats(8, 6)}, {"W": floats(8, 6), "V": floats(8, 6)}
case("P + P", lambda x, y, w, v: x @ w + y @ v, Y, "x=S(2) y=S(2) W=S(0) V=S(0) out=P(sum)", consts=TWO)
case("P + R", lambda x, y, w: x @ w + y, {"x": floats(2, 7, 8), "y": floats(2, 7, 6)}, "x=S(2) y=R W=S(0) out=P(sum)", consts=PRODUCT)
case("P * R", lambda x, y, w: x @ w * y, {"x": floats(2, 7, 8), "y": floats(2, 7, 6)}, "x=S(2) y=R W=S(0) out=P(sum)", consts=PRODUCT)
case("P / constant", lambda x, w: x @ w / 2.5, X, "x=S(2) W=S(0) out=P(sum)", consts=PRODUCT)
case("-P", lambda x, w: -(x @ w), X, "x=S(2) W=S(0) out=P(sum)", consts=PRODUCT)
case("monotone of P(max)", lambda x: torch.tanh(torch.amax(x, 2)), X, "x=S(2) out=P(max)")
case("falling of P(max)", lambda x: -torch.amax(x, 2), X, "x=S(2) out=P(min)")
case("maximum of P(max)", lambda x, y: torch.maximum(torch.amax(x, 2), torch.amax(y, 2)), Y, "x=S(2) y=S(2) out=P(max)")
case("minimum of P(min)", lambda x, y: torch.minimum(torch.amin(x, 2), torch.amin(y, 2)), Y, "x=S(2) y=S(2) out=P(min)")

# ---- DTensor: _matrix_ops, _einsum_strategy ----------------------------------------------------------------------------------------------

M2 = {"x": floats(7, 8), "y": floats(8, 5)}
case("t", lambda x: x.t(), {"x": floats(7, 8)}, "x=S(1) out=S(0)")
case("mm, rows", torch.mm, M2, "x=S(0) y=R out=S(0)")
case("mm, columns", torch.mm, M2, "x=R y=S(1) out=S(1)")
case("mm, contracted", torch.mm, M2, "x=S(1) y=S(0) out=P(sum)")
case("dot", torch.dot, {"x": floats(7), "y": floats(7)}, "x=S(0) y=S(0) out=P(sum)")
case("addmm, contracted", torch.addmm, {"b": floats(5), **M2}, "b=R x=S(1) y=S(0) out=P(sum)")
case("addmm, columns", torch.addmm, {"b": floats(5), **M2}, "b=S(0) x=R y=S(1) out=S(1)")
B2 = {"x": floats(5, 4, 6), "y": floats(5, 6, 7)}
case("bmm, batch", torch.bmm, B2, "x=S(0) y=S(0) out=S(0)")
case("bmm, contracted", torch.bmm, B2, "x=S(2) y=S(1) out=P(sum)")
case("baddbmm, batch", torch.baddbmm, {"b": floats(5, 4, 7), **B2}, "b=S(0) x=S(0) y=S(0) out=S(0)")
case("einsum, contracted", lambda x, y: torch.einsum("bik,bkj->bij", x, y), B2, "x=S(2) y=S(1) out=P(sum)")
case("einsum, free", lambda x, y: torch.einsum("bik,bkj->ijb", x, y), B2, "x=R y=S(2) out=S(1)")
case("attention over batch", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), Q, "q=S(0) k=S(0) v=S(0) out=S(0)")
case("constant_pad_nd, split", lambda x: F.pad(x, (0, 0, 1, 2)), X, "x=S(1) out=R", "AllGather 1")

# ---- DTensor: _math_ops --------------------------------------------------------------------------------------------------------------------

case("all", lambda x: torch.all(x > 0.6, 2), X, "x=S(2) out=R", "AllReduce 1")
case("max of all", lambda x: torch.max(x), X, "x=S(1) out=P(max)")
case("std, split", lambda x: torch.std(x, 2), WIDE, "x=S(2) out=R", "AllReduce 2")
case("vector_norm, split", lambda x: torch.linalg.vector_norm(x, 2, 2), X, "x=S(2) out=R", "AllReduce 1")
case("vector_norm of largest, split", lambda x: torch.linalg.vector_norm(x, float("inf"), 2), X, "x=S(2) out=R", "AllReduce 1")
case("dist", torch.dist, {"x": floats(7, 8), "y": floats(7, 8)}, "x=S(1) y=S(1) out=R", "AllReduce 1")
NORM, ROWS = {"W": floats(200), "B": floats(200)}, {"x": floats(160, 7, 200)}
case("layer_norm over a split dimension", lambda x, w, b: F.layer_norm(x, (200,), w, b), ROWS, "x=S(2) out=S(2)", "AllReduce 1", NORM)
case("layer_norm, rows", lambda x, w, b: F.layer_norm(x, (200,), w, b), ROWS, "x=S(1) out=S(1)", "", NORM)
case("rms_norm over a split dimension", lambda x, w: F.rms_norm(x, (200,), w), ROWS, "x=S(2) out=S(2)", "AllReduce 1", {"W": floats(200)})
case("nll_loss over split classes", lambda x, y: F.nll_loss(x, y), LOSS, "x=S(1) out=R", "AllReduce 1")
case("tril, split", lambda x: torch.tril(x), X, "x=S(2) out=S(2)")
case("triu, split", lambda x: torch.triu(x, 1), X, "x=S(1) out=S(1)")
case("topk over a split dimension", lambda x: torch.topk(x, 3, 2)[0], X, "x=S(2) out=R", "AllGather 1")
case("topk, rows", lambda x: torch.topk(x, 3, 2)[0], X, "x=S(1) out=S(1)")
case("sort, rows", lambda x: torch.sort(x, 2)[0], X, "x=S(1) out=S(1)")
case("upsample, channels", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), {"x": floats(2, 5, 4, 4)}, "x=S(1) out=S(1)")

# ---- DTensor: _tensor_ops ----------------------------------------------------------------------------------------------------------------------

case("select, another dimension", lambda x: x[:, 3], X, "x=S(2) out=S(1)")
case("select, split", lambda x: x[:, :, 3], WIDE, "x=S(2) out=R", "AllGather 1")
case("slice_scatter, another dimension", lambda x, y: torch.slice_scatter(x, y, 1, 2, 5), {"x": floats(2, 7, 8), "y": floats(2, 3, 8)},
     "x=S(2) y=S(2) out=S(2)")
case("scatter, another dimension", lambda x, i, y: torch.scatter(x, 1, i, y), {"x": floats(2, 9, 8), "i": ints(2, 1, 8), "y": floats(2, 1, 8)},
     "x=S(2) i=S(2) y=S(2) out=S(2)")
case("scatter_add over a split dimension", lambda x, i, y: torch.scatter_add(x, 1, i, y),
     {"x": floats(2, 10, 8), "i": ints(2, 4, 8), "y": floats(2, 4, 8)}, "x=S(1) i=R y=R out=S(1)")
case("gather from a split dimension", lambda x, i: torch.gather(x, 1, i), {"x": floats(2, 10, 8), "i": ints(2, 3, 8)}, "x=S(1) i=R out=P(sum)")
case("stack", lambda x, y: torch.stack([x, y], 1), Y, "x=S(2) y=S(2) out=S(3)")
case("cat along a split dimension", lambda x, y: torch.cat([x, y], 2) * 3, Y, "x=S(2) y=S(2) out=R", "AllGather 1")
case("cat of partials", lambda x, y, w, v: torch.cat([x @ w, y @ v], 2), Y, "x=S(2) y=S(2) W=S(0) V=S(0) out=P(sum)", consts=TWO)
case("index_select from a split dimension", lambda x, i: torch.index_select(x, 1, i), {"x": floats(2, 10, 8), "i": ints(4)},
     "x=S(1) i=R out=P(sum)")
case("index", lambda x, i: x[:, i], {"x": floats(2, 10, 8), "i": ints(4)}, "x=S(2) i=R out=S(2)")
case("index_put", lambda x, i, y: torch.index_put(x, (i,), y), {"x": floats(10, 8), "i": torch.tensor([4, 1]), "y": floats(2, 8)},
     "x=S(1) i=R y=S(1) out=S(1)")
case("split", lambda x: torch.split(x, [3, 4], 1)[1], X, "x=S(2) out=S(2)")
case("unbind", lambda x: torch.unbind(x, 1)[2], X, "x=S(2) out=S(1)")
case("zeros_like", lambda x: torch.zeros_like(x) + x, X, "x=S(2) out=S(2)")

# ---- DTensor: _view_ops ----------------------------------------------------------------------------------------------------------------------------

case("flatten with the last dimension split", lambda x: x.flatten(1), X, "x=S(2) out=R", "AllGather 1")
case("flatten with the first dimension split", lambda x: x.flatten(1), X, "x=S(1) out=S(1)")
case("view of a middle factor", lambda x: x.view(2, 6, 4), {"x": floats(2, 24)}, "x=S(1) out=S(1)")
case("repeat along another dimension", lambda x: x.repeat(1, 3, 1), X, "x=S(2) out=S(2)")
case("repeat along a split dimension", lambda x: x.repeat(1, 3, 1), X, "x=S(1) out=R", "AllGather 1")
case("movedim", lambda x: torch.movedim(x, 0, 2), X, "x=S(1) out=S(0)")

# ---- DTensor: _embedding_ops, _conv_ops, _nonlinear_redux ---------------------------------------------------------------------------------------------

case("embedding by columns", lambda x, t: F.embedding(x, t), IDS, "x=R TABLE=S(1) out=S(2)", "", TABLE)
case("embedding, batch", lambda x, t: F.embedding(x, t), IDS, "x=S(0) TABLE=R out=S(0)", "", TABLE)
IMAGE, KERNEL = {"x": floats(5, 4, 6, 6)}, {"W": floats(7, 4, 3, 3), "B": floats(7)}
case("convolution, output channels", lambda x, w, b: F.conv2d(x, w, b), IMAGE, "x=R W=S(0) out=S(1)", "", KERNEL)
case("convolution, input channels", lambda x, w, b: F.conv2d(x, w, b), IMAGE, "x=S(1) W=S(1) out=R", "AllReduce 1", KERNEL)
case("convolution, batch", lambda x, w, b: F.conv2d(x, w, b), IMAGE, "x=S(0) W=R out=S(0)", "", KERNEL)
case("convolution, groups", lambda x, w: F.conv2d(x, w, groups=4), IMAGE, "x=S(1) out=S(1)", "", {"W": floats(8, 1, 3, 3)})
case("convolution, space", lambda x, w, b: F.conv2d(x, w, b, padding=1), IMAGE, "x=S(3) W=R out=S(3)", "AllGather 1", KERNEL)
case("argmax over a split dimension", lambda x: torch.argmax(x, 2), X, "x=S(2) out=R", "AllGather 1")
case("argmin over a split dimension", lambda x: torch.argmin(x, 2), X, "x=S(2) out=R", "AllGather 1")
case("max.dim over a split dimension", lambda x: torch.max(x, 2)[0], X, "x=S(2) out=R", "AllReduce 1")


# ---- writing ----------------------------------------------------------------------------------------------------------------------------------------

def exported(f, inputs, consts, path):
    names = list(inputs)
    torch.onnx.export(Function(f, consts), tuple(inputs.values()), dynamo=True, verbose=False, input_names=names, output_names=["out"],
                      opset_version=20).save(path)


def text_of(shard, path):
    return subprocess.run([shard, "--print", path], check=True, capture_output=True, text=True).stdout


def main(shard, out):
    torch.manual_seed(1)
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory() as folder, open(out, "w") as f:
        f.write("; made by make.py with torch %s: 'case NAME: placements: collectives', then the graph\n" % torch.__version__.split("+")[0])
        for name, function, inputs, demands, collectives, consts in CASES:
            path = os.path.join(folder, "model.onnx")
            exported(function, inputs, consts, path)
            f.write("case %s: %s: %s\n%s" % (name, demands, collectives, text_of(shard, path)))


if __name__ == "__main__":
    main(*sys.argv[1:])
