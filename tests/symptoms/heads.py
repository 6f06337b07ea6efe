"""Heads, windows, experts and vocabularies that ranks do not divide. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


def _attend(q, k, v, mask, scale=None):
    """q: [B, H, S, d]; k and v: [B, KV, T, d]; mask is added."""
    g = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, g, 1), np.repeat(v, g, 1)
    return softmax(q @ k.swapaxes(2, 3) * (scale or q.shape[3] ** -0.5) + mask) @ v


def _heads(x, n):
    return x.reshape(*x.shape[:2], n, -1).transpose(0, 2, 1, 3)


def _flat(y):
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)


def _banded(S, T, window):
    """Added to scores: query S - 1 sees key T - 1 and window - 1 before it."""
    far = np.arange(S)[:, None] + T - S - np.arange(T)[None]
    return np.where((far < 0) | (far >= window), -np.inf, 0).astype(np.float32)


def _split_heads(name, n, d, perm=(0, 2, 1, 3)):
    return [N("Reshape", [name + "0", f"s{n}"], [name + "1"]), N("Transpose", [name + "1"], [name], perm=list(perm))], w(
        f"s{n}", np.array([0, 0, n, d])
    )


def uneven_heads_by_products():
    """vllm 13934, 11797: 6 heads and 2 KV heads on ranks that divide neither, written out with repeated keys"""
    B, S, H, G, d = 2, 5, 6, 2, 4
    x = r(B, S, 12)
    Q = r(12, H * d, s=0.4)
    K = r(12, G * d, s=0.4)
    V = r(12, G * d, s=0.4)
    O = r(H * d, 12, s=0.4)
    y = _flat(_attend(_heads(x @ Q, H), _heads(x @ K, G), _heads(x @ V, G), _banded(S, S, S))) @ O
    nodes = [N("MatMul", ["x", c.upper()], [c + "0"]) for c in "qkv"]
    init = [
        w("Q", Q),
        w("K", K),
        w("V", V),
        w("O", O),
        w("m", _banded(S, S, S)),
        w("h", np.float32(d**-0.5)),
        w("a2", np.array([2])),
        w("rep", np.array([1, 1, H // G, 1, 1])),
        w("sh", np.array([0, H, S, d])),
        w("s3", np.array([0, 0, H * d])),
    ]
    for c, n in (("q", H), ("k", G), ("v", G)):
        more, shape = _split_heads(c, n, d)
        nodes += more
        init += [] if c == "v" else [shape]
    for c in "kv":
        nodes += [N("Unsqueeze", [c, "a2"], [c + "2"]), N("Expand", [c + "2", "rep"], [c + "3"]), N("Reshape", [c + "3", "sh"], [c + "4"])]
    nodes += [
        N("Transpose", ["k4"], ["kt"], perm=[0, 1, 3, 2]),
        N("MatMul", ["q", "kt"], ["e"]),
        N("Mul", ["e", "h"], ["f"]),
        N("Add", ["f", "m"], ["g"]),
        N("Softmax", ["g"], ["p"]),
        N("MatMul", ["p", "v4"], ["o"]),
        N("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
        N("Reshape", ["ot", "s3"], ["of"]),
        N("MatMul", ["of", "O"], ["y"]),
    ]
    return case(nodes, [("x", x, ["b", S, 12])], [("y", y.astype(np.float32), ["b", S, 12])], init, opset=18)


def window_as_an_attribute():
    """mobius 371, tract 2323, onnxruntime 27992: local_window_size of GroupQueryAttention, a past, more keys than the window holds"""
    B, S, P, H, G, d, window = 2, 3, 6, 4, 2, 8, 4
    q = r(B, S, H * d)
    k = r(B, S, G * d)
    v = r(B, S, G * d)
    pk = r(B, G, P, d)
    pv = r(B, G, P, d)
    K = np.concatenate([pk, _heads(k, G)], 2)
    V = np.concatenate([pv, _heads(v, G)], 2)
    y = _flat(_attend(_heads(q, H), K, V, _banded(S, P + S, window)))
    return case(
        [
            N(
                "GroupQueryAttention",
                ["q", "k", "v", "pk", "pv", "len", "total"],
                ["y", "K", "V"],
                domain="com.microsoft",
                num_heads=H,
                kv_num_heads=G,
                local_window_size=window,
            )
        ],
        [
            ("q", q, [B, "s", H * d]),
            ("k", k, [B, "s", G * d]),
            ("v", v, [B, "s", G * d]),
            ("pk", pk, [B, G, "p", d]),
            ("pv", pv, [B, G, "p", d]),
            ("len", np.full(B, P + S - 1, np.int32), None),
            ("total", np.array(P + S, np.int32), None),
        ],
        [("y", y.astype(np.float32), [B, "s", H * d]), ("K", K, [B, G, "t", d]), ("V", V, [B, G, "t", d])],
        ms=True,
    )


def window_in_a_mask():
    """hip-ep 795: the window of Attention is in the mask that the graph computes"""
    S, H, d, window = 7, 3, 4, 3
    x = r(2, S, 12)
    Q, K, V = r(12, H * d, s=0.4), r(12, H * d, s=0.4), r(12, H * d, s=0.4)
    y = _flat(_attend(_heads(x @ Q, H), _heads(x @ K, H), _heads(x @ V, H), _banded(S, S, window)))
    nodes = [N("MatMul", ["x", c.upper()], [c]) for c in "qkv"] + [
        N("Shape", ["x"], ["n1"], start=1, end=2),
        N("Squeeze", ["n1"], ["n"]),
        N("Range", ["zero", "n", "one"], ["i"]),
        N("Unsqueeze", ["i", "a1"], ["col"]),
        N("Sub", ["col", "i"], ["far"]),
        N("Less", ["far", "window"], ["near"]),
        N("GreaterOrEqual", ["far", "zero"], ["past"]),
        N("And", ["near", "past"], ["m"]),
        N("Attention", ["q", "k", "v", "m"], ["y"], q_num_heads=H, kv_num_heads=H),
    ]
    return case(
        nodes,
        [("x", x, [2, "s", 12])],
        [("y", y.astype(np.float32), [2, "s", H * d])],
        [
            w("Q", Q),
            w("K", K),
            w("V", V),
            w("zero", np.array(0)),
            w("one", np.array(1)),
            w("a1", np.array([1])),
            w("window", np.array(window)),
        ],
        opset=23,
    )


def bias_of_each_head():
    """CTranslate2 1708: a bias by distance from a table of heads, no scale, gated Gelu after it: 6 heads"""
    S, H, d = 5, 6, 4
    x = r(2, S, 12)
    Q, K, V = r(12, H * d, s=0.3), r(12, H * d, s=0.3), r(12, H * d, s=0.3)
    O = r(H * d, 12, s=0.3)
    T_ = r(9, H)
    U, G, D_ = r(12, 14, s=0.4), r(12, 14, s=0.4), r(14, 12, s=0.4)
    at = np.arange(S)[None] - np.arange(S)[:, None] + 4
    a = x + _flat(_attend(_heads(x @ Q, H), _heads(x @ K, H), _heads(x @ V, H), T_[at].transpose(2, 0, 1)[None], 1)) @ O
    g = a @ U
    gelu = 0.5 * g * (1 + np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g**3)))
    y = a + (gelu * (a @ G)) @ D_
    nodes, init = [N("MatMul", ["x", c.upper()], [c + "0"]) for c in "qkv"], [
        w("Q", Q),
        w("K", K),
        w("V", V),
        w("O", O),
        w("T", T_),
        w("U", U),
        w("G", G),
        w("D", D_),
        w("at", at),
        w("s3", np.array([0, 0, H * d])),
        w("a0", np.array([0])),
    ]
    for c in "qkv":
        more, shape = _split_heads(c, H, d, (0, 2, 3, 1) if c == "k" else (0, 2, 1, 3))
        nodes += more
    nodes += [
        N("Gather", ["T", "at"], ["b0"]),
        N("Transpose", ["b0"], ["b1"], perm=[2, 0, 1]),
        N("Unsqueeze", ["b1", "a0"], ["b"]),
        N("MatMul", ["q", "k"], ["e"]),
        N("Add", ["e", "b"], ["f"]),
        N("Softmax", ["f"], ["p"]),
        N("MatMul", ["p", "v"], ["o"]),
        N("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
        N("Reshape", ["ot", "s3"], ["of"]),
        N("MatMul", ["of", "O"], ["oo"]),
        N("Add", ["x", "oo"], ["a"]),
        N("MatMul", ["a", "U"], ["g"]),
        N("Gelu", ["g"], ["gg"], approximate="tanh"),
        N("MatMul", ["a", "G"], ["u"]),
        N("Mul", ["gg", "u"], ["m"]),
        N("MatMul", ["m", "D"], ["dd"]),
        N("Add", ["a", "dd"], ["y"]),
    ]
    return case(nodes, [("x", x, ["b", S, 12])], [("y", y.astype(np.float32), ["b", S, 12])], init + [shape], opset=20)


def column_and_row_parallel_with_biases():
    """pytorch 144359: two products with Gelu between and a bias each: the second bias counts once"""
    x = r(3, 6)
    U = r(6, 21, s=0.4)
    b = r(21)
    D_ = r(21, 6, s=0.4)
    c = r(6)
    g = x @ U + b
    y = 0.5 * g * (1 + np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g**3))) @ D_ + c
    return case(
        [
            N("Gemm", ["x", "U", "b"], ["g"]),
            N("Gelu", ["g"], ["a"], approximate="tanh"),
            N("Gemm", ["a", "D", "c"], ["y"], alpha=1.0, beta=1.0),
            N("Gemm", ["D", "a", "e"], ["z"], transA=1, transB=1, alpha=0.5, beta=2.0),
        ],
        [("x", x, ["n", 6])],
        [
            ("y", y.astype(np.float32), ["n", 6]),
            (
                "z",
                (0.5 * (D_.T @ ((0.5 * g * (1 + np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g**3)))).T)) + 2).astype(np.float32),
                [6, "n"],
            ),
        ],
        [w("U", U), w("b", b), w("D", D_), w("c", c), w("e", np.ones((6, 1), np.float32))],
        opset=20,
    )


def norm_without_weights_and_clipped_projections():
    """vllm 3775: a norm that has no weights, Q, K and V clipped, on heads that ranks do not divide"""
    S, H, d = 4, 3, 4
    x = r(2, S, 12) * 3
    W = r(12, 3 * H * d, s=0.6)
    O = r(H * d, 12, s=0.4)
    n = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    t = np.clip(n @ W, -1, 1)
    q, k, v = np.split(t, 3, -1)
    y = _flat(_attend(_heads(q, H), _heads(k, H), _heads(v, H), _banded(S, S, S))) @ O
    return case(
        [
            N("LayerNormalization", ["x", "g"], ["n"]),
            N("MatMul", ["n", "W"], ["t0"]),
            N("Clip", ["t0", "lo", "hi"], ["t"]),
            N("Split", ["t"], ["q", "k", "v"], axis=-1, num_outputs=3),
            N("Attention", ["q", "k", "v"], ["a"], q_num_heads=H, kv_num_heads=H, is_causal=1),
            N("MatMul", ["a", "O"], ["y"]),
        ],
        [("x", x, [2, "s", 12])],
        [("y", y.astype(np.float32), [2, "s", 12])],
        [w("g", np.ones(12, np.float32)), w("W", W), w("O", O), w("lo", np.float32(-1)), w("hi", np.float32(1))],
        opset=23,
    )


def adapter_beside_an_odd_vocabulary():
    """vllm 20843, ScaleLLM 7, ColossalAI 6167: 13 classes, a low-rank adapter beside the head, lookups of the last row"""
    E = r(13, 6)
    A = r(6, 2)
    B = r(2, 13)
    ids = np.array([[0, 12, 6], [5, 11, 12]])
    x = E[ids]
    y = x @ E.T + 0.5 * (x @ A @ B)
    return case(
        [
            N("Gather", ["E", "ids"], ["x"]),
            N("Transpose", ["E"], ["Et"]),
            N("MatMul", ["x", "Et"], ["b"]),
            N("MatMul", ["x", "A"], ["a"]),
            N("MatMul", ["a", "B"], ["l"]),
            N("Mul", ["l", "h"], ["lh"]),
            N("Add", ["b", "lh"], ["y"]),
            N("ArgMax", ["y"], ["best"], axis=-1, keepdims=0),
        ],
        [("ids", ids, ["b", "s"])],
        [("y", y.astype(np.float32), ["b", "s", 13]), ("best", y.argmax(-1), ["b", "s"])],
        [w("E", E), w("A", A), w("B", B), w("h", np.float32(0.5))],
        opset=13,
    )


def _experts(route):
    """Five experts, all computed, weighted by what route says: scores -> (nodes from 's' to 'p', weights of all experts)."""
    x = r(7, 6)
    R = r(6, 5)
    U = r(5, 6, 9, s=0.5)
    D_ = r(5, 9, 6, s=0.5)
    nodes, p, init = route(x @ R)
    out = np.maximum(np.einsum("nd,edf->enf", x, U), 0)
    y = np.einsum("enf,efd,ne->nd", out, D_, p)
    nodes = [
        N("MatMul", ["x", "R"], ["s"]),
        *nodes,
        N("MatMul", ["x1", "U"], ["u"]),
        N("Unsqueeze", ["x", "a0"], ["x1"]),
        N("Relu", ["u"], ["f"]),
        N("MatMul", ["f", "D"], ["o"]),
        N("Transpose", ["p"], ["pt"]),
        N("Unsqueeze", ["pt", "a2"], ["p3"]),
        N("Mul", ["o", "p3"], ["m"]),
        N("ReduceSum", ["m", "a0"], ["y"], keepdims=0),
    ]
    nodes.insert(0, nodes.pop(nodes.index(next(n for n in nodes if n.output[0] == "x1"))))
    return case(
        nodes,
        [("x", x, ["n", 6])],
        [("y", y.astype(np.float32), ["n", 6])],
        [w("R", R), w("U", U), w("D", D_), w("a0", np.array([0])), w("a2", np.array([2])), *init],
        opset=18,
    )


def _best(s, k):
    """Zeros but at the k best of each row, where s stays."""
    at = np.argsort(-s, 1, kind="stable")[:, :k]
    p = np.zeros_like(s)
    np.put_along_axis(p, at, np.take_along_axis(s, at, 1), 1)
    return p


def experts_renormalised():
    """vllm 2090: Softmax of all experts, the best two, divided by their sum"""

    def route(s):
        p = _best(softmax(s), 2)
        return (
            [
                N("Softmax", ["s"], ["q"]),
                N("TopK", ["q", "k"], ["v", "i"]),
                N("ReduceSum", ["v", "a1"], ["t"]),
                N("Div", ["v", "t"], ["vn"]),
                N("Mul", ["q", "zero"], ["z"]),
                N("ScatterElements", ["z", "i", "vn"], ["p"], axis=1),
            ],
            p / p.sum(1, keepdims=True),
            [w("k", np.array([2])), w("a1", np.array([1])), w("zero", np.float32(0))],
        )

    return _experts(route)


def experts_softmax_of_the_best():
    """torchtitan 2258: Softmax over the best three only"""

    def route(s):
        at = np.argsort(-s, 1, kind="stable")[:, :3]
        p = np.zeros_like(s)
        np.put_along_axis(p, at, softmax(np.take_along_axis(s, at, 1)), 1)
        return (
            [
                N("TopK", ["s", "k"], ["v", "i"]),
                N("Softmax", ["v"], ["vn"]),
                N("Mul", ["s", "zero"], ["z"]),
                N("ScatterElements", ["z", "i", "vn"], ["p"], axis=1),
            ],
            p,
            [w("k", np.array([3])), w("zero", np.float32(0))],
        )

    return _experts(route)


def experts_one_of_all():
    """megablocks 87: one expert for each token, whose normalised weight is 1"""

    def route(s):
        p = _best(softmax(s), 1)
        return (
            [
                N("Softmax", ["s"], ["q"]),
                N("TopK", ["q", "k"], ["v", "i"]),
                N("Div", ["v", "v"], ["vn"]),
                N("Mul", ["q", "zero"], ["z"]),
                N("ScatterElements", ["z", "i", "vn"], ["p"], axis=1),
            ],
            (p > 0).astype(np.float32),
            [w("k", np.array([1])), w("zero", np.float32(0))],
        )

    return _experts(route)


def heads_beside_rows_and_a_mask_of_other_symbols():
    """heads are put beside the batch, and a mask whose dimensions have other names is given that shape: an equation replaces the product that -1 divides"""
    x, mask = r(2, 5, 36), np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], np.float32)
    W, V = r(36, 36, s=0.3), r(12, 4)
    h3 = (x @ W).reshape(2, 5, 3, 12).transpose(0, 2, 1, 3).reshape(6, 5, 12)
    m3 = np.repeat(mask[:, None], 3, 1).reshape(6, 5, 1)
    return case(
        [
            N("MatMul", ["x", "W"], ["p"]),
            N("Shape", ["x"], ["a"], start=0, end=1),
            N("Shape", ["x"], ["b"], start=1, end=2),
            N("Concat", ["a", "b", "three", "twelve"], ["s4"], axis=0),
            N("Reshape", ["p", "s4"], ["q"], allowzero=1),
            N("Transpose", ["q"], ["t"], perm=[0, 2, 1, 3]),
            N("Mul", ["a", "three"], ["a3"]),
            N("Concat", ["a3", "b", "twelve"], ["s3"], axis=0),
            N("Reshape", ["t", "s3"], ["h"], allowzero=1),
            N("Unsqueeze", ["mask", "one"], ["m1"]),
            N("Expand", ["m1", "grown"], ["me"]),
            N("Concat", ["a3", "b", "one"], ["sm"], axis=0),
            N("Reshape", ["me", "sm"], ["m3"], allowzero=1),
            N("Mul", ["h", "m3"], ["hm"]),
            N("MatMul", ["hm", "V"], ["y"]),
        ],
        [("x", x, ["a", "b", 36]), ("mask", mask, ["c", "d"])],
        [("y", (h3 * m3) @ V, [None, None, 4])],
        [w("W", W), w("V", V)]
        + [w("three", np.array([3])), w("twelve", np.array([12])), w("one", np.array([1])), w("grown", np.array([1, 3, 1]))],
    )
