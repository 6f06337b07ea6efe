#!/usr/bin/env python3
"""Runs cases whole and on 2, 3 and 4 ranks, each under four plans: the default, --sp=auto, and both where the network costs nothing, so that small models
are split. Prints TAP without a plan. Needs numpy and onnx; some cases torch.

run.py BUILD WORK [--every N] [--plans N] [NAME...]      --plans: N random legal plans, too
"""

import argparse
import importlib
import json
import os
import re
import shutil
import subprocess
import sys

import case

AREAS = [
    "arithmetic",
    "attention",
    "bodies",
    "codes",
    "heads",
    "indexing",
    "places",
    "quantised",
    "recurrent_and_control",
    "reductions",
    "rewrites",
    "shapes",
    "training",
    "windows",
]
SECONDS = 300
FREE = {
    "name": "free network",
    "flops": 1e8,
    "memory_bandwidth": 1e8,
    "machine_flops": 1e8,
    "machine_memory_bandwidth": 1e8,
    "link_bandwidth": 1e13,
    "hop_latency": 1e-12,
    "collective_overhead": 1e-12,
    "overlap_overhead": 1e-12,
}


def command(*words, refused=None, must=True):
    """A complaint, or None: the command must succeed; or, with refused, end with one line that has this part, or, unless it must, succeed."""
    env = dict(os.environ, OMP_NUM_THREADS="1")
    try:
        p = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, env=env, check=False)
    except subprocess.TimeoutExpired:
        return f"{' '.join(words)}: no end in {SECONDS} s"
    if refused and p.returncode in (1, 2) and re.fullmatch(rf".*(?:{refused}).*\n", p.stderr):
        return None
    if p.returncode == 0 and not (refused and must):
        return None
    return f"{' '.join(words)}: status {p.returncode}: {(p.stderr or p.stdout)[-400:].strip()}"


def free_network(work):
    """A profile under which the planner splits whatever can be split."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../schemas/machines/reference.json")
    with open(source, encoding="utf-8") as f:
        machine = json.load(f)
    machine.update(FREE)
    path = os.path.join(work, "free.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(machine, f)
    return path


def try_case(options, function, free):
    """A complaint, or None."""
    folder = os.path.join(options.work, function.__name__)
    whole = case.build(function, folder)
    model, data, out = f"{folder}/model.onnx", f"{folder}/test_data_set_0", f"{folder}/ranks"
    shard, run = f"{options.build}/tpc-shard", f"{options.build}/tpc-run"
    train = ["--train", "--loss", whole.loss] if whole.loss else []
    kept = [word for name in whole.kept for word in ("--keep-input", name)]
    quiet = ["-q", "--threads", "1", "--test-data", data]
    bad = None if train else command(run, model, *quiet, refused=whole.refused)
    for n in "1234" if train else "234":
        for plan in ([], ["--sp=auto"], ["--machine", free], ["--machine", free, "--sp=auto"]):
            if train and "--sp=auto" in plan:
                continue
            bad = bad or command(
                shard, model, "--tp", n, *train, *kept, *plan, "-q", "--force", "-o", out, refused=whole.refused, must=False
            )
            if os.path.isdir(out):
                bad = bad or command(run, out, "--local", n, *quiet, refused=whole.refused)
    if options.plans and not train and not whole.refused:
        bad = bad or command(f"{options.build}/tests/prove/prove", model, "--plans", str(options.plans))
    shutil.rmtree(folder)
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("work")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--plans", type=int, default=0)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    functions = [f for area in AREAS for f in case.all_cases(importlib.import_module(area))]
    functions = [f for f in functions if f.__name__ in options.names] if options.names else functions[:: options.every]
    free, failed = free_network(options.work), 0
    for function in functions:
        if getattr(function, "needs_torch", False) and not case.torch:
            print(f"ok - {function.__name__} # SKIP needs torch", flush=True)
            continue
        bad = try_case(options, function, free)
        print(f"{'not ok' if bad else 'ok'} - {function.__name__}", *([f"# {bad}"] if bad else []), sep="\n" if bad else "", flush=True)
        failed += bad is not None
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
