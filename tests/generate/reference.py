#!/usr/bin/env python3
"""Write what tests/generate.tap compares with: tokens that ONNX Runtime decodes greedily from samples/, and the logits of the last step.

    python tests/generate/reference.py [SAMPLES]

Writes beside itself, per model, MODEL.txt (one line per row) and MODEL.npy (logits of the last run, [batch, 1, vocabulary]), and the prompts.
The smallest distance of the two best logits is printed: where it is below 1e-5 the choice is a matter of rounding. Needs numpy, onnxruntime.
"""
import os
import sys

import numpy as np
import onnxruntime

here = os.path.dirname(os.path.abspath(__file__))
samples = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..", "samples")
TOKENS = 64


class Graph:
    def __init__(self, name):
        self.session = onnxruntime.InferenceSession(os.path.join(samples, name, "model.onnx"), providers=["CPUExecutionProvider"])
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]

    def __call__(self, feed):
        return dict(zip(self.outputs, self.session.run(None, {k: v for k, v in feed.items() if k in self.inputs})))

    def empty_past(self, batch):
        size = {"batch_size": batch, "kv_cache_dim": 16}
        return {k: np.zeros([d if isinstance(d, int) else size.get(d, 0) for d in i.shape], np.float32)
                for k, i in self.inputs.items() if k.startswith("past")}


def state(result):
    return {k.replace("present", "past_key_values"): v for k, v in result.items() if k.startswith("present")}


class Choice:
    """The tokens chosen so far, and how close a choice was."""
    def __init__(self):
        self.tokens, self.gap = [], np.inf

    def add(self, result):
        self.logits = result["logits"][:, -1:]
        best = np.sort(self.logits[:, 0], -1)
        self.gap = min(self.gap, float((best[:, -1] - best[:, -2]).min()))
        self.tokens.append(self.logits[:, 0].argmax(-1))
        return self.tokens[-1][:, None]

    def write(self, name):
        with open(os.path.join(here, name + ".txt"), "w") as f:
            for row in np.stack(self.tokens, 1):
                print(*row, file=f)
        np.save(os.path.join(here, name + ".npy"), self.logits)
        print(f"{name}: smallest distance of the two best logits {self.gap:.3g}")


def decode(name, prompt):
    graph, choice, known, fed = Graph(name), Choice(), prompt, prompt
    past = graph.empty_past(len(prompt))
    for _ in range(TOKENS):
        n = known.shape[1]
        result = graph({"input_ids": fed, "attention_mask": np.ones_like(known), **past,
                        "position_ids": np.arange(n - fed.shape[1], n)[None].repeat(len(known), 0)})
        past, fed = state(result), choice.add(result)
        known = np.concatenate([known, fed], 1)
    choice.write(name)


def decode_t5(prompt):
    encoder, first, step, choice = Graph("t5-encoder"), Graph("t5-decoder"), Graph("t5-decoder_with_past"), Choice()
    mask = np.ones_like(prompt)
    fixed = {"encoder_attention_mask": mask, "encoder_hidden_states": encoder({"input_ids": prompt, "attention_mask": mask})["last_hidden_state"]}
    result = first({"input_ids": np.zeros((len(prompt), 1), np.int64), **fixed})
    past = state(result)
    for _ in range(TOKENS - 1):
        result = step({"input_ids": choice.add(result), **fixed, **past})
        past.update(state(result))
    choice.add(result)
    choice.write("t5")


def main():
    rng = np.random.default_rng(1)
    prompts = {"prompt": rng.integers(0, 256, (2, 5)), "short": rng.integers(0, 256, (2, 1))}     # gpt2 has 64 positions
    prompts["row"] = prompts["prompt"][:1]
    prompts["padded"] = np.concatenate([np.zeros((1, 2), np.int64), prompts["row"]], 1)
    prompts["mask"] = (np.arange(7) >= 2).astype(np.int64)[None]
    for name, ids in prompts.items():
        np.save(os.path.join(here, name + ".npy"), ids)
    for name in ("llama", "qwen2", "llama-genai-fp32"):
        decode(name, prompts["prompt"])
    decode("gpt2", prompts["short"])
    decode_t5(prompts["prompt"])


main()
