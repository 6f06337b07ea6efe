"""empty: how rank files write what may have no elements, which other runtimes have to read: empty.py RANK.onnx ..."""
import sys

import onnx

for path in sys.argv[1:]:
    graph = onnx.load(path, load_external_data=False).graph
    known = {t.name for t in graph.initializer}
    for t in graph.initializer:
        assert not any(e.key == "length" and e.value == "0" for e in t.external_data), f"{path}: {t.name}: nothing, in the data file"
    for node in graph.node:
        computed = node.op_type == "Reshape" and node.input[1] not in known
        assert not computed or any(a.name == "allowzero" and a.i for a in node.attribute), f"{path}: {node.name}: a size of 0 would mean another"
