"""A model run whole and on ranks, for tests that know the outputs themselves. run(BUILD, MODEL, INPUTS, OUTPUTS, ...) tells what differs."""
import json
import os
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import helper as h, numpy_helper


def model(nodes, inputs, outputs, weights=(), opset=23, domains=(), shapes=None):
    """inputs, outputs: arrays by name; shapes: names of dimensions, where an input has symbols."""
    def infos(arrays):
        return [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(v.dtype), (shapes or {}).get(n, v.shape)) for n, v in arrays.items()]
    graph = h.make_graph(nodes, "g", infos(inputs), infos(outputs), [numpy_helper.from_array(np.asarray(v), n) for n, v in dict(weights).items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)] + [h.make_opsetid(d, 1) for d in domains], ir_version=10)


def write(folder, proto, inputs, outputs):
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    onnx.save(proto, os.path.join(folder, "model.onnx"))
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for i, (name, value) in enumerate(arrays.items()):
            with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(np.asarray(value), name).SerializeToString())


def told(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    said = (done.stdout + done.stderr).strip().splitlines()
    return f"{done.returncode}: {said[-1] if said else 'nothing'}" if done.returncode else None


def run(build, proto, inputs, outputs, ranks=(2, 3), constraints=(), options=()):
    """None, or the last line of the first command that fails. constraints: of the plan file; options: of tpc-run."""
    with tempfile.TemporaryDirectory() as folder:
        write(folder, proto, inputs, outputs)
        path, data, plan = (os.path.join(folder, n) for n in ("model.onnx", "test_data_set_0", "plan.json"))
        with open(plan, "w") as file:
            json.dump({"constraints": list(constraints)}, file)
        commands = [[os.path.join(build, "tpc-run"), path, "--test-data", data, *options]]
        for n in ranks:
            out = os.path.join(folder, f"tp{n}")
            commands += [[os.path.join(build, "tpc-shard"), path, "--tp", str(n), "--plan", plan, "-q", "-o", out],
                         [os.path.join(build, "tpc-run"), out, "--local", str(n), "--test-data", data, *options]]
        for command in commands:
            if fault := told(command):
                return f"{os.path.basename(command[0])} {'whole' if command[1] == path else command[1][-3:]}: {fault}"
    return None
