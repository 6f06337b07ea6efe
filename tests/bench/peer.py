#!/usr/bin/env python3
"""Milliseconds (minimum) of one pass by another program: peer.py NAME MODEL --rows S --past P, sizes as tpc-run --dim has them.

NAME: onnxruntime, openvino, or torch, which takes a model of the config.json beside the file, with weights by chance. What cannot run says
why on stderr and exits with 1."""
import argparse
import json
import os
import sys
import time

import numpy as np


def sizes(a):
    size = {"batch_size": 1, "sequence_length": a.rows, "past_sequence_length": a.past}
    size["past_sequence_length + sequence_length"] = size["past_sequence_length + 1"] = size["total_sequence_length"] = a.past + a.rows
    return size


def made_up(name, shape, is_float, a):
    rng = np.random.default_rng(0)
    if is_float:
        return rng.standard_normal(shape, dtype=np.float32)
    if "mask" in name:
        return np.ones(shape, np.int64)
    if "position" in name:
        return np.ascontiguousarray(np.broadcast_to(np.arange(a.past, a.past + a.rows, dtype=np.int64), shape))
    return rng.integers(0, 200, shape, dtype=np.int64)


def onnxruntime(a):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = a.threads, 1
    session = ort.InferenceSession(a.model, options, providers=["CPUExecutionProvider"])
    size = sizes(a)
    feed = {i.name: made_up(i.name, [d if isinstance(d, int) else size[d] for d in i.shape], "float" in i.type, a) for i in session.get_inputs()}
    return lambda: session.run(None, feed)


def openvino(a):
    import openvino as ov
    import onnx
    core, size = ov.Core(), sizes(a)
    graph = onnx.load(a.model, load_external_data=False).graph
    held = {t.name for t in graph.initializer}
    feed = {}
    for i in (i for i in graph.input if i.name not in held):
        t = i.type.tensor_type
        feed[i.name] = made_up(i.name, [size[d.dim_param] if d.dim_param else d.dim_value for d in t.shape.dim], t.elem_type == onnx.TensorProto.FLOAT, a)
    model = core.compile_model(core.read_model(a.model), "CPU", {"INFERENCE_NUM_THREADS": a.threads, "INFERENCE_PRECISION_HINT": a.precision,
                                                                 "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1})
    request = model.create_infer_request()
    return lambda: request.infer(feed, share_inputs=True)


def torch(a):
    import torch as t
    import transformers
    t.set_num_threads(a.threads)
    folder = os.path.dirname(os.path.abspath(a.model))
    if not os.path.exists(f"{folder}/config.json"):
        sys.exit(f"torch: {folder} has no config.json")
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**json.load(open(f"{folder}/config.json")))).eval()
    new = t.from_numpy(made_up("input_ids", [1, a.rows], False, a))
    old = t.from_numpy(made_up("input_ids", [1, a.past], False, a)) if a.past else None

    def step():
        with t.inference_mode():
            past = model(old, use_cache=True).past_key_values if old is not None else None
            start = time.perf_counter()
            model(new, past_key_values=past, use_cache=True)
            return time.perf_counter() - start
    return step


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("name", choices=["onnxruntime", "openvino", "torch"])
    p.add_argument("model")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--repeat", type=int, default=6)
    p.add_argument("--precision", default="f32", help="openvino: the type that it computes in")
    p.add_argument("--rows", type=int, required=True)
    p.add_argument("--past", type=int, required=True)
    a = p.parse_args()
    try:
        run = globals()[a.name](a)
        run()
        times = []
        for _ in range(a.repeat):
            start = time.perf_counter()
            own = run()
            times.append(own if isinstance(own, float) else time.perf_counter() - start)
    except ImportError as e:
        sys.exit(f"{a.name}: {e}")
    except Exception as e:
        sys.exit(f"{a.name}: {' '.join(str(e).split())[-200:]}")
    print(f"{1e3 * min(times):.3f}")


if __name__ == "__main__":
    main()
