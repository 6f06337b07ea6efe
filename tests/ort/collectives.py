"""collectives: each op of domain tpc in ONNX Runtime, on small graphs: collectives.py LIBRARY [late], under mpirun on 2 ranks.

What is refused when a graph is opened comes before what stops the job: ranks out of step, which is last. With "late", rank 1 ends early instead."""
import os
import sys

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import TensorProto, helper

RANK = int(next(os.environ[k] for k in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK") if k in os.environ))
TYPES = {"FLOAT": np.float32, "DOUBLE": np.float64, "FLOAT16": np.float16, "INT8": np.int8, "UINT8": np.uint8, "INT16": np.int16,
         "UINT16": np.uint16, "INT32": np.int32, "UINT32": np.uint32, "INT64": np.int64, "UINT64": np.uint64, "BOOL": np.bool_}
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
options.register_custom_ops_library(sys.argv[1])
count = 0


def ok(good, name):
    global count
    count += 1
    print(f"{'ok' if good else 'not ok'} {RANK}.{count} - {name}", flush=True)


def opened(nodes, kind="FLOAT", rank=2):
    """A graph of x and the global size n of a dimension; its results are those of the nodes."""
    kind = getattr(TensorProto, kind)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", kind, [f"d{k}" for k in range(rank)]),
                                           helper.make_tensor_value_info("n", TensorProto.INT64, ["sizes"])],
                              [helper.make_tensor_value_info(node.output[0], kind, None) for node in nodes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("tpc", 1)], ir_version=10)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def collective(op, name=None, /, **attributes):
    sized = op not in ("AllReduce", "Broadcast")
    return helper.make_node(op, ["x", "n"] if sized else ["x"], [name or "y"], name=name or op, domain="tpc", **attributes)


def run(session, x, n=0):
    return session.run(None, {"x": x, "n": np.atleast_1d(n)})


