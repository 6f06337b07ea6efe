"""Infinities, NaN, large and tiny numbers, rounding, bounds. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


def nan_max_argmax():
    """tvm 19558, openvino 33626, onnxruntime 21455: NaN in ArgMax, ReduceMax and Min/Max with a broadcast second operand, on a split axis"""
    x = r(4, 8)
    W = r(8, 12, s=0.4)
    b = np.zeros(12, np.float32)
    b[7] = np.nan
    t = x @ W + b
    c = np.array([[0.1]], np.float32)
    return case(
        [
            h.make_node("Gemm", ["x", "W", "b"], ["t"]),
            h.make_node("ReduceMax", ["t", "ax"], ["m"], keepdims=0),
            h.make_node("ReduceMin", ["t", "ax"], ["n"], keepdims=0),
            h.make_node("ArgMax", ["t"], ["a"], axis=1, keepdims=0),
            h.make_node("Max", ["t", "c"], ["u"]),
            h.make_node("Min", ["c", "t"], ["v"]),
            h.make_node("Clip", ["t", "lo", "hi"], ["k"]),
            h.make_node("Relu", ["t"], ["rl"]),
        ],
        [("x", x, None)],
        [
            ("m", np.max(t, 1), None),
            ("n", np.min(t, 1), None),
            ("a", np.argmax(t, 1), None),
            ("u", np.maximum(t, c), None),
            ("v", np.minimum(c, t), None),
            ("k", np.clip(t, -0.5, 0.5), None),
            ("rl", np.maximum(t, 0), None),
        ],
        [w("W", W), w("b", b), w("ax", np.array([1])), w("c", c), w("lo", np.array(-0.5, np.float32)), w("hi", np.array(0.5, np.float32))],
        opset=18,
    )


def layernorm_large_mean():
    """onnxruntime 28463, 21935: mean much larger than the deviation; rows that are constant. The variance must not be made of E[x^2] - E[x]^2"""
    x = np.stack([40000 + np.arange(12), np.full(12, 1234.0), 80000 + np.arange(12) * 0.5]).astype(np.float32)
    s = r(12)
    b = r(12)
    W = r(12, 8)
    z = x.astype(np.float64)
    y = ((z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-05) * s + b).astype(np.float32)
    return case(
        [h.make_node("LayerNormalization", ["x", "s", "b"], ["y"], axis=-1, epsilon=1e-05), h.make_node("MatMul", ["y", "W"], ["o"])],
        [("x", x, None)],
        [("y", y, None), ("o", y @ W, None)],
        [w("s", s), w("b", b), w("W", W)],
        opset=17,
    )


def norm_half_overflow():
    """onnxruntime 29034, 17692: squares of f16 values overflow f16 in RMS and layer norms"""
    x = (r(3, 12) * 8000).astype(np.float16)
    sk = (r(3, 12) * 3000).astype(np.float16)
    g = (1 + 0.1 * r(12)).astype(np.float16)
    t = (x.astype(np.float32) + sk.astype(np.float32)).astype(np.float16).astype(np.float64)
    rms = (t / np.sqrt((t * t).mean(1, keepdims=True) + 1e-06) * g).astype(np.float16)
    z = x.astype(np.float64)
    ln = ((z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-05) * g).astype(np.float16)
    rm2 = (z / np.sqrt((z * z).mean(1, keepdims=True) + 1e-06) * g).astype(np.float16)
    return case(
        [
            h.make_node("SkipSimplifiedLayerNormalization", ["x", "sk", "g"], ["a", "", "", "t"], domain="com.microsoft", epsilon=1e-06),
            h.make_node("LayerNormalization", ["x", "g"], ["b"], epsilon=1e-05),
            h.make_node("RMSNormalization", ["x", "g"], ["c"], epsilon=1e-06),
        ],
        [("x", x, None), ("sk", sk, None)],
        [("a", rms, None), ("t", t.astype(np.float16), None), ("b", ln, None), ("c", rm2, None)],
        [w("g", g)],
        opset=23,
        ms=True,
    )


def softmax_opset12():
    """tvm 19420, 20183, onnx-mlir 832: Softmax below opset 13 flattens from its axis on; default axis is 1"""
    x = r(2, 12, 4)
    W = r(4, 3)
    t = x @ W

    def sm(v, k):
        u = v.reshape(int(np.prod(v.shape[:k])), -1)
        e = np.exp(u - u.max(1, keepdims=True))
        return (e / e.sum(1, keepdims=True)).reshape(v.shape)

    hm = np.zeros_like(t)
    f = hm.reshape(2, -1)
    f[np.arange(2), t.reshape(2, -1).argmax(1)] = 1
    return case(
        [
            h.make_node("MatMul", ["x", "W"], ["t"]),
            h.make_node("Softmax", ["t"], ["a"]),
            h.make_node("Softmax", ["t"], ["b"], axis=-2),
            h.make_node("LogSoftmax", ["t"], ["c"], axis=0),
            h.make_node("Hardmax", ["t"], ["d"]),
        ],
        [("x", x, ["b", 12, 4])],
        [("a", sm(t, 1), ["b", 12, 3]), ("b", sm(t, 1), ["b", 12, 3]), ("c", np.log(sm(t, 0)), ["b", 12, 3]), ("d", hm, ["b", 12, 3])],
        [w("W", W)],
        opset=11,
    )


def reduce_logsumexp_inf():
    """onnxruntime 28461, openvino 35648, TensorRT 4772: ReduceLogSumExp of only -inf is -inf, of large numbers finite, of +inf is +inf; on a split axis"""
    x = np.stack(
        [
            np.full(12, -np.inf),
            np.full(12, 250.0),
            np.r_[-np.inf, np.zeros(11)],
            np.r_[np.inf, np.zeros(11)],
            np.r_[np.full(9, -np.inf), 1.0, 2, 3],
        ]
    ).astype(np.float32)
    with np.errstate(all="ignore"):
        y = np.logaddexp.reduce(x.astype(np.float64), 1).astype(np.float32)
        z = np.logaddexp.reduce(x.astype(np.float64), 0)[None].astype(np.float32)
    return case(
        [h.make_node("ReduceLogSumExp", ["x", "ax"], ["y"], keepdims=0), h.make_node("ReduceLogSumExp", ["x", "a0"], ["z"], keepdims=1)],
        [("x", x, None)],
        [("y", y, None), ("z", z, None)],
        [w("ax", np.array([1])), w("a0", np.array([0]))],
        opset=18,
    )


def groupnorm_18_and_21():
    """onnx 5466, onnxruntime 24538, TensorRT 4336: in opset 18 scale and bias are per group"""
    x = r(2, 12, 5)
    s = r(4)
    b = r(4)
    W = r(12, 12, 1, s=0.3)
    c = np.einsum("oi,bil->bol", W[:, :, 0], x)
    g = c.reshape(2, 4, -1).astype(np.float64)
    y = (
        ((g - g.mean(2, keepdims=True)) / np.sqrt(g.var(2, keepdims=True) + 1e-05) * s[None, :, None] + b[None, :, None])
        .reshape(c.shape)
        .astype(np.float32)
    )
    return case(
        [h.make_node("Conv", ["x", "W"], ["c"]), h.make_node("GroupNormalization", ["c", "s", "b"], ["y"], num_groups=4)],
        [("x", x, None)],
        [("y", y, None)],
        [w("W", W), w("s", s), w("b", b)],
        opset=18,
    )


def half_mask_sum():
    """transformers 17306, 17437; ocannl 548: f16 scores plus two masks of -65504 overflow to -inf in a whole row: softmax must follow IEEE (NaN) or stay finite as the graph says: here the sum is clamped by Max"""
    x = r(1, 6, 8).astype(np.float16)
    W = r(8, 24, s=0.3).astype(np.float16)
    lo = np.float16(-65504)
    m1 = np.where(np.tril(np.ones((6, 6), bool)), 0, lo).astype(np.float16)
    m2 = np.broadcast_to(np.array([lo, lo, 0, 0, 0, 0], np.float16), (6, 6)).copy()
    t = (x.astype(np.float32) @ W.astype(np.float32)).astype(np.float16)
    q, k, v = (t[..., i * 8 : i * 8 + 8].reshape(1, 6, 2, 4).transpose(0, 2, 1, 3) for i in range(3))
    s = (q.astype(np.float32) @ k.astype(np.float32).transpose(0, 1, 3, 2)).astype(np.float16)
    with np.errstate(all="ignore"):
        s = np.maximum((s + m1).astype(np.float16) + m2, lo).astype(np.float16)
    f = s.astype(np.float32)
    e = np.exp(f - f.max(-1, keepdims=True))
    a = (e / e.sum(-1, keepdims=True)).astype(np.float16)
    y = (a.astype(np.float32) @ v.astype(np.float32)).astype(np.float16).transpose(0, 2, 1, 3).reshape(1, 6, 8)
    return case(
        [N("MatMul", ["x", "W"], ["t"]), N("Split", ["t"], ["q0", "k0", "v0"], axis=-1, num_outputs=3)]
        + [
            n
            for c, p in zip("qkv", ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
            for n in (N("Reshape", [c + "0", "sh"], [c + "1"]), N("Transpose", [c + "1"], [c], perm=p))
        ]
        + [
            N("MatMul", ["q", "k"], ["s"]),
            N("Add", ["s", "m1"], ["s1"]),
            N("Add", ["s1", "m2"], ["s2"]),
            N("Max", ["s2", "lo"], ["s3"]),
            N("Softmax", ["s3"], ["a"]),
            N("MatMul", ["a", "v"], ["c"]),
            N("Transpose", ["c"], ["ct"], perm=[0, 2, 1, 3]),
            N("Reshape", ["ct", "s3d"], ["y"]),
        ],
        [("x", x, None), ("m1", m1, None), ("m2", m2, None)],
        [("y", y, None)],
        [w("W", W), w("sh", np.array([0, 0, 2, 4])), w("lo", np.array(lo)), w("s3d", np.array([0, 0, 8]))],
        opset=18,
    )


def quantize_half_ties():
    """onnxruntime 18576, 32452: QuantizeLinear of f16 rounds ties to even, saturates; per channel; int8 and uint8 and int16"""
    x = np.array([[0.050018310546875, -0.050018310546875, 0.25, 0.75, 1.25, -1.25, 300, -300, 0.15, 0.35, -0.45, 0]], np.float16)
    s = np.full(12, 0.0999755859375, np.float16)
    s[2:6] = 0.5
    z8 = np.arange(12).astype(np.int8)
    q = np.rint(x.astype(np.float32) / s.astype(np.float32))
    f = r(3, 6)
    W = r(6, 12)
    t = f @ W
    sf = np.full(12, 0.125, np.float32)
    W = (np.round(W * 4) / 4).astype(np.float32)
    f = (np.round(f * 4) / 4).astype(np.float32)
    t = f @ W
    return case(
        [
            h.make_node("QuantizeLinear", ["x", "s", "z8"], ["a"], axis=1),
            h.make_node("QuantizeLinear", ["x", "s"], ["b"], axis=-1),
            h.make_node("MatMul", ["f", "W"], ["t"]),
            h.make_node("QuantizeLinear", ["t", "sf", "z16"], ["c"], axis=1),
        ],
        [("x", x, None), ("f", f, None)],
        [
            ("a", np.clip(q + z8, -128, 127).astype(np.int8), None),
            ("b", np.clip(q, 0, 255).astype(np.uint8), None),
            ("c", np.clip(np.rint(t / 0.125), -32768, 32767).astype(np.int16), None),
        ],
        [w("s", s), w("z8", z8), w("W", W), w("sf", sf), w("z16", np.zeros(12, np.int16))],
        opset=21,
    )


def clip_odd_bounds():
    """onnx 6165, 6003; onnxruntime 25057; tvm 19533: Clip with min above max gives max, NaN stays NaN, one bound only, integer bounds, f16"""
    x = r(2, 6)
    W = r(6, 12, s=0.4)
    t = x @ W
    i = np.arange(-6, 6).reshape(1, 12).astype(np.int8)
    return case(
        [
            h.make_node("MatMul", ["x", "W"], ["t"]),
            h.make_node("Clip", ["t", "two", "one"], ["a"]),
            h.make_node("Clip", ["t", "", "one"], ["b"]),
            h.make_node("Clip", ["t", "one"], ["c"]),
            h.make_node("Clip", ["i", "i3", "i2"], ["d"]),
            h.make_node("Clip", ["n", "m1", "one"], ["e"]),
        ],
        [("x", x, None), ("i", i, None), ("n", np.array([np.nan, 2, -np.inf, np.inf, -0.5], np.float32), None)],
        [
            ("a", np.full_like(t, 1), None),
            ("b", np.minimum(t, 1), None),
            ("c", np.maximum(t, 1), None),
            ("d", np.full((1, 12), 2, np.int8), None),
            ("e", np.array([np.nan, 1, -1, 1, -0.5], np.float32), None),
        ],
        [
            w("W", W),
            w("two", np.array(2, np.float32)),
            w("one", np.array(1, np.float32)),
            w("m1", np.array(-1, np.float32)),
            w("i3", np.array(3, np.int8)),
            w("i2", np.array(2, np.int8)),
        ],
        opset=18,
    )


def layernorm_two_axes_and_outputs():
    """LayerNormalization over two axes of a split product, its mean and 1/deviation outputs; InstanceNormalization of one place; BatchNormalization in training"""
    x = r(2, 3, 5)
    W = r(5, 12, s=0.4)
    t = x @ W
    g = r(3, 12)
    b = r(3, 12)
    z = t.astype(np.float64)
    m = z.mean((1, 2), keepdims=True)
    v = z.var((1, 2), keepdims=True)
    y = ((z - m) / np.sqrt(v + 1e-05) * g + b).astype(np.float32)
    s = r(12)
    ib = r(12)
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("LayerNormalization", ["t", "g", "b"], ["y", "m", "isd"], axis=1),
            N("Transpose", ["t"], ["tt"], perm=[0, 2, 1]),
            N("Slice", ["tt", "z0", "z1", "a2"], ["i1"]),
            N("InstanceNormalization", ["i1", "s", "ib"], ["iy"]),
            N("BatchNormalization", ["tt", "s", "ib", "rm", "rv"], ["by", "nm", "nv"], training_mode=1, momentum=0.9),
        ],
        [("x", x, None)],
        [
            ("y", y, None),
            ("m", m.astype(np.float32), None),
            ("isd", (1 / np.sqrt(v + 1e-05)).astype(np.float32), None),
            ("iy", np.broadcast_to(ib[None, :, None], (2, 12, 1)).copy(), None),
            (
                "by",
                (
                    (t.transpose(0, 2, 1) - t.mean((0, 1))[None, :, None])
                    / np.sqrt(t.var((0, 1)) + 1e-05)[None, :, None]
                    * s[None, :, None]
                    + ib[None, :, None]
                ).astype(np.float32),
                None,
            ),
            ("nm", (t.mean((0, 1)) * 0.1).astype(np.float32), None),
            ("nv", (np.ones(12) * 0.9 + t.var((0, 1)) * 0.1).astype(np.float32), None),
        ],
        [
            w("W", W),
            w("g", g),
            w("b", b),
            w("z0", np.array([0])),
            w("z1", np.array([1])),
            w("a2", np.array([2])),
            w("s", s),
            w("ib", ib),
            w("rm", np.zeros(12, np.float32)),
            w("rv", np.ones(12, np.float32)),
        ],
        opset=17,
    )


def cast_strings_f8_int():
    """onnx 6220, onnxruntime 25207, 26451: casts: float to int truncates, to f8 saturates or not, inf to e4m3fnuz is NaN without saturate, bool of -0.0 and NaN, f32 to bf16 ties to even"""
    import ml_dtypes

    x = np.array([1.5, -2.7, 3.2, -0.9, 127.9, -128.4], np.float32)
    f = np.array([10000.0, -10000.0, np.inf, -np.inf, np.nan, 0.3], np.float32)
    bfx = np.array([1.00390625, 1.01171875, -1.00390625, 3.3895314e38, 1e-40, np.inf], np.float32)
    bl = np.array([-0.0, np.nan, 0.2, 0, -1, 1e-30], np.float32)
    e4 = np.array([448, -448, 448, -448, np.nan, 0.3], np.float32).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    e4n = np.array([np.nan] * 5 + [0.3], np.float32).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    e5n = np.array([10000.0, -10000.0, np.inf, -np.inf, np.nan, 0.3], np.float32).astype(ml_dtypes.float8_e5m2).astype(np.float32)
    return case(
        [
            N("Cast", ["x"], ["a"], to=3),
            N("Cast", ["x"], ["b"], to=7),
            N("Cast", ["f"], ["c0"], to=17),
            N("Cast", ["c0"], ["c"], to=1),
            N("Cast", ["f"], ["d0"], to=17, saturate=0),
            N("Cast", ["d0"], ["d"], to=1),
            N("Cast", ["f"], ["e0"], to=19, saturate=0),
            N("Cast", ["e0"], ["e"], to=1),
            N("Cast", ["bfx"], ["g0"], to=16),
            N("Cast", ["g0"], ["g"], to=1),
            N("Cast", ["bl"], ["h"], to=9),
        ],
        [("x", x, None), ("f", f, None), ("bfx", bfx, None), ("bl", bl, None)],
        [
            ("a", np.trunc(x).astype(np.int8), None),
            ("b", np.trunc(x).astype(np.int64), None),
            ("c", e4, None),
            ("d", e4n, None),
            ("e", e5n, None),
            ("g", bfx.astype(ml_dtypes.bfloat16).astype(np.float32), None),
            ("h", bl != 0, None),
        ],
        [],
        opset=21,
    )


def norm_of_mixed_precision():
    """a model with another precision than its weights: a norm has the type of its scale; of f32 by a scale in f16 it wrote behind its result, of f16 by f32 half"""
    x = r(3, 8)
    small = x.astype(np.float16)
    g = 1 + 0.1 * r(8)
    half, wide = g.astype(np.float16), g.astype(np.float64)

    def rms(x, g):
        x = x.astype(np.float64)
        return (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g.astype(np.float64)).astype(g.dtype)

    scales = {"a": (x, half), "b": (small, g), "c": (x, wide), "d": (small, wide)}
    return case(
        [N("RMSNormalization", ["s" if y in "bd" else "x", f"g.{y}"], [y]) for y in scales],
        [("x", x, None), ("s", small, None)],
        [(y, rms(*of), None) for y, of in scales.items()],
        [w(f"g.{y}", of[1]) for y, of in scales.items()],
        opset=23,
    )
