#!/usr/bin/env python3
"""Write expected.json: the loss of each sample and torch's gradients of its weights, as projections.

    python tests/gradients/make.py SAMPLES > tests/gradients/expected.json

The weights come from the samples' files, whatever transformers draws today. Needs torch and transformers.
"""
import json
import os
import sys

import numpy as np
import onnx
import torch
from onnx import numpy_helper

import nets
from common import IGNORED, inputs, projections

samples = sys.argv[1]
sys.path.insert(0, samples)
import export  # noqa: E402

SAMPLES = {"llama": "llama", "gpt2": "gpt2", "qwen2": "qwen2", "mistral": "mistral", "qwen3-moe": "qwen3-moe", "bert": "bert", "vit": "vit",
           "t5-decoder": "t5", "resnet": "resnet", "resnet-training": "resnet", "toy": "toy"}
NETS = "resnet", "toy"
here = os.path.dirname(os.path.abspath(__file__))


def parameters(model):
    """The name that a parameter has under each module, to the one that named_parameters gives."""
    of = {id(p): n for n, p in model.named_parameters()}
    return {f"{m}.{k}".lstrip("."): of[id(p)] for m, module in model.named_modules() for k, p in module._parameters.items() if p is not None}


def candidates(node, name, rank):
    """(name in torch, transposed) of an initializer that a node reads."""
    path = node.name.strip("/").rsplit("/", 1)[0].replace("/", ".")
    for prefix in ("", "decoder.", "encoder.", "model."):
        yield prefix + name, False
        yield prefix + path + ".weight", rank == 2
        yield prefix + path + ".bias", False


def load(model, graph):
    """Sets the model's weights from the file; of each parameter, the initializers that hold it."""
    arrays = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    names, params, held, taken = parameters(model), dict(model.named_parameters()), {}, set()
    for node in graph.node:
        for x in node.input:
            w = arrays.get(x)
            if w is None or w.dtype != np.float32 or w.size < 2 or x in taken:
                continue
            for name, transposed in candidates(node, x, w.ndim):
                if name in names and params[names[name]].shape == (w.T if transposed else w).shape:
                    with torch.no_grad():
                        params[names[name]].copy_(torch.from_numpy((w.T if transposed else w).copy()))
                    held.setdefault(names[name], []).append([x, transposed])
                    taken.add(x)
                    break
    return held


def logits_of(model, arch, given):
    t = {n: torch.from_numpy(a) for n, a in given.items() if n != "labels"}
    if arch in NETS:
        return model(**t)
    if arch == "t5":
        from transformers.modeling_outputs import BaseModelOutput
        return model(encoder_outputs=BaseModelOutput(t["encoder_hidden_states"]), attention_mask=t["encoder_attention_mask"],
                     decoder_input_ids=t["input_ids"], use_cache=False).logits
    return model(**t).logits


def built(sample, arch):
    """The model, its graph, and of each parameter the initializers that hold it."""
    if arch in NETS:
        path = os.path.join(here, sample + ".onnx")
        model = nets.write(path)
        return model, onnx.load(path).graph, {n: [[n, False]] for n, _ in model.named_parameters()}
    model, _ = export.build(arch, "tiny", None)
    graph = onnx.load(os.path.join(samples, sample, "model.onnx")).graph
    return model, graph, load(model, graph)


def expected(sample, arch):
    model, graph, held = built(sample, arch)
    image = arch in ("vit", "resnet")
    classes = 10 if image else 8 if arch == "toy" else model.config.vocab_size
    given = inputs([i.name for i in graph.input], classes, image)
    logits = logits_of(model, arch, given)
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), torch.from_numpy(given["labels"]).reshape(-1),
                                             reduction="sum", ignore_index=IGNORED)
    loss.backward()
    params = dict(model.named_parameters())
    gradients = [{"of": of, "norm": float(params[n].grad.norm()), "projections": projections(params[n].grad.numpy())}
                 for n, of in held.items()]
    return {"classes": classes, "image": image, "loss": loss.item(), "count": int((given["labels"] != IGNORED).sum()),
            "gradients": gradients}


print(json.dumps({s: expected(s, a) for s, a in SAMPLES.items()}, indent=0))
