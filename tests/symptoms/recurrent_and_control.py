"""Recurrent nets, If, Loop, Scan, functions, sequences. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


def lstm_sequence_lens():
    """onnxruntime 10768, 4187; pytorch 3662: bidirectional LSTM with lengths, one of them 0; states of padded rows, outputs beyond the length are 0"""
    S, B, I_, H = (5, 3, 4, 6)
    x = r(S, B, I_)
    W = r(2, 4 * H, I_, s=0.5)
    R = r(2, 4 * H, H, s=0.5)
    Bb = r(2, 8 * H, s=0.2)
    lens = np.array([5, 2, 0], np.int32)
    sg = lambda v: 1 / (1 + np.exp(-v))
    Y = np.zeros((S, 2, B, H), np.float32)
    Yh = np.zeros((2, B, H), np.float32)
    Yc = np.zeros((2, B, H), np.float32)
    for d in range(2):
        for b in range(B):
            hh = np.zeros(H, np.float32)
            cc = np.zeros(H, np.float32)
            for k in range(lens[b]):
                t = k if d == 0 else lens[b] - 1 - k
                i, o, f, c = np.split(W[d] @ x[t, b] + R[d] @ hh + Bb[d, : 4 * H] + Bb[d, 4 * H :], 4)
                cc = sg(f) * cc + sg(i) * np.tanh(c)
                hh = sg(o) * np.tanh(cc)
                Y[t, d, b] = hh
            Yh[d, b] = hh
            Yc[d, b] = cc
    return case(
        [h.make_node("LSTM", ["x", "W", "R", "B", "lens"], ["Y", "Yh", "Yc"], hidden_size=H, direction="bidirectional")],
        [("x", x, None), ("lens", lens, None)],
        [("Y", Y, None), ("Yh", Yh, None), ("Yc", Yc, None)],
        [w("W", W), w("R", R), w("B", Bb)],
        opset=14,
    )


def if_outer_scope():
    """onnxruntime 11536, 5991, 3755: a branch gives an outer value as its output (through the outer name, or by Identity); If inside Loop captures"""
    x = r(2, 6)
    W = r(6, 12, s=0.4)
    t = x @ W
    c = np.array(False)
    vi = lambda n, s: h.make_tensor_value_info(n, F, s)
    g1 = h.make_graph([N("Add", ["t", "t"], ["br1"])], "a", [], [vi("br1", [2, 12])])
    g2 = h.make_graph([N("Identity", ["t"], ["br2"])], "b", [], [vi("br2", [2, 12])])
    inner_then = h.make_graph([N("Add", ["acc_in", "t"], ["it"])], "it", [], [vi("it", [2, 12])])
    inner_else = h.make_graph([N("Identity", ["acc_in"], ["ie"])], "ie", [], [vi("ie", [2, 12])])
    body = h.make_graph(
        [
            N("Mod", ["i", "two"], ["m"]),
            N("Equal", ["m", "zero"], ["even"]),
            N("If", ["even"], ["acc_out"], then_branch=inner_then, else_branch=inner_else),
            N("Identity", ["cin"], ["cout"]),
            N("Identity", ["i"], ["sc"]),
        ],
        "body",
        [h.make_tensor_value_info("i", I64, []), h.make_tensor_value_info("cin", BOOL, []), vi("acc_in", [2, 12])],
        [h.make_tensor_value_info("cout", BOOL, []), vi("acc_out", [2, 12]), h.make_tensor_value_info("sc", I64, [])],
    )
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("If", ["c"], ["y"], then_branch=g1, else_branch=g2),
            N("Loop", ["n", "", "t"], ["z", "its"], body=body),
        ],
        [("x", x, None), ("c", c, None)],
        [("y", t, None), ("z", t * 4, None), ("its", np.arange(5), None)],
        [w("W", W), w("n", np.array(5)), w("two", np.array(2)), w("zero", np.array(0))],
        opset=18,
    )


def loop_zero_trips():
    """onnxruntime 3794, 4210: loops that run zero times by count or condition, the scan output has 0 rows, body reads the iteration; sizes grow in the loop"""
    x = r(2, 6)
    W = r(6, 12, s=0.4)
    t = x @ W
    vi = lambda n, s, k=F: h.make_tensor_value_info(n, k, s)
    body = lambda: h.make_graph(
        [N("Identity", ["cin"], ["cout"]), N("Cast", ["i"], ["fi"], to=1), N("Add", ["a", "fi"], ["a2"]), N("Identity", ["a2"], ["sc"])],
        "body",
        [vi("i", [], I64), vi("cin", [], BOOL), vi("a", [2, 12])],
        [vi("cout", [], BOOL), vi("a2", [2, 12]), vi("sc", [2, 12])],
    )
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("Loop", ["n", "yes", "t"], ["y", "ys"], body=body()),
            N("Loop", ["five", "no", "t"], ["z", "zs"], body=body()),
            N("Loop", ["n3", "yes", "t"], ["u", "us"], body=body()),
        ],
        [("x", x, None), ("n", np.array(0), None), ("no", np.array(False), None), ("n3", np.array(3), None)],
        [
            ("y", t, None),
            ("ys", np.zeros((0, 2, 12), np.float32), ["k", 2, 12]),
            ("z", t, None),
            ("zs", np.zeros((0, 2, 12), np.float32), ["l", 2, 12]),
            ("u", t + 3, None),
            ("us", np.stack([t, t + 1, t + 3]), ["m", 2, 12]),
        ],
        [w("W", W), w("yes", np.array(True)), w("five", np.array(5))],
        opset=18,
    )


def function_attributes():
    """onnxruntime 12506, 12445, 12758; onnx 5816: attributes passed through nested functions under other names, a default value, an If inside a function with an initializer"""
    x = r(3, 6)
    W = r(6, 12, s=0.4)
    t = x @ W
    m = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 18, "local" : 1]>\ng (float[3,6] x, float[6,12] W, bool c) => (float[3,12] y, float[3,12] z) { t = MatMul(x, W)  y = local.outer <o = 3, slope = 0.5> (t, c)  z = local.outer <o = 2> (t, c) }\n<opset_import: ["" : 18], domain: "local">\ninner <i> (a) => (b) { k = Constant <value_int: int = @i> ()  kf = CastLike(k, a)  b = Add(a, kf) }\n<opset_import: ["" : 18, "local" : 1], domain: "local">\nouter <o, slope: float = 0.25> (a, c) => (b) { p = local.inner <i: int = @o> (a)  q = LeakyRelu <alpha: float = @slope> (p)  b = If (c) <then_branch = th () => (r1) { one = Constant <value_float = 1.0> ()  r1 = Add(q, one) }, else_branch = el () => (r2) { r2 = local.inner <i: int = @o> (q) }> }'
    )
    m.graph.input.pop(1)
    m.graph.initializer.append(w("W", W))

    def outer(a, o, s):
        p = a + o
        q_ = np.where(p > 0, p, s * p)
        return (q_ + o).astype(np.float32)

    return Case(m, [("x", x, None), ("c", np.array(False), None)], [("y", outer(t, 3, 0.5), None), ("z", outer(t, 2, 0.25), None)])


def sequence_empty():
    """onnxruntime 16619, 681: ConcatFromSequence with an empty tensor among the elements, SequenceEmpty then inserts, SplitToSequence with unequal parts"""
    x = r(5, 6)
    W = r(6, 12, s=0.4)
    t = x @ W
    z = np.zeros((0, 12), np.float32)
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("SequenceConstruct", ["z", "t", "z"], ["s"]),
            N("ConcatFromSequence", ["s"], ["a"], axis=0),
            N("SequenceEmpty", [], ["e"], dtype=1),
            N("SequenceInsert", ["e", "t"], ["e1"]),
            N("SequenceInsert", ["e1", "x"], ["e2"]),
            N("SequenceAt", ["e2", "zero"], ["b"]),
            N("SequenceLength", ["e2"], ["l"]),
            N("SplitToSequence", ["t", "parts"], ["sp"], axis=1),
            N("SequenceAt", ["sp", "m1"], ["c"]),
            N("SequenceErase", ["sp", "zero"], ["se"]),
            N("ConcatFromSequence", ["se"], ["d"], axis=1),
            N("Concat", ["z", "t"], ["f"], axis=0),
        ],
        [("x", x, None), ("z", z, None)],
        [
            ("a", t, None),
            ("b", t, None),
            ("l", np.array(2), None),
            ("c", np.ascontiguousarray(t[:, 10:]), None),
            ("d", np.ascontiguousarray(t[:, 3:]), None),
            ("f", t, None),
        ],
        [w("W", W), w("zero", np.array(0)), w("m1", np.array(-1)), w("parts", np.array([3, 7, 2]))],
        opset=18,
    )


def nested_scan_and_trilu():
    """Scan over an axis with reverse directions, state of split width; Trilu with large k; Range with a negative step at run time; ConstantOfShape of 0"""
    x = r(4, 3, 6)
    W = r(6, 12, s=0.4)
    vi = lambda n, s: h.make_tensor_value_info(n, F, s)
    body = h.make_graph(
        [
            N("MatMul", ["xi", "W"], ["p"]),
            N("Tanh", ["p"], ["q"]),
            N("Mul", ["st", "half"], ["s2"]),
            N("Add", ["s2", "q"], ["so"]),
            N("Identity", ["so"], ["sc"]),
        ],
        "body",
        [vi("st", [3, 12]), vi("xi", [3, 6])],
        [vi("so", [3, 12]), vi("sc", [3, 12])],
    )
    st = np.zeros((3, 12), np.float32)
    sc = []
    for i in range(4)[::-1]:
        st = st * 0.5 + np.tanh(x[i] @ W)
        sc.append(st)
    y = np.stack(sc[::-1])
    t = np.triu(st, 2)
    l = np.tril(st, -15)
    n = np.array(7)
    return case(
        [
            N("Scan", ["s0", "x"], ["fin", "ys"], body=body, num_scan_inputs=1, scan_input_directions=[1], scan_output_directions=[1]),
            N("Trilu", ["fin", "k2"], ["t"]),
            N("Trilu", ["fin", "km"], ["l"], upper=0),
            N("Range", ["n", "m3", "m2"], ["rg"]),
            N("ConstantOfShape", ["zs"], ["cz"]),
        ],
        [("x", x, None), ("n", n, None)],
        [
            ("fin", st, None),
            ("ys", y, None),
            ("t", t, None),
            ("l", l, None),
            ("rg", np.arange(7, -3, -2), ["q"]),
            ("cz", np.zeros((0, 3), np.float32), None),
        ],
        [
            w("W", W),
            w("half", np.array(0.5, np.float32)),
            w("s0", np.zeros((3, 12), np.float32)),
            w("k2", np.array(2)),
            w("km", np.array(-15)),
            w("m3", np.array(-3)),
            w("m2", np.array(-2)),
            w("zs", np.array([0, 3])),
        ],
        opset=18,
    )
