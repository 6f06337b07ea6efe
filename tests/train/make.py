#!/usr/bin/env python3
"""Write rows.npy, tokens with padding, and torch's losses of 20 steps on them: adamw.csv and sgd.csv; and the losses of PEFT's adapters, which
begin as adapters/ has them: adapters.csv. bf16.csv: of 100 steps, with matrices in bf16 that an optimizer keeps as f32.

    python tests/train/make.py SAMPLES [FILE.csv..]      FILE.csv: these alone

The model is the sample gpt2, whose head is tied to its embeddings. Needs torch, transformers, peft and onnx.
"""
import math
import os
import sys

import numpy as np
import onnx
import torch
import transformers as hf
from onnx import numpy_helper

BATCH, STEPS, IGNORED = 7, 20, -100
here = os.path.dirname(os.path.abspath(__file__))


def mixed(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def draw(seed, number, n):
    return mixed((mixed(seed) + (number + 1) * 0x9E3779B97F4A7C15) % 2**64) % n


def make_rows():
    rng = np.random.default_rng(5)
    rows = ((np.cumsum(rng.integers(0, 3, (30, 25)), axis=1) * 7 + rng.integers(0, 40, (30, 1))) % 256).astype(np.int32)
    for r in range(0, 30, 3):
        rows[r, 25 - r % 11:] = -1
    np.save(os.path.join(here, "rows.npy"), rows)
    return rows.astype(np.int64)


def make_model(samples):
    config = hf.GPT2Config(vocab_size=256, n_positions=64, n_embd=64, n_layer=2, n_head=4)
    model = hf.GPT2LMHeadModel(config).eval()
    graph = onnx.load(os.path.join(samples, "gpt2", "model.onnx")).graph
    arrays = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.from_numpy(arrays[name].copy()))
    return model


def rate(step, lr, steps):
    warmup = steps // 50
    if step < warmup:
        return lr * (step + 1) / (warmup + 1)
    return lr * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))))


def losses(model, optimizer, rows, lr, seed, steps=STEPS, narrow=False):
    for step in range(steps):
        drawn = np.stack([rows[draw(seed, step * BATCH + r, len(rows))] for r in range(BATCH)])
        tokens, labels = torch.from_numpy(drawn[:, :-1]), torch.from_numpy(drawn[:, 1:])
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            logits = model(input_ids=tokens.clamp(min=0), attention_mask=(tokens >= 0).long(), position_ids=torch.arange(24)[None].repeat(BATCH, 1)).logits
        loss = torch.nn.functional.cross_entropy(logits.float().reshape(-1, 256), torch.where(labels < 0, IGNORED, labels).reshape(-1), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate(step, lr, steps)
        optimizer.step()
        yield step + 1, loss.item(), norm.item()


def groups(params, decay):
    params = [p for p in params if p.requires_grad]
    return [{"params": [p for p in params if p.dim() >= 2], "weight_decay": decay}, {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0}]


class Masters(torch.optim.AdamW):
    """AdamW of f32 copies of a model's weights; the model has its matrices rounded to bf16."""

    def __init__(self, model):
        self.weights = list(model.parameters())
        self.masters = [torch.nn.Parameter(rounded(w.detach())) for w in self.weights]
        super().__init__(groups(self.masters, 0.1), betas=(0.9, 0.95), eps=1e-8)
        self.show()

    def show(self):
        with torch.no_grad():
            for w, master in zip(self.weights, self.masters):
                w.copy_(rounded(master))

    def zero_grad(self, set_to_none=True):
        for w in self.weights:
            w.grad = None

    def step(self, closure=None):
        for w, master in zip(self.weights, self.masters):
            master.grad = w.grad
        super().step()
        self.show()


def rounded(w):
    return w.bfloat16().float() if w.dim() >= 2 else w.clone()


def with_adapters(model):
    import peft
    torch.manual_seed(9)
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)
    adapted = peft.get_peft_model(model, config)
    adapted.save_pretrained(os.path.join(here, "adapters"))
    os.remove(os.path.join(here, "adapters", "README.md"))
    return adapted


def write(name, lines):
    with open(os.path.join(here, name), "w") as f:
        f.write("step,loss,norm\n" + "".join(f"{s},{x:.7g},{n:.6g}\n" for s, x, n in lines))


def adamw(model):
    return torch.optim.AdamW(groups(model.parameters(), 0.1), betas=(0.9, 0.95), eps=1e-8)


def adapters(samples, rows):
    adapted = with_adapters(make_model(samples))
    return losses(adapted, adamw(adapted), rows, 3e-2, 3)


def descent(samples, rows):
    model = make_model(samples)
    return losses(model, torch.optim.SGD(groups(model.parameters(), 0.01), lr=0.02, momentum=0.9), rows, 0.02, 4)


def whole(samples, rows, optimizer=adamw, **options):
    model = make_model(samples)
    return losses(model, optimizer(model), rows, 3e-3, 3, **options)


FILES = {"adamw.csv": whole, "sgd.csv": descent, "adapters.csv": adapters, "bf16.csv": lambda samples, rows: whole(samples, rows, Masters, steps=100)}

if __name__ == "__main__":
    made = make_rows()
    for name in sys.argv[2:] or FILES:
        write(name, FILES[name](sys.argv[1], made))
