"""Reductions, ties, remainders, losses. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


def mod_of_negatives():
    """ngraph 3908, openvino 5173, tvm 6160, onnx 6973: the sign is the divisor's, with fmod the dividend's; integers and floats"""
    x = r(4, 6) * 5
    W = r(6, 12)
    t = x @ W
    d = np.where(r(12) > 0, 1.7, -2.3).astype(np.float32)
    i = np.array([[-7, 7, -8, 8, -1, 0]])
    j = np.array([3, -3, -3, 5, 7, -2])
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("Mod", ["t", "d"], ["a"], fmod=1),
            N("Mod", ["i", "j"], ["b"]),
            N("Mod", ["i", "j"], ["c"], fmod=1),
        ],
        [("x", x, None), ("i", i, None)],
        [("a", np.fmod(t, d), None), ("b", np.mod(i, j), None), ("c", np.fmod(i, j), None)],
        [w("W", W), w("d", d), w("j", j)],
        opset=13,
    )


def mod_of_the_least_integer():
    """onnxruntime 32369: the least integer modulo -1 is 0, not a trap"""
    i = np.array([np.iinfo(np.int32).min, 5, -5], np.int32)
    m = np.array([-1, -1, -1], np.int32)
    return case(
        [N("Mod", ["i", "m"], ["a"]), N("Mod", ["i", "m"], ["b"], fmod=1)],
        [("i", i, None), ("m", m, None)],
        [("a", np.zeros(3, np.int32), None), ("b", np.zeros(3, np.int32), None)],
        opset=13,
    )


def reduce_nothing():
    """onnx 7140, 5387, onnxruntime 16586, 26288, 25095, 19147, openvino 35889: no axes with noop_with_empty_axes: squares and logarithms still happen, sizes stay"""
    x = np.abs(r(3, 6)) + 0.5
    W = np.abs(r(6, 12))
    t = x @ W
    ops = [
        ("ReduceSum", t),
        ("ReduceMean", t),
        ("ReduceProd", t),
        ("ReduceMax", t),
        ("ReduceL1", np.abs(t)),
        ("ReduceL2", np.abs(t)),
        ("ReduceSumSquare", t * t),
        ("ReduceLogSum", np.log(t)),
        ("ReduceLogSumExp", t),
    ]
    nodes = (
        [N("MatMul", ["x", "W"], ["t"])]
        + [N(op, ["t", "none"], [op], noop_with_empty_axes=1, keepdims=i % 2) for i, (op, _) in enumerate(ops)]
        + [N("ReduceSum", ["t"], ["absent"], noop_with_empty_axes=1), N("ReduceSum", ["t", "none"], ["all"], keepdims=0)]
    )
    return case(
        nodes,
        [("x", x, None)],
        [(op, v, None) for op, v in ops] + [("absent", t, None), ("all", t.sum(), None)],
        [w("W", W), w("none", np.zeros(0, np.int64))],
        opset=18,
    )


def topk_ties():
    """onnx 6593, 3501, ngraph 2710, burn-onnx 218: of equal values the lower index comes first, for the least ones, too, on a split axis"""
    x = np.eye(4, dtype=np.float32)
    W = np.array([[2, 1, 2, 0, 2, 1, 0, 2, 2, 0, 1, 2]] * 4, np.float32)
    W[1] = 5
    W[2, 3:] = -1
    t = x @ W
    big = np.argsort(-t, 1, kind="stable")[:, :5]
    small = np.argsort(t, 1, kind="stable")[:, :5]
    return case(
        [N("MatMul", ["x", "W"], ["t"]), N("TopK", ["t", "k"], ["v", "i"]), N("TopK", ["t", "k"], ["u", "j"], largest=0)],
        [("x", x, None)],
        [("v", np.take_along_axis(t, big, 1), None), ("i", big, None), ("u", np.take_along_axis(t, small, 1), None), ("j", small, None)],
        [w("W", W), w("k", np.array([5]))],
        opset=11,
    )


def topk_of_unsigned():
    """onnx 6593: unsigned numbers can't be negated to find the least"""
    i = np.array([[3, 0, 255, 128, 127, 3]], np.uint8)
    k = np.array([3])
    return case(
        [N("TopK", ["i", "k"], ["a", "b"]), N("TopK", ["i", "k"], ["c", "d"], largest=0)],
        [("i", i, None)],
        [
            ("a", np.array([[255, 128, 127]], np.uint8), None),
            ("b", np.array([[2, 3, 4]]), None),
            ("c", np.array([[0, 3, 3]], np.uint8), None),
            ("d", np.array([[1, 0, 5]]), None),
        ],
        [w("k", k)],
        opset=21,
    )


