"""defaults.py BUILD: initializers that are inputs, too: from IR version 4 on a run may give them, and without that they are constants.

Exit status 77 (skipped) where onnx or numpy is missing.
"""
import filecmp
import os
import sys
import tempfile

try:
    import numpy as np
    import ranks
    from onnx import helper as h
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

RNG = np.random.default_rng(3)
X, B = (RNG.standard_normal(s).astype(np.float32) for s in ((4, 24), (32,)))
W, V = (RNG.standard_normal(s).astype(np.float32) for s in ((24, 32), (24, 32)))
NODES = [h.make_node("MatMul", ["x", "W"], ["a"]), h.make_node("Add", ["a", "B"], ["y"])]


def folder_of(path, given, ir=10):
    """The model, with W and B as defaults, and a data set that gives x and what is given instead of them."""
    wanted = X @ given.get("W", W) + given.get("B", B)
    proto = ranks.model(NODES, {"x": X, "W": W, "B": B}, {"y": wanted}, {"W": W, "B": B})
    proto.ir_version = ir
    os.makedirs(path)
    ranks.write(path, proto, {"x": X, **given}, {"y": wanted})
    return os.path.join(path, "model.onnx"), os.path.join(path, "test_data_set_0")


def main():
    shard, run = (os.path.join(sys.argv[1], p) for p in ("tpc-shard", "tpc-run"))
    bad = []

    def expect(what, command, sentence=None):
        said = ranks.told(command)
        if said if sentence is None else not said or sentence not in said:
            bad.append(f"{what}: {said}")

    with tempfile.TemporaryDirectory() as top:
        at = lambda name: os.path.join(top, name)  # noqa: E731
        usual, data = folder_of(at("usual"), {})
        given, other = folder_of(at("given"), {"W": V, "B": B * 2})
        old, oldest = folder_of(at("old"), {"B": B * 2}, ir=3)
        values = "B=" + ",".join(str(x) for x in B)
        expect("nothing is given", [run, usual, "--test-data", data])
        expect("both are given", [run, given, "--test-data", other])
        expect("one is given by --input", [run, usual, "--input", values, "--test-data", data])
        expect("of another size", [run, usual, "--input", "B=1,2", "--test-data", data], "input 'B' has 2 in dimension 0, expected 32")
        expect("before IR 4", [run, old, "--test-data", oldest], "'B' is no input: the inputs are x")
        for n in (1, 2, 3):
            plain, kept, again, merged = (at(f"{name}{n}") for name in ("plain", "kept", "again", "merged"))
            local = ["--local", str(n)]
            expect("sharded", [shard, usual, "--tp", str(n), "-q", "-o", plain])
            expect("sharded, nothing is given", [run, plain, *local, "--test-data", data])
            expect("sharded, one is given", [run, plain, *local, "--test-data", other], "'tpc-shard --keep-input W' makes a folder whose runs give it")
            expect("kept", [shard, given, "--tp", str(n), "--keep-input", "W", "--keep-input", "B", "-q", "-o", kept])
            expect("kept, and given", [run, kept, *local, "--test-data", other])
            expect("kept, beside the model", [run, kept, *local, "--random", "1", "--check", given])
            expect("the plan again", [shard, given, "--plan", os.path.join(kept, "plan.json"), "-q", "-o", again])
            expect("the plan again, and given", [run, again, *local, "--test-data", other])
            expect("merged", [shard, "--merge", kept, "-o", merged])
            if not filecmp.cmp(merged, given, shallow=False):
                bad.append("merged: another file")
        expect("no such input", [shard, usual, "--tp", "2", "--keep-input", "a", "-q", "-n"], "--keep-input 'a': the model lists no such input")
    print(*(f"FAILED {b}" for b in bad), sep="\n", end="\n" if bad else "")
    print(f"{len(bad)} failed")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
