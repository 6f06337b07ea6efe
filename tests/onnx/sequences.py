"""sequences.py BUILD: sequences and optionals inside a graph, as exporters write them, and as its inputs and outputs compute what ONNX Runtime
computes, whole and on two ranks; others are refused by a sentence.

Exit status 77 (skipped) where onnx, onnxruntime or numpy is missing.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

HEAD = '<ir_version: 8, opset_import: ["" : 18]> g (float[6,4] x, float[2,4] z)'
CASES = {
    "a list": """=> (float[8,4] y, float[2,4] e, int64 n) {
        s = SequenceConstruct(x, z)  i = Constant<value_int = -1>()  e = SequenceAt(s, i)
        y = ConcatFromSequence<axis = 0>(s)  n = SequenceLength(s) }""",
    "insertion and removal": """=> (float[3,2,4] y, int64 n) {
        o = Constant<value_int = 1>()  a = SequenceEmpty()  b = SequenceInsert(a, z)  w = Mul(z, z)  c = SequenceInsert(b, w)
        v = Neg(z)  d = SequenceInsert(c, v, o)  n = SequenceLength(d)  f = SequenceInsert(d, x)  h = SequenceErase(f)
        y = ConcatFromSequence<axis = 0, new_axis = 1>(h) }""",
    "a split into parts of given sizes": """=> (float[2,4] y, float[6,4] t) {
        p = Constant<value_ints = [1, 2, 3]>()  s = SplitToSequence<axis = 0>(x, p)  i = Constant<value_int = 1>()
        y = SequenceAt(s, i)  t = ConcatFromSequence<axis = 0>(s) }""",
    "a split into chunks": """=> (float[6,1] y, int64 n) {
        p = Constant<value_int = 3>()  s = SplitToSequence<axis = 1>(x, p)  i = Constant<value_int = 1>()  y = SequenceAt(s, i)
        n = SequenceLength(s) }""",
    "a split into single rows": """=> (float[4] y) {
        s = SplitToSequence<keepdims = 0>(x)  i = Constant<value_int = 4>()  y = SequenceAt(s, i) }""",
    "a map": """=> (float[2,6,4] y) {
        w = Neg(x)  s = SequenceConstruct(x, w)
        t = SequenceMap<body = body (float[6,4] a, float[2,4] b) => (float[6,4] c) { d = ReduceSum<keepdims = 0>(b)  c = Mul(a, d) }>(s, z)
        y = ConcatFromSequence<axis = 0, new_axis = 1>(t) }""",
    "a map that reads what is around it": """=> (float[4,4] y) {
        w = Neg(x)  k = Sin(z)  s = SequenceConstruct(z, k)
        t = SequenceMap<body = body (float[2,4] a) => (float[2,4] c) { d = ReduceSum<keepdims = 0>(w)  c = Mul(a, d) }>(s)
        y = ConcatFromSequence<axis = 0>(t) }""",
    "a loop that appends": """=> (float[3,2,4] y, int64 n, float[2,4] e, float[2,4] last) {
        m = Constant<value_int = 3>()  t = Constant<value = bool {1}>()  a = SequenceEmpty()
        s, last = Loop(m, t, a, z) <body = body (int64 i, bool c, seq(float[2,4]) b, float[2,4] v) => (bool k, seq(float[2,4]) d, float[2,4] w) {
            k = Identity(c)  w = Add(v, v)  u = Sin(w)  d = SequenceInsert(b, u) }>
        y = ConcatFromSequence<axis = 0, new_axis = 1>(s)  n = SequenceLength(s)  o = Constant<value_int = 1>()  e = SequenceAt(s, o) }""",
    "a loop whose rows follow each other": """=> (float[R,4] y) {
        m = Constant<value_int = 3>()  t = Constant<value = bool {1}>()  a = SequenceEmpty()
        s = Loop(m, t, a) <body = body (int64 i, bool c, seq(float[2,4]) b) => (bool k, seq(float[2,4]) d) {
            k = Identity(c)  f = Cast<to = 1>(i)  u = Mul(z, f)  d = SequenceInsert(b, u) }>
        y = ConcatFromSequence<axis = 0>(s) }""",
    "optionals": """=> (bool h, bool n, float[2,4] y) {
        o = Optional(z)  h = OptionalHasElement(o)  y = OptionalGetElement(o)  e = Optional<type = float[2,4]>()  n = OptionalHasElement(e) }""",
}
# Sequences enter as q.0, q.1 ..., and leave so; tpc-shard is told their lengths.
ENDS = {
    "a sequence as a result": """=> (seq(float[6,4]) y, float[2,4] e) { y = SequenceConstruct(x, x)  e = Neg(z) }""",
    "a sequence that grows": """=> (seq(float) r, int64 n) { r = SequenceInsert(q, z)  n = SequenceLength(q) }""",
    "a loop over a sequence": """=> (seq(float) r, float[3] t, float[2,4] last) {
        n = SequenceLength(q)  c = Constant<value = bool {1}>()  a = SequenceEmpty()
        r, last, t = Loop(n, c, a, z) <body = body (int64 i, bool d, seq(float) b, float[2,4] v) => (bool k, seq(float) f, float[2,4] w, float m) {
            k = Identity(d)  o = SequenceAt(q, i)  u = Sin(o)  f = SequenceInsert(b, u)  w = Add(v, v)  m = ReduceSum<keepdims = 0>(u) }> }""",
    "a choice between sequences": """=> (seq(float) r) {
        c = Constant<value = bool {0}>()
        r = If(c) <then_branch = then () => (seq(float) a) { a = SequenceConstruct(x) }, else_branch = other () => (seq(float) b) { b = SequenceErase(q) }> }""",
}
LIST = [(2, 4), (3,), (2, 1)]
REFUSED = {
    "a sequence without a length": """=> (float[4] y) { y = Identity(x) }""",
    "a loop over a sequence that ends early": """=> (seq(float) r) {
        n = SequenceLength(q)  c = Constant<value = bool {1}>()  a = SequenceEmpty()
        r = Loop(n, c, a) <body = body (int64 i, bool d, seq(float) b) => (bool k, seq(float) f) {
            g = Constant<value = int64 {1}>()  k = Less(i, g)  o = SequenceAt(q, i)  f = SequenceInsert(b, o) }> }""",
    "an element that data names": """=> (float[6,4] y) {
        w = Neg(x)  s = SequenceConstruct(x, w)  f = ReduceSum<keepdims = 0>(z)  i = Cast<to = 7>(f)  y = SequenceAt(s, i) }""",
}


def call(argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    return done.returncode, (done.stderr or done.stdout).strip()


def run(build, work, model, feeds, ranks):
    target = model
    if ranks > 1:
        target = os.path.join(work, "ranks")
        told = ["--bind", "q=" + ",".join(str(list(s)) for s in LIST)] if "q.0" in feeds else []
        status, said = call([os.path.join(build, "tpc-shard"), model, "--tp", str(ranks), "-q", "--force", "-o", target, *told])
        if status:
            return said
    inputs = [word for name, x in feeds.items() for word in ("--input", f"{name}={os.path.join(work, name)}.npy")]
    out = os.path.join(work, "out")
    shutil.rmtree(out, ignore_errors=True)
    status, said = call([os.path.join(build, "tpc-run"), target, *inputs, "-o", out] + (["--local", str(ranks)] if ranks > 1 else []))
    return said if status else {f[:-4]: np.load(os.path.join(out, f)) for f in os.listdir(out)}


def differs(got, want):
    if isinstance(got, str):
        return got
    if got.keys() != want.keys():
        return f"the results are {sorted(got)}, expected {sorted(want)}"
    for name, w in want.items():
        if got[name].shape != w.shape or got[name].dtype != w.dtype or not np.allclose(got[name], w, rtol=1e-5, atol=1e-5):
            return f"{name} is {got[name].shape} {got[name].ravel()[:4]}, expected {w.shape} {w.ravel()[:4]}"
    return None


def main():
    build, bad = sys.argv[1], 0
    onnxruntime.set_default_logger_severity(4)
    rng = np.random.default_rng(5)
    feeds = {"x": rng.standard_normal((6, 4)).astype(np.float32), "z": rng.standard_normal((2, 4)).astype(np.float32)}
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "model.onnx")
        parts = {f"q.{i}": rng.standard_normal(s).astype(np.float32) for i, s in enumerate(LIST)}
        for name, x in {**feeds, **parts}.items():
            np.save(os.path.join(work, name + ".npy"), x)
        for what, text in {**CASES, **ENDS, **REFUSED}.items():
            takes = re.search(r"\bq\b", text) or "without a length" in what
            model = onnx.parser.parse_model(HEAD.replace("z)", "z, seq(float) q)") + text if takes else HEAD + text)
            onnx.save(model, path)
            given = {**feeds, **parts} if takes else feeds
            if what in REFUSED:
                said = run(build, work, path, feeds if "without a length" in what else given, 1)
                why = None if isinstance(said, str) and said.startswith("tpc-run: ") and said.count("\n") == 0 else f"not refused: {said}"
                bad += why is not None
                print(what + ":", why or "refused")
                continue
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            results = zip([o.name for o in session.get_outputs()], session.run(None, {**feeds, "q": list(parts.values())} if takes else feeds))
            want = {}
            for name, result in results:
                want.update({f"{name}.{i}": w for i, w in enumerate(result)} if isinstance(result, list) else {name: result})
            for ranks in (1, 2):
                why = differs(run(build, work, path, given, ranks), want)
                bad += why is not None
                print(f"{what}, {ranks} ranks:", why or "equal")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
