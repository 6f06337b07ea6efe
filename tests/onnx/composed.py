"""composed.py BUILD: ops that are written as a few others compute what ONNX Runtime computes, whole and on two ranks.

Each case is one node; all run as one model. Exit status 77 (skipped) where onnx, onnxruntime or numpy is missing.
"""
import os
import subprocess
import sys
import tempfile

try:
    import joined
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto as T, helper as h, numpy_helper
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

onnxruntime.set_default_logger_severity(4)
RNG = np.random.default_rng(7)
MS, ML = "com.microsoft", "ai.onnx.ml"


def real(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def whole(low, high, *shape, dtype=np.int64):
    return RNG.integers(low, high, shape).astype(dtype)


def u8(*shape):
    return whole(0, 256, *shape, dtype=np.uint8)


def i8(*shape):
    return whole(-127, 128, *shape, dtype=np.int8)


def weight(*shape):
    """Codes of 7 bits: without VNNI, ONNX Runtime's sums of two products of u8 by i8 saturate at 16 bits."""
    return whole(-64, 65, *shape, dtype=np.int8)


def f(x):
    return np.float32(x)


SCALES = [f(0.02), np.uint8(120)]


def cases():
    """(op, operands, number of results, attributes)."""
    x, ids = real(2, 5, 16), whole(0, 9, 2, 5, dtype=np.int32)
    yield "LpNormalization", [x], 1, dict(axis=1, p=1)
    yield "LpNormalization", [x], 1, dict(p=2)
    yield "MeanVarianceNormalization", [real(2, 3, 4, 5)], 1, dict(axes=[0, 2, 3])
    yield "EyeLike", [real(4, 6)], 1, dict(k=-1, dtype=T.FLOAT)
    yield "EyeLike", [whole(0, 3, 5, 4)], 1, dict(k=2)
    for op in ("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare"):
        yield op, [x, np.array([1])], 1, dict(keepdims=0)
    yield "QLinearMatMul", [u8(4, 8), f(0.1), np.uint8(7), weight(8, 6), f(0.05), np.int8(-3), f(1.5), np.uint8(128)], 1, {}
    yield "QLinearConv", [u8(1, 4, 6, 6), f(0.1), np.uint8(7), weight(6, 4, 3, 3), real(6) ** 2 + f(0.01), np.zeros(6, np.int8), f(4), np.uint8(100),
                          whole(-500, 500, 6, dtype=np.int32)], 1, dict(pads=[1, 1, 1, 1])
    yield "ConvInteger", [u8(1, 4, 6, 6), u8(6, 4, 3, 3), np.uint8(7), np.uint8(120)], 1, {}
    yield MS + ".DynamicQuantizeMatMul", [x, weight(16, 8), real(8) ** 2, np.zeros(8, np.int8), real(8)], 1, {}
    yield MS + ".MatMulIntegerToFloat", [u8(3, 8), weight(8, 6), f(0.1), f(0.2), np.uint8(9), np.int8(1), real(6)], 1, {}
    yield MS + ".QGemm", [u8(4, 8), f(0.1), np.uint8(7), weight(6, 8), real(6) ** 2 + f(0.01), np.zeros(6, np.int8), whole(-500, 500, 6, dtype=np.int32),
                          f(4), np.uint8(100)], 1, dict(transB=1)
    yield MS + ".QGemm", [u8(4, 8), f(0.1), np.uint8(7), weight(8, 6), f(0.05), np.int8(3), whole(-500, 500, 6, dtype=np.int32)], 1, dict(alpha=0.5)
    yield MS + ".QGemm", [u8(4, 8), f(0.1), np.uint8(7), weight(8, 6), f(0.05), np.int8(3)], 1, {}
    for op in ("QLinearAdd", "QLinearMul"):
        yield MS + "." + op, [u8(4, 6), *SCALES, u8(6), f(0.03), np.uint8(3), f(0.1), np.uint8(99)], 1, {}
    yield MS + ".QLinearLeakyRelu", [u8(4, 6), *SCALES, f(0.01), np.uint8(5)], 1, dict(alpha=0.3)
    yield MS + ".QLinearSigmoid", [u8(4, 6), *SCALES, f(0.004), np.uint8(0)], 1, {}
    yield MS + ".QLinearConcat", [f(0.04), np.uint8(110), u8(4, 2), *SCALES, u8(4, 3), f(0.05), np.uint8(130)], 1, dict(axis=1)
    yield MS + ".QLinearGlobalAveragePool", [u8(1, 4, 3, 3), *SCALES, f(0.01), np.uint8(128)], 1, {}
    yield MS + ".QLinearAveragePool", [u8(1, 4, 6, 6), *SCALES, f(0.013), np.uint8(128)], 1, dict(kernel_shape=[3, 3])
    yield MS + ".QLinearSoftmax", [u8(4, 6), *SCALES, f(1 / 256), np.uint8(0)], 1, dict(axis=-1, opset=17)
    yield MS + ".BiasGelu", [x, real(16)], 1, {}
    yield MS + ".FastGelu", [x, real(16)], 1, {}
    yield MS + ".FusedMatMul", [real(2, 8, 5), real(2, 8, 6)], 1, dict(transA=1, alpha=0.5)
    yield MS + ".FusedGemm", [real(4, 8), real(6, 8), real(6)], 1, dict(transB=1, activation="LeakyRelu", activation_alpha=0.2)
    yield MS + ".FusedConv", [real(1, 4, 6, 6), real(6, 4, 3, 3), real(6)], 1, dict(activation="HardSigmoid", activation_params=[0.3, 0.4])
    yield MS + ".FusedConv", [real(1, 4, 6, 6), real(6, 4, 3, 3), None, real(1, 6, 4, 4)], 1, dict(activation="Clip", activation_params=[-1.0, 1.0])
    yield MS + ".TransposeMatMul", [real(2, 5, 8), real(2, 6, 8)], 1, dict(transB=1)
    yield MS + ".SkipLayerNormalization", [x, real(2, 5, 16), real(16), real(16), real(16)], (0, 3), {}
    yield MS + ".EmbedLayerNormalization", [ids, whole(0, 2, 2, 5, dtype=np.int32), real(9, 16), real(12, 16), real(2, 16), real(16), real(16)], 2, {}
    yield MS + ".EmbedLayerNormalization", [ids, None, real(9, 16), real(12, 16), None, real(16), real(16), whole(0, 2, 2, 5, dtype=np.int32)], 2, {}
    yield ML + ".Scaler", [real(3, 4)], 1, dict(offset=[1.0, 2.0, -3.0, 0.5], scale=[2.0, 0.1, 4.0, -1.0])
    yield ML + ".Scaler", [whole(-9, 9, 3, 4)], 1, dict(offset=[1.5], scale=[0.25])
    yield ML + ".ArrayFeatureExtractor", [real(2, 3, 4), np.array([3, 0, 0])], 1, {}
    yield ML + ".ArrayFeatureExtractor", [real(5), np.array([4, 1])], 1, {}
    yield ML + ".Binarizer", [real(3, 4)], 1, dict(threshold=0.3)
    yield from attention(x)
    yield from linear_attention()


def linear_attention():
    """As ONNX Runtime's model builders write LFM2 and Qwen3.5."""
    for more in ({}, dict(activation="silu")):
        yield MS + ".CausalConvWithState", [real(2, 6, 5), real(6, 1, 3), real(6), real(2, 6, 2)], 2, more
    yield MS + ".CausalConvWithState", [real(2, 6, 1), real(6, 1, 4)], 2, {}
    yield MS + ".CausalConvWithState", [real(2, 5, 6), real(6, 1, 3), None, real(2, 2, 6)], 2, dict(channels_last=1)
    for rule, gates in (("linear", 0), ("gated", 1), ("delta", 2), ("gated_delta", 3)):
        given = [-real(2, 5, 4) ** 2 if gates & 1 else None, real(2, 5, 4) ** 2 / f(8) if gates & 2 else None]
        for queries in (2, 4, 8):
            keys = min(queries, 4)
            yield MS + ".LinearAttention", [real(2, 5, queries * 8), real(2, 5, keys * 8) / f(8), real(2, 5, 24), real(2, 4, 8, 6), *given], 2, dict(
                q_num_heads=queries, kv_num_heads=4, update_rule=rule, scale=0.5)
    yield MS + ".LinearAttentionGate", [real(2, 5, 4), real(4), -real(4) ** 2, real(2, 5, 4)], 2, {}
    yield MS + ".LinearAttentionGate", [real(2, 5, 4), real(4), -real(4) ** 2], 1, {}
    for activation in ("silu", "sigmoid"):
        yield MS + ".GatedRMSNorm", [real(2, 5, 24), real(6), real(2, 5, 24)], 1, dict(activation=activation, epsilon=1e-6)
    table = real(20, 8), real(20, 8)
    for layout in (0, 1):
        yield MS + ".MRotaryEmbedding", [real(2, 5, 64), whole(0, 20, 3, 2, 5), *table], 1, dict(
            mrope_section=[3, 3, 2], mrope_layout=layout, num_heads=4, rotary_embedding_dim=16)


def attention(x):
    w, b = real(16, 48), real(48)
    keys = np.array([[0, 1, 1, 1, 1], [1, 1, 1, 0, 1]], np.int32)
    yield MS + ".Attention", [x, w, b], 1, dict(num_heads=4)
    yield MS + ".Attention", [x, w, b], 1, dict(num_heads=2, unidirectional=1, scale=0.3)
    yield MS + ".Attention", [x, w, b, keys], 1, dict(num_heads=4)
    yield MS + ".Attention", [x, w, b, keys], 1, dict(num_heads=4, unidirectional=1)
    yield MS + ".Attention", [x, w, b, np.array([3, 5], np.int32)], 1, dict(num_heads=4)
    yield MS + ".Attention", [x, w, b, whole(0, 2, 2, 5, 5, dtype=np.int32) | np.eye(5, dtype=np.int32)], 1, dict(num_heads=4)
    yield MS + ".Attention", [x, w, b, None, real(2, 2, 4, 3, 4)], 2, dict(num_heads=4, unidirectional=1)
    yield MS + ".Attention", [x, w, b, keys, None, real(2, 4, 5, 5)], 1, dict(num_heads=4)
    yield MS + ".Attention", [x, real(16, 40), real(40)], 1, dict(num_heads=4, qkv_hidden_sizes=[16, 16, 8])
    q, k, v = real(2, 5, 16), real(2, 7, 16), real(2, 7, 24)
    mask = np.array([[0, 1, 1, 1, 1, 1, 0], [1] * 7], np.int32)
    yield MS + ".MultiHeadAttention", [q, k, v], 1, dict(num_heads=4)
    yield MS + ".MultiHeadAttention", [q, k, v, real(56), mask], 1, dict(num_heads=4)
    yield MS + ".MultiHeadAttention", [q, k, v, None, np.array([7, 4], np.int32), real(1, 4, 5, 7)], 1, dict(num_heads=4, scale=0.2)
    yield MS + ".MultiHeadAttention", [q, real(2, 4, 7, 4), real(2, 4, 7, 4)], 1, dict(num_heads=4)
    yield MS + ".MultiHeadAttention", [q, real(2, 5, 16), real(2, 5, 16), None, None, None, real(2, 4, 3, 4), real(2, 4, 3, 4)], 3, dict(
        num_heads=4, unidirectional=1)


def written_out():
    """(name, model, inputs, is DequantizeLinear): weights of integers that are cast, moved and scaled in the graph."""
    scale, n = np.float32(0.03), real(1, 48) ** 2 + f(0.01)
    for name, q, zero, factor, found in (
            ("one scale", i8(32, 48), None, scale, True), ("a scale of each column", i8(32, 48), None, n, True),
            ("a scale of each row", u8(32, 48), None, real(32, 1) ** 2, True), ("a zero point", u8(32, 48), f(128), scale, True),
            ("zero points", u8(32, 48), whole(0, 255, 48).astype(np.float32), n[0], True), ("half a zero point", u8(32, 48), f(127.5), scale, False),
            ("a scale of each element", i8(32, 48), None, real(32, 48), False)):
        weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in (("q", q), ("z", zero), ("s", factor)) if v is not None]
        nodes = [h.make_node("Cast", ["q"], ["c"], to=T.FLOAT)]
        nodes += [h.make_node("Sub", ["c", "z"], ["d"])] if zero is not None else []
        nodes += [h.make_node("Mul", ["s", "d" if zero is not None else "c"], ["w"]), h.make_node("MatMul", ["x", "w"], ["y"])]
        graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["B", "S", 32])], [h.make_tensor_value_info("y", T.FLOAT, None)], weights)
        yield name, h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=9), {"x": real(2, 3, 32)}, found


