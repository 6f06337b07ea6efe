#!/usr/bin/env python3
"""Models that return embeddings, of samples/: embedding_models.py SAMPLES OUT. Each returns what its last product reads."""
import pathlib
import sys

import onnx
from onnx import TensorProto, helper

WIDTH = {"bert": 64, "gpt2-dynamo20-sdpa": 64, "llama": 128}
SAMPLES, OUT = map(pathlib.Path, sys.argv[1:])


def hidden_of(graph):
    """The operand of the product that makes the logits."""
    made = {o: n for n in graph.node for o in n.output}
    node = made["logits"]
    while node.op_type != "MatMul":
        node = next(made[i] for i in node.input if i in made)
    return node.input[0]


def returning(sample, name, keep):
    model = onnx.load(SAMPLES / sample / "model.onnx")
    graph, hidden = model.graph, hidden_of(model.graph)
    logits = next(o for o in graph.output if o.name == "logits")
    sizes = [d.dim_param or d.dim_value for d in logits.type.tensor_type.shape.dim][:2]
    graph.node.append(helper.make_node("Identity", [hidden], [name], name=f"{name}/same"))
    if not keep:
        graph.output.remove(logits)
        used = {name} | {o.name for o in graph.output}
        for node in reversed(list(graph.node)):
            if set(node.output) & used:
                used |= set(node.input)
            else:
                graph.node.remove(node)
    graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [*sizes, WIDTH[sample]]))
    return model


def pooled(model):
    """The mean of the tokens that the mask shows, by the graph."""
    graph = model.graph
    hidden = graph.output[0]
    rows, *_ = [d.dim_param or d.dim_value for d in hidden.type.tensor_type.shape.dim]
    graph.initializer.append(helper.make_tensor("last", TensorProto.INT64, [1], [-1]))
    graph.initializer.append(helper.make_tensor("middle", TensorProto.INT64, [1], [1]))
    for op, ins, out, attributes in [("Unsqueeze", ["attention_mask", "last"], "shown", {}), ("Cast", ["shown"], "share", {"to": TensorProto.FLOAT}),
                                     ("Mul", [hidden.name, "share"], "shares", {}), ("ReduceSum", ["shares", "middle"], "sums", {"keepdims": 0}),
                                     ("ReduceSum", ["share", "middle"], "counts", {"keepdims": 0}),
                                     ("Div", ["sums", "counts"], "sentence_embedding", {})]:
        graph.node.append(helper.make_node(op, ins, [out], name=f"pool/{out}", **attributes))
    graph.output.remove(hidden)
    graph.output.append(helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, [rows, WIDTH["bert"]]))
    return model


def write(name, model):
    (OUT / name).mkdir(parents=True)
    onnx.save(model, OUT / name / "model.onnx")


write("bert", returning("bert", "last_hidden_state", False))
write("pooled", pooled(returning("bert", "last_hidden_state", False)))
write("llama", returning("llama", "hidden_states", True))
write("gpt2", returning("gpt2-dynamo20-sdpa", "last_hidden_state", True))
write("t5", onnx.load(SAMPLES / "t5-encoder" / "model.onnx"))
