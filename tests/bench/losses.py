#!/usr/bin/env python3
"""Losses of 100 steps by f32, products in bf16 and weights in bf16, of tpc and of torch: how far each is from torch's f32.

    losses.py BUILD SAMPLES [--steps 100]

The model, the rows and the optimizer are those of tests/train/make.py. bf16: of torch, autocast on CPU, and matrices in bf16 with f32 that
AdamW changes. Needs torch, transformers and onnx."""
import argparse
import csv
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "train"))
import make  # noqa: E402, of that folder


def tpc(a, work, weights, *options):
    folder, log = f"{work}/{weights}", f"{work}/log.csv"
    subprocess.run([f"{a.build}/tpc-shard", f"{a.samples}/gpt2/model.onnx", "--train", "--weights", weights, "--tp", "1", "-q", "--force", "-o", folder], check=True)
    pathlib.Path(log).unlink(missing_ok=True)
    subprocess.run([f"{a.build}/tpc-run", folder, "--train", "-q", "--data", f"{make.here}/rows.npy", "--batch", str(make.BATCH), "--lr", "3e-3", "--seed", "3",
                    "--steps", str(a.steps), "--threads", "1", "--log", log, *options], check=True)
    with open(log, newline="") as f:
        return [float(row["loss"]) for row in csv.DictReader(f)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("samples")
    p.add_argument("--steps", type=int, default=100)
    a = p.parse_args()
    rows = make.make_rows()

    def torch(**options):
        return [loss for _, loss, _ in make.whole(a.samples, rows, steps=a.steps, **options)]

    with tempfile.TemporaryDirectory() as work:
        found = {"torch, f32": torch(), "tpc, f32": tpc(a, work, "f32"), "torch, autocast bf16": torch(narrow=True), "tpc, `--fast`": tpc(a, work, "f32", "--fast"),
                 "torch, weights in bf16": torch(optimizer=make.Masters), "tpc, `--weights bf16`": tpc(a, work, "bf16"),
                 "torch, both": torch(optimizer=make.Masters, narrow=True), "tpc, both": tpc(a, work, "bf16", "--fast")}
    exact = found["torch, f32"]
    shown = [s for s in (20, 50, 100) if s <= a.steps]
    print("| | " + " | ".join(f"step {s}" for s in shown) + " | " + " | ".join(f"off by, up to step {s}" for s in shown) + " |\n|" + "---|" * (1 + 2 * len(shown)))
    for name, losses in found.items():
        off = [max(abs(x - y) / y for x, y in zip(losses[:s], exact)) for s in shown]
        print(f"| {name} | " + " | ".join(f"{losses[s - 1]:.4f}" for s in shown) + " | " + " | ".join(f"{100 * o:.2f} %" for o in off) + " |")


if __name__ == "__main__":
    main()