def small_floats():
    """As written_out: values through floats of 8 bits, cast and quantised, with numbers too large for them and too small."""
    x = np.concatenate([real(400) * 2.0 ** RNG.integers(-20, 20, 400), [0, -0.0, np.nan, 448, 464, 465, 240, 57344, 61440, 1e9]]).astype(np.float32)
    for name, most in (("FLOAT8E4M3FN", 448), ("FLOAT8E4M3FNUZ", 240), ("FLOAT8E5M2", 57344), ("FLOAT8E5M2FNUZ", 57344)):
        kind = getattr(T, name)
        for saturate in (1, 0):
            scaled = [numpy_helper.from_array(np.float32(0.5), "s"), h.make_tensor("z", kind, [], [0.0])]
            nodes = [h.make_node("Cast", ["x"], ["c"], to=kind, saturate=saturate), h.make_node("Cast", ["c"], ["y"], to=T.FLOAT),
                     h.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], saturate=saturate), h.make_node("DequantizeLinear", ["q", "s", "z"], ["w"])]
            graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", T.FLOAT, ["N"])],
                                 [h.make_tensor_value_info(n, T.FLOAT, None) for n in ("y", "w")], scaled)
            yield f"{name}, saturate {saturate}", h.make_model(graph, opset_imports=[h.make_opsetid("", 19)], ir_version=9), {
                "x": x if saturate else x[~(np.abs(x) > most / 2)]}, True


