"""Runs ONNX's own node tests with a build of tpc: unsharded, and what passes also on several ranks. Compares with the list of cases that do
not pass, tests/conformance/not-passing.txt: a case that passes and is listed is an error, too.

What tpc-shard can't know without the inputs (how many tensors a sequence is, integers that decide a form) is given by --bind, and counted.

    run.py BUILD [--data DIR] [--only REGEX] [--ranks 2,3,4] [--plans N] [--part I/N] [--jobs N] [--update]

--data    the folder onnx/backend/test/data of an onnx package up to 1.22.0; later ones ship none. Without it, $ONNX_DATA, or that of the
          python which runs this. `pip install --target DIR --no-deps onnx==1.22.0` makes one.
--plans   so many random plans of each case that passes, too, on each number of ranks, by tests/prove/prove
--part    case I, I + N, I + 2 N ... only
--update  writes the list anew: cases that pass are dropped, others are added below what tpc said
"""
import argparse
import concurrent.futures
import glob
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "not-passing.txt")
TOLERANCE = ["--rtol", "1e-3", "--atol", "1e-7"]        # of ONNX's own runner


def find_data(given):
    package = importlib.util.find_spec("onnx")
    for folder in [given, os.environ.get("ONNX_DATA"), package and os.path.join(os.path.dirname(package.origin), "backend", "test", "data")]:
        if folder and glob.glob(os.path.join(folder, "node", "*", "model.onnx")):
            return folder
    print("skipped: no node tests: the onnx package has them up to 1.22.0")
    sys.exit(77)


# ---- the list: a reason at the beginning of a line, below it its cases -------------------------------------------------------------------

def read_list():
    reason_of, reason = {}, None
    for line in open(LIST) if os.path.exists(LIST) else []:
        if line.startswith("    "):
            reason_of[line.strip()] = reason
        elif line.strip() and not line.startswith("#"):
            reason = line.strip()
    return reason_of


def write_list(reason_of):
    head = "".join(line for line in open(LIST) if line.startswith("#")) if os.path.exists(LIST) else ""
    reasons = {}
    for case, reason in sorted(reason_of.items()):
        reasons.setdefault(reason, []).append(case)
    with open(LIST, "w") as f:
        f.write(head)
        for reason, cases in sorted(reasons.items()):
            f.write("\n" + reason + "\n" + "".join(f"    {case}\n" for case in cases))


# ---- a case ------------------------------------------------------------------------------------------------------------------------------

def call(argv):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=120)
    except subprocess.TimeoutExpired:
        return "took more than two minutes"
    if done.returncode == 0:
        return None
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return said[0] if done.returncode == 1 and said else f"ended with status {done.returncode}: {said[-1:]}"


def load(kind, path):
    import onnx
    message = getattr(onnx, kind)()
    with open(path, "rb") as f:
        message.ParseFromString(f.read())
    return message


def sizes(tensors):
    return ",".join(str(list(t.dims)) for t in tensors) or "0"


def held(declared, path):
    """What an input holds, as --bind has it; None: it can't be said there."""
    import onnx.numpy_helper
    kind = declared.WhichOneof("value")
    if kind == "sequence_type":
        return sizes(load("SequenceProto", path).tensor_values)
    if kind == "optional_type":
        o = load("OptionalProto", path)
        return sizes(o.sequence_value.tensor_values) if o.HasField("sequence_value") else None if o.HasField("tensor_value") else "none"
    x = onnx.numpy_helper.to_array(load("TensorProto", path))
    return ",".join(str(int(v)) for v in x.ravel()) if x.dtype.kind in "bi" and 0 < x.size <= 64 else None


def told_by_inputs(model, data):
    try:
        import onnx
    except ImportError:
        return []
    files = enumerate(onnx.load(model).graph.input)
    texts = [(i.name, held(i.type, os.path.join(data, f"input_{k}.pb"))) for k, i in files if i.name]
    return [word for name, text in texts if text is not None for word in ("--bind", f"{name}={text}")]


def run_case(folder, build, ranks, told, plans):
    """What failed, by name: the case, or the case and a number of ranks. told: cases that need --bind."""
    name, model, failed = os.path.basename(folder), os.path.join(folder, "model.onnx"), {}
    sets = sorted(glob.glob(os.path.join(folder, "test_data_set_*")))

    def compared(target, more):
        return next((why for s in sets if (why := call([os.path.join(build, "tpc-run"), target, "--test-data", s, *TOLERANCE, *more]))), None)
    why = compared(model, [])
    if why:
        return {name: why.replace(model, "MODEL")}
    for n in ranks:
        with tempfile.TemporaryDirectory() as work:
            out = os.path.join(work, "out")
            shard = [os.path.join(build, "tpc-shard"), model, "--tp", str(n), "-q", "-o", out]
            why = call(shard) or compared(out, ["--local", str(n)])
            more = told_by_inputs(model, sets[0]) if why and len(sets) == 1 else []
            if more:
                told.add(name)
                why = call(shard + more + ["--force"]) or compared(out, ["--local", str(n)])
            if why:
                failed[f"{name} at N = {n}"] = why.replace(model, "MODEL").replace(out, "DIR")
        if plans:
            prove = os.path.join(build, "tests", "prove", "prove")
            why = call([prove, model, "-j", "1", "--plans", str(plans), "--tp", str(n), "--mode", "plain", "--mode", "split"])
            if why:
                failed[f"{name} in random plans at N = {n}"] = why.replace(model, "MODEL")
    return failed


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--data")
    p.add_argument("--only", default="")
    p.add_argument("--ranks", default="2,3,4")
    p.add_argument("--plans", type=int, default=0)
    p.add_argument("--part", default="0/1")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--update", action="store_true")
    o = p.parse_args()
    ranks, (first, step) = [int(n) for n in o.ranks.split(",") if n], map(int, o.part.split("/"))
    folders = sorted(os.path.dirname(m) for m in glob.glob(os.path.join(find_data(o.data), "node", "*", "model.onnx")))
    folders = [f for f in folders if re.search(o.only, os.path.basename(f))][first::step]
    told = set()
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        results = list(pool.map(lambda f: run_case(f, os.path.abspath(o.build), ranks, told, o.plans), folders))
    failed = {case: why for r in results for case, why in r.items()}
    names = {os.path.basename(f) for f in folders}
    listed, bad = read_list(), 0
    tried = {c for c in listed if c.split(" ")[0] in names and (c in names or int(c.split()[-1]) in ranks)}
    if o.update:
        kept = {c: r for c, r in listed.items() if c not in tried or c in failed}
        write_list({**{c: re.sub(r"'[^']*'", "'...'", why) for c, why in failed.items()}, **kept})
    else:
        for case in sorted(failed.keys() - listed.keys()):
            print(f"{case} does not pass: {failed[case]}")
        for case in sorted(tried - failed.keys()):
            print(f"{case} passes, but {os.path.relpath(LIST)} lists it: {listed[case]}")
        bad = len(failed.keys() ^ tried)
    whole = len(names - failed.keys())
    print(f"unsharded: {whole} of {len(names)} cases pass ({100 * whole / max(1, len(names)):.1f} %)")
    print(f"with --bind: {len(told)} of them on several ranks")
    for n in ranks:
        failing = {c for c in failed if c.endswith(f" at N = {n}")}
        planned = sum(" in random plans" in c for c in failing)
        print(f"{n} ranks: {whole - len(failing) + planned} of those {whole}" + f", in random plans {whole - planned}" * (o.plans > 0))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
