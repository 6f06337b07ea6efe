#!/usr/bin/env python3
"""check.py inputs SAMPLE NAME... DIR: writes the sample's inputs as .npy. check.py compare SAMPLE DIR: the run's outputs, with torch's.

Each projection may be off by 1e-5 of the gradient's norm, or of a tenth of the largest one: some gradients are zero but for rounding.
"""
import json
import os
import sys

import numpy as np

from common import inputs, projections

here = os.path.dirname(os.path.abspath(__file__))
sample = json.load(open(os.path.join(here, "expected.json")))[sys.argv[2]]


def path(folder, name):
    return os.path.join(folder, name.replace("/", "_") + ".npy")


def output(folder, name):
    return np.load(path(folder, name))


def exists(folder, name):
    """Copies of a weight have one gradient, the first one's."""
    return os.path.exists(path(folder, name))


def compare(folder):
    wrong = 0
    largest = max(g["norm"] for g in sample["gradients"])
    loss, count = (float(np.ravel(output(folder, n))[0]) for n in ("loss_sum", "loss_count"))
    if abs(loss - sample["loss"]) > 1e-5 * abs(sample["loss"]) or count != sample["count"]:
        print(f"loss {loss} of {count} labels, expected {sample['loss']} of {sample['count']}")
        wrong += 1
    for g in sample["gradients"]:
        whole = sum(output(folder, n + ".grad").T if t else output(folder, n + ".grad") for n, t in g["of"] if exists(folder, n + ".grad"))
        for found, ours in zip(projections(whole), g["projections"]):
            if not abs(found - ours) <= 1e-5 * max(g["norm"], largest / 10):
                print(f"{g['of']}: {found}, expected {ours}, norm {g['norm']}")
                wrong += 1
    return wrong


if sys.argv[1] == "inputs":
    for name, array in inputs(sys.argv[3:-1], sample["classes"], sample["image"]).items():
        np.save(os.path.join(sys.argv[-1], name + ".npy"), array)
else:
    sys.exit(compare(sys.argv[3]) != 0)
