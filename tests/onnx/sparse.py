"""sparse.py BUILD: sparse initializers, of the graph and of bodies, and sparse values of Constant nodes stand for dense ones, whole and on ranks.

Exit status 77 (skipped) where onnx or numpy is missing.
"""
import sys

try:
    import numpy as np
    import ranks
    from onnx import TensorProto as T, helper as h, numpy_helper as nh
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

RNG = np.random.default_rng(5)
N = h.make_node


def dense(*shape, dtype=np.float32):
    x = RNG.standard_normal(shape)
    return np.where(np.abs(x) > 0.9, x * 4, 0).astype(dtype)


def sparse(name, x, flat):
    """As ONNX has it: values, and one index of each, or one for each dimension."""
    at = np.flatnonzero(x) if flat else np.argwhere(x)
    values = nh.from_array(x[np.nonzero(x)], name)
    return h.make_sparse_tensor(values, nh.from_array(at.astype(np.int64), name + "_at"), x.shape)


def graph(flat, dtype):
    x, w, b = dense(3, 8), dense(8, 12, dtype=dtype), dense(12, dtype=dtype)
    nodes = [N("Cast", ["w"], ["f"], to=T.FLOAT), N("Cast", ["b"], ["g"], to=T.FLOAT), N("MatMul", ["x", "f"], ["t"]), N("Add", ["t", "g"], ["y"])]
    wanted = {"y": x @ w.astype(np.float32) + b.astype(np.float32)}
    model = ranks.model(nodes, {"x": x}, wanted)
    model.graph.sparse_initializer.extend([sparse("w", w, flat), sparse("b", b, flat)])
    return model, {"x": x}, wanted


def constant():
    x, w = dense(3, 8), dense(8, 12)
    nodes = [N("Constant", [], ["w"], sparse_value=sparse("", w, False)), N("MatMul", ["x", "w"], ["y"])]
    return ranks.model(nodes, {"x": x}, {"y": x @ w}), {"x": x}, {"y": x @ w}


def nothing():
    """No value at all, and no dimension."""
    x, zero = dense(3, 8), np.zeros((8,), np.float32)
    model = ranks.model([N("Add", ["x", "w"], ["t"]), N("Mul", ["t", "k"], ["y"])], {"x": x}, {"y": x * 3})
    model.graph.sparse_initializer.extend([sparse("w", zero, True), h.make_sparse_tensor(
        nh.from_array(np.float32([3]), "k"), nh.from_array(np.int64([0]), "k_at"), ())])
    return model, {"x": x}, {"y": x * 3}


def branches():
    """In the body of an If, and in one that is inlined."""
    x, w = dense(3, 8), dense(8, 12)
    def body(name, op, inputs=()):
        g = h.make_graph([N("MatMul", ["a" if inputs else "x", "w"], ["u"]), N(op, ["u"], ["r"])], name,
                         [h.make_tensor_value_info(i, T.FLOAT, None) for i in inputs], [h.make_tensor_value_info("r", T.FLOAT, None)])
        g.sparse_initializer.append(sparse("w", w, False))
        return g
    nodes = [N("If", ["c"], ["p"], then_branch=body("t", "Abs"), else_branch=body("e", "Neg")), N("SequenceConstruct", ["x", "x"], ["s"]),
             N("SequenceMap", ["s"], ["m"], body=body("b", "Neg", ["a"])), N("ConcatFromSequence", ["m"], ["q"], axis=0)]
    inputs = {"x": x, "c": np.array(True)}
    wanted = {"p": np.abs(x @ w), "q": np.concatenate([-(x @ w)] * 2)}
    return ranks.model(nodes, inputs, wanted), inputs, wanted


def main():
    bad = 0
    tried = [graph(flat, dtype) for flat in (True, False) for dtype in (np.float32, np.float16, np.int64)] + [constant(), nothing(), branches()]
    for i, (model, inputs, wanted) in enumerate(tried):
        if fault := ranks.run(sys.argv[1], model, inputs, wanted):
            bad += 1
            print(f"FAILED model {i}: {fault}")
    print(f"{len(tried)} models, {bad} failed")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
