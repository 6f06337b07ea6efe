"""Heads, masks, caches, rotary positions. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


def alibi_fused_per_head():
    """Megatron-DeepSpeed 227, flashinfer 1606, mlx 343, lorax 120: ALiBi slopes belong to global heads (6 heads, no power of two), QKV fused per head [head, 3, d]"""
    import math

    S, H, d = (7, 6, 4)
    E = H * d

    def slopes(n):
        p = 2 ** math.floor(math.log2(n))
        s = [2 ** (-8 * (i + 1) / p) for i in range(p)]
        return s + [2 ** (-4 * (2 * i + 1) / p) for i in range(n - p)]

    sl = np.array(slopes(H), np.float32).reshape(H, 1, 1)
    x = r(2, S, E)
    W = r(E, 3 * E, s=0.3)
    b = r(3 * E, s=0.1)
    O = r(E, E, s=0.3)
    q = (x @ W + b).reshape(2, S, H, 3, d)
    Q, K, V = (q[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))
    bias = sl * np.arange(S, dtype=np.float32)[None, None, :]
    m = np.where(np.tril(np.ones((S, S), bool)), 0, -np.inf).astype(np.float32)
    sc = Q @ K.transpose(0, 1, 3, 2) / 2 + bias + m
    e = np.exp(sc - sc.max(-1, keepdims=True))
    a = e / e.sum(-1, keepdims=True)
    y = (a @ V).transpose(0, 2, 1, 3).reshape(2, S, E) @ O
    return case(
        [
            N("MatMul", ["x", "W"], ["t0"]),
            N("Add", ["t0", "b"], ["t"]),
            N("Reshape", ["t", "s5"], ["q"]),
            N("Split", ["q"], ["q0", "k0", "v0"], axis=3, num_outputs=3),
            N("Squeeze", ["q0", "a3"], ["q1"]),
            N("Squeeze", ["k0", "a3"], ["k1"]),
            N("Squeeze", ["v0", "a3"], ["v1"]),
            N("Transpose", ["q1"], ["Q"], perm=[0, 2, 1, 3]),
            N("Transpose", ["k1"], ["K"], perm=[0, 2, 3, 1]),
            N("Transpose", ["v1"], ["V"], perm=[0, 2, 1, 3]),
            N("MatMul", ["Q", "K"], ["s0"]),
            N("Mul", ["s0", "half"], ["s1"]),
            N("Shape", ["x"], ["len"], start=1, end=2),
            N("Squeeze", ["len"], ["l"]),
            N("Range", ["zero", "l", "one"], ["ar"]),
            N("Cast", ["ar"], ["arf"], to=1),
            N("Mul", ["sl", "arf"], ["bias"]),
            N("Add", ["s1", "bias"], ["s2"]),
            N("Unsqueeze", ["ar", "a1"], ["rows"]),
            N("Greater", ["ar", "rows"], ["up"]),
            N("Where", ["up", "ninf", "s2"], ["s3"]),
            N("Softmax", ["s3"], ["a"], axis=-1),
            N("MatMul", ["a", "V"], ["c"]),
            N("Transpose", ["c"], ["ct"], perm=[0, 2, 1, 3]),
            N("Reshape", ["ct", "s3d"], ["cr"]),
            N("MatMul", ["cr", "O"], ["y"]),
        ],
        [("x", x, ["b", "s", E])],
        [("y", y, ["b", "s", E])],
        [
            w("W", W),
            w("b", b),
            w("O", O),
            w("s5", np.array([0, 0, H, 3, d])),
            w("a3", np.array([3])),
            w("half", np.array(0.5, np.float32)),
            w("zero", np.array(0)),
            w("one", np.array(1)),
            w("sl", sl),
            w("a1", np.array([1])),
            w("ninf", np.array(-np.inf, np.float32)),
            w("s3d", np.array([0, 0, E])),
        ],
        opset=18,
    )


def rotary_partial_interleaved():
    """onnxruntime 22417, 24980: part of each head is rotated, neighbours or halves, caches by position or per token, 3-D input"""
    B, S, H, d, rd = (2, 5, 6, 8, 4)
    x = r(B, S, H * d)
    W = r(H * d, H * d, s=0.2)
    t = x @ W
    pos = np.array([[0, 1, 2, 3, 4], [7, 3, 9, 1, 0]])
    ang = np.outer(np.arange(10), 1 / 100 ** (np.arange(rd // 2) / 2)).astype(np.float32)
    cs, sn = (np.cos(ang), np.sin(ang))

    def rot(t, inter):
        v = t.reshape(B, S, H, d).copy()
        c = cs[pos][:, :, None]
        s = sn[pos][:, :, None]
        a, b = (v[..., 0:rd:2].copy(), v[..., 1:rd:2].copy()) if inter else (v[..., : rd // 2].copy(), v[..., rd // 2 : rd].copy())
        re, im = (a * c - b * s, a * s + b * c)
        if inter:
            v[..., 0:rd:2], v[..., 1:rd:2] = (re, im)
        else:
            v[..., : rd // 2], v[..., rd // 2 : rd] = (re, im)
        return v.reshape(B, S, H * d)

    return case(
        [
            h.make_node("MatMul", ["x", "W"], ["t"]),
            h.make_node("RotaryEmbedding", ["t", "cs", "sn", "pos"], ["a"], num_heads=H, rotary_embedding_dim=rd, interleaved=1),
            h.make_node("RotaryEmbedding", ["t", "cs", "sn", "pos"], ["b"], num_heads=H, rotary_embedding_dim=rd),
            h.make_node(
                "RotaryEmbedding",
                ["t", "pos", "cs", "sn"],
                ["c"],
                domain="com.microsoft",
                num_heads=H,
                rotary_embedding_dim=rd,
                interleaved=1,
            ),
        ],
        [("x", x, ["b", "s", H * d]), ("pos", pos, ["b", "s"])],
        [("a", rot(t, 1), ["b", "s", H * d]), ("b", rot(t, 0), ["b", "s", H * d]), ("c", rot(t, 1), ["b", "s", H * d])],
        [w("W", W), w("cs", cs), w("sn", sn)],
        opset=23,
        ms=True,
    )


def left_padding_positions():
    """optimum 877, 1381; unsloth 3795: positions counted from a left-padded mask (CumSum - 1, padded places 1), masked keys, batch of unequal rows; equals the rows run alone"""
    H, d = (4, 4)
    E = H * d
    emb = r(11, E)
    pe = r(16, E, s=0.5)
    Wq, Wk, Wv, O = (r(E, E, s=0.3) for _ in range(4))
    head = r(E, 11, s=0.4)
    ids = np.array([[0, 0, 3, 5, 2, 7], [1, 4, 6, 8, 9, 10]])
    am = np.array([[0, 0, 1, 1, 1, 1], [1] * 6])

    def one(row):
        n = len(row)
        x = emb[row] + pe[np.arange(n)]
        q, k, v = (np.ascontiguousarray((x @ m).reshape(n, H, d).transpose(1, 0, 2)) for m in (Wq, Wk, Wv))
        s = q @ k.transpose(0, 2, 1) / 2
        s = np.where(np.tril(np.ones((n, n), bool)), s, -np.inf)
        e = np.exp(s - s.max(-1, keepdims=True))
        return ((e / e.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(n, E) @ O + x) @ head

    last = np.stack([one(r_[m == 1])[-1] for r_, m in zip(ids, am)])
    nodes = [
        N("CumSum", ["am", "one"], ["c0"]),
        N("Sub", ["c0", "one"], ["c1"]),
        N("Equal", ["am", "zero"], ["pad"]),
        N("Where", ["pad", "one", "c1"], ["pos"]),
        N("Gather", ["emb", "ids"], ["e0"]),
        N("Gather", ["pe", "pos"], ["p0"]),
        N("Add", ["e0", "p0"], ["x"]),
        N("Shape", ["ids"], ["sl"], start=1),
        N("Squeeze", ["sl"], ["n"]),
        N("Range", ["zero", "n", "one"], ["ar"]),
        N("Unsqueeze", ["ar", "a1"], ["arr"]),
        N("LessOrEqual", ["ar", "arr"], ["causal"]),
        N("Cast", ["am"], ["amb"], to=9),
        N("Unsqueeze", ["amb", "a12"], ["amk"]),
        N("And", ["causal", "amk"], ["ok"]),
    ]
    for c in "qkv":
        nodes += [
            N("MatMul", ["x", "W" + c], [c + "0"]),
            N("Reshape", [c + "0", "s4"], [c + "1"]),
            N("Transpose", [c + "1"], [c], perm=[0, 2, 3, 1] if c == "k" else [0, 2, 1, 3]),
        ]
    nodes += [
        N("MatMul", ["q", "k"], ["s0"]),
        N("Mul", ["s0", "half"], ["s1"]),
        N("Where", ["ok", "s1", "low"], ["s2"]),
        N("Softmax", ["s2"], ["a"]),
        N("MatMul", ["a", "v"], ["o"]),
        N("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
        N("Reshape", ["ot", "s3"], ["o3"]),
        N("MatMul", ["o3", "O"], ["oo"]),
        N("Add", ["oo", "x"], ["h"]),
        N("MatMul", ["h", "head"], ["lg"]),
        N("Slice", ["lg", "m1", "big", "a1"], ["ls"]),
        N("Squeeze", ["ls", "a1"], ["y"]),
    ]
    return case(
        nodes,
        [("ids", ids, ["b", "s"]), ("am", am, ["b", "s"])],
        [("y", last.astype(np.float32), ["b", 11])],
        [
            w("emb", emb),
            w("pe", pe),
            w("Wq", Wq),
            w("Wk", Wk),
            w("Wv", Wv),
            w("O", O),
            w("head", head),
            w("one", np.array(1)),
            w("zero", np.array(0)),
            w("a1", np.array([1])),
            w("a12", np.array([1, 2])),
            w("s4", np.array([0, 0, H, d])),
            w("half", np.array(0.5, np.float32)),
            w("low", np.array(np.finfo(np.float32).min, np.float32)),
            w("s3", np.array([0, 0, E])),
            w("m1", np.array([-1])),
            w("big", np.array([2**31 - 1])),
        ],
        opset=18,
    )


def attention_idle_ranks():
    """onnxruntime 26262, vllm 11797: present outputs of an opset 23 Attention with 3-D operands and no past, 2 heads on 3 and 4 ranks, sizes as symbols"""
    B, S, E, H, d = (2, 5, 8, 2, 4)
    x = r(B, S, E)
    Wq, Wk, Wv = (r(E, H * d, s=0.4) for _ in range(3))
    sp = lambda t: t.reshape(B, S, H, d).transpose(0, 2, 1, 3)
    K, V = (sp(x @ Wk), sp(x @ Wv))
    s = sp(x @ Wq) @ K.transpose(0, 1, 3, 2) / 2
    s = np.where(np.tril(np.ones((S, S), bool)), s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    y = (e / e.sum(-1, keepdims=True) @ V).transpose(0, 2, 1, 3).reshape(B, S, H * d).astype(np.float32)
    return case(
        [
            N("MatMul", ["x", "Wq"], ["q"]),
            N("MatMul", ["x", "Wk"], ["k"]),
            N("MatMul", ["x", "Wv"], ["v"]),
            N("Attention", ["q", "k", "v"], ["y", "nk", "nv"], is_causal=1, q_num_heads=H, kv_num_heads=H),
        ],
        [("x", x, ["b", "s", E])],
        [("y", y, ["b", "s", H * d]), ("nk", K, ["b", H, "s", d]), ("nv", V, ["b", H, "s", d])],
        [w("Wq", Wq), w("Wk", Wk), w("Wv", Wv)],
        opset=23,
    )


def gqa_window_softcap_rotary():
    """onnxruntime-genai 245, rten 1332, onnxruntime-qnn 424: GroupQueryAttention with packed QKV, rotary in the op (interleaved), local window, softcap, a past, rows of unequal length, seqlens of shape [b, 1]"""
    B, S, P, H, G, d, win, cap = (2, 1, 5, 6, 2, 8, 3, 2.0)
    E = 12
    x = r(B, S, E)
    W = r(E, (H + 2 * G) * d, s=0.4)
    pk, pv = (r(B, G, P, d), r(B, G, P, d))
    t = x @ W
    ang = np.outer(np.arange(16), 1 / 100 ** (np.arange(d // 2) / (d // 2))).astype(np.float32)
    cs, sn = (np.cos(ang), np.sin(ang))
    lens = np.array([5, 5])

    def rot(v, p):
        o = v.copy()
        a, b = (v[..., 0::2], v[..., 1::2])
        o[..., 0::2] = a * cs[p] - b * sn[p]
        o[..., 1::2] = a * sn[p] + b * cs[p]
        return o

    y = np.zeros((B, S, H * d), np.float32)
    nk = np.zeros((B, G, P + S, d), np.float32)
    nv = nk.copy()
    for b in range(B):
        q = t[b, 0, : H * d].reshape(H, d)
        k = t[b, 0, H * d : (H + G) * d].reshape(G, d)
        v = t[b, 0, (H + G) * d :].reshape(G, d)
        p = lens[b]
        nk[b] = np.concatenate([pk[b], rot(k, p)[:, None]], 1)
        nv[b] = np.concatenate([pv[b], v[:, None]], 1)
        qr = rot(q, p)
        for hh in range(H):
            g = hh // (H // G)
            s = nk[b, g] @ qr[hh] / np.sqrt(d)
            s = cap * np.tanh(s / cap)
            s[np.arange(P + S) <= p - win] = -np.inf
            e = np.exp(s - s.max())
            y[b, 0, hh * d : (hh + 1) * d] = e / e.sum() @ nv[b, g]
    return case(
        [
            h.make_node("MatMul", ["x", "W"], ["t"]),
            h.make_node(
                "GroupQueryAttention",
                ["t", "", "", "pk", "pv", "sl", "tot", "cs", "sn"],
                ["y", "nk", "nv"],
                domain="com.microsoft",
                num_heads=H,
                kv_num_heads=G,
                do_rotary=1,
                rotary_interleaved=1,
                local_window_size=win,
                softcap=cap,
            ),
        ],
        [
            ("x", x, ["b", "s", E]),
            ("pk", pk, ["b", G, "p", d]),
            ("pv", pv, ["b", G, "p", d]),
            ("sl", np.array([[P], [P]], np.int32), ["b", 1]),
            ("tot", np.array(P + S, np.int32), None),
        ],
        [("y", y, ["b", "s", H * d]), ("nk", nk, ["b", G, "q", d]), ("nv", nv, ["b", G, "q", d])],
        [w("W", W), w("cs", cs), w("sn", sn)],
        ms=True,
    )


def attention_causal_short_query():
    """onnxruntime 29020, onnx 8054: is_causal with fewer queries than keys and no past, and with nonpad_kv_seqlen; expected: onnx.reference of 1.23"""
    from onnx.reference import ReferenceEvaluator

    q, k, v = (r(2, 6, 2, 4), r(2, 2, 5, 4), r(2, 2, 5, 4))
    ln = np.array([4, 5])
    nodes = [
        N("Attention", ["q", "k", "v"], ["a"], is_causal=1),
        N("Attention", ["q", "k", "v", "", "", "", "ln"], ["b"]),
        N("Attention", ["q", "k", "v", "", "", "", "ln"], ["c"], is_causal=1),
    ]
    ins = [("q", q, None), ("k", k, None), ("v", v, None), ("ln", ln, None)]
    z = np.zeros((2, 6, 2, 4), np.float32)
    whole = case(nodes, ins, [("a", z, None), ("b", z, None), ("c", z, None)], opset=24)
    m = whole.model
    got = ReferenceEvaluator(m).run(None, {n: a for n, a, _ in ins})
    return Case(m, ins, [(n, g.astype(np.float32), None) for n, g in zip("abc", got)])
