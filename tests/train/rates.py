#!/usr/bin/env python3
"""Write rates.csv, the learning rates of 20 steps by the schedules of torch and transformers: python tests/train/rates.py

Each line is NAME,KEY=X.. of --optimizer with ; in place of a comma, and the rates. tpc's first step has the rate that transformers has after one of
warm-up + 1 steps, as in nanoGPT: so no step is lost with a rate of 0. Needs torch and transformers.
"""
import os

import torch
import transformers as hf
from torch.optim.lr_scheduler import LinearLR, SequentialLR

STEPS, RATE = 20, 1e-3


def linear(o, warmup, floor):
    rise = LinearLR(o, 1 / (warmup + 2), 1, warmup + 1) if warmup else LinearLR(o, 0.5, 1, 1)
    return SequentialLR(o, [rise, LinearLR(o, 1, floor, STEPS - warmup)], [warmup + 1])


def rates(make):
    o = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=RATE)
    schedule = make(o)
    for _ in range(STEPS):
        o.step()
        schedule.step()
        yield schedule.get_last_lr()[0]


def wsd(o, warmup, cooldown, floor):
    return hf.get_wsd_schedule(o, num_warmup_steps=warmup + 1, num_stable_steps=STEPS - warmup - cooldown, num_decay_steps=cooldown, decay_type="linear", min_lr_ratio=floor)


cases = {
    "warmup=0;floor=0": lambda o: hf.get_cosine_schedule_with_warmup(o, 1, STEPS + 1),
    "schedule=cosine;warmup=4": lambda o: hf.get_cosine_with_min_lr_schedule_with_warmup(o, 5, STEPS + 1, min_lr_rate=0.1),
    "schedule=linear;warmup=3;floor=0": lambda o: hf.get_linear_schedule_with_warmup(o, 4, STEPS + 1),
    "schedule=linear;warmup=0;floor=0.2": lambda o: linear(o, 0, 0.2),
    "schedule=constant;warmup=5": lambda o: hf.get_constant_schedule_with_warmup(o, 6),
    "schedule=wsd;warmup=3;cooldown=6;floor=0": lambda o: wsd(o, 3, 6, 0),
    "schedule=wsd;warmup=0": lambda o: wsd(o, 0, 2, 0.1),
}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "rates.csv"), "w") as f:
    f.writelines(f"adamw;{name},{','.join(f'{r:.6g}' for r in rates(make))}\n" for name, make in cases.items())
