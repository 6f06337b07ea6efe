#!/usr/bin/env python3
"""Predicted times of mixtures of experts beside measured ones, for each form in which models hold them:  experts.py BUILD [FORM...]

Forms:
  moe       com.microsoft::MoE
  qmoe      com.microsoft::QMoE, 4 bits in blocks of 32
  weighted  tpc::Experts, the form of moe with a weight for each row and expert
  masks     nodes for each expert; NonZero finds its rows in a OneHot mask (optimum, torch.onnx of TorchScript)
  equal     the same; a mask compares the choices with the number of the expert
  sorted    rows in the order of their experts; each expert takes those between two running counts (transformers' OnnxExporter)
  dense     every expert on every row, gated in turn, with biases; weights of 0 take out those that a row has not chosen (GPT-OSS)
  gathered  each row gathers the matrices of its experts (transformers' batched_mm)

One layer of --experts experts, of which a row takes --k; an expert is fc2 silu(fc1 x). Plans: one rank; --ranks ranks, every expert split by width;
the same with a part of the experts each; the same with rows that are split and travel to their experts (not of experts that are nodes). The matrices
that a token meets should exceed the caches. Calibrates two ranks first. With fewer cores than ranks, times say little: what is printed are ratios
to those of the plan by width.

Runs of all plans and tokens of a form take turns. The least time of each input counts, and --inputs of them are averaged where tokens are few,
for by expert a rank's work depends on them. gathered has --few tokens at most, for it copies a matrix for each row.
RUN in the environment: what starts every run ("chrt -f 50").
"""
import argparse
import collections
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

from graph_text import GraphText

PLANS = {"whole": "1 rank", "width": "by width", "expert": "by expert", "travel": "rows travel"}
MIXTURE = {"moe": "y", "qmoe": "y", "weighted": "y", "dense": "y/experts"}  # the node; tpc makes that of dense
MANY = 64  # tokens, of which each expert has its share
RUN = os.environ.get("RUN", "").split()


class Model(GraphText):
    def __init__(self, args, path):
        self.a, self.batch = args, False
        super().__init__(path, 4 * (2 * args.experts * args.hidden * args.inner))

    def text(self):
        return "graph experts { opset 23 input x: f32[%sT, %d]\n%s\noutput y }\n" % ("1, " * self.batch, self.a.hidden, "\n".join(self.lines))


def route(m, rows="x"):
    a = m.a
    m.weight("gate", a.hidden, a.experts)
    m.ints("k", a.k)
    m.node("scores", f"MatMul({rows}, gate)")
    m.node("probs", "Softmax(scores) {axis = 1}")
    m.node("best,id", "TopK(probs, k)")


def stacked(m, inside=""):
    a = m.a
    m.weight("up", a.experts, a.inner, a.hidden)
    m.weight("down", a.experts, a.hidden, a.inner)
    return f'{{k = {a.k}, activation_type = "silu"{inside}}}'


def moe(m):
    route(m)
    m.node("y", f"com.microsoft::MoE(x, scores, up, _, down) {stacked(m)}")


