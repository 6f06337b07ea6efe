#!/usr/bin/env python3
"""Runs trained models of PyPI packages (table.py) compared with ONNX Runtime: whole, and sharded on 2, 3 and 4 ranks.

    python3 tests/models/run.py [--ranks 2,3,4] [--mpi] [--sp] [--time TIMES] [--page docs/compatibility.md] BUILD WORK [NAME...]

BUILD holds tpc-shard and tpc-run, WORK keeps packages, models and their inputs and outputs. NAME is a name, package or project of the table, or
a pattern. One line for each model: what failed, or the speed-ups that the plans predict. Needs numpy, onnx, onnxruntime and pip. --time compares
with ONNX Runtime, one thread each. --page writes the rows of these models into the table of a page.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import onnxruntime
from onnx import numpy_helper

from fetch import chosen, fetch
from table import MODELS

TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "int64": np.int64, "int32": np.int32, "int16": np.int16,
         "uint8": np.uint8, "int8": np.int8, "bool": np.bool_}
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
KINDS = {
    "audio": lambda rng, shape: 0.1 * np.sin(np.linspace(0, 900, int(np.prod(shape)))).reshape(shape) + 0.01 * rng.standard_normal(shape),
    "image": lambda rng, shape: np.clip(rng.standard_normal(shape) * 0.25 + 0.45, 0, 1),
    "bytes": lambda rng, shape: np.clip(rng.standard_normal(shape) * 64 + 115, 0, 255),
    "ids": lambda rng, shape, low, high: rng.integers(low, high, shape),
    "numbers": lambda rng, shape, low, high: rng.integers(low, high, shape),
    "full": lambda rng, shape, value: np.full(shape, value),
    "uniform": lambda rng, shape: rng.random(shape),
}


# ---- inputs ----

def size(model, name, axis, dim):
    """Of a dimension that the file leaves open."""
    if isinstance(dim, int) and dim > 0:
        return dim
    for key in ("%s.%d" % (name, axis), dim):
        if key in model.dims:
            return model.dims[key]
    text = str(dim).lower()
    return 2 if "batch" in text or axis == 0 and (dim is None or dim in (0, -1) or text.startswith("unk")) else 7


def contents(model, name, kind, shape, rng):
    if name in model.inputs:
        what, *numbers = model.inputs[name].split(":")
        return KINDS[what](rng, shape, *[float(n) if "." in n else int(n) for n in numbers])
    if "mask" in name:
        return np.ones(shape)
    if np.issubdtype(kind, np.integer):
        return rng.integers(0, 100, shape)
    return np.ones(shape) if kind is np.bool_ else rng.standard_normal(shape)


def feeds_of(model, session):
    rng, feeds = np.random.default_rng(0), {}
    for i in session.get_inputs():
        kind, shape = TYPES[i.type[len("tensor("):-1]], tuple(size(model, i.name, k, d) for k, d in enumerate(i.shape))
        feeds[i.name] = np.asarray(contents(model, i.name, kind, shape, rng), kind)
    return feeds


def save(folder, what, names, arrays):
    for k, (name, array) in enumerate(zip(names, arrays)):
        with open("%s/%s_%d.pb" % (folder, what, k), "wb") as f:
            f.write(numpy_helper.from_array(np.array(array, order="C"), name).SerializeToString())


# ---- runs ----

def ort_session(path, threads):
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def reference(model, path, folder):
    """ONNX Runtime's inputs and outputs, in ONNX's layout of test data."""
    session = ort_session(path, 1)
    feeds, names = feeds_of(model, session), [o.name for o in session.get_outputs()]
    values = session.run(names, feeds)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    save(folder, "input", list(feeds), list(feeds.values()))
    kept = [(n, v) for n, v in zip(names, values) if isinstance(v, np.ndarray)]
    save(folder, "output", [n for n, _ in kept], [v for _, v in kept])
    return session, feeds, names


def noise(path, session, feeds, names):
    """How far ONNX Runtime's results move when inputs move by a few millionths, or when it has two threads: of a model that rounds what it
    computes to 8 bits, no two runtimes have the same. Relative to the largest number, or 1."""
    def moved(by):
        whole = {n: bool((x == np.rint(x)).all()) for n, x in feeds.items() if x.dtype.kind == "f"}  # numbers of letters
        return {n: (x * np.float32(1 + by)).astype(x.dtype) if not whole.get(n, True) else x for n, x in feeds.items()}
    first, most = session.run(names, feeds), 0.0
    for values in [session.run(names, moved(by)) for by in (-1e-6, 1e-6, 3e-6)] + [ort_session(path, 2).run(names, feeds)]:
        for a, b in zip(first, values):
            if isinstance(a, np.ndarray) and a.dtype.kind == "f" and a.size and np.isfinite(a).all():
                most = max(most, float(np.abs(a - b).max() / max(1.0, np.abs(a).max())))
    return most


def run(*argv):
    """What the program said where it failed, else "", and what it printed."""
    try:
        p = subprocess.run([str(a) for a in argv], capture_output=True, text=True, errors="replace", timeout=600, env={**os.environ, **MPI})
    except subprocess.TimeoutExpired:
        return "more than 600 s", ""
    said = (p.stderr.strip().split("\n")[-1] or p.stdout.strip().split("\n")[-1]) if p.returncode else ""
    said = re.sub(r"\S*/([^/ ]+\.onnx)", r"\1", said)[:400]
    return said or ("status %d" % p.returncode if p.returncode else ""), p.stdout


def difference(out):
    found = re.search(r"worst difference ([-+.0-9einfa]+)", out)
    return float(found.group(1)) if found else 0.0


def sharded(a, path, data, folder, n, options):
    """One number of ranks: the failure, the predicted speed-up, and the worst difference."""
    what = "N=%d %s" % (n, " ".join(options))
    shutil.rmtree(folder, ignore_errors=True)
    command = [a.build + "/tpc-shard", path, "--tp", n, *options, *a.bound, "--report", "json", "-o", folder]
    said, out = run(*command)
    for _ in range(len(a.sizes)):  # some decide what the graph is
        if dim := re.search(r"--dim (\S+)=N", said):
            command += ["--dim", "%s=%d" % (dim.group(1), a.sizes[dim.group(1)])]
            said, out = run(*command)
    if said:
        return "%s: %s" % (what, said), None, 0.0
    cost, check = json.loads(out)["cost"], [] if a.tolerance or a.bound else ["--check", path]
    said, out = run(a.build + "/tpc-run", folder, "--local", n, "--test-data", data, *a.tolerance, *check)
    if not said and a.mpi and n == 2:
        what += " MPI"
        said, _ = run("mpirun", "-n", n, a.build + "/tpc-run", folder, "--test-data", data, *a.tolerance)
    shutil.rmtree(folder, ignore_errors=True)
    speedup = cost["unsharded_seconds"] / cost["seconds"] if cost["seconds"] else 1.0
    return ("%s: %s" % (what, said) if said else ""), speedup, difference(out)


def page_row(model, path, result):
    return "| %s | %s: %s | %.1f | %s |\n" % (model.name, model.package.replace("==", " "), os.path.basename(model.file),
                                             os.path.getsize(path) / 2**20, result)


def one(a, model, row):
    path, _ = fetch(a.work, model)
    row.append(page_row(model, path, "no | |"))
    folder = "%s/runs/%s" % (a.work, model.name)
    session, feeds, names = reference(model, path, folder)
    moves = noise(path, session, feeds, names)
    a.sizes = {dim if isinstance(dim, str) else "%s_%d" % (i.name, d): feeds[i.name].shape[d]
               for i in session.get_inputs() for d, dim in enumerate(i.shape)}
    a.tolerance = ["--atol", "%.3g" % (2 * moves)] if moves > 1e-4 else []
    a.bound = [word for name in model.bind for word in ("--bind", "%s=%s" % (name, ",".join(str(x) for x in feeds[name].flatten())))]
    said, out = run(a.build + "/tpc-run", path, "--test-data", folder, *a.tolerance)
    if said:
        return "not ok", "whole: " + said
    speedups, worst = [], difference(out)
    for n in a.ranks:
        for options in [[], ["--sp"]] if a.sp else [[]]:
            said, speedup, off = sharded(a, path, folder, folder + "/shards", n, options)
            if said and "--sp" in options and "no sequence" in said:
                continue
            if said:
                return "not ok", said
            speedups.append("%.2f" % speedup)
            worst = max(worst, off)
    row[0] = page_row(model, path, "%s | %.1e" % (", ".join(speedups), worst) + ("; %.1e" % moves if a.tolerance else ""))
    said = "predicted " + " ".join(speedups) + ("  ONNX Runtime's own results move by %.1e" % moves if a.tolerance else "")
    return "ok", said + (timed(a, path, folder, session, feeds, names) if a.time else "")


# ---- time ----

def tpc_seconds(a, path, folder):
    said, out = run(a.build + "/tpc-run", path, "--test-data", folder, *a.tolerance, "--threads", 1, "--repeat", a.time)
    found = re.search(r"then min ([0-9.]+)", out)
    return float(found.group(1)) / 1e3 if found and not said else float("nan")


def ort_seconds(session, names, feeds, times):
    best = float("inf")
    for _ in range(times + 3):
        start = time.perf_counter()
        session.run(names, feeds)
        best = min(best, time.perf_counter() - start)
    return best


def timed(a, path, folder, session, feeds, names):
    """Minima of runs that take turns."""
    pairs = [(tpc_seconds(a, path, folder), ort_seconds(session, names, feeds, a.time)) for _ in range(3)]
    ours, theirs = min(p[0] for p in pairs), min(p[1] for p in pairs)
    return "  %.3f ms, ONNX Runtime %.3f ms, ratio %.2f" % (ours * 1e3, theirs * 1e3, ours / theirs)


# ---- the table of a page ----

BEGIN, END = "<!-- trained: tests/models/run.py -->\n", "<!-- end of trained -->\n"


def write_page(page, rows):
    """Rows of this run replace the page's, in the order of table.py."""
    text = open(page).read()
    head, rest = text.split(BEGIN)
    old, tail = rest.split(END)
    known = {line.split(" | ")[0]: line for line in old.splitlines(keepends=True)[2:] + rows}
    lines = "".join(known.get("| " + m.name, "") for m in MODELS)
    with open(page, "w") as f:
        f.write(head + BEGIN + "| model | file | MiB | predicted at 2, 3, 4 | difference |\n|---|---|---|---|---|\n" + lines + END + tail)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build"), p.add_argument("work"), p.add_argument("names", nargs="*")
    p.add_argument("--ranks", type=lambda s: [int(n) for n in s.split(",") if n], default=[2, 3, 4])
    p.add_argument("--mpi", action="store_true"), p.add_argument("--sp", action="store_true")
    p.add_argument("--time", type=int, default=0, metavar="TIMES"), p.add_argument("--page")
    a = p.parse_args()
    failed, rows, lines = 0, chosen(a.names), []
    for model in rows:
        row = []
        try:
            verdict, said = one(a, model, row)
        except Exception as e:  # a package that is gone, a file that ONNX Runtime does not read
            verdict, said = "not ok", "%s: %s" % (type(e).__name__, str(e).split("\n")[0])
        failed += verdict != "ok"
        lines += row
        print("%s %s  %s" % (verdict, model.name, said), flush=True)
    if a.page:
        write_page(a.page, lines)
    print("%d of %d models" % (len(rows) - failed, len(rows)))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
