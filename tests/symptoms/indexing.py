"""Indices, slices, pads and rows that data find. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


def pad_reflect_negative_mix():
    """onnxruntime 11828: reflect with a negative pad on one side and a positive one on the other, on an axis that could be split"""
    x = r(2, 8)
    W = r(8, 10, s=0.4)
    t = x @ W
    y = np.pad(t[:, 2:], ((0, 0), (0, 3)), mode="reflect")
    z = np.pad(t[:, :7], ((1, 0), (2, 0)), constant_values=3.0)
    return case(
        [
            h.make_node("MatMul", ["x", "W"], ["t"]),
            h.make_node("Pad", ["t", "p"], ["y"], mode="reflect"),
            h.make_node("Pad", ["t", "q", "v"], ["z"]),
        ],
        [("x", x, None)],
        [("y", y, None), ("z", z, None)],
        [w("W", W), w("p", np.array([0, -2, 0, 3])), w("q", np.array([1, 2, 0, -3])), w("v", np.array(3, np.float32))],
        opset=19,
    )


def pad_reflect_longer_than_axis():
    """onnxruntime 20801, onnx 6735: reflect pad as long as the axis or longer"""
    x = r(3, 2)
    W = r(2, 12)
    t = x @ W
    y = np.pad(x, ((0, 0), (2, 0)), mode="reflect")
    z = np.pad(t, ((7, 3), (13, 0)), mode="reflect")
    return case(
        [
            h.make_node("MatMul", ["x", "W"], ["t"]),
            h.make_node("Pad", ["x", "p"], ["y"], mode="reflect"),
            h.make_node("Pad", ["t", "q"], ["z"], mode="reflect"),
        ],
        [("x", x, None)],
        [("y", y, None), ("z", z, None)],
        [w("W", W), w("p", np.array([0, 2, 0, 0])), w("q", np.array([7, 13, 3, 0]))],
        opset=20,
    )


def slice_negative_step():
    """iree 24584, burn-onnx 476, onnxruntime 11107 and 9368: negative steps, INT64_MIN as end, steps beyond the axis, on a split axis"""
    x = r(3, 8)
    W = r(8, 12, s=0.4)
    t = x @ W
    I = np.iinfo(np.int64)
    nodes = [h.make_node("MatMul", ["x", "W"], ["t"])]
    init = [w("W", W), w("ax", np.array([1]))]
    outs = []
    for i, (s, e, st, ref) in enumerate(
        [
            (9, 2, -1, t[:, 9:2:-1]),
            (-1, I.min, -1, t[:, ::-1]),
            (11, I.min, -3, t[:, 11::-3]),
            (0, I.max, 10**9, t[:, :1]),
            (I.max, I.min, -(10**15), t[:, 11:]),
            (-2, -9, -2, t[:, -2:-9:-2]),
            (-1, I.max, -1, t[:, :0]),
        ]
    ):
        nodes.append(h.make_node("Slice", ["t", f"s{i}", f"e{i}", "ax", f"p{i}"], [f"y{i}"]))
        init += [w(f"s{i}", np.array([s])), w(f"e{i}", np.array([e])), w(f"p{i}", np.array([st]))]
        outs.append((f"y{i}", np.ascontiguousarray(ref), None))
    return case(nodes, [("x", x, None)], outs, init, opset=13)


def reversesequence_length_zero():
    """onnxruntime 28490: ReverseSequence with a length of 0 must copy; lengths may come at run time"""
    x = r(5, 4, 6)
    W = r(6, 12, s=0.4)
    t = (x.reshape(-1, 6) @ W).reshape(5, 4, 12)
    lens = np.array([4, 0, 2, 5])
    y = t.copy()
    for b, l in enumerate(lens):
        y[:l, b] = t[:l, b][::-1]
    return case(
        [h.make_node("MatMul", ["x", "W"], ["t"]), h.make_node("ReverseSequence", ["t", "lens"], ["y"], time_axis=0, batch_axis=1)],
        [("x", x, None), ("lens", lens, None)],
        [("y", y, None)],
        [w("W", W)],
        opset=18,
    )


def negative_indices():
    """tvm 20217, 19436, burn 3739: negative indices in GatherElements, GatherND, ScatterND, OneHot, Gather, ScatterElements, at run time"""
    x = r(4, 6)
    W = r(6, 12, s=0.4)
    t = x @ W
    i1 = np.full((4, 3), -1)
    i1[:, 1] = 3
    i1[:, 2] = -12
    i2 = np.array([[-1, -1], [0, -2], [-4, 5]])
    i3 = np.array([[-1], [0]])
    i4 = np.array([0, 2, 4, -1, -5])
    u = r(2, 12)
    sc = t.copy()
    sc[-1] = u[0]
    sc[0] = u[1]
    oh = np.eye(5, dtype=np.float32)[i4]
    se = t.copy()
    e = np.array([[-1, 0], [-2, -12]])
    ue = r(2, 2)
    for a in range(2):
        for c in range(2):
            se[a, e[a, c]] += ue[a, c]
    return case(
        [
            h.make_node("MatMul", ["x", "W"], ["t"]),
            h.make_node("GatherElements", ["t", "i1"], ["a"], axis=1),
            h.make_node("GatherND", ["t", "i2"], ["b"]),
            h.make_node("ScatterND", ["t", "i3", "u"], ["c"]),
            h.make_node("OneHot", ["i4", "dep", "va"], ["d"]),
            h.make_node("Gather", ["t", "i4b"], ["f"], axis=1),
            h.make_node("ScatterElements", ["t", "e", "ue"], ["g"], axis=1, reduction="add"),
        ],
        [
            ("x", x, None),
            ("i1", i1, None),
            ("i2", i2, None),
            ("i3", i3, None),
            ("i4", i4, None),
            ("i4b", np.array([-1, -12, 3]), None),
            ("e", e, None),
        ],
        [
            ("a", np.take_along_axis(t, i1, 1), None),
            ("b", t[i2[:, 0], i2[:, 1]], None),
            ("c", sc, None),
            ("d", oh, None),
            ("f", t[:, [-1, -12, 3]], None),
            ("g", se, None),
        ],
        [w("W", W), w("u", u), w("dep", np.array(5)), w("va", np.array([0, 1], np.float32)), w("ue", ue)],
        opset=18,
    )


def scatternd_depth_duplicates():
    """onnx-mlir 3611, onnx 8096, onnx 6019, 4548: index depth unlike rank - 1, reductions with duplicate indices, indices at run time"""
    x = r(3, 4)
    W = r(4, 12, s=0.5)
    t = (x @ W).reshape(3, 12)
    idx = np.array([[[0, 1], [0, 1], [2, -1]], [[1, 5], [1, 5], [1, 5]]])
    u = r(2, 3)
    ref = {}
    for red, f in (("add", np.add), ("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)):
        o = t.copy()
        f.at(o, (idx[..., 0], idx[..., 1]), u)
        ref[red] = o
    i1 = np.array([[2], [2], [0]])
    u1 = r(3, 12)
    o1 = t.copy()
    np.add.at(o1, i1[:, 0], u1)
    return case(
        [h.make_node("MatMul", ["x", "W"], ["t"])]
        + [h.make_node("ScatterND", ["t", "idx", "u"], [k], reduction=k) for k in ref]
        + [h.make_node("ScatterND", ["t", "i1", "u1"], ["rows"], reduction="add")],
        [("x", x, None), ("idx", idx, None), ("u", u, None), ("i1", i1, None), ("u1", u1, None)],
        [(k, v, None) for k, v in ref.items()] + [("rows", o1, None)],
        [w("W", W)],
        opset=18,
    )


def split_num_outputs_uneven():
    """opset 18 Split with num_outputs: the last part is smaller (13 in 4: 4, 4, 4, 1), on a split axis"""
    x = r(3, 6)
    W = r(6, 13, s=0.4)
    t = x @ W
    return case(
        [h.make_node("MatMul", ["x", "W"], ["t"]), h.make_node("Split", ["t"], ["a", "b", "c", "d"], axis=1, num_outputs=4)],
        [("x", x, None)],
        [(n, np.ascontiguousarray(t[:, i * 4 : i * 4 + 4]), None) for i, n in enumerate("abcd")],
        [w("W", W)],
        opset=18,
    )


def detection_two_heads():
    """onnxruntime 1879 (rows that are found at run time): two row-parallel heads behind one hidden layer over the rows that NonZero found; both sums go into one AllReduce, whose Split needs the number of rows"""
    n, K, Hd = (16, 64, 256)
    x = r(n, K, s=0.3)
    W = r(K, Hd, s=0.1)
    A = r(Hd, 21, s=0.1)
    Bx = r(Hd, 80, s=0.1)
    sc = np.zeros(n, np.float32)
    sc[[1, 4, 5]] = 1
    t = np.maximum(x[[1, 4, 5]] @ W, 0)
    a = t @ A
    e = np.exp(a - a.max(1, keepdims=True))
    q = 1 / (1 + np.exp(-(t @ Bx)))
    return case(
        [
            N("NonZero", ["sc"], ["nz"]),
            N("Squeeze", ["nz", "a0"], ["i"]),
            N("Gather", ["x", "i"], ["rows"]),
            N("MatMul", ["rows", "W"], ["t0"]),
            N("Relu", ["t0"], ["t"]),
            N("MatMul", ["t", "A"], ["a"]),
            N("MatMul", ["t", "B"], ["b"]),
            N("Softmax", ["a"], ["p"]),
            N("Sigmoid", ["b"], ["q"]),
        ],
        [("x", x, None), ("sc", sc, None)],
        [("p", e / e.sum(1, keepdims=True), ["n", 21]), ("q", q, ["n", 80])],
        [w("W", W), w("A", A), w("B", Bx), w("a0", np.array([0]))],
        opset=18,
    )


def cumsum_over_classes():
    """TensorRT 4513, tvm 19692 (CumSum): how many classes hold half of the probability (nucleus), over a head of 4096 classes that the plan splits"""
    x = r(8, 64, s=0.3)
    W = r(64, 4096, s=0.2)
    t = x @ W
    e = np.exp(t - t.max(1, keepdims=True))
    s = e / e.sum(1, keepdims=True)
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("Softmax", ["t"], ["s"]),
            N("CumSum", ["s", "ax"], ["c"]),
            N("Less", ["c", "p"], ["k"]),
            N("Cast", ["k"], ["f"], to=1),
            N("ReduceSum", ["f", "axx"], ["y"], keepdims=0),
        ],
        [("x", x, None)],
        [("y", (np.cumsum(s, 1) < 0.5).sum(1).astype(np.float32), None)],
        [w("W", W), w("ax", np.array(1)), w("axx", np.array([1])), w("p", np.array(0.5, np.float32))],
        opset=18,
    )


def embedding_row_of_infinities():
    """Megatron and torch mask rows of other ranks by a product: a table with inf and NaN in rows that nobody reads, ids at the borders of the shards, OneHot times a table"""
    E = r(13, 6)
    E[4] = np.inf
    E[9] = np.nan
    E[0] = -np.inf
    W = r(6, 12)
    ids = np.array([[3, 5, 6, 7], [8, 10, 12, 1]])
    return case(
        [N("Gather", ["E", "ids"], ["g"]), N("MatMul", ["g", "W"], ["y"]), N("Gather", ["E", "hot"], ["z"])],
        [("ids", ids, ["b", "s"]), ("hot", np.array([4, 9, 0, 2]), None)],
        [("y", E[ids] @ W, ["b", "s", 12]), ("z", E[[4, 9, 0, 2]], None)],
        [w("E", E), w("W", W)],
        opset=18,
    )


@needs_torch
def torch_repeat_and_index_put():
    """pytorch 100429, 43795: torch exports with dynamic sizes: repeat_interleave, index_put with accumulate, unfold, roll, einsum, masked_fill, a size used as a number"""

    class M(torch.nn.Module):

        def __init__(s):
            super().__init__()
            s.l = torch.nn.Linear(6, 12)
            s.o = torch.nn.Linear(24, 5)

        def forward(s, x, idx):
            t = s.l(x)
            t = t.repeat_interleave(2, dim=-1)
            t = torch.roll(t, 1, 1) + t.size(1) * 0.1
            t = t.masked_fill(t > 2, -1.0)
            b = torch.zeros_like(t)
            b = b.index_put((idx,), t[idx], accumulate=True)
            return (s.o(t + b), torch.einsum("bsd,btd->bst", t, t))

    torch.manual_seed(0)
    m = M().eval()
    x = torch.tensor(r(2, 3, 6))
    idx = torch.tensor([1, 1, 0])
    b, s, k = (torch.export.Dim("b", min=2), torch.export.Dim("s", min=2), torch.export.Dim("k", min=2))
    p = torch.onnx.export(m, (x, idx), dynamo=True, dynamic_shapes=({0: b, 1: s}, {0: k}), opset_version=18, verbose=False)
    x2 = torch.tensor(r(3, 4, 6))
    idx2 = torch.tensor([2, 2, 0, 1, 2])
    y = m(x2, idx2)
    mp = p.model_proto
    ins = [(mp.graph.input[0].name, x2.numpy(), None), (mp.graph.input[1].name, idx2.numpy(), None)]
    return Case(mp, ins, [(o.name, v.detach().numpy(), None) for o, v in zip(mp.graph.output, y)])