def refuses(words, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Exception as error:  # ONNX Runtime has several kinds
        found = words in str(error)
        if not found:
            print(error, file=sys.stderr)
        return found
    return False


def part(whole, axis, parts):
    return np.take(whole, parts[RANK], axis)


def late():
    """Rank 1 ends where rank 0 waits for it."""
    session = opened([collective("AllReduce")])
    run(session, np.ones((2, 2), np.float32))
    if RANK == 1:
        sys.exit(0)
    words = "rank 0 is at collective 2 'AllReduce', rank 1 at 1 'the end of its program'"
    ok(refuses(words, run, session, np.ones((2, 2), np.float32)), "a rank that ends is missed")


def every_type():
    session = None
    for kind, dtype in TYPES.items():
        session = opened([collective("AllReduce")], kind)
        ranks = [np.array([[1, 0, 1], [1, 1, 0]]).astype(dtype) * (r + 1 if kind != "BOOL" else True) for r in (0, 1)]
        ok(np.array_equal(run(session, ranks[RANK])[0], ranks[0] + ranks[1]), f"AllReduce of {kind}")
    del session
    ranks = [np.array([1.5, -2, 3]).astype(ml_dtypes.bfloat16) + r for r in (0, 1)]
    bits = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(ranks[RANK].view(np.uint16), TensorProto.BFLOAT16)
    binding = (session := opened([collective("AllReduce", op="max")], "BFLOAT16", 1)).io_binding()
    binding.bind_ortvalue_input("x", bits)
    binding.bind_cpu_input("n", np.array([0]))
    binding.bind_output("y", "cpu")
    session.run_with_iobinding(binding)
    ok(binding.get_outputs()[0].element_type() == TensorProto.BFLOAT16, "AllReduce of BFLOAT16")


def every_op():
    whole = np.arange(210, dtype=np.int32).reshape(2, 7, 15)
    uneven, listed, even = ([np.arange(4), np.arange(4, 7)], [[0, 1, 2, 6], [3, 4, 5]], [np.arange(8), np.arange(8, 15)])
    text = "t2:7:0-3,6-7/3-6"
    for axis in (1, -2):
        gather = opened([collective("AllGather", axis=axis, **{"from": "t2:balanced(S)"})], "INT32", 3)
        ok(np.array_equal(run(gather, part(whole, 1, uneven), 7)[0], whole), f"AllGather along {axis}")
        for size in (5, 0, 1):
            ranks = np.array_split(np.arange(size), 2)
            ok(np.array_equal(run(gather, part(whole, 1, ranks), size)[0], whole[:, :size]), f"then of {size}")
    gather = opened([collective("AllGather", axis=1, **{"from": text})], "INT32", 3)
    ok(np.array_equal(run(gather, part(whole, 1, listed), 7)[0], whole), "AllGather of a list")
    scatter = opened([collective("ReduceScatter", axis=1, to=text)], "INT32", 3)
    ok(np.array_equal(run(scatter, whole * (RANK + 1), 7)[0], part(3 * whole, 1, listed)), "ReduceScatter")
    scatter = opened([collective("ReduceScatter", axis=2, to="t2:balanced(S);outer=3", op="min")], "INT32", 3)
    strided = [np.concatenate([np.arange(a, a + n) + 5 * k for k in range(3)]) for a, n in ((0, 3), (3, 2))]
    ok(np.array_equal(run(scatter, whole + RANK, 15)[0], part(whole, 2, strided)), "ReduceScatter of a pattern that repeats")
    exchange = opened([collective("AllToAll", split_axis=1, to=text, concat_axis=2, **{"from": "t2:15:0-8/8-15"})], "INT32", 3)
    ok(np.array_equal(run(exchange, part(whole, 2, even), 15)[0], part(whole, 1, listed)), "AllToAll")
    change = opened([collective("Redistribute", axis=1, to=text, **{"from": "t2:balanced(S)"})], "INT32", 3)
    ok(np.array_equal(run(change, part(whole, 1, uneven), 7)[0], part(whole, 1, listed)), "Redistribute")
    change = opened([collective("Redistribute", axis=1, to="t2:balanced(S)[3/1-1](S)", **{"from": "t2:balanced(S)"})], "INT32", 3)
    halo = [np.arange(5), np.arange(3, 7)]
    ok(np.array_equal(run(change, part(whole, 1, uneven), [7, 7])[0], part(whole, 1, halo)), "Redistribute to what windows read")
    ok(np.array_equal(run(opened([collective("Broadcast", root=1)], "INT32", 3), whole + RANK)[0], whole + 1), "Broadcast")
    large = np.full((3, 1 << 20), 1.0, np.float32)
    ok(np.all(run(opened([collective("AllReduce")]), large)[0] == 2), "AllReduce of 12 MiB")


def refused_at_once():
    ok(refuses("(AllGather) is for 3 ranks, and this job has 2: start it with mpirun -n 3", opened,
               [collective("AllGather", axis=0, **{"from": "t3:balanced(S)"})]), "a graph for 3 ranks")
    ok(refuses("(AllReduce) is for 3 ranks, and this job has 2", opened, [collective("AllReduce", rank=RANK, ranks=3)]), "likewise, of AllReduce only")
    ok(refuses(f"is of the file of rank {1 - RANK}, and this process is rank {RANK}: it opens rank-{RANK}.onnx", opened,
               [collective("AllReduce", rank=1 - RANK, ranks=2)]), "another rank's file")
    ok(refuses("op is 'mean', expected sum, max, min or prod", opened, [collective("AllReduce", op="mean")]), "an unknown reduction")
    ok(refuses("attribute to: it is not given", opened, [collective("ReduceScatter", axis=0)]), "no split")
    ok(refuses("attribute from: ", opened, [collective("AllGather", axis=0, **{"from": "t2:9:0-20/-"})]), "a split that is none")
    ok(refuses("has root 2, and this job has 2 ranks", opened, [collective("Broadcast", root=2)]), "a root that is no rank")


if "late" in sys.argv:
    late()
else:
    every_type()
    every_op()
    refused_at_once()
    names = ["first", "second"] if RANK == 0 else ["second", "first"]
    swapped = opened([collective("AllReduce", name, op="max" if name == "first" else "sum") for name in names])
    ok(refuses("ranks are out of step: rank 0 is at", run, swapped, np.ones((2, 2), np.float32))
       or RANK == 1 and refuses("ranks are out of step", run, swapped, np.ones((2, 2), np.float32)), "collectives in another order")
    ok(refuses("out of step", run, opened([collective("AllReduce")]), np.ones((2, 2), np.float32)), "and after that none runs")