def arg_select_last_index():
    """tvm 8816, webnn 652: the last of equal extremes, on a split axis"""
    x = np.ones((2, 3), np.float32)
    W = np.zeros((3, 12), np.float32)
    W[:, [2, 7, 9]] = 1
    W[:, [0, 4, 11]] = -1
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("ArgMax", ["t"], ["a"], axis=1, select_last_index=1),
            N("ArgMin", ["t"], ["b"], axis=-1, select_last_index=1, keepdims=0),
            N("ArgMax", ["t"], ["c"], axis=1),
        ],
        [("x", x, None)],
        [("a", np.array([[9]] * 2), None), ("b", np.array([11] * 2), None), ("c", np.array([[2]] * 2), None)],
        [w("W", W)],
        opset=13,
    )


def cross_entropy_weights_and_ignored():
    """onnx 2680, 2690, torch-mlir 3585, MIGraphX 3008: the mean divides by the weights of the labels that count, over a split class axis"""
    x = r(5, 6)
    W = r(6, 13)
    y = np.array([0, 12, 3, 3, 7])
    k = np.abs(r(13)) + 0.1
    s = np.log(softmax(x @ W))
    n = -s[np.arange(5), y] * k[y]
    keep = y != 3
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("SoftmaxCrossEntropyLoss", ["t", "y", "k"], ["a"], ignore_index=3),
            N("SoftmaxCrossEntropyLoss", ["t", "y", "k"], ["b", "lp"], reduction="none", ignore_index=3),
            N("SoftmaxCrossEntropyLoss", ["t", "y", "k"], ["c"], reduction="sum"),
        ],
        [("x", x, None), ("y", y, None)],
        [
            ("a", np.float32(n[keep].sum() / k[y][keep].sum()), None),
            ("b", np.where(keep, n, 0).astype(np.float32), None),
            ("lp", s, None),
            ("c", np.float32(n.sum()), None),
        ],
        [w("W", W), w("k", k)],
        opset=13,
    )


def nll_of_pictures():
    """emx-onnx-cgen 131, MIGraphX 3430: NegativeLogLikelihoodLoss of more dimensions, a weight of zero, ignore_index below zero"""
    x = r(2, 5, 3, 2)
    y = rng.integers(0, 5, (2, 3, 2))
    y[0, 1, 1] = -1
    k = np.array([1, 0, 2, 0.5, 1], np.float32)
    keep = y != -1
    at = np.where(keep, y, 0)
    v = -np.take_along_axis(x, at[:, None], 1)[:, 0] * k[at] * keep
    return case(
        [
            N("NegativeLogLikelihoodLoss", ["x", "y", "k"], ["a"], ignore_index=-1),
            N("NegativeLogLikelihoodLoss", ["x", "y", "k"], ["b"], ignore_index=-1, reduction="none"),
        ],
        [("x", x, None), ("y", y, None)],
        [("a", np.float32(v.sum() / (k[at] * keep).sum()), None), ("b", v.astype(np.float32), None)],
        [w("k", k)],
        opset=13,
    )


