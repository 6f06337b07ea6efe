"""GRU, Loop, Scan and If. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


def _gru(x, W, R, bw, br, h, before):
    """One direction; before: linear_before_reset."""
    H, out = R.shape[1], []
    for t in x:
        wz, wr, wh = np.split(t @ W.T + bw, 3, -1)
        rz, rr, rh = R[:H], R[H : 2 * H], R[2 * H :]
        bz, b_r, bh = np.split(br, 3)
        z = sigmoid(wz + h @ rz.T + bz)
        g = sigmoid(wr + h @ rr.T + b_r)
        n = np.tanh(wh + (g * (h @ rh.T + bh) if before else (g * h) @ rh.T + bh))
        h = ((1 - z) * n + z * h).astype(np.float32)
        out.append(h)
    return np.stack(out), h


def gru_linear_before_reset():
    """onnxruntime 3893, onnxscript 2852: with and without a bias, three rows, no initial state"""
    x = r(4, 3, 5)
    W = r(18, 5, s=0.5)
    R = r(18, 6, s=0.5)
    b = r(36, s=0.5)
    z = np.zeros(18, np.float32)
    y, _ = _gru(x, W, R, b[:18], b[18:], np.zeros((3, 6), np.float32), True)
    v, _ = _gru(x, W, R, z, z, np.zeros((3, 6), np.float32), True)
    return case(
        [
            N("GRU", ["x", "W", "R", "b"], ["y"], hidden_size=6, linear_before_reset=1),
            N("GRU", ["x", "W", "R"], ["v"], hidden_size=6, linear_before_reset=1),
        ],
        [("x", x, None)],
        [("y", y[:, None], None), ("v", v[:, None], None)],
        [w("W", W[None]), w("R", R[None]), w("b", b[None])],
        opset=14,
    )


def gru_both_ways_with_a_state():
    """onnx-tensorflow 227, keras-onnx 32, 33: both directions with initial states, reset before the product"""
    x = r(4, 3, 5)
    W = r(2, 18, 5, s=0.5)
    R = r(2, 18, 6, s=0.5)
    b = r(2, 36, s=0.5)
    h = r(2, 3, 6)
    f, fh = _gru(x, W[0], R[0], b[0, :18], b[0, 18:], h[0], False)
    g, gh = _gru(x[::-1], W[1], R[1], b[1, :18], b[1, 18:], h[1], False)
    return case(
        [N("GRU", ["x", "W", "R", "b", "", "h"], ["y", "yh"], hidden_size=6, direction="bidirectional")],
        [("x", x, None), ("h", h, None)],
        [("y", np.stack([f, g[::-1]], 1), None), ("yh", np.stack([fh, gh]), None)],
        [w("W", W), w("R", R), w("b", b)],
        opset=14,
    )


def _info(name, shape, kind=F):
    return h.make_tensor_value_info(name, kind, shape)


def loop_stacks_what_it_makes():
    """onnx 3122, 3013: what each trip makes is stacked along a new first axis, which the nodes after it count on"""
    x = r(3, 6)
    W = r(6, 6, s=0.4)
    states = [x]
    for _ in range(4):
        states.append(np.tanh(states[-1] @ W))
    y = np.stack(states[1:])
    body = h.make_graph(
        [N("Identity", ["c"], ["co"]), N("MatMul", ["s", "W"], ["t"]), N("Tanh", ["t"], ["so"]), N("Identity", ["so"], ["out"])],
        "body",
        [_info("i", [], I64), _info("c", [], BOOL), _info("s", [3, 6])],
        [_info("co", [], BOOL), _info("so", [3, 6]), _info("out", [3, 6])],
    )
    return case(
        [N("Loop", ["n", "", "x"], ["last", "ys"], body=body), N("Concat", ["ys", "ys"], ["y"], axis=2)],
        [("x", x, None)],
        [("last", states[-1], None), ("y", np.concatenate([y, y], 2), None)],
        [w("W", W), w("n", np.array(4))],
        opset=13,
    )


def loop_that_passes_its_input_on():
    """onnxruntime 8694: an input of the body is its output, beside one that changes, and the trip counts"""
    x = r(3, 6)
    W = r(6, 12, s=0.4)
    body = h.make_graph(
        [N("Identity", ["c"], ["co"]), N("Add", ["a", "k"], ["ao"]), N("Identity", ["i"], ["io"])],
        "body",
        [_info("i", [], I64), _info("c", [], BOOL), _info("a", [3, 12]), _info("k", [3, 12])],
        [_info("co", [], BOOL), _info("ao", [3, 12]), _info("k", [3, 12]), _info("io", [], I64)],
    )
    t = x @ W
    return case(
        [N("MatMul", ["x", "W"], ["t"]), N("Loop", ["n", "", "t", "t"], ["y", "same", "count"], body=body)],
        [("x", x, None)],
        [("y", t * 4, None), ("same", t, None), ("count", np.arange(3), None)],
        [w("W", W), w("n", np.array(3))],
        opset=13,
    )


def loop_limits_with_a_dimension():
    """onnxruntime 1052: trip count and condition of one dimension of size 1"""
    x = r(3, 6)
    W = r(6, 6, s=0.4)
    y = x
    for _ in range(2):
        y = y @ W
    body = h.make_graph(
        [N("Identity", ["c"], ["co"]), N("MatMul", ["s", "W"], ["so"])],
        "body",
        [_info("i", [], I64), _info("c", [1], BOOL), _info("s", [3, 6])],
        [_info("co", [1], BOOL), _info("so", [3, 6])],
    )
    return case(
        [N("Loop", ["n", "yes", "x"], ["y"], body=body)],
        [("x", x, None)],
        [("y", y, None)],
        [w("W", W), w("n", np.array([2])), w("yes", np.array([True]))],
        opset=13,
    )


def loop_with_sizes_in_its_body():
    """burn-onnx 55: Shape, Split and Concat of sizes within the body"""
    x = r(2, 4, 6)
    W = r(6, 6, s=0.4)
    body = h.make_graph(
        [
            N("Identity", ["c"], ["co"]),
            N("MatMul", ["s", "W"], ["t"]),
            N("Shape", ["t"], ["sh"]),
            N("Split", ["sh", "parts"], ["ab", "d"], axis=0),
            N("ReduceProd", ["ab", "a0"], ["rows"], keepdims=1),
            N("Concat", ["rows", "d"], ["to"], axis=0),
            N("Reshape", ["t", "to"], ["flat"]),
            N("Softmax", ["flat"], ["p"]),
            N("Reshape", ["p", "sh"], ["so"]),
        ],
        "body",
        [_info("i", [], I64), _info("c", [], BOOL), _info("s", ["b", 4, 6])],
        [_info("co", [], BOOL), _info("so", ["b", 4, 6])],
    )
    y = x
    for _ in range(2):
        y = softmax(y @ W)
    return case(
        [N("Loop", ["n", "", "x"], ["y"], body=body)],
        [("x", x, ["b", 4, 6])],
        [("y", y, ["b", 4, 6])],
        [w("W", W), w("n", np.array(2)), w("parts", np.array([2, 1])), w("a0", np.array([0]))],
        opset=18,
    )


def branches_of_other_sizes():
    """pytorch 53219, modelaudit 1848: branches give other numbers of rows, one of them a value from outside as it is"""
    x = r(4, 6)
    W = r(6, 12)
    t = x @ W
    yes = h.make_graph([N("Slice", ["t", "z", "two", "z"], ["a"])], "yes", [], [_info("a", [2, 12])])
    no = h.make_graph([N("Identity", ["t"], ["b"])], "no", [], [_info("b", [4, 12])])
    return case(
        [
            N("MatMul", ["x", "W"], ["t"]),
            N("If", ["c"], ["p"], then_branch=yes, else_branch=no),
            N("If", ["d"], ["q"], then_branch=yes, else_branch=no),
            N("MatMul", ["p", "V"], ["y"]),
        ],
        [("x", x, None), ("c", np.array(True), None), ("d", np.array(False), None)],
        [("p", t[:2], ["n", 12]), ("q", t, ["m", 12]), ("y", t[:2] @ np.ones((12, 5), np.float32), ["n", 5])],
        [w("W", W), w("z", np.array([0])), w("two", np.array([2])), w("V", np.ones((12, 5), np.float32))],
        opset=13,
    )


def scan_of_two_inputs():
    """onnxruntime 357: two scanned inputs along other axes, a state, outputs along axis 1"""
    x = r(4, 3, 6)
    z = r(3, 4, 6)
    W = r(6, 12, s=0.4)
    s = np.zeros((3, 12), np.float32)
    outs = []
    for i in range(4):
        s = np.tanh(s + (x[i] + z[:, i]) @ W).astype(np.float32)
        outs.append(s)
    body = h.make_graph(
        [
            N("Add", ["a", "b"], ["c"]),
            N("MatMul", ["c", "W"], ["d"]),
            N("Add", ["s", "d"], ["e"]),
            N("Tanh", ["e"], ["so"]),
            N("Identity", ["so"], ["out"]),
        ],
        "body",
        [_info("s", [3, 12]), _info("a", [3, 6]), _info("b", [3, 6])],
        [_info("so", [3, 12]), _info("out", [3, 12])],
    )
    return case(
        [N("Scan", ["s0", "x", "z"], ["last", "y"], body=body, num_scan_inputs=2, scan_input_axes=[0, 1], scan_output_axes=[1])],
        [("x", x, None), ("z", z, None)],
        [("last", s, None), ("y", np.stack(outs, 1), None)],
        [w("W", W), w("s0", np.zeros((3, 12), np.float32))],
        opset=13,
    )