def canonical(build_folder, path):
    return subprocess.run([os.path.join(build_folder, "tpc-shard"), path, "--tp", "2", "-n", "-q", "--dump-after", "canon"], capture_output=True, text=True, check=True).stdout


def build(op, operands, results, attributes):
    domain, _, name = op.rpartition(".")
    names = [f"x{i}" if v is not None else "" for i, v in enumerate(operands)]
    outputs = [f"y{i}" for i in range(results)] if isinstance(results, int) else [f"y{i}" if i in results else "" for i in range(max(results) + 1)]
    inputs, weights = {}, []
    for n, v in zip(names, operands):
        if v is None:
            continue
        if np.ndim(v) >= 2 and n != "x1" or n == "x0":
            inputs[n] = np.asarray(v)
        else:
            weights.append(numpy_helper.from_array(np.asarray(v), n))
    given = [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in inputs.items()]
    wanted = [onnx.ValueInfoProto(name=n) for n in outputs if n]
    graph = h.make_graph([h.make_node(name, names, outputs, domain=domain, name="n", **attributes)], "g", given, wanted, weights)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18), h.make_opsetid(MS, 1), h.make_opsetid(ML, 1)], ir_version=9), inputs


def typed(model):
    """Results need types; for com.microsoft, ONNX Runtime's own inference gives them."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    kinds = {"tensor(float)": T.FLOAT, "tensor(uint8)": T.UINT8, "tensor(int8)": T.INT8, "tensor(int32)": T.INT32, "tensor(int64)": T.INT64}
    for value, told in zip(model.graph.output, session.get_outputs()):
        value.CopyFrom(h.make_tensor_value_info(value.name, kinds[told.type], None))
    return session


def write(folder, kind, arrays):
    for i, (name, value) in enumerate(arrays):
        with open(os.path.join(folder, f"{kind}_{i}.pb"), "wb") as file:
            file.write(numpy_helper.from_array(np.asarray(value), name).SerializeToString())


def check(build_folder, folder, model, inputs):
    session = typed(model)
    names = [o.name for o in model.graph.output]
    path, data, out = (os.path.join(folder, n) for n in ("m.onnx", "data", "out"))
    os.makedirs(data)
    onnx.save(model, path)
    write(data, "input", inputs.items())
    write(data, "output", zip(names, session.run(names, inputs)))
    run, shard = (os.path.join(build_folder, n) for n in ("tpc-run", "tpc-shard"))
    for command in ([run, path, "--test-data", data], [shard, path, "--tp", "2", "-o", out, "-q"], [run, out, "--local", "2", "--test-data", data]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return (done.stdout + done.stderr).strip().splitlines()[-1]
    return None


def tried(model, inputs):
    with tempfile.TemporaryDirectory() as folder:
        try:
            return check(sys.argv[1], folder, model, inputs)
        except Exception as failure:  # noqa: BLE001: every case is reported
            return str(failure)


def decoding(models):
    """The numbers of those that keep a DequantizeLinear."""
    found = set()
    for numbers in joined.groups(models):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            onnx.save(joined.join({i: (models[i], {}) for i in numbers})[0], path)
            nodes = [line for line in canonical(sys.argv[1], path).splitlines() if "DequantizeLinear" in line]
            found.update(i for i in numbers if any(joined.prefix(i) in line for line in nodes))
    return found


def main():
    single, more = list(cases()), [*written_out(), *small_floats()]
    made = [build(*case) for case in single] + [(model, inputs) for _, model, inputs, _ in more]
    names = [f"{op} {attributes}" for op, _, _, attributes in single] + [name for name, *_ in more]
    wrong = joined.faults(made, tried)
    found = decoding([model for _, model, *_ in more])
    for i, (_, _, _, expected) in enumerate(more):
        if (i in found) != expected:
            wrong.setdefault(len(single) + i, f"DequantizeLinear: found {i in found}, expected {expected}")
    for i, why in wrong.items():
        print(f"FAILED {names[i]}: {why}")
    print(f"{len(made)} composed ops, {len(wrong)} failed")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
