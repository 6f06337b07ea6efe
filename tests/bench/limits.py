#!/usr/bin/env python3
"""Prompts and steps of decoders beside what one core of this machine can do.

    limits.py BUILD [--rounds 3] [--past 128] [--prompt 128] MODEL.onnx...

A step reads the weights of products and the cache: their bytes over its time, beside STREAM's triad on huge pages. A prompt multiplies:
the operations of its products with weights and of causal attention over its time, beside the fastest product of SIZES that oneDNN
computes. A cache whose heads are shared counts once, so attention counts too little. Each round runs all in turn; the best of each
counts. Needs cc, oneDNN's header and library, and onnx."""
import argparse
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


def best(build, path, rows, past):
    dims = f"batch_size=1,sequence_length={rows},past_sequence_length={past}"
    out = subprocess.run([f"{build}/tpc-run", path, "--random", "--dim", dims, "--threads", "1", "--repeat", "6" if rows > 1 else "20", "-q"],
                         capture_output=True, text=True, check=True)
    return float(re.search(r"then min ([0-9.]+)", out.stdout + out.stderr)[1]) / 1e3


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("models", nargs="+")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--past", type=int, default=128)
    p.add_argument("--prompt", type=int, default=128)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as work:
        source, probe = f"{work}/probe.c", f"{work}/probe"
        with open(source, "w") as f:
            f.write(PROBE.replace("{SIZES}", "{" + ", ".join("{%d, %d, %d}" % s for s in SIZES) + "}"))
        subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-fopenmp", source, "-ldnnl", "-o", probe], check=True)
        triad = peak = 0.0
        step, prompt = {m: float("inf") for m in a.models}, {m: float("inf") for m in a.models}
        for _ in range(a.rounds):
            now = [float(x) for x in subprocess.run([probe], capture_output=True, text=True, check=True).stdout.split()]
            triad, peak = max(triad, now[0]), max(peak, now[1])
            for m in a.models:
                step[m] = min(step[m], best(a.build, m, 1, a.past))
                prompt[m] = min(prompt[m], best(a.build, m, a.prompt, 0))
    print(f"| model | step on {a.past} | GB/s | of {triad / 1e9:.1f} | prompt of {a.prompt} | GF/s | of {peak / 1e9:.1f} |\n" + "|---" * 7 + "|")
    for m in a.models:
        weights, cache = products(m)
        rate, flops = 4 * (weights + cache * a.past) / step[m], (2 * weights * a.prompt + cache * a.prompt**2) / prompt[m]
        print(f"| {os.path.basename(os.path.dirname(m))} | {1e3 * step[m]:.1f} ms | {rate / 1e9:.1f} | {rate / triad:.2f} | "
              f"{1e3 * prompt[m]:.0f} ms | {flops / 1e9:.1f} | {flops / peak:.2f} |")


if __name__ == "__main__":
    main()