def instance_norm_of_small_numbers():
    """pytorch 60582: deviations of a thousandth and no epsilon"""
    x = r(2, 4, 30) * np.float32(1e-3)
    W = r(12, 4, 1)
    c = np.einsum("oi,bil->bol", W[:, :, 0], x)
    z = c.astype(np.float64)
    y = ((z - z.mean(2, keepdims=True)) / np.sqrt(z.var(2, keepdims=True))).astype(np.float32)
    return case(
        [N("Conv", ["x", "W"], ["c"]), N("InstanceNormalization", ["c", "one", "zero"], ["y"], epsilon=0.0)],
        [("x", x, None)],
        [("y", y, None)],
        [w("W", W), w("one", np.ones(12, np.float32)), w("zero", np.zeros(12, np.float32))],
        opset=6,
    )


def norm_written_out_with_another_scale():
    """onnxruntime 25855: what looks like LayerNormalization, but its scale is one number, or of all rows, or wider than the axis"""
    x = r(3, 6)
    W = r(6, 12)
    t = x @ W
    z = t.astype(np.float64)
    n = (z - z.mean(1, keepdims=True)) / np.sqrt(((z - z.mean(1, keepdims=True)) ** 2).mean(1, keepdims=True) + 1e-5)
    g = r(3, 1)
    s = r(2, 3, 12)
    nodes = [
        N("MatMul", ["x", "W"], ["t"]),
        N("ReduceMean", ["t"], ["m"], axes=[-1]),
        N("Sub", ["t", "m"], ["d"]),
        N("Pow", ["d", "two"], ["q"]),
        N("ReduceMean", ["q"], ["v"], axes=[-1]),
        N("Add", ["v", "eps"], ["ve"]),
        N("Sqrt", ["ve"], ["sd"]),
        N("Div", ["d", "sd"], ["n"]),
        N("Mul", ["n", "h"], ["a0"]),
        N("Add", ["a0", "g"], ["a"]),
        N("Mul", ["n", "g"], ["b"]),
        N("Mul", ["n", "s"], ["c"]),
    ]
    return case(
        nodes,
        [("x", x, None)],
        [("a", (n * 0.5 + g).astype(np.float32), None), ("b", (n * g).astype(np.float32), None), ("c", (n * s).astype(np.float32), None)],
        [w("W", W), w("two", np.float32(2)), w("eps", np.float32(1e-5)), w("h", np.float32(0.5)), w("g", g), w("s", s)],
        opset=13,
    )


def rms_norm_written_out_that_grows():
    """onnx 8203: a scale that makes the result wider than what was normalised"""
    x = r(3, 1)
    s = r(4)
    y = (x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * s).astype(np.float32)
    W = r(4, 12)
    return case(
        [
            N("Pow", ["x", "two"], ["q"]),
            N("ReduceMean", ["q"], ["m"], axes=[-1]),
            N("Add", ["m", "eps"], ["e"]),
            N("Sqrt", ["e"], ["d"]),
            N("Div", ["x", "d"], ["n"]),
            N("Mul", ["n", "s"], ["y"]),
            N("MatMul", ["y", "W"], ["o"]),
        ],
        [("x", x, None)],
        [("y", y, None), ("o", y @ W, None)],
        [w("two", np.float32(2)), w("eps", np.float32(1e-5)), w("s", s), w("W", W)],
        opset=13,
    )


def normalised_rows_of_zeros():
    """onnx 7140: ReduceL2 of a row of zeros is 0; LpNormalization with p of 1 along a split axis"""
    x = r(3, 6)
    x[1] = 0
    W = r(6, 12)
    t = x @ W
    l1 = np.abs(t).sum(1, keepdims=True)
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("ReduceL2", ["t", "ax"], ["a"], keepdims=0),
            N("LpNormalization", ["t"], ["b"], axis=-1, p=1),
            N("Gather", ["b", "rows"], ["c"]),
        ],
        [("x", x, None)],
        [("a", np.sqrt((t * t).sum(1)), None), ("c", (t / np.where(l1 == 0, 1, l1))[[0, 2]], None)],
        [w("W", W), w("ax", np.array([1])), w("rows", np.array([0, 2]))],
        opset=18,
    )
