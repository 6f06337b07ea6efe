"""kernels.py BUILD: operators with kernels of their own compute what ONNX Runtime computes on random operands, whole and on two ranks.

Each case is one node. Exit status 77 (skipped) where onnx, onnxruntime or numpy is missing.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import composed
from composed import f, np, real, whole


def boxes(*shape):
    corner, size = np.abs(real(*shape, 2)) * 4, np.abs(real(*shape, 2)) * 3 + f(0.1)
    return np.concatenate([corner, corner + size], -1).astype(np.float32)


def cases():
    """(op, operands, number of results, attributes)"""
    grid = RNG.uniform(-1.5, 1.5, (2, 5, 7, 2)).astype(np.float32)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            yield "GridSample", [real(2, 3, 6, 4), grid], 1, dict(mode=mode, padding_mode=padding, align_corners=int(padding == "border"))
    for mode, place in (("avg", "half_pixel"), ("avg", "output_half_pixel"), ("max", "half_pixel")):
        yield "RoiAlign", [real(2, 3, 9, 8), boxes(5), whole(0, 2, 5)], 1, dict(
            mode=mode, coordinate_transformation_mode=place, output_height=3, output_width=2, sampling_ratio=0 if mode == "avg" else 2)
    yield "NonMaxSuppression", [boxes(2, 30), np.abs(real(2, 3, 30)), np.array([6]), np.array([0.3], np.float32), np.array([0.2], np.float32)], 1, {}
    yield "NonMaxSuppression", [np.abs(real(1, 20, 4)) * 3, real(1, 2, 20), np.array([20])], 1, dict(center_point_box=1)
    yield "Unique", [whole(0, 5, 4, 6)], 4, {}
    yield "Einsum", [real(5, 5)], 1, dict(equation="ii")
    yield "Einsum", [real(3, 4, 2, 4)], 1, dict(equation="abcb->bca")
    yield "Einsum", [real(4, 2, 4, 3, 4), real(3, 4)], 1, dict(equation="iaibi, bj -> jia")
    yield "Unique", [whole(0, 2, 7, 2).astype(np.float32)], 4, dict(axis=0, sorted=0)
    yield "Compress", [real(4, 6), np.array([True, False, True, True])], 1, dict(axis=1)
    yield "Compress", [real(4, 6), np.array([False, True, True])], 1, {}
    yield "Col2Im", [real(2, 12, 16), np.array([5, 6]), np.array([2, 2])], 1, dict(dilations=[1, 2])
    yield "CenterCropPad", [real(5, 4, 7), np.array([2, 7, 7])], 1, {}
    yield "TfIdfVectorizer", [whole(0, 4, 3, 8)], 1, dict(mode="TFIDF", min_gram_length=1, max_gram_length=2, max_skip_count=2, ngram_counts=[0, 3],
                                                         ngram_indexes=[0, 2, 1, 3, 4], pool_int64s=[0, 1, 2, 1, 2, 3, 3], weights=[0.5, 2.0, 1.0, 3.0, 4.0])
    yield "MaxPool", [real(2, 3, 7, 8)], 2, dict(kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0])
    yield "AveragePool", [real(1, 2, 5, 5)], 1, dict(kernel_shape=[3, 3], strides=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1, count_include_pad=1)
    yield "Det", [real(2, 4, 4)], 1, {}


RNG = composed.RNG
composed.cases, composed.written_out, composed.small_floats = cases, tuple, tuple
if __name__ == "__main__":
    sys.exit(composed.main())
