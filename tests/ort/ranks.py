"""ranks: a rank's files in ONNX Runtime, on the data of their samples: ranks.py LIBRARY DATA FOLDER [DATA FOLDER ...], under mpirun.

Each process gives its shard of every input, and compares what it gets with its shard of every output."""
import glob
import os
import sys

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime

sys.path.insert(0, __file__.rsplit("/", 2)[0])
import splits

RANK = int(next(os.environ[k] for k in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK") if k in os.environ))
TOLERANCE = {np.dtype(np.float32): 2e-4, np.dtype(np.float16): 2e-2}


def held(split, size):
    """The indices of a dimension that this rank holds."""
    return np.concatenate([np.arange(0)] + [np.arange(*at) for at in splits.intervals(split, RANK, size)]).astype(int)


def shard(meta, end, name, value):
    placement = meta[f"tpc.{end}.{name}"].split("|")[1]
    if placement == "R":
        return value
    axis, split = placement[2:-1].split("; ")
    return np.take(value, held(split, value.shape[int(axis)]), int(axis))


def read(pattern):
    for path in sorted(glob.glob(pattern), key=lambda p: int(p.split("_")[-1][:-3])):
        proto = onnx.TensorProto()
        with open(path, "rb") as file:
            proto.ParseFromString(file.read())
        yield proto.name, onnx.numpy_helper.to_array(proto)


def difference(got, want):
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    if want.size == 0 or want.dtype.kind in "iub":
        return "" if np.array_equal(got, want) else "other integers"
    limit = TOLERANCE.get(want.dtype, 5e-2)
    worst = np.max(np.abs(got.astype(np.float64) - want) / (1 + np.abs(want.astype(np.float64))))
    return "" if worst <= limit else f"off by {worst}"


def check(session, data):
    meta = session.get_modelmeta().custom_metadata_map
    asked = {i.name for i in session.get_inputs()}
    inputs = {name: shard(meta, "input", name, value) for name, value in read(f"{data}/input_*.pb") if name in asked}
    outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))
    count = 0
    for name, value in read(f"{data}/output_*.pb"):
        bad = difference(outputs[name], shard(meta, "output", name, value))
        if bad:
            sys.exit(f"{data}: rank {RANK}: {name}: {bad}")
        count += outputs[name].size > 0
    assert count > 0, data


options = onnxruntime.SessionOptions()
options.log_severity_level = 3
options.intra_op_num_threads = 1
options.register_custom_ops_library(sys.argv[1])
for sample, folder in zip(sys.argv[2::2], sys.argv[3::2]):
    opened = onnxruntime.InferenceSession(f"{folder}/rank-{RANK}.onnx", options, providers=["CPUExecutionProvider"])
    sets = sorted(glob.glob(f"{sample}/test_data_set_*"))
    for one in sets:
        check(opened, one)
    print(f"ok {os.path.basename(folder)} rank {RANK}, {len(sets)} sets", flush=True)
