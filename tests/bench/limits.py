#!/usr/bin/env python3
"""Prompts and steps of decoders beside what one core of this machine can do, as a whole and by operator.

    limits.py BUILD [--rounds 3] [--past 128] [--prompt 128] [--shares 0.002] MODEL.onnx...

A step reads the weights of products and the cache: their bytes over its time, beside STREAM's triad on huge pages. A prompt multiplies:
the operations of its products with weights and of causal attention over its time, beside the fastest product of SIZES that oneDNN
computes. A cache whose heads are shared counts once, so attention counts too little. Each round runs all in turn; the best of each
counts.

By operator, from traces (tpc-run --trace): nodes of one operator and one size of operands are a row, each with its least time. The limit
of a node is the longer of two times: its operations at the peak, and its bytes at the triad's bandwidth. Causal attention of a prompt
needs half of the operations that the trace counts. Rows below --shares of the time are one row. Needs cc, oneDNN's header and library,
and onnx."""
import argparse
import json
import os
import re
import subprocess
import tempfile

SIZES = [(128, 1024, 1024), (128, 4096, 1024), (256, 2048, 2048), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048)]
PROBE = r"""
#define _GNU_SOURCE
#include <dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
enum { N = 1 << 24 }; /* 128 MiB for each array */
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static double *array(void)
{
    double *a = aligned_alloc(1 << 21, 8L * N);
    madvise(a, 8L * N, MADV_HUGEPAGE);
    return a;
}
int main(void)
{
    static const long size[][3] = {SIZES};
    double *a = array(), *b = array(), *c = array(), triad = 1e9, peak = 0;
    omp_set_num_threads(1);
    for (long i = 0; i < N; i++) a[i] = b[i] = c[i] = 1;
    for (int r = 0; r < 5; r++) {
        double start = now();
        for (long i = 0; i < N; i++) a[i] = b[i] + 3 * c[i];
        double took = now() - start;
        triad = took < triad && a[r] > 0 ? took : triad;
    }
    for (unsigned s = 0; s < sizeof size / sizeof *size; s++)
        for (double begin = now(); now() - begin < 0.3;) {
            long m = size[s][0], n = size[s][1], k = size[s][2];
            double start = now();
            dnnl_sgemm('N', 'N', m, n, k, 1, (float *)a, k, (float *)b, n, 0, (float *)c, n);
            double rate = 2.0 * m * n * k / (now() - start);
            peak = rate > peak ? rate : peak;
        }
    printf("%g %g\n", 24.0 * N / triad, peak);
}
"""


def products(path):
    """Bytes and numbers of the weights of products, and elements of a cache of one token."""
    import onnx
    model = onnx.load(path, load_external_data=False)
    weights = {w.name: w for w in model.graph.initializer}
    names = {name for n in model.graph.node if n.op_type in ("MatMul", "Gemm") for name in n.input if name in weights}
    for n in model.graph.node:  # a table that is transposed for the scores
        if n.op_type == "Transpose" and n.input[0] in weights and any(n.output[0] in m.input for m in model.graph.node if m.op_type == "MatMul"):
            names.add(n.input[0])
    count = 0
    for name in names:
        size = 1
        for d in weights[name].dims:
            size *= d
        count += size
    cache = 0
    for i in model.graph.input:
        dims = [d.dim_value for d in i.type.tensor_type.shape.dim]
        cache += dims[1] * dims[3] if len(dims) == 4 else 0
    return count, cache


def name_of(path):
    return os.path.basename(os.path.dirname(path))


def dims_of(rows, past):
    return f"batch_size=1,sequence_length={rows},past_sequence_length={past}"


def best(build, path, rows, past):
    out = subprocess.run([f"{build}/tpc-run", path, "--random", "--dim", dims_of(rows, past), "--threads", "1", "--repeat", "6" if rows > 1 else "20", "-q"],
                         capture_output=True, text=True, check=True)
    return float(re.search(r"then min ([0-9.]+)", out.stdout + out.stderr)[1]) / 1e3


