"""Sizes of zero, odd forms of files, Einsum, sizes that overflow. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


def reshape_allowzero():
    """onnxruntime 28449, 10664, 9940, 8421: allowzero with zero sizes in a chain, with -1, and ScatterND of empty updates"""
    x = np.zeros((0, 8, 2), np.float32)
    k = r(2, 6)
    y = np.zeros((0, 0, 4), np.float32)
    return case(
        [
            h.make_node("Reshape", ["x", "s1"], ["m"]),
            h.make_node("Reshape", ["m", "s2"], ["y"], allowzero=1),
            h.make_node("Reshape", ["k", "s3"], ["z"], allowzero=1),
            h.make_node("MatMul", ["k", "W"], ["t"]),
            h.make_node("Concat", ["f", "t"], ["o"], axis=0),
            h.make_node("MatMul", ["f6", "W"], ["e"]),
            h.make_node("Reshape", ["x", "s4"], ["v"]),
        ],
        [("x", x, None), ("k", k, None), ("f", np.zeros((0, 4), np.float32), ["n", 4]), ("f6", np.zeros((0, 6), np.float32), ["n", 6])],
        [
            ("y", y, None),
            ("z", k.reshape(4, 3), None),
            ("o", k @ np.ones((6, 4), np.float32), ["q", 4]),
            ("e", np.zeros((0, 4), np.float32), ["n", 4]),
            ("v", np.zeros((0, 1, 16), np.float32), None),
        ],
        [
            w("s1", np.array([4, 2, -1])),
            w("s2", np.array([0, 0, 4])),
            w("s3", np.array([-1, 3])),
            w("W", np.ones((6, 4), np.float32)),
            w("s4", np.array([0, 1, 16])),
        ],
        opset=18,
    )


def fused_gate_up_odd():
    """nnsight 719, torchtitan 3714: gate and up in one weight [gate | up], 7 hidden units each: chunk(2) must be by halves, not by ranks"""
    x = r(2, 3, 8)
    W = r(8, 14, s=0.5)
    D_ = r(7, 8, s=0.5)
    t = x @ W
    g, u = (t[..., :7], t[..., 7:])
    hdn = g / (1 + np.exp(-g)) * u
    return case(
        [
            h.make_node("MatMul", ["x", "W"], ["t"]),
            h.make_node("Split", ["t", "sp"], ["g", "u"], axis=-1),
            h.make_node("Sigmoid", ["g"], ["sg"]),
            h.make_node("Mul", ["g", "sg"], ["si"]),
            h.make_node("Mul", ["si", "u"], ["hd"]),
            h.make_node("MatMul", ["hd", "D"], ["y"]),
        ],
        [("x", x, ["b", "s", 8])],
        [("y", hdn @ D_, ["b", "s", 8]), ("t", t, ["b", "s", 14])],
        [w("W", W), w("D", D_), w("sp", np.array([7, 7]))],
        opset=18,
    )


def zero_batch():
    """onnxruntime 348, 4559, 1879, 7563, 11024; openvino 37966: batch of 0 through Gemm, Conv, LSTM, norm, attention, reductions, MatMul of integers"""
    x = np.zeros((0, 6), np.float32)
    W = r(6, 12)
    im = np.zeros((0, 3, 5, 5), np.float32)
    K = r(12, 3, 3, 3)
    a = np.zeros((0, 4, 8), np.int64)
    b = np.zeros((0, 8, 4), np.int64)
    sq = np.zeros((3, 0, 4), np.float32)
    return case(
        [
            N("Gemm", ["x", "W", "bias"], ["g"]),
            N("LayerNormalization", ["g", "sc"], ["ln"]),
            N("Softmax", ["ln"], ["sm"]),
            N("ReduceMax", ["sm", "a1"], ["mx"], keepdims=0),
            N("ReduceSum", ["sm", "a0"], ["s0"], keepdims=0),
            N("Conv", ["im", "K"], ["c"]),
            N("GlobalAveragePool", ["c"], ["gp"]),
            N("MatMul", ["a", "b"], ["mm"]),
            N("LSTM", ["sq", "lw", "lr"], ["ly", "lh"], hidden_size=5),
            N("Concat", ["g", "g"], ["cc"], axis=0),
        ],
        [("x", x, ["n", 6]), ("im", im, ["n", 3, 5, 5]), ("a", a, None), ("b", b, None), ("sq", sq, [3, "n", 4])],
        [
            ("g", np.zeros((0, 12), np.float32), ["n", 12]),
            ("mx", np.zeros((0,), np.float32), ["n"]),
            ("s0", np.zeros((12,), np.float32), None),
            ("gp", np.zeros((0, 12, 1, 1), np.float32), ["n", 12, 1, 1]),
            ("mm", np.zeros((0, 4, 4), np.int64), None),
            ("ly", np.zeros((3, 1, 0, 5), np.float32), [3, 1, "n", 5]),
            ("lh", np.zeros((1, 0, 5), np.float32), [1, "n", 5]),
            ("cc", np.zeros((0, 12), np.float32), ["m", 12]),
        ],
        [
            w("W", W),
            w("bias", r(12)),
            w("sc", r(12)),
            w("a1", np.array([1])),
            w("a0", np.array([0])),
            w("K", K),
            w("lw", r(1, 20, 4)),
            w("lr", r(1, 20, 5)),
        ],
        opset=23,
    )


def external_data_far_offset(folder):
    """burn 3812, openvino 13186, onnxruntime 11848: external weights at offsets beyond 4 GiB in a (sparse) file, two tensors share bytes, a missing length, an unaligned offset, a subfolder"""
    x = r(3, 6)
    W = r(6, 12, s=0.4)
    b = r(12)
    out = folder
    os.makedirs(os.path.join(out, "sub"), exist_ok=True)
    f = open(os.path.join(out, "sub", "w.bin"), "wb")
    far = (5 << 30) + 4096
    f.seek(far)
    f.write(W.tobytes())
    f.seek((2 << 30) + 4)
    f.write(b.tobytes())
    f.close()

    def ext(name, a, off, length=True):
        t = T()
        t.name = name
        t.data_type = h.np_dtype_to_tensor_dtype(a.dtype)
        t.dims.extend(a.shape)
        t.data_location = T.EXTERNAL
        for k, v in [("location", "sub/w.bin"), ("offset", str(off))] + ([("length", str(a.nbytes))] if length else []):
            e = t.external_data.add()
            e.key, e.value = (k, v)
        return t

    return case(
        [h.make_node("Gemm", ["x", "W", "b"], ["t"]), h.make_node("MatMul", ["t", "V"], ["u"]), h.make_node("Add", ["u", "W2"], ["y"])],
        [("x", x, None)],
        [("t", x @ W + b, None), ("y", (x @ W + b) @ np.ascontiguousarray(W.reshape(12, 6)) + W.reshape(-1)[:6], None)],
        [ext("W", W, far), ext("b", b, (2 << 30) + 4), ext("V", W.reshape(12, 6), far, length=False), ext("W2", W.reshape(-1)[:6], far)],
    )


def initializer_inputs_and_outputs():
    """onnxscript 1944, onnxruntime 4507, 1324, 2907: an initializer that is also an input is a default that the caller may replace; initializers, inputs and one value twice as outputs"""
    x = r(3, 6)
    W = r(6, 12, s=0.4)
    b = r(12)
    b2 = r(12)
    t = x @ W + b2
    return case(
        [N("Gemm", ["x", "W", "b"], ["t"]), N("Relu", ["t"], ["y"]), N("Add", ["t", "t"], ["z"])],
        [("x", x, None), ("b", b2, None)],
        [("t", t, None), ("y", np.maximum(t, 0), None), ("z", t * 2, None), ("W", W, None), ("x", x, None)],
        [w("W", W), w("b", b)],
        opset=18,
    )


def typed_data_fields():
    """tensors in typed fields: half as int32_data, bool, int8, uint8 and bfloat16 in int32_data, double_data, uint64_data; a sparse initializer"""
    x = r(3, 6)
    A = r(6, 12, s=0.4).astype(np.float16)
    flag = np.array([1, 0] * 6, bool)
    i8 = np.arange(-6, 6).astype(np.int8)
    import ml_dtypes

    bf = r(12).astype(ml_dtypes.bfloat16)
    t1 = T(name="A", data_type=H16, dims=[6, 12])
    t1.int32_data.extend(A.view(np.uint16).flatten().tolist())
    t2 = T(name="flag", data_type=BOOL, dims=[12])
    t2.int32_data.extend(flag.astype(int).tolist())
    t3 = T(name="i8", data_type=I8, dims=[12])
    t3.int32_data.extend(i8.astype(int).tolist())
    t4 = T(name="bf", data_type=B16, dims=[12])
    t4.int32_data.extend(bf.view(np.uint16).tolist())
    t5 = T(name="dd", data_type=D, dims=[12])
    t5.double_data.extend([0.5] * 12)
    y = np.where(flag, x @ A.astype(np.float32), 0) + i8 + bf.astype(np.float32) + 0.5
    return case(
        [
            N("Cast", ["A"], ["Af"], to=1),
            N("MatMul", ["x", "Af"], ["t"]),
            N("Where", ["flag", "t", "z"], ["u"]),
            N("Cast", ["i8"], ["i8f"], to=1),
            N("Cast", ["bf"], ["bff"], to=1),
            N("Cast", ["dd"], ["ddf"], to=1),
            N("Sum", ["u", "i8f", "bff", "ddf"], ["y"]),
        ],
        [("x", x, None)],
        [("y", y.astype(np.float32), None)],
        [t1, t2, t3, t4, t5, w("z", np.array(0, np.float32))],
        opset=18,
    )


def einsum_two_operands():
    """onnxruntime 18654, rten 1368, onnx 5739: forms of Einsum with at most two operands"""
    x = r(2, 3, 4)
    A = r(2, 3, 4)
    B = r(4, 5, s=0.5)
    Q = r(5, 5)
    v = r(4)
    u = r(3)
    q = [
        ("ijk->ki", ["x"], np.einsum("ijk->ki", x)),
        ("...c,cd", ["x", "B"], x @ B),
        ("ii", ["Q"], np.einsum("ii", Q)),
        ("ba", ["B"], np.einsum("ba", B)),
        ("...ij,...jk->...ik", ["x", "B"], x @ B),
        ("ii->i", ["Q"], np.diag(Q).copy()),
        ("bij,bkj->ibk", ["x", "A"], np.einsum("bij,bkj->ibk", x, A)),
        ("ij,kl->", ["Q", "B"], np.einsum("ij,kl->", Q, B)),
        ("...ik, ...j -> ij", ["x", "v"], np.einsum("aik,j->ij", x, v)),
        ("ii,ij->j", ["Q", "Q"], np.einsum("ii,ij->j", Q, Q)),
        ("bij, i -> b j", ["x", "u"], np.einsum("bij,i->bj", x, u)),
        ("ij->", ["Q"], Q.sum()),
        ("Ab,bC->AC", ["Q", "Qt"], Q @ Q.T),
    ]
    return case(
        [h.make_node("Transpose", ["Q"], ["Qt"])] + [h.make_node("Einsum", n, [f"y{i}"], equation=e) for i, (e, n, _) in enumerate(q)],
        [("x", x, None), ("Q", Q, None), ("u", u, None)],
        [(f"y{i}", np.asarray(v_, np.float32), None) for i, (_, _, v_) in enumerate(q)],
        [w("A", A), w("B", B), w("v", v)],
        opset=12,
    )


@needs_torch
def old_opsets():
    """onnx 4101, 4974 (version conversion): forms of opset 8 and 9: Upsample with scales, Slice and Squeeze by attributes, Pad with pads attribute, Clip with attributes, TopK with k, ReduceSum with axes, BatchNormalization, Dropout, Flatten, MaxPool, Gemm with a broadcast bias"""
    x = r(2, 3, 4, 4)
    W = r(12, 3, 3, 3, s=0.3)
    c = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(W), padding=1).numpy()
    s, b, mean, var = (r(12), r(12), r(12), np.abs(r(12)) + 0.5)
    bn = (c - mean[None, :, None, None]) / np.sqrt(var + 1e-05)[None, :, None, None] * s[None, :, None, None] + b[None, :, None, None]
    up = bn.repeat(2, 2).repeat(2, 3)
    cl = np.clip(up, -1, 1.5)
    pd = np.pad(cl, ((0, 0), (0, 0), (1, 0), (0, 2)), constant_values=0.5)
    sl = pd[:, 2:9, 1:-1]
    mp = torch.nn.functional.max_pool2d(torch.tensor(np.ascontiguousarray(sl)), 2).numpy()
    fl = mp.reshape(2, -1)
    U = r(fl.shape[1], 8, s=0.1)
    g = fl @ U + np.float32(0.25)
    rs = g.sum(1)
    o = np.argsort(-g, 1, kind="stable")[:, :3]
    return case(
        [
            N("Conv", ["x", "W"], ["c"], pads=[1, 1, 1, 1]),
            N("BatchNormalization", ["c", "s", "b", "m", "v"], ["bn"]),
            N("Upsample", ["bn"], ["up"], scales=[1.0, 1.0, 2.0, 2.0], mode="nearest"),
            N("Clip", ["up"], ["cl"], min=-1.0, max=1.5),
            N("Pad", ["cl"], ["pd"], pads=[0, 0, 1, 0, 0, 0, 0, 2], value=0.5),
            N("Slice", ["pd"], ["sl"], axes=[1, 2], starts=[2, 1], ends=[9, -1]),
            N("MaxPool", ["sl"], ["mp"], kernel_shape=[2, 2], strides=[2, 2]),
            N("Flatten", ["mp"], ["fl"]),
            N("Dropout", ["fl"], ["dr"], ratio=0.5),
            N("Gemm", ["dr", "U", "q"], ["g"]),
            N("ReduceSum", ["g"], ["rs"], axes=[-1], keepdims=0),
            N("TopK", ["g"], ["tv", "ti"], k=3, axis=1),
            N("Unsqueeze", ["rs"], ["us"], axes=[0]),
            N("Squeeze", ["us"], ["sq"], axes=[0]),
        ],
        [("x", x, None)],
        [("g", g, None), ("rs", rs, None), ("tv", np.take_along_axis(g, o, 1), None), ("ti", o, None), ("sq", rs, None)],
        [w("W", W), w("s", s), w("b", b), w("m", mean), w("v", var), w("U", U), w("q", np.array([0.25], np.float32))],
        opset=8,
        ir=8,
    )


def size_overflow_at_run_time():
    """onnxruntime 18905, 9376 (sizes that overflow): Range of 2^61 + 1 numbers of 8 bytes wraps to 8 bytes."""
    whole = case(
        [N("Range", ["z", "n", "o"], ["c"]), N("Gather", ["c", "k"], ["y"])],
        [("n", np.array(2**61 + 1), None)],
        [("y", np.array(7), None)],
        [w("z", np.array(0)), w("o", np.array(1)), w("k", np.array(7))],
        opset=18,
    )
    return refused(whole, "too (large|big|many)|does not fit|overflow|memory|more than")


def einsum_three_operands():
    """onnxruntime 7375: Einsum of three and four operands"""
    B = r(4, 5, s=0.5)
    C = r(5, 6, 7, s=0.5)
    x = r(2, 3, 4)
    u = r(3)
    return case(
        [
            N("Einsum", ["x", "B", "C"], ["a"], equation="abc,cd,def->abd"),
            N("Einsum", ["x", "u", "B"], ["b"], equation="ijk,j,kl->il"),
            N("Einsum", ["u", "u", "u"], ["c"], equation="i,i,i->"),
        ],
        [("x", x, None), ("u", u, None)],
        [
            ("a", np.einsum("abc,cd,def->abd", x, B, C), None),
            ("b", np.einsum("ijk,j,kl->il", x, u, B), None),
            ("c", np.float32((u**3).sum()), None),
        ],
        [w("B", B), w("C", C)],
        opset=12,
    )
