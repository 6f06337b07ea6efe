#!/usr/bin/env python3
"""Times a step of training GPT-2 by tpc, torch and llm.c, all in one run.

    train.py BUILD gpt2/model.onnx [--llmc FOLDER] [--rounds 5] [--steps 6] [--threads 2] [--only NAME,..]

MODEL is GPT-2 of 124 million weights (samples/export.py OUT gpt2 --size bench); another size needs --layers, --width, --heads, --vocab. All
contenders take turns in each round and take the same batch (--batch 4, --sequence 64) with AdamW. The first two steps of a process do not
count; the least time of the others does, for machines are noisy. Ratios are to the fastest tpc on as many cores: above 1, tpc is ahead.

    tpc 1, tpc 2 threads, tpc 2 ranks, tpc 2 replicas      tpc-run --train; ranks are processes of mpirun, or threads without it
    torch 1, torch 2 threads        one process, scaled_dot_product_attention, fused AdamW; with --compile also torch.compile
    torch DDP, torch TP             two processes over gloo: DistributedDataParallel on halves of the batch; ColwiseParallel and RowwiseParallel
    .. bf16                         with --bf16: tpc-run --fast, and torch.autocast
    llm.c 1, llm.c 2 threads        train_gpt2.c in FOLDER, compiled here with -Ofast -march=native -fopenmp

What can't run is left out with a reason. Needs numpy; torch for its rows."""
import argparse
import csv
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

WARM = 2


# ---- torch: each worker is this script again, and prints the milliseconds of its best step

