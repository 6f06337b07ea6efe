#!/usr/bin/env python3
"""Quantised forms of the samples, with ONNX Runtime's outputs for the same inputs: samples/quantize.py OUT.

gpt2-int8       dynamic quantisation: DynamicQuantizeLinear, MatMulInteger
bert-qdq        static quantisation per channel: QuantizeLinear and DequantizeLinear around every product
llama-int4-tied llama-genai-int4 with its embedding read from the output layer's weight (GatherBlockQuantized) and its MLPs multiplied by
                blocks of INT4 (DequantizeLinear)
"""
import glob
import os
import shutil
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

SAMPLES = os.path.dirname(os.path.abspath(__file__))


def inputs(name, k):
    tensors = [onnx.load_tensor(f) for f in sorted(glob.glob(f"{SAMPLES}/{name}/test_data_set_{k}/input_*.pb"),
                                                   key=lambda f: int(f.rsplit("_", 1)[1][:-3]))]
    return {t.name: numpy_helper.to_array(t) for t in tensors}


class Reader(CalibrationDataReader):
    def __init__(self, name):
        self.left = [inputs(name, 0), inputs(name, 1)]

    def get_next(self):
        return self.left.pop(0) if self.left else None


def gpt2_int8(model):
    quantize_dynamic(f"{SAMPLES}/gpt2/model.onnx", model, weight_type=QuantType.QInt8)


def bert_qdq(model):
    quantize_static(f"{SAMPLES}/bert/model.onnx", model, Reader("bert"), quant_format=QuantFormat.QDQ, per_channel=True, weight_type=QuantType.QInt8)


def tie(graph):
    """The embedding becomes rows of the output layer's weight."""
    head = next(n for n in graph.node if n.name.startswith("/lm_head"))
    gather = next(n for n in graph.node if "model.embed_tokens.weight" in n.input)
    size = {a.name: a.i for a in head.attribute}
    shape = numpy_helper.from_array(np.array([size["N"], size["K"] // 2]), "tied.shape")
    graph.initializer.append(shape)
    reshape = helper.make_node("Reshape", [head.input[1], "tied.shape"], ["tied.table"], name="tied/Reshape")
    lookup = helper.make_node("GatherBlockQuantized", ["tied.table", gather.input[1], head.input[2]], list(gather.output), name=gather.name,
                              domain="com.microsoft", bits=4, block_size=size["block_size"], gather_axis=0, quantize_axis=1)
    at = list(graph.node).index(gather)
    graph.node.remove(gather)
    graph.node.insert(at, lookup)
    graph.node.insert(at, reshape)


def decode(graph, node, tensor):
    """MatMulNBits as MatMul by DequantizeLinear: w[k, n] of INT4, blocks along k."""
    size = {a.name: a.i for a in node.attribute}
    packed, scale = (numpy_helper.to_array(tensor[node.input[i]]) for i in (1, 2))
    number = np.stack([packed & 15, packed >> 4], -1).reshape(size["N"], size["K"]).astype(np.int8) - 8
    graph.initializer.append(helper.make_tensor(node.name + ".w", onnx.TensorProto.INT4, [size["K"], size["N"]], number.T.reshape(-1).tolist()))
    graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(scale.T), node.name + ".s"))
    at = list(graph.node).index(node)
    graph.node.remove(node)
    graph.node.insert(at, helper.make_node("MatMul", [node.input[0], node.name + ".f"], list(node.output), name=node.name))
    graph.node.insert(at, helper.make_node("DequantizeLinear", [node.name + ".w", node.name + ".s"], [node.name + ".f"], name=node.name + "/decode",
                                           axis=0, block_size=size["block_size"]))


def llama_int4_tied(path):
    model = onnx.load(f"{SAMPLES}/llama-genai-int4/model.onnx")
    graph = model.graph
    tensor = {t.name: t for t in graph.initializer}
    tie(graph)
    for node in [n for n in graph.node if "/mlp/" in n.name and n.op_type == "MatMulNBits"]:
        decode(graph, node, tensor)
    used = {i for n in graph.node for i in n.input}
    for t in [t for t in graph.initializer if t.name not in used]:
        graph.initializer.remove(t)
    onnx.save(model, path)


def save_data(source, folder):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(f"{folder}/model.onnx", options)
    for k in range(2):
        data = f"{folder}/test_data_set_{k}"
        os.makedirs(data)
        for f in glob.glob(f"{SAMPLES}/{source}/test_data_set_{k}/input_*.pb"):
            shutil.copy(f, data)
        for i, (out, x) in enumerate(zip(session.get_outputs(), session.run(None, inputs(source, k)))):
            onnx.save_tensor(numpy_helper.from_array(x, out.name), f"{data}/output_{i}.pb")


def main():
    for name, source, make in (("gpt2-int8", "gpt2", gpt2_int8), ("bert-qdq", "bert", bert_qdq), ("llama-int4-tied", "llama-genai-int4", llama_int4_tied)):
        folder = os.path.join(sys.argv[1], name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        make(f"{folder}/model.onnx")
        save_data(source, folder)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
