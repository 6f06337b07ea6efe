"""Pools, convolutions and resizing: windows beyond the edge. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


@needs_torch
def avgpool_ceil_count_pad():
    """onnxruntime 16203, onnx 5276: last window of ceil_mode reaches beyond the end pad; those cells must not count"""
    x = r(2, 6, 9)
    W = r(12, 6, 3, s=0.3)
    M = r(48, 5, s=0.3)
    c = torch.nn.functional.conv1d(torch.tensor(x), torch.tensor(W), padding=1)
    p = torch.nn.functional.avg_pool1d(c, 7, 3, 3, ceil_mode=True, count_include_pad=True)
    y = (p.reshape(2, -1) @ torch.tensor(M[: 12 * p.shape[2]])).numpy()
    return case(
        [
            h.make_node("Conv", ["x", "W"], ["c"], pads=[1, 1]),
            h.make_node("AveragePool", ["c"], ["p"], kernel_shape=[7], strides=[3], pads=[3, 3], ceil_mode=1, count_include_pad=1),
            h.make_node("Flatten", ["p"], ["f"]),
            h.make_node("MatMul", ["f", "M"], ["y"]),
        ],
        [("x", x, None)],
        [("p", p.numpy(), None), ("y", y, None)],
        [w("W", W), w("M", M[: 12 * p.shape[2]])],
        opset=22,
    )


@needs_torch
def pool_ceil_empty_window():
    """onnx 4958, onnxruntime 16351: a last window that would start in the pad must be dropped (as torch and opset 22 say)"""
    x = r(2, 6, 8)
    W = r(12, 6, 1, s=0.3)
    c = torch.nn.functional.conv1d(torch.tensor(x), torch.tensor(W))
    a = torch.nn.functional.max_pool1d(c, 1, 2, ceil_mode=True)
    b = torch.nn.functional.avg_pool1d(c, 2, 3, 1, ceil_mode=True, count_include_pad=False)
    return case(
        [
            h.make_node("Conv", ["x", "W"], ["c"]),
            h.make_node("MaxPool", ["c"], ["a"], kernel_shape=[1], strides=[2], ceil_mode=1),
            h.make_node("AveragePool", ["c"], ["b"], kernel_shape=[2], strides=[3], pads=[1, 1], ceil_mode=1),
        ],
        [("x", x, None)],
        [("a", a.numpy(), None), ("b", b.numpy(), None)],
        [w("W", W)],
        opset=22,
    )


def avgpool_same_lower_count_pad():
    """onnxruntime 24681: end padding forgotten with count_include_pad and auto_pad=SAME_LOWER"""
    x = np.arange(12 * 6 * 2, dtype=np.float32).reshape(1, 12, 6, 2)
    xp = np.pad(x, ((0, 0), (0, 0), (2, 2), (0, 0)))
    y = np.stack([xp[:, :, i : i + 5].sum(2) / 5 for i in range(6)], 2)
    M = r(12, 12, s=0.2)
    z = np.einsum("bchw,cd->bdhw", y, M)
    return case(
        [
            h.make_node("AveragePool", ["x"], ["y"], kernel_shape=[5, 1], auto_pad="SAME_LOWER", count_include_pad=1),
            h.make_node("Einsum", ["y", "M"], ["z"], equation="bchw,cd->bdhw"),
        ],
        [("x", x, None)],
        [("y", y, None), ("z", z, None)],
        [w("M", M)],
        opset=19,
    )


def resize_cubic_forms():
    """onnxruntime 11496, 28292, 17564; onnx 4583: cubic to one cell, exclude_outside, align_corners unlike asymmetric; reference: direct sums"""
    import math

    x = r(1, 12, 5, 6)

    def cub(f, a):
        return [
            ((a * (1 + f) - 5 * a) * (1 + f) + 8 * a) * (1 + f) - 4 * a,
            ((a + 2) * f - (a + 3)) * f * f + 1,
            ((a + 2) * (1 - f) - (a + 3)) * (1 - f) ** 2 + 1,
            ((a * (2 - f) - 5 * a) * (2 - f) + 8 * a) * (2 - f) - 4 * a,
        ]

    def axis1(v, n, mode, ct, a, excl):
        L = v.shape[-1]
        out = np.zeros(v.shape[:-1] + (n,))
        for i in range(n):
            sc = n / L
            c = {
                "half_pixel": (i + 0.5) / sc - 0.5,
                "align_corners": i * (L - 1) / (n - 1) if n > 1 else 0,
                "asymmetric": i / sc,
                "pytorch_half_pixel": (i + 0.5) / sc - 0.5 if n > 1 else 0,
            }[ct]
            k0 = math.floor(c)
            f = c - k0
            ks, ws = (range(k0 - 1, k0 + 3), cub(f, a)) if mode == "cubic" else ((k0, k0 + 1), [1 - f, f])
            if excl:
                ws = [q if 0 <= k < L else 0 for k, q in zip(ks, ws)]
                s = sum(ws)
                ws = [q / s for q in ws]
            for k, q in zip(ks, ws):
                out[..., i] += q * v[..., min(max(k, 0), L - 1)]
        return out

    def rs(v, H, W_, mode, ct, a=-0.75, excl=0):
        o = axis1(v.astype(np.float64), W_, mode, ct, a, excl)
        return axis1(o.swapaxes(2, 3), H, mode, ct, a, excl).swapaxes(2, 3).astype(np.float32)

    q = [
        (1, 1, "cubic", "half_pixel", -0.75, 0),
        (3, 4, "cubic", "pytorch_half_pixel", -0.5, 0),
        (9, 7, "cubic", "half_pixel", 0.5, 1),
        (7, 9, "linear", "align_corners", 0, 0),
        (7, 9, "linear", "asymmetric", 0, 0),
        (1, 1, "linear", "pytorch_half_pixel", 0, 0),
        (8, 13, "cubic", "align_corners", -0.75, 0),
    ]
    nodes = []
    init = []
    outs = []
    for i, (H, W_, m, ct, a, ex) in enumerate(q):
        at = dict(mode=m, coordinate_transformation_mode=ct)
        if m == "cubic":
            at.update(cubic_coeff_a=a, exclude_outside=ex)
        nodes.append(h.make_node("Resize", ["x", "", "", f"s{i}"], [f"y{i}"], **at))
        init.append(w(f"s{i}", np.array([1, 12, H, W_])))
        outs.append((f"y{i}", rs(x, H, W_, m, ct, a, ex), None))
    return case(nodes, [("x", x, None)], outs, init, opset=19)


@needs_torch
def convtranspose_auto_pad():
    """onnx 4299, 2788; onnxruntime 4086, 4698, 11927: auto_pad SAME_* with and without output_padding; output_shape with SAME_UPPER"""
    x = r(1, 6, 3, 3)
    W = r(6, 12, 3, 3, s=0.3)
    full = lambda s, op: torch.nn.functional.conv_transpose2d(torch.tensor(x), torch.tensor(W), stride=s, output_padding=op).numpy()
    f1 = full(2, 0)
    fo = full(2, 1)
    f0 = full(1, 0)
    return case(
        [
            h.make_node("ConvTranspose", ["x", "W"], ["a"], strides=[2, 2], auto_pad="SAME_UPPER"),
            h.make_node("ConvTranspose", ["x", "W"], ["b"], strides=[2, 2], auto_pad="SAME_LOWER"),
            h.make_node("ConvTranspose", ["x", "W"], ["c"], strides=[2, 2], auto_pad="SAME_UPPER", output_padding=[1, 1]),
            h.make_node("ConvTranspose", ["x", "W"], ["d"], strides=[1, 1], auto_pad="SAME_UPPER"),
            h.make_node("ConvTranspose", ["x", "W"], ["e"], strides=[2, 2], output_shape=[6, 6]),
        ],
        [("x", x, None)],
        [
            ("a", f1[:, :, :6, :6], None),
            ("b", f1[:, :, 1:, 1:], None),
            ("c", fo[:, :, 1:7, 1:7], None),
            ("d", f0[:, :, 1:4, 1:4], None),
            ("e", f1[:, :, 1:, 1:], None),
        ],
        [w("W", W)],
        opset=11,
    )


def pad_then_averagepool():
    """onnxruntime 22177: an explicit Pad before AveragePool (count_include_pad=0) must not be merged into the pool: padded zeros count"""
    x = r(1, 6, 6, 6)
    W = r(12, 6, 1, 1, s=0.4)
    c = np.einsum("oi,bihw->bohw", W[:, :, 0, 0], x)
    p = np.pad(c, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = np.stack([np.stack([p[:, :, i : i + 3, j : j + 3].mean((2, 3)) for j in range(0, 6, 2)], -1) for i in range(0, 6, 2)], -2)
    pm = np.pad(c, ((0, 0), (0, 0), (1, 1), (1, 1)))
    ym = np.stack([np.stack([pm[:, :, i : i + 3, j : j + 3].max((2, 3)) for j in range(0, 6, 2)], -1) for i in range(0, 6, 2)], -2)
    return case(
        [
            h.make_node("Conv", ["x", "W"], ["c"]),
            h.make_node("Pad", ["c", "pd"], ["p"]),
            h.make_node("AveragePool", ["p"], ["y"], kernel_shape=[3, 3], strides=[2, 2]),
            h.make_node("MaxPool", ["p"], ["ym"], kernel_shape=[3, 3], strides=[2, 2]),
        ],
        [("x", x, None)],
        [("y", y, None), ("ym", ym, None)],
        [w("W", W), w("pd", np.array([0, 0, 1, 1, 0, 0, 1, 1]))],
        opset=18,
    )


@needs_torch
def quantised_conv_and_dynamic():
    """onnxruntime 12800, 11883, 7524: QLinearConv with per-channel weights and zero points, QDQ product in u8 x s8 at the corners of the range, DynamicQuantizeLinear of only positives and of zeros"""
    x = rng.integers(0, 256, (1, 6, 5, 5)).astype(np.uint8)
    W = rng.integers(-128, 128, (12, 6, 3, 3)).astype(np.int8)
    xs, xz, ws, wz, ys, yz = (
        np.float32(0.02),
        np.uint8(131),
        (rng.random(12) * 0.01 + 0.001).astype(np.float32),
        np.zeros(12, np.int8),
        np.float32(0.11),
        np.uint8(120),
    )
    bias = rng.integers(-500, 500, 12).astype(np.int32)
    acc = (
        torch.nn.functional.conv2d(torch.tensor(x.astype(np.float64) - 131), torch.tensor(W.astype(np.float64)), padding=1).numpy()
        + bias[None, :, None, None]
    )
    y = np.clip(
        np.rint((acc * (np.float64(xs) * ws.astype(np.float64))[None, :, None, None] / np.float64(ys)).astype(np.float32)) + 120, 0, 255
    ).astype(np.uint8)
    A = np.full((3, 64), 255, np.uint8)
    Bq = np.full((64, 12), 127, np.int8)
    Bq[:, 1] = -128
    mi = (A.astype(np.int32) - 0) @ Bq.astype(np.int32)
    f = np.abs(r(3, 7)) + 1
    hi = f.max()
    sc = np.float32(hi / 255)
    dq = np.clip(np.rint(f / sc), 0, 255).astype(np.uint8)
    return case(
        [
            N("QLinearConv", ["x", "xs", "xz", "W", "ws", "wz", "ys", "yz", "bias"], ["y"], pads=[1, 1, 1, 1]),
            N("MatMulInteger", ["A", "Bq"], ["mi"]),
            N("DynamicQuantizeLinear", ["f"], ["dq", "ds", "dz"]),
            N("DynamicQuantizeLinear", ["zz"], ["eq", "es", "ez"]),
        ],
        [("x", x, None), ("A", A, None), ("f", f, None), ("zz", np.zeros((2, 2), np.float32), None)],
        [("y", y, None), ("mi", mi, None), ("dq", dq, None), ("ds", sc, None), ("dz", np.uint8(0), None)],
        [w("xs", xs), w("xz", xz), w("W", W), w("ws", ws), w("wz", wz), w("ys", ys), w("yz", yz), w("bias", bias), w("Bq", Bq)],
        opset=11,
    )
