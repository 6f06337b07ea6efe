#!/usr/bin/env python3
"""Adapters in PEFT's form, without PEFT.

    python adapters.py check DIR RANK          what --save wrote: names, shapes, numbers that A begins with if B is zero
    python adapters.py spoil DIR OUT WHAT      a copy of which one thing is wrong
    python adapters.py merge DIR MODEL OUT     the model with W + alpha / r (B A)^T as its weights, by numpy
    python adapters.py near A B X              outputs of two runs: the largest difference is at most X times the largest number
    python adapters.py only MODEL OTHER N      the models are the same but for N initializers
"""
import glob
import json
import os
import shutil
import struct
import sys

PREFIX = "base_model.model."


def read(path):
    """{name: (dtype, shape, bytes)}"""
    with open(os.path.join(path, "adapter_model.safetensors"), "rb") as f:
        data = f.read()
    n, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__", None)
    return {k: (v["dtype"], v["shape"], data[8 + n:][slice(*v["data_offsets"])]) for k, v in header.items()}


def write(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(os.path.join(path, "adapter_model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


def floats(tensor):
    return struct.unpack(f"<{len(tensor[2]) // 4}f", tensor[2])


def check(path, rank):
    config = json.load(open(os.path.join(path, "adapter_config.json")))
    tensors = read(path)
    modules = sorted(config["target_modules"])
    assert config["peft_type"] == "LORA" and config["r"] == rank and config["bias"] == "none", config
    assert sorted(tensors) == sorted(f"{PREFIX}{m}.lora_{x}.weight" for m in modules for x in "AB"), sorted(tensors)
    spread = []
    for m in modules:
        a, b = (tensors[f"{PREFIX}{m}.lora_{x}.weight"] for x in "AB")
        assert a[0] == b[0] == "F32" and a[1][0] == b[1][1] == rank, (m, a[1], b[1])
        assert len(floats(a)) == rank * a[1][1] and len(floats(b)) == rank * b[1][0]
        if not any(floats(b)):
            spread += [x * a[1][1] ** 0.5 for x in floats(a)]
    if spread:  # even from -1 to 1
        n = len(spread)
        mean, square = sum(spread) / n, sum(x * x for x in spread) / n
        assert max(map(abs, spread)) < 1 and abs(mean) < 4 / n ** 0.5 and abs(square - 1 / 3) < 2 / n ** 0.5, (n, mean, square)
        assert len(set(spread)) > 0.99 * n
    print(len(modules), "modules,", "B is zero" if spread else "trained")


def spoil(path, out, what):
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(path, out)
    tensors, file = read(path), os.path.join(out, "adapter_config.json")
    config = json.load(open(file))
    a = next(k for k in tensors if k.endswith("lora_A.weight"))
    b = a.replace("lora_A", "lora_B")
    dtype, shape, data = tensors[a]
    key, _, value = what.partition("=")
    if key == "rows":
        tensors[a] = (dtype, [shape[0], shape[1] - 1], data[:4 * shape[0] * (shape[1] - 1)])
    elif key == "columns":
        tensors[b] = (dtype, [tensors[b][1][0] - 1, shape[0]], tensors[b][2][:-4 * shape[0]])
    elif key in ("ranks", "pattern", "lower"):
        tensors[a] = (dtype, [shape[0] - 1, shape[1]], data[:-4 * shape[1]])
        if key != "ranks":
            config["rank_pattern"] = {"c_attn": 3}
        if key == "lower":
            columns = tensors[b][1][0]
            tensors[b] = (dtype, [columns, shape[0] - 1], tensors[b][2][:4 * columns * (shape[0] - 1)])
    elif key == "empty":
        tensors[a], tensors[b] = (dtype, [0, shape[1]], b""), (dtype, [tensors[b][1][0], 0], b"")
    elif key == "alone":
        del tensors[b]
    elif key == "missing":
        del tensors[a], tensors[b]
    elif key == "renamed":
        tensors = {k.replace(a.split(".lora_A")[0], PREFIX + value): v for k, v in tensors.items()}
    elif key == "type":
        tensors[a] = ("I32", shape, data)
    elif key == "flat":
        tensors[a] = (dtype, [shape[0] * shape[1]], data)
    elif key == "other":
        tensors[PREFIX + "lm_head.weight"] = (dtype, shape, data)
    elif key == "none":
        tensors = {}
    elif key == "twice":
        tensors[a.removeprefix(PREFIX)] = (dtype, shape, data)
    elif key == "half":
        import numpy as np
        tensors = {k: ("F16", s, np.frombuffer(d, "<f4").astype("<f2").tobytes()) for k, (_, s, d) in tensors.items()}
    elif key == "delete":
        os.remove(file)
    elif key != "long":
        config[key] = json.loads(value)
    if key != "delete":
        json.dump(config, open(file, "w"))
    write(out, tensors)
    if key == "long":
        with open(os.path.join(out, "adapter_model.safetensors"), "r+b") as f:
            f.write(struct.pack("<Q", 1 << 62))


def merge(path, model, out):
    import numpy as np
    import onnx
    from onnx import numpy_helper
    m, tensors = onnx.load(model), read(path)
    config = json.load(open(os.path.join(path, "adapter_config.json")))
    for name in tensors:
        if "lora_A" not in name:
            continue
        a, b = (np.frombuffer(tensors[n][2], "<f4").reshape(tensors[n][1]).astype(np.float64) for n in (name, name.replace("lora_A", "lora_B")))
        scope = "/" + name.removeprefix(PREFIX).split(".lora_A")[0].replace(".", "/").replace("/h/", "/h.").replace("/layers/", "/layers.") + "/"
        weight = next(n.input[1] for n in m.graph.node if n.name.startswith(scope) and n.op_type in ("MatMul", "Gemm"))
        for i in m.graph.initializer:
            if i.name == weight:
                w = numpy_helper.to_array(i).astype(np.float64) + config["lora_alpha"] / len(a) * (b @ a).T
                i.CopyFrom(numpy_helper.from_array(w.astype(np.float32), i.name))
    onnx.save(m, out)


def near(one, other, limit):
    import numpy as np
    files = sorted(os.path.basename(f) for f in glob.glob(os.path.join(one, "*.npy")))
    assert files and files == sorted(os.path.basename(f) for f in glob.glob(os.path.join(other, "*.npy")))
    for f in files:
        a, b = np.load(os.path.join(one, f)), np.load(os.path.join(other, f))
        assert a.shape == b.shape and abs(a - b).max() <= limit * abs(a).max(), (f, abs(a - b).max(), abs(a).max())


def only(model, other, n):
    import numpy as np
    import onnx
    from onnx import numpy_helper
    one, two = onnx.load(model), onnx.load(other)
    changed = 0
    for a, b in zip(one.graph.initializer, two.graph.initializer, strict=True):
        if a != b:
            assert np.isfinite(numpy_helper.to_array(b)).all()
            changed += 1
            b.CopyFrom(a)
    assert changed == n and one == two, changed


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    kinds = {"check": (str, int), "spoil": (str, str, str), "merge": (str, str, str), "near": (str, str, float), "only": (str, str, int)}
    globals()[command](*(kind(x) for kind, x in zip(kinds[command], rest, strict=True)))
