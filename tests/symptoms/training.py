"""Losses and gradients. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


@needs_torch
def train_tied_uneven_mqa_qknorm():
    """Megatron 1754, 844, 1446, bigcode 11 and 35, tt-metal 51428: 13 classes on 2, 3, 4 ranks, embedding tied to the head, one KV head for 4 query heads, norms of q and k shared by the heads, ignored labels"""
    V, E, H, d, B, S = (13, 16, 4, 4, 2, 6)
    names = dict(
        emb=r(V, E),
        Wq=r(E, H * d, s=0.4),
        Wk=r(E, d, s=0.4),
        Wv=r(E, d, s=0.4),
        gq=1 + 0.1 * r(d),
        gk=1 + 0.1 * r(d),
        O=r(H * d, E, s=0.3),
        ob=r(E, s=0.1),
        g1=1 + 0.1 * r(E),
        b1=r(E, s=0.1),
        gf=1 + 0.1 * r(E),
        bf=r(E, s=0.1),
        U=r(E, 20, s=0.3),
        D_=r(20, E, s=0.3),
    )
    p = {k: torch.tensor(v, requires_grad=True) for k, v in names.items()}
    ids = rng.integers(0, V, (B, S))
    lab = rng.integers(0, V, (B, S))
    lab[0, :2] = -100
    lab[1, 5] = -100
    F_ = torch.nn.functional
    x = p["emb"][torch.tensor(ids)]
    n = F_.layer_norm(x, (E,), p["g1"], p["b1"])
    q = F_.rms_norm((n @ p["Wq"]).reshape(B, S, H, d), (d,), p["gq"], 1e-05).transpose(1, 2)
    k = F_.rms_norm((n @ p["Wk"]).reshape(B, S, 1, d), (d,), p["gk"], 1e-05).transpose(1, 2)
    v = (n @ p["Wv"]).reshape(B, S, 1, d).transpose(1, 2)
    s = q @ k.transpose(2, 3) * 0.5 + torch.triu(torch.full((S, S), -1000000000.0), 1)
    y = (s.softmax(-1) @ v).transpose(1, 2).reshape(B, S, H * d)
    x2 = x + y @ p["O"] + p["ob"]
    x3 = x2 + F_.silu(x2 @ p["U"]) @ p["D_"]
    lg = F_.layer_norm(x3, (E,), p["gf"], p["bf"]) @ p["emb"].T
    loss = F_.cross_entropy(lg.reshape(-1, V), torch.tensor(lab).reshape(-1), reduction="sum")
    loss.backward()
    nodes = [N("Gather", ["emb", "ids"], ["x"]), N("LayerNormalization", ["x", "g1", "b1"], ["n"])]
    for c in ("q", "k", "v"):
        nodes += (
            [N("MatMul", ["n", "W" + c], [c + "0"]), N("Reshape", [c + "0", "sh" + c], [c + "1"])]
            + ([N("RMSNormalization", [c + "1", "g" + c], [c + "2"], epsilon=1e-05)] if c != "v" else [])
            + [N("Transpose", [c + ("2" if c != "v" else "1")], [c], perm=[0, 2, 3, 1] if c == "k" else [0, 2, 1, 3])]
        )
    nodes += [
        N("MatMul", ["q", "k"], ["s0"]),
        N("Mul", ["s0", "half"], ["s1"]),
        N("Add", ["s1", "mask"], ["s2"]),
        N("Softmax", ["s2"], ["a"]),
        N("MatMul", ["a", "v"], ["o"]),
        N("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
        N("Reshape", ["ot", "s3"], ["o3"]),
        N("MatMul", ["o3", "O"], ["oo"]),
        N("Add", ["oo", "ob"], ["oob"]),
        N("Add", ["x", "oob"], ["x2"]),
        N("MatMul", ["x2", "U"], ["u"]),
        N("Sigmoid", ["u"], ["us"]),
        N("Mul", ["u", "us"], ["uu"]),
        N("MatMul", ["uu", "D_"], ["dd"]),
        N("Add", ["x2", "dd"], ["x3"]),
        N("LayerNormalization", ["x3", "gf", "bf"], ["nf"]),
        N("Transpose", ["emb"], ["et"], perm=[1, 0]),
        N("MatMul", ["nf", "et"], ["logits"]),
    ]
    init = [w(k, v) for k, v in names.items()] + [
        w("shq", np.array([0, 0, H, d])),
        w("shk", np.array([0, 0, 1, d])),
        w("shv", np.array([0, 0, 1, d])),
        w("half", np.array(0.5, np.float32)),
        w("mask", np.triu(np.full((S, S), -1000000000.0, np.float32), 1)),
        w("s3", np.array([0, 0, H * d])),
    ]
    whole = case(nodes, [("ids", ids, [B, S])], [("logits", lg.detach().numpy(), None)], init, opset=23)
    outs = [("loss_sum", loss.detach().numpy().reshape(()), None), ("loss_count", np.float32((lab >= 0).sum()), None)] + [
        (k + ".grad", t.grad.numpy(), None) for k, t in p.items()
    ]
    return trained(whole, "cross-entropy", [("ids", ids, None), ("labels", lab, None)], outs)


def train_all_labels_ignored():
    """pytorch 116349, 63004: every label is -100: loss 0 of 0 labels, all gradients 0, nothing NaN"""
    x = r(2, 3, 6)
    W = r(6, 13)
    b = r(13)
    lab = np.full((2, 3), -100)
    whole = case(
        [h.make_node("MatMul", ["x", "W"], ["t"]), h.make_node("Add", ["t", "b"], ["logits"])],
        [("x", x, None)],
        [("logits", x @ W + b, None)],
        [w("W", W), w("b", b)],
        opset=18,
    )
    return trained(
        whole,
        "cross-entropy",
        [("x", x, None), ("labels", lab, None)],
        [
            ("loss_sum", np.float32(0), None),
            ("loss_count", np.float32(0), None),
            ("W.grad", np.zeros_like(W), None),
            ("b.grad", np.zeros_like(b), None),
        ],
    )


@needs_torch
def train_norm_at_zero_and_ties():
    """gradients where forms differ: Relu at 0 is 0, Abs at 0 is 0, Max of equal operands, ReduceMax with ties shares evenly (torch amax), Clip at its bounds, Sqrt guarded by Where"""
    W = r(6, 12)
    x = r(3, 6)
    x[1] = 0
    lab = r(3, 1)
    q = np.zeros((12,), np.float32)
    ww = torch.tensor(W, requires_grad=True)
    qq = torch.tensor(q, requires_grad=True)
    t = torch.tensor(x) @ ww + qq
    z = (torch.relu(t) + t.abs()).amax(1, keepdim=True) + torch.clip(t, -0.5, 0.5).sum(1, keepdim=True)
    loss = ((z - torch.tensor(lab)) ** 2).sum()
    loss.backward()
    whole = case(
        [
            N("MatMul", ["x", "W"], ["t0"]),
            N("Add", ["t0", "q"], ["t"]),
            N("Relu", ["t"], ["a"]),
            N("Abs", ["t"], ["b"]),
            N("Add", ["a", "b"], ["c"]),
            N("ReduceMax", ["c", "ax"], ["m"]),
            N("Clip", ["t", "lo", "hi"], ["k"]),
            N("ReduceSum", ["k", "ax"], ["ks"]),
            N("Add", ["m", "ks"], ["z"]),
        ],
        [("x", x, None)],
        [("z", z.detach().numpy(), None)],
        [w("W", W), w("q", q), w("ax", np.array([1])), w("lo", np.array(-0.5, np.float32)), w("hi", np.array(0.5, np.float32))],
        opset=18,
    )
    return trained(
        whole,
        "mse",
        [("x", x, None), ("labels", lab, None)],
        [("loss_sum", loss.detach().numpy().reshape(()), None), ("W.grad", ww.grad.numpy(), None), ("q.grad", qq.grad.numpy(), None)],
    )


@needs_torch
def train_sinks_softcap_alibi():
    """Megatron 7452: trained values per head (attention sinks, slopes), a softcap, heads split; a bias added after the row-parallel product counts once"""
    B, S, E, H, d = (2, 5, 12, 6, 2)
    nm = dict(Wqkv=r(E, 3 * E, s=0.4), sink=r(H, 1, 1), slope=r(H, 1, 1, s=0.2), O=r(E, E, s=0.3), ob=r(E))
    x = r(B, S, E)
    lab = r(B, S, E)
    p = {k: torch.tensor(v, requires_grad=True) for k, v in nm.items()}
    q, k, v = (t.reshape(B, S, H, d).transpose(1, 2) for t in (torch.tensor(x) @ p["Wqkv"]).split(E, -1))
    s = torch.tanh(q @ k.transpose(2, 3) / 3) * 3 + p["slope"] * torch.arange(S).float()
    s = s + torch.triu(torch.full((S, S), -1000000000.0), 1)
    a = torch.cat([s, p["sink"].expand(B, H, S, 1)], -1).softmax(-1)[..., :-1]
    y = (a @ v).transpose(1, 2).reshape(B, S, E) @ p["O"] + p["ob"]
    loss = ((y - torch.tensor(lab)) ** 2).sum()
    loss.backward()
    nodes = [N("MatMul", ["x", "Wqkv"], ["t"]), N("Split", ["t"], ["q0", "k0", "v0"], axis=-1, num_outputs=3)]
    for c in "qkv":
        nodes += [N("Reshape", [c + "0", "sh"], [c + "1"]), N("Transpose", [c + "1"], [c], perm=[0, 2, 3, 1] if c == "k" else [0, 2, 1, 3])]
    nodes += [
        N("MatMul", ["q", "k"], ["s0"]),
        N("Div", ["s0", "three"], ["s1"]),
        N("Tanh", ["s1"], ["s2"]),
        N("Mul", ["s2", "three"], ["s3"]),
        N("Mul", ["slope", "ar"], ["bias"]),
        N("Add", ["s3", "bias"], ["s4"]),
        N("Add", ["s4", "mask"], ["s5"]),
        N("Expand", ["sink", "es"], ["se"]),
        N("Concat", ["s5", "se"], ["s6"], axis=-1),
        N("Softmax", ["s6"], ["a0"]),
        N("Slice", ["a0", "z0", "m1", "a3"], ["a"]),
        N("MatMul", ["a", "v"], ["o"]),
        N("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
        N("Reshape", ["ot", "sf"], ["of"]),
        N("MatMul", ["of", "O"], ["oo"]),
        N("Add", ["oo", "ob"], ["y"]),
    ]
    whole = case(
        nodes,
        [("x", x, None)],
        [("y", y.detach().numpy(), None)],
        [w(k, v) for k, v in nm.items()]
        + [
            w("sh", np.array([0, 0, H, d])),
            w("three", np.array(3, np.float32)),
            w("ar", np.arange(S).astype(np.float32)),
            w("mask", np.triu(np.full((S, S), -1000000000.0, np.float32), 1)),
            w("es", np.array([B, H, S, 1])),
            w("z0", np.array([0])),
            w("m1", np.array([-1])),
            w("a3", np.array([3])),
            w("sf", np.array([0, 0, E])),
        ],
        opset=18,
    )
    return trained(
        whole,
        "mse",
        [("x", x, None), ("labels", lab, None)],
        [("loss_sum", loss.detach().numpy().reshape(()), None)] + [(k + ".grad", t.grad.numpy(), None) for k, t in p.items()],
    )


@needs_torch
def train_sliced_twice():
    """neighbours of the refusals of ragged batches (pytorch 43795: sizes from data): training through two slices whose ends come at run time"""
    x = r(9, 6)
    W = r(6, 12)
    A = r(12, 5)
    e = np.array([5])
    lab = rng.integers(0, 5, (4,))
    ww, aa = (torch.tensor(W, requires_grad=True), torch.tensor(A, requires_grad=True))
    lg = (torch.tensor(x[:5]) @ ww)[1:] @ aa
    loss = torch.nn.functional.cross_entropy(lg, torch.tensor(lab), reduction="sum")
    loss.backward()
    whole = case(
        [
            N("Slice", ["x", "z0", "e", "a0"], ["r"]),
            N("MatMul", ["r", "W"], ["t"]),
            N("Slice", ["t", "z1", "e", "a0"], ["r2"]),
            N("MatMul", ["r2", "A"], ["logits"]),
        ],
        [("x", x, None), ("e", e, None)],
        [("logits", lg.detach().numpy(), ["n", 5])],
        [w("W", W), w("A", A), w("z0", np.array([0])), w("z1", np.array([1])), w("a0", np.array([0]))],
        opset=18,
    )
    return trained(
        whole,
        "cross-entropy",
        [("x", x, None), ("e", e, None), ("labels", lab, None)],
        [("loss_sum", loss.detach().numpy().reshape(()), None), ("W.grad", ww.grad.numpy(), None), ("A.grad", aa.grad.numpy(), None)],
    )


@needs_torch
def train_topk_k_at_run_time():
    """TopK whose K is an input, in training: values pass gradients to the places they came from"""
    x = r(9, 6)
    W = r(6, 12)
    A = r(12, 5)
    k = np.array([3])
    lab = rng.integers(0, 5, (3,))
    ww, aa = (torch.tensor(W, requires_grad=True), torch.tensor(A, requires_grad=True))
    lg = (torch.tensor(x) @ ww).topk(3, 0).values @ aa
    loss = torch.nn.functional.cross_entropy(lg, torch.tensor(lab), reduction="sum")
    loss.backward()
    whole = case(
        [N("MatMul", ["x", "W"], ["t"]), N("TopK", ["t", "k"], ["v", "i"], axis=0), N("MatMul", ["v", "A"], ["logits"])],
        [("x", x, None), ("k", k, None)],
        [("logits", lg.detach().numpy(), ["n", 5])],
        [w("W", W), w("A", A)],
        opset=18,
    )
    return trained(
        whole,
        "cross-entropy",
        [("x", x, None), ("k", k, None), ("labels", lab, None)],
        [("loss_sum", loss.detach().numpy().reshape(()), None), ("W.grad", ww.grad.numpy(), None), ("A.grad", aa.grad.numpy(), None)],
    )
