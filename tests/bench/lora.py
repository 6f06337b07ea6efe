#!/usr/bin/env python3
"""Times a step of training low-rank adapters by tpc and by PEFT in torch, and tells the memory of both, all in one run.

    lora.py BUILD llama/model.onnx [--rounds 3] [--steps 4] [--rank 8] [--threads 2] [--only NAME,..]

MODEL is the llama of 246 million weights that samples/export.py OUT llama --size bench makes; PEFT has one of the same sizes (LlamaForCausalLM,
sdpa), with adapters of all linear layers but the head. All contenders take turns in each round, on the same batch (--batch 4, --sequence 64)
with AdamW. The first two steps of a process do not count; the least time of the others does. The ratio is tpc's time to PEFT's on as many cores.

    tpc                 tpc-run --train of a folder by tpc-shard --train --lora RANK, on threads, or on ranks, processes of mpirun
    PEFT                one process: scaled_dot_product_attention, fused AdamW
    .. bf16             tpc-run --fast; torch.autocast
    .. weights bf16     --weights bf16; the model in bf16, adapters in f32, autocast

peak: of a process, by the system. predicted: of a rank, by plan.json. Needs numpy; torch, transformers and peft for their rows."""
import argparse
import csv
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

WARM = 2
MIB = 1 << 20
LLAMA = dict(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=4, max_position_embeddings=2048)


