"""Rank files declare the type of every result as the onnx package infers it: value_info.py TPC-SHARD WORK MODEL..."""
import os
import subprocess
import sys

import onnx
from bodies import graphs


def faults(path):
    onnx.checker.check_model(path)
    proto = onnx.load(path, load_external_data=False)
    onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
    for graph in graphs(proto.graph):
        declared = {v.name: v.type.tensor_type for v in [*graph.value_info, *graph.output]}
        names = [v.name for v in [*graph.value_info, *graph.output]]
        if len(names) != len(set(names)):
            yield "a value is declared twice"
        for node in graph.node:
            for name in filter(None, node.output):
                if name not in declared or not declared[name].elem_type or not declared[name].HasField("shape"):
                    yield f"{name} of {node.op_type} is not declared"


shard, work, *models = sys.argv[1:]
bad = 0
for i, model in enumerate(models):
    out = os.path.join(work, f"declared-{i}")
    subprocess.run([shard, model, "--tp", "2", "-q", "--force", "-o", out], check=True)
    found = [f"{model}: rank {r}: {fault}" for r in range(2) for fault in faults(os.path.join(out, f"rank-{r}.onnx"))]
    bad += len(found)
    print("\n".join(found[:5]))
sys.exit(bad > 0)
