"""einsum.py BUILD [SEED COUNT]: equations of one to six operands compared with numpy.einsum, whole and on ranks, some of whose plans split a letter.

Named forms, then COUNT random equations (default 12). Exit status 77 (skipped) where onnx or numpy is missing.
"""
import os
import string
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import ranks
    from onnx import helper as h
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

LETTERS = string.ascii_letters
FORMS = [
    ("abc,cd,def->abd", [(2, 3, 4), (4, 5), (5, 6, 7)]),
    ("i,i,i->", [(3,), (3,), (3,)]),
    ("ij,jk,kl,lm,mn", [(2, 9), (9, 2), (2, 9), (9, 2), (2, 9)]),
    ("...ij,...jk,k...->i...", [(2, 3, 4), (1, 4, 5), (5, 2)]),
    ("ii,jj,ij->j", [(3, 3), (4, 4), (3, 4)]),
    ("a,b,c,,d->dcba", [(2,), (3,), (4,), (), (2,)]),
    (",,->", [(), (), ()]),
    ("ab,bc,cd->", [(3, 4), (4, 5), (5, 2)]),
    ("ab,b,ac->c", [(3, 1), (4,), (3, 5)]),
    ("bhqd,bhkd,bhkv->bhqv", [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6)]),
    ("abcdefgh,abcdefgh->abcdefgh", [(1, 2, 1, 2, 1, 2, 1, 3)] * 2),
    ("abcdefgx,abcdefgx->abcdefg", [(1, 2, 3, 2, 1, 2, 1, 3)] * 2),
    ("Ba,aB,Bb", [(2, 3), (3, 2), (2, 4)]),
    ("ab,bc,ca,ab,bc,ca->a", [(2, 3), (3, 4), (4, 2)] * 2),
]
MANY = ",".join("ab" if k % 2 else "bc" for k in range(600)) + "->ac", [(2, 1) if k % 2 else (1, 2) for k in range(600)]
RING = ("ab,bc,cd,de,ef,fg,gh,hi,ij,ja->", [(2, 3), (3, 2)] * 5)


def random_form(rng):
    n, letters = rng.integers(1, 7), list(rng.permutation(list(LETTERS))[:rng.integers(1, 7)])
    size = {c: int(rng.integers(1, 5)) for c in letters}
    terms = ["".join(rng.choice(letters, rng.integers(0, 4))) for _ in range(n)]
    used = sorted(set("".join(terms)))
    out = "".join(rng.permutation(used)[:rng.integers(0, len(used) + 1)]) if used else ""
    equation = ",".join(terms) + ("->" + out if rng.random() < 0.7 else "")
    return equation, [tuple(size[c] for c in t) for t in terms]


def case(equation, shapes, rng):
    arrays = [(rng.integers(-3, 4, s) if len(shapes) < 30 else np.ones(s)).astype(np.float32) for s in shapes]
    names = [f"x{i}" for i in range(len(shapes))]
    wanted = np.einsum(equation, *arrays, optimize=len(arrays) > 3) if len(arrays) < 30 else np.ones((2, 2), np.float32) # numpy takes no more
    inputs, weights = dict(zip(names[::2], arrays[::2])), dict(zip(names[1::2], arrays[1::2]))
    node = h.make_node("Einsum", names, ["y"], equation=equation)
    return ranks.model([node], inputs, {"y": np.asarray(wanted)}, weights, opset=12), inputs, {"y": np.asarray(wanted)}


def tried(build, equation, shapes, rng, counts):
    proto, inputs, wanted = case(equation, shapes, rng)
    splits = [[]] + [[{"tensor": name, "placement": f"S({d})"}] for name, v in list(inputs.items())[-1:] for d in range(v.ndim) if v.shape[d] > 1]
    for split in splits[-2:]:
        if fault := ranks.run(build, proto, inputs, wanted, counts, split):
            return fault
    return None


REFUSED = [
    ("cannot be multiplied two at a time without a result of more than 8 dimensions", "abcdefgh,ijklmnop,aibjckdl,emfngohp,abijefmn,cdklghop->", [(2,) * 8] * 6),
    ("does not have a term for each of 3 operands", "ab,bc->ac", [(2, 2)] * 3),
    ("dimensions of one letter", "ab,bc,cd->ad", [(2, 3), (3, 4), (5, 2)]),
    ("a letter that no operand has", "ab,bc,cd->ae", [(2, 2)] * 3),
    ("is not well formed", "ab,b1,cd->ad", [(2, 2)] * 3),
]


def refused(build, sentence, equation, shapes):
    names = [f"x{i}" for i in range(len(shapes))]
    inputs = {n: np.ones(s, np.float32) for n, s in zip(names, shapes)}
    proto = ranks.model([h.make_node("Einsum", names, ["y"], equation=equation)], inputs, {"y": np.float32(0)}, opset=12)
    fault = ranks.run(build, proto, inputs, {"y": np.float32(0)}, ())
    return None if fault and sentence in fault and "(Einsum)" in fault else f"expected '{sentence}', found {fault}"


def trained(build):
    """Gradients of a loss through three factors equal those of the same product written as two MatMuls."""
    rng, N = np.random.default_rng(5), h.make_node
    x, w = rng.standard_normal((4, 6)).astype(np.float32), {n: rng.standard_normal(s).astype(np.float32) / 3 for n, s in (("u", (6, 8)), ("v", (8, 10)))}
    forms = [N("Einsum", ["x", "u", "v"], ["y"], equation="bi,ij,jk->bk")], [N("MatMul", ["x", "u"], ["h"]), N("MatMul", ["h", "v"], ["y"])]
    with tempfile.TemporaryDirectory() as folder:
        for k, nodes in enumerate(forms):
            onnx.save(ranks.model(nodes, {"x": x}, {"y": x @ w["u"] @ w["v"]}, w, opset=21), os.path.join(folder, f"{k}.onnx"))
        paths = [os.path.join(folder, n) for n in ("einsum", "products")]
        for k, (n, path) in enumerate(zip((2, 1), paths)):
            command = [os.path.join(build, "tpc-shard"), os.path.join(folder, f"{k}.onnx"), "--train", "--tp", str(n), "-q", "-o", path]
            if fault := ranks.told(command):
                return fault
        return ranks.told([os.path.join(build, "tpc-run"), paths[0], "--local", "2", "--random", "1", "--check", os.path.join(paths[1], "rank-0.onnx")])


def main():
    build, seed, count = sys.argv[1], *(int(a) for a in (sys.argv[2:] + ["1", "4"][len(sys.argv) - 2:]))
    rng, bad = np.random.default_rng(seed), []
    forms = [*FORMS, RING, MANY, *(random_form(rng) for _ in range(count))]
    for i, (equation, shapes) in enumerate(forms):
        if fault := tried(build, equation, shapes, rng, (2 + i % 2,)):
            bad.append(f"{equation} of {shapes}: {fault}")
    bad += [f"{equation}: {fault}" for sentence, equation, shapes in REFUSED if (fault := refused(build, sentence, equation, shapes))]
    if fault := trained(build):
        bad.append(f"gradients: {fault}")
    print(*(f"FAILED {b}" for b in bad), sep="\n", end="\n" if bad else "")
    print(f"{len(forms)} equations, {len(bad)} failed")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