def qmoe(m):
    a = m.a
    route(m)
    m.weight("up", a.experts, a.inner, a.hidden // 2, dtype="u8")
    m.weight("up_scales", a.experts, a.inner, a.hidden // 32)
    m.weight("down", a.experts, a.hidden, a.inner // 2, dtype="u8")
    m.weight("down_scales", a.experts, a.hidden, a.inner // 32)
    m.node("y", f'com.microsoft::QMoE(x, scores, up, up_scales, _, down, down_scales) {{k = {a.k}, activation_type = "silu", '
                "expert_weight_bits = 4, block_size = 32}")


def weighted(m):
    route(m)
    m.lines.append("const zero: f32[] = [0]")
    m.node("shape", "Shape(scores)")
    m.node("zeros", "Expand(zero, shape)")
    m.node("weights", "ScatterElements(zeros, id, best) {axis = 1}")
    how = stacked(m).replace(f"k = {m.a.k}", f"k = {m.a.experts}")
    m.node("y", f"tpc::Experts(x, weights, up, _, down, _, _, _, weights) {how}")


def silu(m, x, name):
    m.node(f"{name}_sigmoid", f"Sigmoid({x})")
    return m.node(f"{name}_act", f"Mul({x}, {name}_sigmoid)")


def expert(m, e, rows):
    m.weight(f"up{e}", m.a.hidden, m.a.inner)
    m.weight(f"down{e}", m.a.inner, m.a.hidden)
    m.node(f"h{e}", f"MatMul({rows}, up{e})")
    return m.node(f"y{e}", f"MatMul({silu(m, f'h{e}', f'h{e}')}, down{e})")


def nodes_each(m, mask):
    """mask(e): the value of [k, T] that is true where a row chose the expert, which NonZero reads."""
    route(m)
    m.ints("first", 0, scalar=True)
    m.ints("second", 1, scalar=True)
    m.ints("choices", m.a.k, scalar=True)
    m.ints("axis", 1)
    m.ints("all", -1)
    m.lines.append("const zero: f32[] = [0]")
    m.node("shape", "Shape(x)")
    m.node("flat", "Reshape(best, all)")
    total = m.node("total", "Expand(zero, shape)")
    for e in range(m.a.experts):
        chosen = mask(e)
        m.node(f"found{e}", f"NonZero({chosen})")
        m.node(f"slot{e}", f"Gather(found{e}, first) {{axis = 0}}")
        m.node(f"row{e}", f"Gather(found{e}, second) {{axis = 0}}")
        y = expert(m, e, m.node(f"rows{e}", f"Gather(x, row{e}) {{axis = 0}}"))
        m.node(f"place{e}", f"Mul(row{e}, choices)")
        m.node(f"index{e}", f"Add(place{e}, slot{e})")
        m.node(f"picked{e}", f"Gather(flat, index{e})")
        m.node(f"share{e}", f"Unsqueeze(picked{e}, axis)")
        m.node(f"part{e}", f"Mul({y}, share{e})")
        m.node(f"to{e}", f"Unsqueeze(row{e}, axis)")
        total = m.node(f"total{e}", f'ScatterND({total}, to{e}, part{e}) {{reduction = "add"}}')
    m.node("y", f"Identity({total})")


def masks(m):
    def mask(e):
        if e == 0:
            m.ints("depth", m.a.experts, scalar=True)
            m.ints("ends", 0, 1)
            m.node("hot", "OneHot(id, depth, ends)")
            m.node("turned", "Transpose(hot) {perm = [2, 1, 0]}")
        m.ints(f"number{e}", e, scalar=True)
        return m.node(f"mask{e}", f"Gather(turned, number{e}) {{axis = 0}}")
    nodes_each(m, mask)


def equal(m):
    def mask(e):
        if e == 0:
            m.node("turned", "Transpose(id) {perm = [1, 0]}")
        m.ints(f"number{e}", e, scalar=True)
        return m.node(f"mask{e}", f"Equal(turned, number{e})")
    nodes_each(m, mask)


def sorted_rows(m):
    a = m.a
    route(m)
    m.ints("first", 0, scalar=True)
    m.ints("second", 1, scalar=True)
    m.ints("axis", 1)
    m.ints("all", -1)
    m.ints("counts0", *([0] * a.experts))
    m.ints("pairs", -1, a.k, a.hidden)
    m.node("ids", "Reshape(id, all)")
    m.node("length", "Shape(ids)")
    m.node("in_order,order", "TopK(ids, length) {largest = 0}")
    m.node("sources", "Div(order, k)")
    m.node("sent", "Gather(x, sources) {axis = 0}")
    m.node("one_each", "Expand(second, length)")
    m.node("counts", 'ScatterElements(counts0, in_order, one_each) {reduction = "add"}')
    m.node("ends", "CumSum(counts, first)")
    m.node(",".join(f"end{e}" for e in range(a.experts)), f"Split(ends) {{axis = 0, num_outputs = {a.experts}}}")
    at, results = "first", []
    for e in range(a.experts):
        to = m.node(f"limit{e}", f"Squeeze(end{e})")
        m.node(f"range{e}", f"Range({at}, {to}, second)")
        results.append(expert(m, e, m.node(f"rows{e}", f"Gather(sent, range{e}) {{axis = 0}}")))
        at = to
    m.node("joined", f"Concat({', '.join(results)}) {{axis = 0}}")
    m.node("flat", "Reshape(best, all)")
    m.node("picked", "Gather(flat, order)")
    m.node("shares", "Unsqueeze(picked, axis)")
    m.node("parts", "Mul(joined, shares)")
    m.node("count", "Squeeze(length)")
    m.node("numbers", "Range(first, count, second)")
    m.node("back", "ScatterElements(order, order, numbers)")
    m.node("returned", "Gather(parts, back) {axis = 0}")
    m.node("by_row", "Reshape(returned, pairs)")
    m.node("y", "ReduceSum(by_row, axis) {keepdims = 0}")


def gathered(m):
    a = m.a
    route(m)
    stacked(m)
    m.ints("axis", 1)
    m.ints("last", -1)
    m.ints("all", -1)
    m.ints("one_row", -1, 1, a.hidden)
    m.ints("choices", 1, a.k, 1)
    m.ints("column", -1, a.hidden, 1)
    m.ints("pairs", -1, a.k, a.hidden)
    m.node("ids", "Reshape(id, all)")
    m.node("rows", "Reshape(x, one_row)")
    m.node("each", "Tile(rows, choices)")
    m.node("columns", "Reshape(each, column)")
    m.node("ups", "Gather(up, ids) {axis = 0}")
    m.node("h", "MatMul(ups, columns)")
    m.node("downs", "Gather(down, ids) {axis = 0}")
    m.node("z", f"MatMul(downs, {silu(m, 'h', 'h')})")
    m.node("flat", "Reshape(best, all)")
    m.node("share", "Unsqueeze(flat, axis)")
    m.node("results", "Squeeze(z, last)")
    m.node("part", "Mul(results, share)")
    m.node("by_row", "Reshape(part, pairs)")
    m.node("y", "ReduceSum(by_row, axis) {keepdims = 0}")


def dense(m):
    a, m.batch = m.a, True
    m.ints("all", -1, a.hidden)
    m.node("rows", "Reshape(x, all)")
    route(m, "rows")
    m.weight("up", a.experts, a.hidden, 2 * a.inner)
    m.weight("up_bias", a.experts, 1, 2 * a.inner)
    m.weight("down", a.experts, a.inner, a.hidden)
    m.weight("down_bias", a.experts, 1, a.hidden)
    m.ints("often", a.experts, 1)
    m.ints("each", a.experts, -1, a.hidden)
    m.ints("apart", a.experts, 1, -1, a.hidden)
    m.ints("single", a.experts, 1, -1)
    m.ints("end", 3)
    m.ints("first", 0)
    m.ints("second", 1)
    m.ints("two", 2)
    m.ints("last", 2 * a.inner)
    m.lines += [f"const {name}: f32[] = [{x}]" for name, x in (("zero", 0), ("one", 1), ("limit", 7), ("least", -7), ("alpha", 1.702))]
    m.node("shape", "Shape(scores)")
    m.node("zeros", "Expand(zero, shape)")
    m.node("weights", "ScatterElements(zeros, id, best) {axis = 1}")
    m.node("tiles", "Tile(rows, often)")
    m.node("copies", "Reshape(tiles, each)")
    m.node("product", "MatMul(copies, up)")
    m.node("biased", "Add(product, up_bias)")
    m.node("gates", "Slice(biased, first, last, two, two)")
    m.node("values", "Slice(biased, second, last, two, two)")
    m.node("below", "Clip(gates, _, limit)")
    m.node("within", "Clip(values, least, limit)")
    m.node("steep", "Mul(below, alpha)")
    m.node("sigmoid", "Sigmoid(steep)")
    m.node("open", "Mul(below, sigmoid)")
    m.node("more", "Add(within, one)")
    m.node("inner", "Mul(more, open)")
    m.node("outer", "MatMul(inner, down)")
    m.node("results", "Add(outer, down_bias)")
    m.node("by_row", "Reshape(results, apart)")
    m.node("turned", "Transpose(weights) {perm = [1, 0]}")
    m.node("column", "Reshape(turned, single)")
    m.node("share", "Unsqueeze(column, end)")
    m.node("parts", "Mul(by_row, share)")
    m.node("y", "ReduceSum(parts, first) {keepdims = 0}")


FORMS = {"moe": moe, "qmoe": qmoe, "weighted": weighted, "masks": masks, "equal": equal, "sorted": sorted_rows, "gathered": gathered, "dense": dense}


def constraints(form, by, args):
    if by == "travel":
        rows = f"S({int(form == 'dense')}"
        return [{"tensor": "x", "placement": f"{rows})"}, {"match": MIXTURE[form], "strategy": f"{rows};*) S(0;*) S(0;*)* -> {rows};*)"},
                {"tensor": "y", "placement": f"{rows})"}]
    if form in MIXTURE:
        return [{"match": MIXTURE[form], "strategy": f"R * S({int(by == 'width')};*)* -> P(sum)"}]
    if form == "gathered":
        return [{"weight": "up", "placement": "S(1)" if by == "width" else "S(0)"}, {"weight": "down", "placement": "S(2)" if by == "width" else "S(0)"}]
    if by == "width":
        return [{"weight": "up*", "placement": "S(1)"}, {"weight": "down*", "placement": "S(0)"}]
    whole = [f"t{args.ranks}:{args.inner}:" + "/".join(f"0-{args.inner}" if r == holder else "-" for r in range(args.ranks)) for holder in range(args.ranks)]
    return [{"weight": f"{name}{e}", "placement": f"S({d}; {whole[e % args.ranks]})"} for e in range(args.experts) for name, d in (("up", 1), ("down", 0))]


def command(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout


class Case:
    def __init__(self, args, work, form, by, tokens):
        self.args, self.form, self.by, self.tokens, self.ranks = args, form, by, tokens, 1 if by == "whole" else args.ranks
        self.folder = f"{work}/{form}.{by}"
        self.least = collections.defaultdict(lambda: float("inf"))

    def plan(self, work):
        with open(f"{work}/plan.json", "w", encoding="utf-8") as f:
            json.dump({"constraints": constraints(self.form, self.by, self.args) if self.ranks > 1 else []}, f)
        loads = [word for t in self.args.tokens for word in ("--workload", f"T={t}")]
        command(f"{self.args.build}/tpc-shard", f"{work}/{self.form}.graph", "--tp", str(self.ranks), "--machine", self.args.machine, "--plan", f"{work}/plan.json",
                "-q", "--force", "-o", self.folder, *loads)

    def predicted(self):
        with open(f"{self.folder}/plan.json", encoding="utf-8") as f:
            return json.load(f)["cost"]["workloads"][(self.args.tokens).index(self.tokens)]["seconds"] * 1e3

    def run(self):
        for seed in range(1, 1 + (self.args.inputs if self.tokens < MANY else 1)):
            out = command(*RUN, f"{self.args.build}/tpc-run", self.folder, "--local", str(self.ranks), "--threads", "1", "--random", str(seed), "--dim", f"T={self.tokens}",
                          "--repeat", str(self.args.repeat), "-q")
            self.least[seed] = min(self.least[seed], float(re.search(r"time: first .* then min ([0-9.]*),", out).group(1)))

    def measured(self):
        return statistics.mean(self.least.values())


def measure(args, work, form):
    with open(f"{work}/{form}.graph", "w", encoding="utf-8") as f:
        model = Model(args, f"{work}/weights")
        FORMS[form](model)
        f.write(model.text())
    tokens = [t for t in args.tokens if t <= args.few or form != "gathered"]
    cases = [Case(args, work, form, by, t) for by in args.by if by != "travel" or form in MIXTURE for t in tokens]
    for case in cases[::len(tokens)]:
        case.plan(work)
    for _ in range(args.rounds):
        for case in cases:
            case.run()
    rows = [(form, case.by, case.tokens, case.predicted(), case.measured()) for case in cases]
    for case in cases[::len(tokens)]:
        command("rm", "-rf", case.folder)
    return rows


def cell(times, over):
    """Predicted and measured milliseconds and their ratio; or both relative to another plan's."""
    if not times:
        return ""
    return f"{times[0] / over[0]:.2f}, {times[1] / over[1]:.2f}" if over else f"{times[0]:.4g}, {times[1]:.4g} ms, {times[0] / times[1]:.2f}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("forms", nargs="*", help=f"of {', '.join(FORMS)} (default: all)")
    p.add_argument("--by", nargs="+", default=list(PLANS), choices=list(PLANS))
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--experts", type=int, default=16)
    p.add_argument("--k", type=int, default=2)
    p.add_argument("--hidden", type=int, default=2048)
    p.add_argument("--inner", type=int, default=4096)
    p.add_argument("--tokens", type=int, nargs="+", default=[1, 8, 64, 512])
    p.add_argument("--few", type=int, default=8)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--repeat", type=int, default=8, help="runs of each round; the first does not count")
    p.add_argument("--inputs", type=int, default=8)
    p.add_argument("--machine", help="a profile made before")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/weights", "wb") as f:  # small numbers of both signs: the sign and the lowest exponent bits are random
            size = 8 * args.experts * args.hidden * args.inner
            draws = bytes(b & 0x83 | 0x3c for b in os.urandom(1 << 16))
            block = bytes(n for b in draws for n in (b, 85, b, 0x3c | b & 0x80))
            f.write((block * (size // len(block) + 1))[:size])
        if not args.machine:
            args.machine = f"{work}/machine.json"
            command(*RUN, f"{args.build}/tpc-run", "--local", "2", "--threads", "1", "--calibrate", args.machine)
        rows = [row for form in args.forms or FORMS for row in measure(args, work, form)]
    cores = len(os.sched_getaffinity(0))
    print("| form | tokens | " + " | ".join(PLANS[by] for by in args.by) + " |\n|" + "---|" * (2 + len(args.by)))
    found = {row[:3]: row[3:] for row in rows}
    for form, tokens in dict.fromkeys((form, tokens) for form, _, tokens, *_ in rows):
        cells = [cell(found.get((form, by, tokens)), found.get((form, "width", tokens)) if args.ranks > cores else None) for by in args.by]
        print(f"| {form} | {tokens} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
