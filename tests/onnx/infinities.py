"""infinities.py BUILD: infinities and NaN in sums of exponentials and below thresholds, whole and with that axis split, compared with numpy.

Exit status 77 (skipped) where onnx or numpy is missing.
"""
import sys

try:
    import numpy as np
    import ranks
    from onnx import helper as h
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

N, INF = h.make_node, np.inf
ROWS = np.stack([np.full(12, -INF), np.full(12, INF), np.r_[-INF, np.zeros(11)], np.r_[np.zeros(11), INF], np.r_[INF, np.full(11, -INF)],
                 np.r_[np.full(9, -INF), 1., 2, 3], np.full(12, 250.), np.r_[np.nan, np.zeros(11)], np.linspace(-9, 9, 12)])


def log_sum_exp(x, axis, keep):
    return np.logaddexp.reduce(x.astype(np.float64), axis, keepdims=keep).astype(x.dtype)


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True))


def reduced(x):
    axes = {"columns": np.array([1]), "rows": np.array([0])}
    wanted = {"y": log_sum_exp(x, 1, False), "z": log_sum_exp(x, 0, True), "all": log_sum_exp(x, None, False)}
    nodes = [N("ReduceLogSumExp", ["x", "columns"], ["y"], keepdims=0), N("ReduceLogSumExp", ["x", "rows"], ["z"]),
             N("ReduceLogSumExp", ["x"], ["all"], keepdims=0)]
    return nodes, wanted, axes


def normalised(x):
    """An infinite largest element makes a row NaN, as inf - inf is."""
    soft = softmax(x)
    nodes = [N("Softmax", ["x"], ["soft"]), N("LogSoftmax", ["x"], ["log"]), N("SoftmaxCrossEntropyLoss", ["x", "labels"], ["loss"], reduction="none")]
    labels, picked = np.arange(len(x)), np.log(soft)
    return nodes, {"soft": soft.astype(x.dtype), "log": (x - x.max(1, keepdims=True) - np.log(np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True))).astype(x.dtype),
                   "loss": -picked[labels, labels].astype(x.dtype)}, {"labels": labels}


def written(x):
    """By its ops: what they say, NaN for infinities."""
    max_, axes = x.max(1, keepdims=True), {"axes": np.array([1])}
    nodes = [N("ReduceMax", ["x", "axes"], ["max"]), N("Sub", ["x", "max"], ["less"]), N("Exp", ["less"], ["e"]), N("ReduceSum", ["e", "axes"], ["sum"]),
             N("Log", ["sum"], ["log"]), N("Add", ["log", "max"], ["y"])]
    return nodes, {"y": (np.log(np.exp(x - max_).sum(1, keepdims=True)) + max_)}, axes


def thresholds(x):
    """NaN is not above a threshold, and an infinite one is above nothing."""
    wanted = {"t": np.where(x > 0.5, x, 0), "s": np.where(x < -0.5, x + 2, np.where(x > 0.5, x - 2, 0)), "none": np.zeros_like(x)}
    nodes = [N("ThresholdedRelu", ["x"], ["t"], alpha=0.5), N("Shrink", ["x"], ["s"], lambd=0.5, bias=2.0), N("Shrink", ["x"], ["none"], lambd=INF)]
    return nodes, wanted, {}


def main():
    bad = count = 0
    split = [{"tensor": "x", "placement": "S(1)"}]
    for dtype in (np.float16, np.float32, np.float64):
        for make in (reduced, normalised, written, thresholds):
            with np.errstate(all="ignore"):
                x = ROWS.astype(dtype)
                nodes, wanted, weights = make(x)
            proto = ranks.model(nodes, {"x": x}, wanted, weights, opset=18)
            count += 1
            if fault := ranks.run(sys.argv[1], proto, {"x": x}, wanted, constraints=split):
                bad += 1
                print(f"FAILED {make.__name__} of {dtype.__name__}: {fault}")
    print(f"{count} models, {bad} failed")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
