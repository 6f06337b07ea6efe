"""Gather, Scatter, pools and resizing: where numbers come from. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


def gathernd_batch_dims():
    """onnxruntime 24206: sizes and values of GatherND with batch_dims of 1 and 2, along and beside a split axis"""
    x = r(2, 3, 6)
    W = r(6, 12)
    t = x @ W
    i = np.array([[[0], [2]], [[1], [-1]]])
    j = rng.integers(-12, 12, (2, 3, 4, 1))
    return case(
        [N("MatMul", ["x", "W"], ["t"]), N("GatherND", ["t", "i"], ["a"], batch_dims=1), N("GatherND", ["t", "j"], ["b"], batch_dims=2)],
        [("x", x, None), ("j", j, None)],
        [("a", np.stack([t[n][i[n, :, 0]] for n in range(2)]), None), ("b", np.take_along_axis(t, j[..., 0] % 12, 2), None)],
        [w("W", W), w("i", i)],
        opset=13,
    )


def scatter_smaller_than_data():
    """tvm 20187: indices smaller than the data in every dimension, of the old Scatter, too"""
    x = r(2, 3, 6)
    W = r(6, 12)
    t = x @ W
    i = np.array([[[1], [0], [1]]])
    u = r(1, 3, 1)
    y = t.copy()
    for b in range(3):
        y[i[0, b, 0], b, 0] = u[0, b, 0]
    return case(
        [N("MatMul", ["x", "W"], ["t"]), N("Scatter", ["t", "i", "u"], ["y"], axis=0)],
        [("x", x, None)],
        [("y", y, None)],
        [w("W", W), w("i", i), w("u", u)],
        opset=10,
    )


def scatter_longer_than_the_axis():
    """onnxruntime 7593: more indices along the axis than the data has, duplicates added, along a split axis"""
    x = r(2, 6)
    W = r(6, 3)
    t = x @ W
    i = np.array([[0, 2, 0, 1, 2], [1, 1, 1, 1, -3]])
    u = r(2, 5)
    y = t.copy()
    for a in range(2):
        for b in range(5):
            y[a, i[a, b]] += u[a, b]
    return case(
        [N("MatMul", ["x", "W"], ["t"]), N("ScatterElements", ["t", "i", "u"], ["y"], axis=1, reduction="add")],
        [("x", x, None)],
        [("y", y, None)],
        [w("W", W), w("i", i), w("u", u)],
        opset=16,
    )


def scatternd_into_a_vector():
    """onnxruntime 9411: data of one dimension that a product made, indices at run time, all reductions"""
    x = r(6)
    W = r(6, 12)
    t = x @ W
    i = np.array([[1], [-1], [1]])
    u = r(3)
    y = t.copy()
    np.add.at(y, i[:, 0], u)
    z = t.copy()
    np.maximum.at(z, i[:, 0], u)
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("ScatterND", ["t", "i", "u"], ["y"], reduction="add"),
            N("ScatterND", ["t", "i", "u"], ["z"], reduction="max"),
        ],
        [("x", x, None), ("i", i, None)],
        [("y", y, None), ("z", z, None)],
        [w("W", W), w("u", u)],
        opset=18,
    )


def max_pool_dilated_with_indices():
    """onnxruntime 29637, libonnx 24: values and indices of a dilated window that begins in the pad"""
    x = r(1, 3, 9)
    W = r(12, 3, 1)
    t = np.einsum("oi,bil->bol", W[:, :, 0], x)
    p = np.pad(t, ((0, 0), (0, 0), (1, 1)), constant_values=-np.inf)
    two = np.stack([p[..., :9], p[..., 2:]], -1)
    k = two.argmax(-1)
    at = np.arange(9) + 2 * k - 1
    return case(
        [N("Conv", ["x", "W"], ["t"]), N("MaxPool", ["t"], ["y", "i"], kernel_shape=[2], strides=[1], pads=[1, 1], dilations=[2])],
        [("x", x, None)],
        [("y", two.max(-1), None), ("i", at + 9 * np.arange(12)[None, :, None], None)],
        [w("W", W)],
        opset=12,
    )


def max_pool_dilated_pictures():
    """onnx 1378, libonnx 24: dilations of both dimensions"""
    x = r(1, 3, 7, 8)
    W = r(12, 3, 1, 1)
    t = np.einsum("oi,bihw->bohw", W[:, :, 0, 0], x)
    y = np.stack([t[:, :, a : a + 3, b : b + 6] for a in (0, 2, 4) for b in (0, 2)], -1).max(-1)
    return case(
        [N("Conv", ["x", "W"], ["t"]), N("MaxPool", ["t"], ["y"], kernel_shape=[3, 2], strides=[1, 1], dilations=[2, 2])],
        [("x", x, None)],
        [("y", y, None)],
        [w("W", W)],
        opset=12,
    )


def max_pool_longer_than_its_input():
    """onnxruntime 1224: a window that does not fit is named, as torch does"""
    x = r(1, 3, 4)
    W = r(12, 3, 1)
    whole = case(
        [N("Conv", ["x", "W"], ["t"]), N("MaxPool", ["t"], ["y"], kernel_shape=[3], strides=[2], dilations=[2])],
        [("x", x, None)],
        [("y", np.zeros((1, 12, 0), np.float32), None)],
        [w("W", W)],
        opset=12,
    )
    return refused(whole, "window is larger than")


def max_unpool_to_a_size():
    """onnx 2398, onnxruntime 2154: indices count places of what the windows cover; the size that is asked for is wider"""
    x = r(1, 3, 4, 4)
    W = r(12, 3, 1, 1)
    t = np.einsum("oi,bihw->bohw", W[:, :, 0, 0], x)
    windows = t.reshape(1, 12, 2, 2, 2, 2)
    y = np.zeros((1, 12, 5, 5), np.float32)
    y[:, :, :4, :4] = (windows * (windows == windows.max((3, 5), keepdims=True))).reshape(t.shape)
    return case(
        [
            N("Conv", ["x", "W"], ["t"]),
            N("MaxPool", ["t"], ["p", "i"], kernel_shape=[2, 2], strides=[2, 2]),
            N("MaxUnpool", ["p", "i", "s"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
        ],
        [("x", x, None)],
        [("y", y, None)],
        [w("W", W), w("s", np.array([1, 12, 5, 5]))],
        opset=12,
    )


def resize_ties_upwards():
    """onnx 7841, onnxruntime 28291, openvino 36023: half_pixel with round_prefer_ceil from 20 to 6: places 4.5 and 14.5 are 5 and 15"""
    x = r(1, 4, 1, 20)
    W = r(12, 4, 1, 1)
    t = np.einsum("oi,bihw->bohw", W[:, :, 0, 0], x)
    return case(
        [
            N("Conv", ["x", "W"], ["t"]),
            N(
                "Resize",
                ["t", "", "", "s"],
                ["y"],
                mode="nearest",
                coordinate_transformation_mode="half_pixel",
                nearest_mode="round_prefer_ceil",
            ),
        ],
        [("x", x, None)],
        [("y", t[..., [1, 5, 8, 11, 15, 18]], None)],
        [w("W", W), w("s", np.array([1, 12, 1, 6]))],
        opset=13,
    )


def resize_half_pixel_down_and_up():
    """iree 24264, tract 2554: nearest with half_pixel and floor, ceil, asymmetric: only the last repeats each place"""
    x = r(1, 4, 1, 4)
    W = r(12, 4, 1, 1)
    t = np.einsum("oi,bihw->bohw", W[:, :, 0, 0], x)
    how = [
        ("half_pixel", "floor", [0, 0, 0, 1, 1, 2, 2, 3]),
        ("half_pixel", "ceil", [0, 1, 1, 2, 2, 3, 3, 3]),
        ("asymmetric", "floor", [0, 0, 1, 1, 2, 2, 3, 3]),
    ]
    return case(
        [N("Conv", ["x", "W"], ["t"])]
        + [
            N("Resize", ["t", "", "k"], [f"y{i}"], mode="nearest", coordinate_transformation_mode=c, nearest_mode=n)
            for i, (c, n, _) in enumerate(how)
        ],
        [("x", x, None)],
        [(f"y{i}", t[..., at], None) for i, (_, _, at) in enumerate(how)],
        [w("W", W), w("k", np.array([1, 1, 1, 2], np.float32))],
        opset=13,
    )


def resize_lines_to_fewer():
    """TIM-VX 263: linear by a scale of 0.6: places come from the scale, not from the sizes; align_corners"""
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 4)
    return case(
        [
            N("Resize", ["x", "", "k"], ["a"], mode="linear"),
            N("Resize", ["x", "", "k"], ["b"], mode="linear", coordinate_transformation_mode="align_corners"),
        ],
        [("x", x, None)],
        [("a", np.array([[[[8 / 3, 13 / 3]]]], np.float32), None), ("b", np.array([[[[1, 22 / 7]]]], np.float32), None)],
        [w("k", np.array([1, 1, 0.6, 0.6], np.float32))],
        opset=13,
    )


def convolution_of_bytes_as_floats():
    """onnxruntime 18946: inputs up to 255 through a small convolution"""
    x = rng.integers(0, 256, (1, 1, 12, 12)).astype(np.float32)
    W = r(12, 1, 3, 3, s=0.1)
    p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))).astype(np.float64)
    y = sum(W[None, :, 0, a, b, None, None] * p[:, :, a : a + 12, b : b + 12] for a in range(3) for b in range(3))
    return case([N("Conv", ["x", "W"], ["y"], pads=[1] * 4)], [("x", x, None)], [("y", y.astype(np.float32), None)], [w("W", W)], opset=13)
