"""Weights and activations in few bits. What other runtimes got wrong or refused."""

from case import *  # noqa: F403


def matmulinteger_row_zero_points():
    """onnxruntime 27897, iree 24583: zero points per row of A (also of shape M,1) and per column of B, both unsigned"""
    A = rng.integers(0, 256, (5, 12)).astype(np.uint8)
    B = rng.integers(-128, 128, (12, 7)).astype(np.int8)
    az = rng.integers(0, 256, 5).astype(np.uint8)
    bz = rng.integers(-100, 100, 7).astype(np.int8)
    B2 = rng.integers(0, 256, (12, 7)).astype(np.uint8)
    b2 = np.array(201, np.uint8)
    a2 = np.array(255, np.uint8)
    y = (A.astype(np.int32) - az[:, None].astype(np.int32)) @ (B.astype(np.int32) - bz.astype(np.int32))
    z = (A.astype(np.int32) - 255) @ (B2.astype(np.int32) - 201)
    return case(
        [h.make_node("MatMulInteger", ["A", "B", "az", "bz"], ["y"]), h.make_node("MatMulInteger", ["A", "B2", "a2", "b2"], ["z"])],
        [("A", A, None)],
        [("y", y.astype(np.int32), None), ("z", z.astype(np.int32), None)],
        [w("B", B), w("az", az), w("bz", bz), w("B2", B2), w("a2", a2), w("b2", b2)],
        opset=10,
    )


def matmulnbits_shapes():
    """onnxruntime 28551, 22253; hip-ep 967: block 512, K no multiple of the block with zero points, an odd number of blocks, 8 bits, zero points of float"""
    x = r(3, 2048, s=0.1)
    outs = []
    nodes = []
    init = []
    ins = [("x", x, None)]

    def q4(K, N, blk, zpmode, bits, tag):
        nb = -(-K // blk)
        codes = rng.integers(0, 2**bits, (N, nb * blk))
        sc = (rng.random((N, nb)) * 0.1 + 0.02).astype(np.float32)
        zp = (
            rng.integers(0, 2**bits, (N, nb))
            if zpmode in ("packed", "flat")
            else (rng.random((N, nb)) * 8).astype(np.float32).round(2) if zpmode == "float" else np.full((N, nb), 2 ** (bits - 1))
        )
        B = ((codes.reshape(N, nb, blk) - zp[:, :, None]) * sc[:, :, None]).reshape(N, -1)[:, :K].T.astype(np.float32)
        per = 8 // bits
        pk = lambda c: sum((c.reshape(*c.shape[:-1], -1, per)[..., i] << bits * i for i in range(per))).astype(np.uint8)
        i = ["x" if K == 2048 else f"x{tag}", f"B{tag}", f"s{tag}"]
        init.append(w(f"B{tag}", pk(codes.reshape(N, nb, blk))))
        init.append(w(f"s{tag}", sc))
        xx = x
        if K != 2048:
            xx = r(3, K)
            ins.append((f"x{tag}", xx, None))
        if zpmode in ("packed", "flat"):
            z = np.concatenate([zp, np.full((N, -nb % per), 0)], 1)
            z = pk(z)
            init.append(w(f"z{tag}", z.reshape(-1) if zpmode == "flat" else z))
            i.append(f"z{tag}")
        elif zpmode == "float":
            init.append(w(f"z{tag}", zp))
            i.append(f"z{tag}")
        nodes.append(h.make_node("MatMulNBits", i, [f"y{tag}"], domain="com.microsoft", K=K, N=N, bits=bits, block_size=blk))
        outs.append((f"y{tag}", (xx.astype(np.float64) @ B).astype(np.float32), None))

    q4(2048, 12, 512, "packed", 4, "a")
    q4(72, 12, 32, "packed", 4, "b")
    q4(40, 7, 16, "flat", 4, "c")
    q4(80, 12, 32, "packed", 8, "d")
    q4(72, 12, 32, "float", 4, "e")
    q4(48, 5, 16, None, 4, "f")
    return case(nodes, ins, outs, init, ms=True)


def dequantize_blocked_and_axes():
    """openvino 32917, onnxruntime 17718, 21793, coreai-torch 24: blocks along an axis above 1, per channel along a negative axis, int4 weights, a transposed weight"""
    q = rng.integers(-8, 8, (2, 3, 8, 6)).astype(np.int8)
    s = (rng.random((2, 3, 4, 6)) + 0.1).astype(np.float32)
    z = rng.integers(-8, 8, (2, 3, 4, 6)).astype(np.int8)
    y = ((q.astype(np.int32) - np.repeat(z, 2, 2)) * np.repeat(s, 2, 2)).astype(np.float32)
    W = rng.integers(-127, 128, (12, 6)).astype(np.int8)
    ws = (rng.random(12) * 0.02).astype(np.float32)
    wz = rng.integers(-5, 5, 12).astype(np.int8)
    x = r(3, 6)
    Wf = (W.astype(np.int32) - wz[:, None]) * ws[:, None]
    u = rng.integers(0, 256, (4, 3, 5)).astype(np.uint8)
    us = (rng.random(5) + 0.1).astype(np.float32)
    uz = rng.integers(0, 256, 5).astype(np.uint8)

    W4 = rng.integers(-8, 8, (12, 8))
    s4 = (rng.random((12, 2)) * 0.1).astype(np.float32)
    x4 = r(3, 8)
    W4f = W4 * np.repeat(s4, 4, 1)
    t4 = h.make_tensor("W4", T.INT4, [12, 8], W4.flatten().tolist())
    return case(
        [
            h.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=2, block_size=2),
            h.make_node("DequantizeLinear", ["W", "ws", "wz"], ["Wd"], axis=-2),
            h.make_node("Transpose", ["Wd"], ["Wt"], perm=[1, 0]),
            h.make_node("MatMul", ["x", "Wt"], ["o"]),
            h.make_node("DequantizeLinear", ["u", "us", "uz"], ["v"], axis=-1),
            h.make_node("DequantizeLinear", ["W4", "s4"], ["Wd4"], axis=1, block_size=4),
            h.make_node("Gemm", ["x4", "Wd4"], ["o4"], transB=1),
        ],
        [("q", q, None), ("x", x, None), ("u", u, None), ("x4", x4, None)],
        [
            ("y", y, None),
            ("o", (x @ Wf.T).astype(np.float32), None),
            ("v", ((u.astype(np.int32) - uz) * us).astype(np.float32), None),
            ("o4", (x4 @ W4f.T).astype(np.float32), None),
        ],
        [w("s", s), w("z", z), w("W", W), w("ws", ws), w("wz", wz), w("us", us), w("uz", uz), t4, w("s4", s4)],
        opset=21,
    )
