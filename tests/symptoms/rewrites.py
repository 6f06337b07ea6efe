"""Graphs that optimisers rewrote wrongly: transposes, reshapes, squeezes, folded norms. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


def transposes_in_a_row():
    """onnx 2446: two transposes of three dimensions are one, of the composed order, after a product"""
    x = r(2, 3, 6)
    W = r(6, 12)
    t = x @ W
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("Transpose", ["t"], ["a"], perm=[1, 0, 2]),
            N("Transpose", ["a"], ["b"], perm=[0, 2, 1]),
            N("Transpose", ["b"], ["c"], perm=[2, 0, 1]),
        ],
        [("x", x, None)],
        [("b", t.transpose(1, 0, 2).transpose(0, 2, 1), None), ("c", t.transpose(1, 0, 2).transpose(0, 2, 1).transpose(2, 0, 1), None)],
        [w("W", W)],
        opset=13,
    )


def squeezes_in_a_row():
    """optimizer 253, rten 1339, onnxruntime 11944: axes of the second squeeze are those of the first one's result; negative axes are of the result, in any order"""
    x = r(1, 3, 1, 6)
    W = r(6, 12)
    t = x @ W
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("Squeeze", ["t", "a2"], ["a"]),
            N("Squeeze", ["a", "a0"], ["b"]),
            N("Unsqueeze", ["b", "n"], ["c"]),
            N("Unsqueeze", ["b", "m"], ["d"]),
        ],
        [("x", x, None)],
        [("b", t[0, :, 0], None), ("c", t[0, :, 0][None, :, :, None], None), ("d", t[0, :, 0][:, None, None], None)],
        [w("W", W), w("a2", np.array([2])), w("a0", np.array([0])), w("n", np.array([-1, -4])), w("m", np.array([2, -3]))],
        opset=13,
    )


def squeeze_without_axes():
    """onnx 6313: of symbolic sizes, only those that are 1 when it runs go"""
    x = r(1, 4, 1, 6)
    W = r(6, 12)
    return case(
        [N("MatMul", ["x", "W"], ["t"]), N("ReduceSum", ["t", "ax"], ["s"], keepdims=1), N("Squeeze", ["s", "ax"], ["y"])],
        [("x", x, ["b", "n", 1, 6])],
        [("y", (x @ W).sum(2), None)],
        [w("W", W), w("ax", np.array([2]))],
        opset=13,
    )


def reshape_to_concatenated_sizes():
    """optimizer 267: a target of computed and constant parts, with -1, and a size taken from another tensor"""
    x = r(2, 6, 6)
    W = r(6, 12)
    t = x @ W
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("Shape", ["x"], ["sh"]),
            N("Gather", ["sh", "i0"], ["b"]),
            N("Concat", ["b", "m1", "four"], ["to"], axis=0),
            N("Reshape", ["t", "to"], ["y"]),
            N("Transpose", ["y"], ["z"], perm=[0, 2, 1]),
        ],
        [("x", x, ["b", "s", 6])],
        [("y", t.reshape(2, -1, 4), None), ("z", t.reshape(2, -1, 4).transpose(0, 2, 1), None)],
        [w("W", W), w("i0", np.array([0])), w("m1", np.array([-1])), w("four", np.array([4]))],
        opset=13,
    )


def reshapes_that_only_look_idle():
    """optimizer 282, 284: a reshape to the same sizes in another order, and a transpose that moves a size of 1"""
    x = r(3, 6)
    W = r(6, 12)
    t = x @ W
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("Reshape", ["t", "s"], ["a"]),
            N("Transpose", ["a"], ["b"]),
            N("Reshape", ["b", "s1"], ["c"]),
            N("Transpose", ["c"], ["d"], perm=[1, 0, 2]),
        ],
        [("x", x, None)],
        [
            ("a", t.reshape(12, 3), None),
            ("b", t.reshape(12, 3).T, None),
            ("d", t.reshape(12, 3).T.reshape(1, 3, 12).transpose(1, 0, 2), None),
        ],
        [w("W", W), w("s", np.array([12, 3])), w("s1", np.array([1, 3, 12]))],
        opset=13,
    )


