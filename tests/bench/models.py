#!/usr/bin/env python3
"""Times tpc-run beside ONNX Runtime on any models, one thread each, and compares what they compute.

    models.py BUILD [--rounds 5] [--ranks 2] MODEL.onnx[,NAME=SIZE]...

Every round runs ONNX Runtime and tpc-run in turn; a round's time is the least of its runs, a row's the least of its rounds. NAME is a
symbol of the model's inputs, or INPUT.AXIS; other symbols are 1, and a sum of symbols is that of their sizes. Inputs are random;
integers are 0 or 1. Where outputs differ, their root mean square difference over that of the outputs is told, and how much ONNX Runtime
differs from itself without its optimiser. --ranks adds --local N. --cpu: the processor's time for one run, the mean of a round's runs, for machines that
others use. Needs numpy, onnx and onnxruntime."""
import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile

KIND = {"float": "float32", "double": "float64", "float16": "float16", "bool": "bool"}
TIME = re.compile(r"^time: first .* then min ([0-9.]+),", re.M)
DIFFERENCE = re.compile(r"root mean square ([0-9.e+-]+)$", re.M)


def session_of(path, optimised=True):
    import onnxruntime as ort
    options = ort.SessionOptions()
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    ort.set_default_logger_severity(3)
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def size_of(dim, axis, sizes):
    if isinstance(dim, int):
        return dim
    return sizes[axis] if axis in sizes else sum(int(part) if part.isdigit() else sizes.get(part, 1) for part in str(dim).split(" + "))


def feeds_of(session, sizes):
    import numpy as np
    rng, feeds = np.random.default_rng(0), {}
    for i in session.get_inputs():
        shape = [size_of(d, f"{i.name}.{k}", sizes) for k, d in enumerate(i.shape)]
        kind = i.type[len("tensor("):-1]
        if kind in KIND:
            feeds[i.name] = rng.random(shape).astype(KIND[kind])
        else:
            feeds[i.name] = np.ones(shape, kind) if "mask" in i.name else rng.integers(0, 2, shape).astype(kind)
    return feeds


def difference(values, others):
    """The largest one of any output: root mean square, over that of the output."""
    import numpy as np
    worst = 0.0
    for a, b in zip(values, others):
        if np.asarray(a).dtype.kind == "f" and np.any(a):
            worst = max(worst, float(np.sqrt(np.mean((np.float64(a) - b) ** 2) / np.mean(np.float64(a) ** 2))))
    return worst


def peer(path, sizes, folder, cpu):
    """A process of its own: writes the inputs and outputs once, then times one round; prints milliseconds."""
    import time
    import numpy as np
    from onnx import numpy_helper
    session = session_of(path)
    feeds = feeds_of(session, sizes)
    names = [o.name for o in session.get_outputs()]
    values = session.run(names, feeds)
    if not os.path.exists(f"{folder}/input_0.pb"):
        for what, pairs in (("input", feeds.items()), ("output", zip(names, values))):
            for k, (name, value) in enumerate(pairs):
                with open(f"{folder}/{what}_{k}.pb", "wb") as f:
                    f.write(numpy_helper.from_array(np.asarray(value), name).SerializeToString())
        with open(f"{folder}/itself", "w") as f:
            f.write(f"{difference(values, session_of(path, False).run(names, feeds)):.2g}")
    clock = time.process_time if cpu else time.perf_counter
    best, total, runs = float("inf"), 0.0, 0
    while total < 1.0:
        start = clock()
        session.run(names, feeds)
        took = clock() - start
        best, total, runs = min(best, took), total + took, runs + 1
    print(1e3 * (total / runs if cpu else best))


def once(command, folder, repeat):
    argv = [*command, "--threads", "1", "--test-data", folder, "--repeat", str(repeat), "--rtol", "1e-3", "--atol", "1e-4"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = TIME.search(done.stdout + done.stderr)
    if not found:
        sys.exit(done.stderr.strip() or done.stdout.strip())
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    far = DIFFERENCE.search(done.stdout)
    return float(found[1]), 1e3 * spent, "" if "PASSED" in done.stdout else f"{float(far[1]):.2g}" if far else "?"


def ours(command, folder, ms, cpu):
    """Milliseconds of a run: the least, or the mean of the processor's, without what loading takes."""
    repeat = max(4, min(2000, int(1e3 / ms)))
    least, spent, far = once(command, folder, repeat)
    return (spent - once(command, folder, 2)[1]) / (repeat - 2) if cpu else least, far


def row(a, path, sizes, work):
    spec = ",".join([path] + [f"{k}={v}" for k, v in sizes.items()])
    folder, plan = tempfile.mkdtemp(dir=work), tempfile.mkdtemp(dir=work)
    commands = {1: [f"{a.build}/tpc-run", path]}
    if a.ranks > 1:
        sized = ",".join(f"{k}={v}" for k, v in sizes.items() if "." not in k)
        dims = ["--workload", sized] if sized else []
        subprocess.run([f"{a.build}/tpc-shard", path, "--tp", str(a.ranks), "-q", "--force", "-o", plan, *dims], check=True)
        commands[a.ranks] = [f"{a.build}/tpc-run", plan, "--local", str(a.ranks)]
    theirs, times, differs = float("inf"), {n: float("inf") for n in commands}, ""
    for _ in range(a.rounds):
        out = subprocess.run([sys.executable, __file__, "--peer", folder, *(["--cpu"] if a.cpu else []), "-", spec], capture_output=True, text=True, check=True).stdout
        theirs = min(theirs, float(out))
        for n, command in commands.items():
            ms, far = ours(command, folder, theirs, a.cpu)
            times[n], differs = min(times[n], ms), differs or far
    cells = [f"{times[1]:.2f}", f"{times[1] / theirs:.2f}", *[f"{times[n]:.2f} ({times[1] / times[n]:.2f})" for n in times if n > 1]]
    print(f"| {os.path.basename(path)[:-5]} | {theirs:.2f} | " + " | ".join(cells) + (f" | outputs differ by {differs}, its own by {open(folder + '/itself').read()}" if differs else " |"), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("models", nargs="+")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--ranks", type=int, default=1)
    p.add_argument("--cpu", action="store_true")
    p.add_argument("--peer", help=argparse.SUPPRESS)
    a = p.parse_args()
    specs = [(m.split(",")[0], {k: int(v) for k, v in (s.rsplit("=", 1) for s in m.split(",")[1:])}) for m in a.models]
    if a.peer:
        peer(*specs[0], a.peer, a.cpu)
        return
    with tempfile.TemporaryDirectory() as work:
        columns = ["model", "ONNX Runtime, ms", "tpc-run, ms", "ratio"] + ([f"{a.ranks} ranks, ms (speed-up)"] if a.ranks > 1 else [])
        print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
        for path, sizes in specs:
            try:
                row(a, path, sizes, work)
            except (subprocess.CalledProcessError, SystemExit) as e:
                print(f"| {os.path.basename(path)[:-5]} | {str(getattr(e, 'stderr', None) or e)[-300:]} |", flush=True)


if __name__ == "__main__":
    main()
