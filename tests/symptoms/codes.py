"""Quantisation: saturation, zero points, ranges. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


def quantize_to_the_least_byte():
    """onnxruntime 3442, Xilinx onnx-mlir 96: int8 goes down to -128, and saturates after the zero point is added"""
    x = np.array([[-129, -128, -127, 126, 127, 128, 1e9, -1e9, 0.5, 1.5, -2.5, 3]], np.float32)
    return case(
        [N("QuantizeLinear", ["x", "one", "z0"], ["a"]), N("QuantizeLinear", ["x", "one", "z9"], ["b"])],
        [("x", x, None)],
        [("a", np.clip(np.rint(x), -128, 127).astype(np.int8), None), ("b", np.clip(np.rint(x) + 100, 0, 255).astype(np.uint8), None)],
        [w("one", np.float32(1)), w("z0", np.array(0, np.int8)), w("z9", np.array(100, np.uint8))],
        opset=13,
    )


def qlinear_product_saturates():
    """onnx 7835, emx-onnx-cgen 735: sums beyond the type saturate, signed and unsigned"""
    a = rng.integers(0, 256, (3, 6)).astype(np.uint8)
    b = rng.integers(0, 256, (6, 12)).astype(np.uint8)
    c = rng.integers(-128, 128, (3, 6)).astype(np.int8)
    d = rng.integers(-128, 128, (6, 12)).astype(np.int8)
    s = np.float32(1)
    q = np.float32(0.2)
    y = np.clip(np.rint((a.astype(np.int64) - 7) @ (b.astype(np.int64) - 9) / 0.2), 0, 255).astype(np.uint8)
    z = np.clip(np.rint(c.astype(np.int64) @ d.astype(np.int64) * 4.0), -128, 127).astype(np.int8)
    return case(
        [
            N("QLinearMatMul", ["a", "s", "z7", "b", "s", "z9", "q", "z"], ["y"]),
            N("QLinearMatMul", ["c", "s", "i", "d", "s", "i", "q4", "i"], ["v"]),
        ],
        [("a", a, None), ("c", c, None)],
        [("y", y, None), ("v", z, None)],
        [
            w("b", b),
            w("d", d),
            w("s", s),
            w("q", q),
            w("q4", np.float32(0.25)),
            w("z7", np.array(7, np.uint8)),
            w("z9", np.array(9, np.uint8)),
            w("z", np.array(0, np.uint8)),
            w("i", np.array(0, np.int8)),
        ],
        opset=21,
    )


def qlinear_product_by_column():
    """onnxruntime 15442: scales and zero points of each column of the weight"""
    a = rng.integers(0, 256, (3, 6)).astype(np.uint8)
    b = rng.integers(-128, 128, (6, 12)).astype(np.int8)
    s = (np.abs(r(12)) * 0.01 + 0.01).astype(np.float32)
    z = rng.integers(-5, 6, 12).astype(np.int8)
    t = (a.astype(np.float64) - 128) * 0.02 @ ((b.astype(np.float64) - z) * s)
    y = np.clip(np.rint(t / 0.5) + 3, 0, 255)
    return case(
        [
            N("QLinearMatMul", ["a", "sa", "za", "b", "s", "z", "sy", "zy"], ["y"]),
            N("DequantizeLinear", ["y", "sy", "zy"], ["f"]),
            N("MatMul", ["f", "V"], ["o"]),
        ],
        [("a", a, None)],
        [("o", (((y - 3) * 0.5).astype(np.float32) @ np.ones((12, 5), np.float32)), None)],
        [
            w("b", b),
            w("s", s),
            w("z", z),
            w("sa", np.float32(0.02)),
            w("za", np.array(128, np.uint8)),
            w("sy", np.float32(0.5)),
            w("zy", np.array(3, np.uint8)),
            w("V", np.ones((12, 5), np.float32)),
        ],
        opset=21,
    )


def dynamic_ranges_include_zero():
    """onnx 5597, 2556, onnx-mlir 2129: DynamicQuantizeLinear of only positive, only negative and only zero numbers"""
    p = np.abs(r(2, 6)) + 3
    m = -np.abs(r(2, 6)) - 3
    z = np.zeros((2, 6), np.float32)

    def quantized(x):
        lo, hi = min(np.float32(0), x.min()), max(np.float32(0), x.max())
        s = np.float32((hi - lo) / np.float32(255)) if hi > lo else np.float32(1 / 255)
        q = np.clip(np.rint(np.float32(0) - lo / s), 0, 255).astype(np.uint8)
        return np.clip(np.rint(x / s) + q, 0, 255).astype(np.uint8), s, q

    outs = [(f"{n}{i}", v, None) for n, x in (("p", p), ("m", m)) for i, v in enumerate(quantized(x))]
    return case(
        [N("DynamicQuantizeLinear", [n], [f"{n}{i}" for i in range(3)]) for n in "pm"]
        + [N("DynamicQuantizeLinear", ["z"], ["z0", "z1", "z2"]), N("DequantizeLinear", ["z0", "z1", "z2"], ["zz"])],
        [("p", p, None), ("m", m, None), ("z", z, None)],
        outs + [("z0", np.zeros((2, 6), np.uint8), None), ("zz", z, None)],
        opset=21,
    )


def zero_points_above_half():
    """torch-mlir 3009: bytes without sign whose zero point is 128 and more are not negative"""
    q = rng.integers(0, 256, (3, 6)).astype(np.uint8)
    W = r(6, 12)
    f = (q.astype(np.float32) - 200) * np.float32(0.1)
    return case(
        [N("DequantizeLinear", ["q", "s", "z"], ["f"]), N("MatMul", ["f", "W"], ["y"])],
        [("q", q, None)],
        [("f", f, None), ("y", f @ W, None)],
        [w("W", W), w("s", np.float32(0.1)), w("z", np.array(200, np.uint8))],
        opset=13,
    )


def integer_product_of_extremes():
    """onnx 7835: rows of 255 by rows of -128 and 127, whose partial sums pass 16 bits"""
    a = np.full((2, 64), 255, np.uint8)
    a[1, ::2] = 0
    b = np.full((64, 12), -128, np.int8)
    b[:, 1::2] = 127
    return case(
        [N("MatMulInteger", ["a", "b"], ["y"]), N("ConvInteger", ["c", "d"], ["z"])],
        [("a", a, None), ("c", a.reshape(2, 64, 1), None)],
        [("y", a.astype(np.int32) @ b.astype(np.int32), None), ("z", (a.astype(np.int32) @ b.astype(np.int32))[..., None], None)],
        [w("b", b), w("d", b.T.reshape(12, 64, 1))],
        opset=10,
    )