def trace(build, path, rows, past, work, nodes):
    """Into nodes, by place: operator, sizes, operations, bytes and the least seconds."""
    subprocess.run([f"{build}/tpc-run", path, "--random", "--dim", dims_of(rows, past), "--threads", "1", "--repeat", "3", "-q", "--trace", work],
                   capture_output=True, check=True)
    with open(work) as f:
        events = [e for e in json.load(f)["traceEvents"] if e.get("cat") == "compute"]
    for i, e in enumerate(events):
        a, seconds = e["args"], 1e-6 * e["dur"]
        flops = a["operations"] * (0.5 if "Attention" in a["op"] and rows > 1 and past == 0 else 1)
        nodes[i] = (a["op"], a["sizes"], flops, a["bytes"], min(seconds, nodes[i][4]) if i in nodes else seconds)


def table(title, nodes, triad, peak, least):
    rows, all_of = {}, sum(n[4] for n in nodes.values())
    for op, sizes, flops, size, seconds in nodes.values():
        rows.setdefault((op, sizes), []).append((seconds, max(flops / peak, size / triad), flops, size))
    rows = {k: (len(v), *(sum(x[i] for x in v) for i in range(4)), v[0][2] / peak > v[0][3] / triad) for k, v in rows.items()}
    small = [k for k, v in rows.items() if v[1] < least * all_of]
    rest = [sum(rows[k][i] for k in small) for i in range(5)]
    shown = sorted((k for k in rows if k not in small), key=lambda k: -rows[k][1])
    print(f"\n| {title} | nodes | ms | share | rate | of limit |\n" + "|---" * 6 + "|")
    for name, (count, seconds, limit, flops, size, multiplies) in [(f"{k[0]} {k[1]}", rows[k]) for k in shown] + [("all others", (*rest, False))]:
        rate = f"{1e-9 * flops / seconds:.1f} GF/s" if multiplies else f"{1e-9 * size / seconds:.1f} GB/s"
        print(f"| {name} | {count} | {1e3 * seconds:.2f} | {100 * seconds / all_of:.1f} % | {rate} | {limit / seconds:.2f} |")
    print(f"| sum | {len(nodes)} | {1e3 * all_of:.2f} | | | {sum(v[2] for v in rows.values()) / all_of:.2f} |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("models", nargs="+")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--past", type=int, default=128)
    p.add_argument("--prompt", type=int, default=128)
    p.add_argument("--shares", type=float, default=0.002)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as work:
        source, probe = f"{work}/probe.c", f"{work}/probe"
        with open(source, "w") as f:
            f.write(PROBE.replace("{SIZES}", "{" + ", ".join("{%d, %d, %d}" % s for s in SIZES) + "}"))
        subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-fopenmp", source, "-ldnnl", "-o", probe], check=True)
        triad = peak = 0.0
        step, prompt = {m: float("inf") for m in a.models}, {m: float("inf") for m in a.models}
        step_nodes, prompt_nodes = {m: {} for m in a.models}, {m: {} for m in a.models}
        for _ in range(a.rounds):
            now = [float(x) for x in subprocess.run([probe], capture_output=True, text=True, check=True).stdout.split()]
            triad, peak = max(triad, now[0]), max(peak, now[1])
            for m in a.models:
                step[m] = min(step[m], best(a.build, m, 1, a.past))
                prompt[m] = min(prompt[m], best(a.build, m, a.prompt, 0))
                trace(a.build, m, 1, a.past, f"{work}/trace", step_nodes[m])
                trace(a.build, m, a.prompt, 0, f"{work}/trace", prompt_nodes[m])
    print(f"| model | step on {a.past} | GB/s | of {triad / 1e9:.1f} | prompt of {a.prompt} | GF/s | of {peak / 1e9:.1f} |\n" + "|---" * 7 + "|")
    for m in a.models:
        weights, cache = products(m)
        rate, flops = 4 * (weights + cache * a.past) / step[m], (2 * weights * a.prompt + cache * a.prompt**2) / prompt[m]
        print(f"| {name_of(m)} | {1e3 * step[m]:.1f} ms | {rate / 1e9:.1f} | {rate / triad:.2f} | "
              f"{1e3 * prompt[m]:.0f} ms | {flops / 1e9:.1f} | {flops / peak:.2f} |")
    for m in a.models:
        table(f"{name_of(m)}, prompt of {a.prompt}", prompt_nodes[m], triad, peak, a.shares)
        table(f"{name_of(m)}, step on {a.past}", step_nodes[m], triad, peak, a.shares)


if __name__ == "__main__":
    main()