def model_of(a):
    import torch
    from torch import nn
    from torch.nn import functional as f

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(a.width, a.width) for _ in range(4))

        def forward(self, x):
            q, k, v = (w(x).unflatten(-1, (-1, a.width // a.heads)).transpose(1, 2) for w in (self.q, self.k, self.v))
            return self.o(f.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.attention, self.n2 = nn.LayerNorm(a.width), Attention(), nn.LayerNorm(a.width)
            self.up, self.down = nn.Linear(a.width, 4 * a.width), nn.Linear(4 * a.width, a.width)

        def forward(self, x):
            x = x + self.attention(self.n1(x))
            return x + self.down(f.gelu(self.up(self.n2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(a.vocab, a.width), nn.Embedding(1024, a.width)
            self.blocks, self.norm = nn.ModuleList(Block() for _ in range(a.layers)), nn.LayerNorm(a.width)
            self.head = nn.Linear(a.width, a.vocab, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, x):
            x = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    torch.manual_seed(1)
    model = Gpt()
    for w in model.parameters():
        if w.dim() > 1:
            nn.init.normal_(w, std=0.02)
    return model


def in_parallel(model, kind, a):
    import torch.distributed as dist
    dist.init_process_group("gloo")
    if kind == "ddp":
        from torch.nn.parallel import DistributedDataParallel
        return DistributedDataParallel(model)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    plan = {"head": ColwiseParallel(output_layouts=Replicate()), "tokens": RowwiseParallel(input_layouts=Replicate())}
    for i in range(a.layers):
        plan.update({f"blocks.{i}.{n}": ColwiseParallel() for n in ("attention.q", "attention.k", "attention.v", "up")})
        plan.update({f"blocks.{i}.{n}": RowwiseParallel() for n in ("attention.o", "down")})
    tied = model.tokens.weight
    model = parallelize_module(model, init_device_mesh("cpu", (2,)), plan)
    if model.head.weight is not model.tokens.weight and tied is not None:
        model.head.weight = model.tokens.weight  # one shard of rows: both are split by the vocabulary
    return model


def clip(model):
    """As clip_grad_norm_, which takes no mixture of tensors and DTensors."""
    import torch
    own = [w.grad.norm() for w in model.parameters()]
    norm = torch.stack([n.full_tensor() if hasattr(n, "full_tensor") else n for n in own]).norm()
    factor = float((1 / (norm + 1e-6)).clamp(max=1))
    for w in model.parameters():
        w.grad.mul_(factor)


def torch_worker(kind, a):
    import torch
    from torch.nn import functional as f
    torch.set_num_threads(a.threads if kind in ("threads", "compiled") else 1)
    model = model_of(a)
    rows = a.batch
    if kind in ("ddp", "tp"):
        model = in_parallel(model, kind, a)
        rows = a.batch // 2 if kind == "ddp" else a.batch
    run = torch.compile(model) if kind == "compiled" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=kind != "tp", foreach=False if kind == "tp" else None)
    tokens = torch.randint(a.vocab, (rows, a.sequence + 1), generator=torch.Generator().manual_seed(2))
    best = math.inf
    for step in range(WARM + a.steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=a.narrow):
            logits = run(tokens[:, :-1])
        loss = f.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        clip(model) if kind == "tp" else torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        took = time.perf_counter() - start
        best = min(best, took) if step >= WARM else best
        if not math.isfinite(loss.item()):
            sys.exit("the loss is not finite")
    if os.environ.get("RANK", "0") == "0":
        print(f"ms {1e3 * best:.3f}", flush=True)
    if kind in ("ddp", "tp"):
        torch.distributed.destroy_process_group()


# ---- contenders: each takes one turn and returns milliseconds

def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "it says nothing"


def run_torch(kind, ranks, a, *options):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    workers = []
    for rank in range(ranks):
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        if kind not in ("threads", "compiled"):
            env["OMP_NUM_THREADS"] = "1"
        workers.append(subprocess.Popen([sys.executable, *sys.argv, "--worker", kind, *options], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    said = [w.communicate(timeout=1800) for w in workers]
    found = re.search(r"^ms ([0-9.]+)", said[0][0], re.M)
    if not found:
        raise RuntimeError(last_line(next((err for w, (_, err) in zip(workers, said) if w.returncode), said[0][1])))
    return float(found[1])


def run_tpc(ranks, threads, replicas, options, a):
    tp = ranks // replicas
    folder = f"{a.work}/tp{tp}"
    if not os.path.exists(folder):
        subprocess.run([f"{a.build}/tpc-shard", a.model, "--train", "--tp", str(tp), "--workload", f"batch_size={a.batch // replicas},sequence_length={a.sequence}",
                        *(["--machine", a.machine] if a.machine else []), "-q", "-o", folder], check=True)
    command = [f"{a.build}/tpc-run", folder, "--train", "--data", f"{a.work}/tokens.u16", "--batch", str(a.batch), "--sequence", str(a.sequence), "--steps",
               str(WARM + a.steps), "--threads", str(threads), "--groups", str(replicas), "-q", "--log", f"{a.work}/log.csv", *options]
    if ranks > 1 and shutil.which("mpirun"):
        command = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--oversubscribe", "-n", str(ranks), *command]
    elif ranks > 1:
        command += ["--local", str(ranks)]
    if os.path.exists(f"{a.work}/log.csv"):
        os.remove(f"{a.work}/log.csv")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(last_line(done.stderr))
    with open(f"{a.work}/log.csv") as f:
        times = [float(row["seconds"]) for row in csv.DictReader(f)]
    return 1e3 * min(times[WARM:])


def run_llmc(threads, a):
    lines, best, steps = subprocess.Popen(["stdbuf", "-oL", f"{a.work}/llmc"], cwd=a.work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                          env=dict(os.environ, OMP_NUM_THREADS=str(threads))), math.inf, 0
    tail = ""
    for line in lines.stdout:
        tail, found = line, re.search(r"^step \d+: .*took ([0-9.]+) ms", line)
        if found and (steps := steps + 1) > WARM:
            best = min(best, float(found[1]))
        if steps == WARM + a.steps:
            break
    lines.kill()
    lines.wait()
    if best == math.inf:
        raise RuntimeError(tail.strip())
    return best


def prepare_llmc(a):
    """The program, weights by chance and tokens, in the forms that train_gpt2.c reads."""
    import numpy as np
    if not a.llmc or not os.path.exists(f"{a.llmc}/train_gpt2.c"):
        raise RuntimeError("there is no train_gpt2.c (--llmc FOLDER)")
    if WARM + a.steps > 20 or (a.batch, a.sequence) != (4, 64):
        raise RuntimeError("it takes 4 rows of 64 tokens, and generates text after 20 steps")
    done = subprocess.run([os.environ.get("CC", "cc"), "-Ofast", "-march=native", "-fopenmp", "-DOMP", "-Wno-unused-result", "-o", f"{a.work}/llmc", f"{a.llmc}/train_gpt2.c",
                           "-lm"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(last_line(done.stderr))
    c, n, vocab = a.width, a.layers, (a.vocab + 127) // 128 * 128
    count = vocab * c + 1024 * c + n * (2 * c + 3 * c * c + 3 * c + c * c + c + 2 * c + 4 * c * c + 4 * c + 4 * c * c + c) + 2 * c
    header = np.zeros(256, np.int32)
    header[:8] = 20240326, 3, 1024, a.vocab, n, a.heads, c, vocab
    with open(f"{a.work}/gpt2_124M.bin", "wb") as f:
        f.write(header.tobytes())
        f.write((np.random.default_rng(1).standard_normal(count, np.float32) * 0.02).tobytes())
    tokens = np.fromfile(f"{a.work}/tokens.u16", np.uint16)
    header[:8] = 20240520, 1, len(tokens), 0, 0, 0, 0, 0
    os.makedirs(f"{a.work}/dev/data/tinyshakespeare", exist_ok=True)
    for part in ("train", "val"):
        with open(f"{a.work}/dev/data/tinyshakespeare/tiny_shakespeare_{part}.bin", "wb") as f:
            f.write(header.tobytes() + tokens.tobytes())


def contenders(a):
    n = a.threads
    rows = {"tpc 1": (1, lambda: run_tpc(1, 1, 1, [], a)), "torch 1": (1, lambda: run_torch("one", 1, a)), "llm.c 1": (1, lambda: run_llmc(1, a)),
            f"tpc {n} threads": (n, lambda: run_tpc(1, n, 1, [], a)), f"tpc {n} ranks": (n, lambda: run_tpc(n, 1, 1, [], a)),
            f"tpc {n} replicas": (n, lambda: run_tpc(n, 1, n, [], a)), f"torch {n} threads": (n, lambda: run_torch("threads", 1, a)),
            "torch DDP": (2, lambda: run_torch("ddp", 2, a)), "torch TP": (2, lambda: run_torch("tp", 2, a)), f"llm.c {n} threads": (n, lambda: run_llmc(n, a))}
    if a.compile:
        rows["torch compiled"] = (n, lambda: run_torch("compiled", 1, a))
    if a.bf16:
        rows.update({"tpc 1 bf16": ("1, bf16", lambda: run_tpc(1, 1, 1, ["--fast"], a)), "torch 1 bf16": ("1, bf16", lambda: run_torch("one", 1, a, "--narrow")),
                     f"tpc {n} ranks bf16": (f"{n}, bf16", lambda: run_tpc(n, 1, 1, ["--fast"], a)),
                     f"torch {n} threads bf16": (f"{n}, bf16", lambda: run_torch("threads", 1, a, "--narrow"))})
    if a.only:
        rows = {k: v for k, v in rows.items() if any(k.startswith(o) for o in a.only.split(","))}
    if any(k.startswith("llm.c") for k in rows):
        try:
            prepare_llmc(a)
        except RuntimeError as e:
            print(f"without llm.c: {e}")
            rows = {k: v for k, v in rows.items() if not k.startswith("llm.c")}
    return rows


def bench(a):
    import numpy as np
    np.random.default_rng(0).integers(0, a.vocab, 50000).astype(np.uint16).tofile(f"{a.work}/tokens.u16")
    rows, best = contenders(a), {}
    for turn in range(a.rounds):
        for name in list(rows):
            try:
                took = rows[name][1]()
                best[name] = min(best.get(name, math.inf), took)
                print(f"round {turn + 1} of {a.rounds}: {name} {took:.0f} ms", file=sys.stderr, flush=True)
            except (RuntimeError, subprocess.SubprocessError) as e:
                print(f"without {name}: {e}")
                del rows[name]
    fastest = {}
    for name, (cores, _) in rows.items():
        if name.startswith("tpc"):
            fastest[cores] = min(fastest.get(cores, math.inf), best[name])
    print(f"\nGPT-2 of {a.layers} layers x {a.width}, {a.batch} rows of {a.sequence} tokens, AdamW; the least of {a.rounds} rounds of {a.steps} steps")
    print("\n| program | cores | ms a step | tokens/s | ratio to tpc |\n|---|---|---|---|---|")
    for name, (cores, _) in sorted(rows.items(), key=lambda r: (str(r[1][0]), best[r[0]])):
        ratio = f"{best[name] / fastest[cores]:.2f}" if cores in fastest else "-"
        print(f"| {name} | {cores} | {best[name]:.0f} | {1e3 * a.batch * a.sequence / best[name]:.0f} | {ratio} |")
    for name, tp in (("tpc 1", 1), (f"tpc {a.threads} ranks", a.threads)):
        if a.machine and name in rows:
            with open(f"{a.work}/tp{tp}/plan.json") as f:
                predicted = 1e3 * json.load(f)["cost"]["seconds"]
            print(f"{name}: forward and backward half predicted {predicted:.0f} ms, {predicted / best[name]:.2f} of the step measured")
    for name in rows:
        if name.startswith("tpc") and name != "tpc 1" and "tpc 1" in rows:
            print(f"{name}: {best['tpc 1'] / best[name]:.2f} times as fast as tpc 1")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("model")
    for name, default in (("rounds", 5), ("steps", 6), ("threads", 2), ("batch", 4), ("sequence", 64), ("layers", 12), ("width", 768), ("heads", 12), ("vocab", 50257)):
        p.add_argument(f"--{name}", type=int, default=default)
    p.add_argument("--llmc", help="a checkout of llm.c")
    p.add_argument("--machine", help="what tpc-run --calibrate wrote: compares the predicted step")
    p.add_argument("--only", help="names of contenders, or how they begin")
    p.add_argument("--compile", action="store_true", help="torch.compile, too: minutes to compile")
    p.add_argument("--bf16", action="store_true", help="rows of products in bf16, too")
    p.add_argument("--worker", help=argparse.SUPPRESS)
    p.add_argument("--narrow", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.worker:
        return torch_worker(a.worker, a)
    a.build, a.model = os.path.abspath(a.build), os.path.abspath(a.model)
    with tempfile.TemporaryDirectory() as a.work:
        bench(a)


if __name__ == "__main__":
    main()