def reshape_transpose_reshape():
    """onnxscript 3015: groups that a transpose moves as wholes, and groups that it tears apart"""
    x = r(2, 6)
    W = r(6, 24)
    t = x @ W
    u = t.reshape(2, 2, 3, 4)
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("Reshape", ["t", "s4"], ["u"]),
            N("Transpose", ["u"], ["v"], perm=[0, 2, 1, 3]),
            N("Reshape", ["v", "s2"], ["y"]),
            N("Transpose", ["u"], ["p"], perm=[0, 3, 2, 1]),
            N("Reshape", ["p", "s2"], ["z"]),
        ],
        [("x", x, None)],
        [("y", u.transpose(0, 2, 1, 3).reshape(2, 24), None), ("z", u.transpose(0, 3, 2, 1).reshape(2, 24), None)],
        [w("W", W), w("s4", np.array([2, 2, 3, 4])), w("s2", np.array([2, 24]))],
        opset=13,
    )


def concat_of_one_tensor_twice():
    """tensorflow-onnx 580: the same tensor twice, along a split axis, then a product with both halves"""
    x = r(3, 6)
    W = r(6, 12)
    V = r(24, 5)
    t = x @ W
    c = np.concatenate([t, t], 1)
    return case(
        [N("MatMul", ["x", "W"], ["t"]), N("Concat", ["t", "t"], ["c"], axis=1), N("MatMul", ["c", "V"], ["y"])],
        [("x", x, None)],
        [("c", c, None), ("y", c @ V, None)],
        [w("W", W), w("V", V)],
        opset=13,
    )


def norm_folded_into_convolution():
    """onnx 3460, optimizer 255: BatchNormalization after a convolution without and with a bias, and one read by others, too"""
    x = r(1, 4, 5, 5)
    W = r(12, 4, 1, 1)
    b = r(12)
    s, o, m = r(12), r(12), r(12)
    v = np.abs(r(12)) + 0.1
    c = np.einsum("oi,bihw->bohw", W[:, :, 0, 0], x)
    e = lambda a: a[None, :, None, None]
    bn = lambda t: ((t - e(m)) / np.sqrt(e(v) + 1e-5) * e(s) + e(o)).astype(np.float32)
    return case(
        [
            N("Conv", ["x", "W"], ["c"]),
            N("BatchNormalization", ["c", "s", "o", "m", "v"], ["y"]),
            N("Conv", ["x", "W", "b"], ["d"]),
            N("BatchNormalization", ["d", "s", "o", "m", "v"], ["z"]),
            N("Relu", ["d"], ["q"]),
        ],
        [("x", x, None)],
        [("y", bn(c), None), ("z", bn(c + e(b)), None), ("q", np.maximum(c + e(b), 0), None)],
        [w("W", W), w("b", b), w("s", s), w("o", o), w("m", m), w("v", v)],
        opset=15,
    )


def norm_between_transposes():
    """onnx2pytorch 44: BatchNormalization of transposed channels"""
    x = r(2, 5, 6)
    W = r(6, 12)
    s, o, m = r(12), r(12), r(12)
    v = np.abs(r(12)) + 0.1
    t = x @ W
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("Transpose", ["t"], ["a"], perm=[0, 2, 1]),
            N("BatchNormalization", ["a", "s", "o", "m", "v"], ["b"]),
            N("Transpose", ["b"], ["y"], perm=[0, 2, 1]),
        ],
        [("x", x, None)],
        [("y", ((t - m) / np.sqrt(v + 1e-5) * s + o).astype(np.float32), None)],
        [w("W", W), w("s", s), w("o", o), w("m", m), w("v", v)],
        opset=15,
    )