def worker(kind, a):
    """Prints the milliseconds of the best step, and the MiB that the process held."""
    import peft
    import torch
    import transformers as hf
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    model = hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA))
    if kind == "stored":
        model = model.bfloat16()
    model = peft.get_peft_model(model, peft.LoraConfig(r=a.rank, lora_alpha=2 * a.rank, target_modules="all-linear"))
    trained = [w for w in model.parameters() if w.requires_grad]
    for w in trained:
        w.data = w.data.float()
    optimizer = torch.optim.AdamW(trained, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens = torch.randint(LLAMA["vocab_size"], (a.batch, a.sequence + 1), generator=torch.Generator().manual_seed(2))
    best = math.inf
    for step in range(WARM + a.steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=kind != "f32"):
            logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        took = time.perf_counter() - start
        best = min(best, took) if step >= WARM else best
    if not math.isfinite(loss.item()):
        sys.exit("the loss is not finite")
    print(f"found {1e3 * best:.3f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.1f}")


def last_line(text):
    return ([line.strip() for line in text.splitlines() if line.strip()] or ["it says nothing"])[-1][:200]


def checked(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise RuntimeError(last_line(done.stderr))
    return done.stdout


def run_peft(kind, threads, a):
    """Milliseconds, MiB of the process, and no prediction."""
    command = [sys.executable, sys.argv[0], a.build, a.model, "--worker", kind, "--threads", threads, "--rank", a.rank, "--steps", a.steps, "--batch", a.batch,
               "--sequence", a.sequence]
    found = re.search(r"^found (\S+) (\S+)", checked([str(c) for c in command], env=dict(os.environ, OMP_NUM_THREADS=str(threads))), re.M)
    return float(found[1]), float(found[2]), None


def folder_of(ranks, weights, a):
    folder = f"{a.work}/{weights}.{ranks}"
    if not os.path.exists(folder):
        checked([f"{a.build}/tpc-shard", a.model, "--train", "--lora", f"{a.rank},{2 * a.rank}", "--weights", weights, "--tp", str(ranks), "--workload",
                 f"batch_size={a.batch},sequence_length={a.sequence}", "-q", "-o", folder])
    return folder


def run_tpc(kind, ranks, threads, a):
    """Milliseconds, and MiB of the rank that held most: found and predicted."""
    folder = folder_of(ranks, "bf16" if kind == "stored" else "f32", a)
    log, stats = f"{a.work}/log.csv", f"{a.work}/stats.json"
    for file in (log, stats):
        if os.path.exists(file):
            os.remove(file)
    command = [f"{a.build}/tpc-run", folder, "--train", "--data", f"{a.work}/tokens.u16", "--batch", a.batch, "--sequence", a.sequence, "--steps", WARM + a.steps,
               "--threads", threads, "-q", "--log", log, f"--stats={stats}", *(["--fast"] if kind == "fast" else [])]
    if ranks > 1:
        command = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--oversubscribe", "-n", ranks, *command]
    checked([str(c) for c in command])
    with open(log, newline="") as f:
        best = 1e3 * min(float(row["seconds"]) for row in list(csv.DictReader(f))[WARM:])
    with open(stats) as f:
        held = max(r["peak_resident_bytes"] for r in json.load(f)["ranks"]) / MIB
    with open(f"{folder}/plan.json") as f:
        predicted = max(r["weight_bytes"] + r["state_bytes"] + r["peak_bytes"] + r.get("block_bytes", 0) for r in json.load(f)["ranks"]) / MIB
    return best, held, predicted


def contenders(a):
    rows = {}
    for kind, says in (("f32", ""), ("fast", ", bf16"), ("stored", ", weights bf16")):
        rows[f"tpc 1{says}"] = (f"1{says}", lambda kind=kind: run_tpc(kind, 1, 1, a))
        rows[f"PEFT 1{says}"] = (f"1{says}", lambda kind=kind: run_peft(kind, 1, a))
        rows[f"tpc {a.threads} threads{says}"] = (f"{a.threads}{says}", lambda kind=kind: run_tpc(kind, 1, a.threads, a))
        if shutil.which("mpirun"):
            rows[f"tpc {a.threads} ranks{says}"] = (f"{a.threads}{says}", lambda kind=kind: run_tpc(kind, a.threads, 1, a))
        rows[f"PEFT {a.threads}{says}"] = (f"{a.threads}{says}", lambda kind=kind: run_peft(kind, a.threads, a))
    return {k: v for k, v in rows.items() if not a.only or any(k.startswith(o) for o in a.only.split("+"))}


def bench(a):
    import numpy as np
    np.random.default_rng(0).integers(0, LLAMA["vocab_size"], 50000).astype(np.uint16).tofile(f"{a.work}/tokens.u16")
    rows, best = contenders(a), {}
    for turn in range(a.rounds):
        for name in list(rows):
            try:
                took, held, predicted = rows[name][1]()
                best[name] = min(best.get(name, (math.inf,))[0], took), held, predicted
                print(f"round {turn + 1} of {a.rounds}: {name} {took:.0f} ms, {held:.0f} MiB", file=sys.stderr, flush=True)
            except (RuntimeError, subprocess.SubprocessError) as e:
                print(f"without {name}: {e}")
                del rows[name]
    print(f"\nLlama of 16 layers x 1024, adapters of rank {a.rank}, {a.batch} rows of {a.sequence} tokens; the least of {a.rounds} rounds of {a.steps} steps")
    print("\n| program | cores | ms a step | ratio to PEFT | peak, MiB | predicted, MiB |\n|---|---|---|---|---|---|")
    for name, (cores, _) in rows.items():
        took, held, predicted = best[name]
        of = best.get(f"PEFT {cores}") if name.startswith("tpc") else None
        print(f"| {name} | {cores.split(',')[0]} | {took:.0f} | {f'{took / of[0]:.2f}' if of else '-'} | {held:.0f} | " +
              (f"{predicted:.0f} ({100 * (held / predicted - 1):+.1f} %)" if predicted else "-") + " |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("model")
    for name, default in (("rounds", 3), ("steps", 4), ("rank", 8), ("threads", 2), ("batch", 4), ("sequence", 64)):
        p.add_argument(f"--{name}", type=int, default=default)
    p.add_argument("--only", help="how names of contenders begin, with + between them")
    p.add_argument("--worker", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.worker:
        return worker(a.worker, a)
    a.build, a.model = os.path.abspath(a.build), os.path.abspath(a.model)
    with tempfile.TemporaryDirectory() as a.work:
        bench(a)


if __name__ == "__main__":
    main()