def sum_whose_rank_grows():
    """onnxruntime 11870: operands of ranks 1 to 4 broadcast to a rank that none before had"""
    x = r(5, 6)
    W = r(6, 12)
    a = r(1, 5, 12)
    b = r(1, 1, 1, 12)
    c = r(12)
    t = x @ W
    return case(
        [N("MatMul", ["x", "W"], ["t"]), N("Add", ["t", "a"], ["u"]), N("Add", ["u", "b"], ["v"]), N("Add", ["v", "c"], ["y"])],
        [("x", x, None), ("a", a, None), ("b", b, None)],
        [("u", t + a, None), ("y", t + a + b + c, None)],
        [w("W", W), w("c", c)],
        opset=13,
    )


def sizes_through_where_and_expand():
    """burn-onnx 280: the target of Expand by Shape, Slice, Concat, ConstantOfShape, Equal and Where"""
    x = r(1, 6)
    W = r(6, 12)
    t = x @ W
    nodes = [
        N("MatMul", ["x", "W"], ["t"]),
        N("Concat", ["want", "none"], ["s"], axis=0),
        N("Shape", ["s"], ["n"]),
        N("ConstantOfShape", ["n"], ["ones"], value=nh.from_array(np.array([1]))),
        N("Mul", ["ones", "m1"], ["minus"]),
        N("Equal", ["s", "minus"], ["e"]),
        N("Where", ["e", "ones", "s"], ["to"]),
        N("Expand", ["t", "to"], ["y"]),
    ]
    return case(
        nodes,
        [("x", x, None)],
        [("y", np.broadcast_to(t, (3, 12)).copy(), None)],
        [w("W", W), w("want", np.array([3, -1])), w("none", np.zeros(0, np.int64)), w("m1", np.array(-1))],
        opset=13,
    )


def constant_of_a_scalar_value():
    """onnxruntime 26218: the value of ConstantOfShape without a dimension"""
    x = r(3, 6)
    W = r(6, 12)
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("Shape", ["t"], ["s"]),
            N("ConstantOfShape", ["s"], ["c"], value=nh.from_array(np.array(2.5, np.float32))),
            N("Add", ["t", "c"], ["y"]),
        ],
        [("x", x, ["n", 6])],
        [("y", x @ W + np.float32(2.5), None)],
        [w("W", W)],
        opset=13,
    )


def partial_rotary_concat():
    """pytorch 143751: half of each head is turned, the rest passes, and Concat joins them along the last axis"""
    S, H, d, k = 5, 3, 8, 4
    x = r(2, S, 12)
    W = r(12, H * d, s=0.4)
    q = (x @ W).reshape(2, S, H, d)
    f = np.arange(S)[:, None] * 10000.0 ** (-np.arange(0, k, 2) / k)
    c = np.cos(f).astype(np.float32)
    s = np.sin(f).astype(np.float32)
    a, b = q[..., : k // 2], q[..., k // 2 : k]
    C, Sn = c[None, :, None], s[None, :, None]
    y = np.concatenate([a * C - b * Sn, b * C + a * Sn, q[..., k:]], -1)
    nodes = [
        N("MatMul", ["x", "W"], ["q0"]),
        N("Reshape", ["q0", "s4"], ["q"]),
        N("Split", ["q", "parts"], ["a", "b", "p"], axis=-1),
        N("Mul", ["a", "c"], ["ac"]),
        N("Mul", ["b", "s"], ["bs"]),
        N("Sub", ["ac", "bs"], ["u"]),
        N("Mul", ["b", "c"], ["bc"]),
        N("Mul", ["a", "s"], ["as"]),
        N("Add", ["bc", "as"], ["v"]),
        N("Concat", ["u", "v", "p"], ["y"], axis=-1),
    ]
    return case(
        nodes,
        [("x", x, ["n", S, 12])],
        [("y", y, None)],
        [w("W", W), w("s4", np.array([0, 0, H, d])), w("parts", np.array([2, 2, 4])), w("c", c[:, None]), w("s", s[:, None])],
        opset=13,
    )
