"""paid.py BUILD WORK: every price of a kernel in schemas/prices.def is paid for what it says. On a machine where all else is free, one price
is set, and the seconds of one node of a small graph must be as many as it has to pay, by hand."""
import json
import math
import os
import re
import subprocess
import sys

RATE = 1e9


def ones(n):
    return "[" + ", ".join(["1"] * n) + "]"


def conv(channels, group=1, filters=3):
    each = channels // group
    return (f"input x: f32[1, {channels}, 6, 6] const w: f32[{filters}, {each}, 3, 3] = {ones(filters * each * 9)} "
            f"node y: y: f32[1, {filters}, 4, 4] = Conv(x, w) {{group = {group}}} output y")


def integer_conv(channels, group=1, filters=3):
    each = channels // group
    return (f"input x: u8[1, {channels}, 6, 6] const s: f32[] = [0.5] const w: i8[{filters}, {each}, 3, 3] = {ones(filters * each * 9)} "
            f"node d: d: f32[1, {channels}, 6, 6] = DequantizeLinear(x, s) node e: e: f32[{filters}, {each}, 3, 3] = DequantizeLinear(w, s) "
            f"node y: y: f32[1, {filters}, 4, 4] = Conv(d, e) {{group = {group}}} "
            f"node q: q: u8[1, {filters}, 4, 4] = QuantizeLinear(y, s) output q")


def unary(op, n, result="f32"):
    return f"input x: f32[{n}] node y: y: {result}[{n}] = {op} output y"


def streamed(weight, make):
    return f"input x: f32[1, 64] {weight} node y: y: f32[1, 32] = {make} output y"


PRODUCT = f"input x: f32[16, 32] const w: f32[32, 8] = {ones(256)} node y: y: f32[16, 8] = MatMul(x, w) output y"
HALVES = (f'input x: bf16[1, 64] const w: bf16[64, 32] = hex "{"803f" * 2048}" '
          "node y: y: bf16[1, 32] = MatMul(x, w) output y")
NBITS = "com.microsoft::MatMulNBits(x, w, s) {{K = 64, N = 32, block_size = 32, bits = {}, accuracy_level = 4}}"
CODES = streamed(f'const w: u8[32, 2, 16] = hex "{"77" * 1024}" const s: f32[32, 2] = {ones(64)}', NBITS.format(4))
BYTES = streamed(f'const w: u8[32, 2, 32] = hex "{"77" * 2048}" const s: f32[32, 2] = {ones(64)}', NBITS.format(8))
DECODED = streamed(f'const w: u8[64, 32] = hex "{"77" * 2048}" origin w const s: f32[] = [0.5] node d: d: f32[64, 32] = DequantizeLinear(w, s)',
                   "MatMul(x, d)")
# One of 4 experts as exporters write them, and a row that chose two. The mask compares each choice with all experts or with this one, or it says
# which rows have such a choice.
MATRIX = 4 * (64 + 64 * 64 + 64)


def expert(mask, row="row"):
    return (f"input x: f32[1, 64] input s: f32[1, 4] const none: i64[] = [0] const at: i64[] = [1] const third: i64[] = [2] const three: i64[1] = [3] "
            f"const four: i64[] = [4] const two: i64[1] = [2] const v: i64[2] = [0, 1] const w: f32[64, 64] = {ones(4096)} "
            f"node top: best: f32[1, 2], id: i64[1, 2] = TopK(s, two) {mask} node z: z: i64[2, r] = NonZero(m) "
            f"node k: k: i64[r] = Gather(z, {row}) {{axis = 0}} node g: g: f32[r, 64] = Gather(x, k) {{axis = 0}} "
            "node y: y: f32[r, 64] = MatMul(g, w) output y")


ONE_HOT = expert("node h: h: i64[1, 2, 4] = OneHot(id, four, v) node t: t: i64[4, 2, 1] = Transpose(h) {perm = [2, 1, 0]} "
                 "node m: m: i64[2, 1] = Gather(t, third) {axis = 0}", "at")
EQUAL = expert("node f: f: i32[1, 2] = Cast(id) {to = 6} const e: i32[] = [2] node m: m: bool[1, 2] = Equal(e, f)", "none")
ANY = "node e: e: bool[1, 2] = Equal(id, third) node c: c: i64[1, 2] = Cast(e) {to = 7} const last: i64[1] = [1] "
UNITED = [expert(ANY + "node m: m: i64[1, 1] = ReduceMax(c, last)", "none"),
          expert(ANY + "node u: u: i64[1, 1] = ReduceSum(c, last) node m: m: bool[1, 1] = Greater(u, none)", "none"),
          expert(ANY + "node u: u: i64[1, 1] = ReduceSum(c, last) node q: q: bool[1, 1] = Equal(u, none) node m: m: bool[1, 1] = Not(q)", "none")]
OTHERS = expert("node e: e: bool[1, 2] = Equal(id, third) node m: m: bool[1, 2] = Not(e)", "none")


def sorted_experts(counts, end):
    """Of all rows in the order of their experts, each of 4 experts takes its part, between two running counts. What follows has all rows again."""
    each = [f"node q{e}: l{e}: i64[] = Squeeze(e{e}) node k{e}: k{e}: i64[n{e}] = Range({f'l{e - 1}' if e else 'none'}, l{e}, one) "
            f"node g{e}: g{e}: f32[n{e}, 64] = Gather(rows, k{e}) {{axis = 0}} " for e in range(4)]
    return (f"input x: f32[1, 64] input s: f32[1, 4] const none: i64[] = [0] const one: i64[] = [1] const two: i64[1] = [2] const all: i64[1] = [-1] "
            f"const four: i64[] = [4] const v: i64[2] = [0, 1] const first: i64[1] = [0] const zeros: i64[4] = [0, 0, 0, 0] const ones: i64[2] = [1, 1] "
            f"const w: f32[64, 64] = {ones(4096)} node top: best: f32[1, 2], id: i64[1, 2] = TopK(s, two) node f: f: i64[2] = Reshape(id, all) "
            f"node o: sorted: i64[2], order: i64[2] = TopK(f, two) {{largest = 0}} node h: at: i64[2] = Div(order, two) "
            f"node r: rows: f32[2, 64] = Gather(x, at) {{axis = 0}} {counts} node cs: ends: i64[4] = CumSum(n, none) "
            f"node sp: e0: i64[1], e1: i64[1], e2: i64[1], e3: i64[1] = Split(ends) {{axis = 0, num_outputs = 4}} {''.join(each)} {end} output y")


ADDED = 'node n: n: i64[4] = ScatterElements(zeros, f, ones) {reduction = "add"}'
ONE_OF_SORTED = "node y: y: f32[n2, 64] = MatMul(g2, w)"
JOINED = "node j: j: ? = Concat(g0, g1, g2, g3) {axis = 0} "
SORTED = [(sorted_experts(ADDED, ONE_OF_SORTED), (1 - (3 / 4) ** 2) * MATRIX),
          (sorted_experts("node ho: ho: i64[2, 4] = OneHot(f, four, v) node n: n: i64[4] = ReduceSum(ho, first) {keepdims = 0}", ONE_OF_SORTED),
           (1 - (3 / 4) ** 2) * MATRIX),
          (sorted_experts(ADDED, JOINED + "node y: y: ? = MatMul(j, w)"), 4 * (4 * 64 + 64 * 64 + 4 * 64)),
          (sorted_experts(ADDED, JOINED + "input share: f32[B, 1] node m: m: ? = Mul(j, share) node y: y: ? = MatMul(m, w)"),
           4 * (64 + 64 * 64 + 64))]
LOOKUP = f"const w: f32[64, 32] = {ones(64 * 32)} input i: i64[5] node y: y: f32[5, 32] = Gather(w, i) {{axis = 0}} output y"
PLACES = 3 * 4 * 4 * 9  # products of one channel in all results of a convolution
# what it costs: the key and its value, what else is not free; the graph; and how often the price is paid
CASES = [
    ("flops", RATE, {}, PRODUCT, 2 * 16 * 32 * 8 / RATE),
    ("integer_speed", 0.5, {"flops": RATE}, CODES, 2 * 64 * 32 / RATE / 0.5),
    ("integer_speed", 0.5, {"flops": RATE}, DECODED, 3 * 2 * 64 * 32 / RATE / 0.5),  # activations are rounded to 3 times 8 bits
    ("bf16_speed", 0.5, {"flops": RATE}, HALVES, 2 * 64 * 32 / RATE / 0.5),
    ("conv_speed", 0.5, {"flops": RATE}, conv(4), 2 * 4 * PLACES / RATE / 0.5),
    ("depthwise_speed", 0.5, {"flops": RATE}, conv(3, 3), 2 * PLACES / RATE / 0.5),
    ("integer_conv_speed", 0.5, {"flops": RATE}, integer_conv(4), 2 * 4 * PLACES / RATE / 0.5),
    ("integer_conv_speed", 0.5, {"flops": RATE}, integer_conv(3, 3), 4 * 2 * PLACES / RATE / 0.5),
    ("vector_lanes", 16, {"flops": RATE}, conv(4), 16 / 3 * 2 * 4 * PLACES / RATE),
    ("memory_bandwidth", RATE, {"machine_memory_bandwidth": RATE}, PRODUCT, 4 * (16 * 32 + 32 * 8 + 16 * 8) / RATE),
    ("memory_bandwidth", RATE, {"machine_memory_bandwidth": RATE}, ONE_HOT, (1 - (3 / 4) ** 2) * MATRIX / RATE),
    ("memory_bandwidth", RATE, {"machine_memory_bandwidth": RATE}, EQUAL, (1 - (3 / 4) ** 2) * MATRIX / RATE),
    *(("memory_bandwidth", RATE, {"machine_memory_bandwidth": RATE}, united, 2 / 4 * MATRIX / RATE) for united in UNITED),
    *(("memory_bandwidth", RATE, {"machine_memory_bandwidth": RATE}, graph, size / RATE) for graph, size in SORTED),
    ("memory_bandwidth", RATE, {"machine_memory_bandwidth": RATE}, OTHERS, 4 * (2 * 64 + 64 * 64 + 2 * 64) / RATE),
    ("memory_bandwidth", RATE, {"machine_memory_bandwidth": RATE}, LOOKUP, 4 * 5 * 32 / RATE),
    ("node_overhead", 1, {}, ONE_HOT, 1),
    ("half_bandwidth", RATE, {"machine_half_bandwidth": RATE}, HALVES, 2 * 64 * 32 / RATE),
    ("byte_bandwidth", RATE, {"machine_byte_bandwidth": RATE}, BYTES, (64 * 32 + 4 * 64) / RATE),
    ("code_bandwidth", RATE, {"machine_code_bandwidth": RATE}, CODES, (64 * 16 + 4 * 64) / RATE),
    ("pass_bandwidth_1m", RATE, {}, unary("Relu(x)", 1024), 8 * 1024 / RATE),
    ("pass_bandwidth_4m", RATE, {}, unary("Relu(x)", 1 << 20), 8 * (1 << 20) / RATE),
    ("pass_bandwidth_1m", RATE, {"pass_bandwidth_4m": RATE / 3}, unary("Relu(x)", 1 << 18), 8 * (1 << 18) / (RATE * 2 / 3)),
    ("node_overhead", 1, {}, PRODUCT, 1),
    ("node_overhead", 1, {}, unary("Relu(x)", 8), 1),
    ("node_overhead", 1, {}, conv(4), 5 + 1),  # its operand is brought to channels last
    ("function_seconds", 1, {}, unary("Erf(x)", 100), 100),
    ("function_seconds", 1, {}, unary("Softmax(x)", 100), 100),
    ("function_seconds", 1e-6, {"pass_bandwidth_1m": RATE}, unary("Exp(x)", 100), 100e-6 + 8 * 100 / RATE),
    ("flops", RATE, {"memory_bandwidth": RATE, "machine_memory_bandwidth": RATE}, PRODUCT, 2 * 16 * 32 * 8 / RATE),
    ("code_seconds", 1, {}, "const s: f32[] = [0.5] " + unary("QuantizeLinear(x, s)", 100, "u8"), 100),
    ("code_seconds", 1, {}, "input x: f32[100] node y: y: u8[100], s: f32[], z: u8[] = DynamicQuantizeLinear(x) output y output s output z", 200),
    ("code_seconds", 1, {}, integer_conv(4), 1.4 * 3 * 4 * 4),
    ("row_seconds", 1, {}, "input x: f32[100, 8] input z: f32[100, 8] node y: y: f32[100, 16] = Concat(x, z) {axis = 1} output y", 200),
    ("row_seconds", 1, {}, "input x: f32[100, 24] input z: f32[1, 24] node y: y: f32[100, 24] = Mul(x, z) output y", 100),
    ("turn_seconds", 1, {}, "input x: f32[100, 24] node y: y: f32[24, 100] = Transpose(x) {perm = [1, 0]} output y", 2400),
    ("turn_seconds", 1, {}, f"input x: f32[1, 4, 6, 6] const w: f32[4, 3, 3, 3] = {ones(108)} "
     "node y: y: f32[1, 3, 8, 8] = ConvTranspose(x, w) output y", 2 * 3 * 8 * 8 * 9 + 3 * 8 * 8),  # its result is brought to channels first
]


def experts(n, hidden, inner, k, rows):
    return (f"input x: f32[{rows}, {hidden}] input r: f32[{rows}, {n}] const a: f32[{n}, {inner}, {hidden}] = {ones(n * inner * hidden)} "
            f"const b: f32[{n}, {hidden}, {inner}] = {ones(n * inner * hidden)} "
            f"node y: y: f32[{rows}, {hidden}] = com.microsoft::MoE(x, r, a, _, b) {{k = {k}, activation_type = \"relu\"}} output y")


def weighted_experts(n, hidden, inner, k, rows, zeros="Expand(zero, s)"):
    """Weights of rows for all experts: zero except for k of them."""
    graph = experts(n, hidden, inner, n, rows).replace("com.microsoft::MoE(x, r, a, _, b)", "tpc::Experts(x, w, a, _, b, _, _, _, w)")
    return (f"const zero: f32[] = [0] const k: i64[1] = [{k}] " + graph.replace("node y", "node s: s: ? = Shape(r) node z: z: ? = " + zeros + " "
            "node top: best: ?, id: ? = TopK(r, k) node w: w: ? = ScatterElements(z, id, best) {axis = 1} node y", 1))


def coded_experts(n, hidden, inner, k, rows):
    return (f'input x: f32[{rows}, {hidden}] input r: f32[{rows}, {n}] const a: u8[{n}, {inner}, {hidden}] = hex "{"77" * (n * inner * hidden)}" '
            f'const s: f32[{n}, {inner}] = {ones(n * inner)} const b: u8[{n}, {hidden}, {inner}] = hex "{"77" * (n * inner * hidden)}" '
            f'const t: f32[{n}, {hidden}] = {ones(n * hidden)} node y: y: f32[{rows}, {hidden}] = com.microsoft::QMoE(x, r, a, s, _, b, t) '
            f'{{k = {k}, expert_weight_bits = 8, activation_type = "relu"}} output y')


def larger_of_two(trials, p):
    below, larger = 0, 0
    for x in range(trials):
        below += math.comb(trials, x) * p ** x * (1 - p) ** (trials - x)
        larger += 1 - below ** 2
    return larger


# What the report says of --fast, by graph: the part of the time; None: nothing. Weights are read in half the bytes.
FAST = {"flops": RATE, "bf16_speed": 4}
READ = {"memory_bandwidth": RATE, "machine_memory_bandwidth": RATE, "half_bandwidth": RATE, "machine_half_bandwidth": RATE, "bf16_speed": 4}
FAST_CASES = [
    (FAST, PRODUCT, 0.25),
    (READ, streamed(f"const w: f32[64, 32] = {ones(64 * 32)}", "MatMul(x, w)"), (64 + 64 * 16 + 32) / (64 + 64 * 32 + 32)),
    ({**FAST, "bf16_speed": 1.2}, PRODUCT, None),  # a sixth
    (FAST, HALVES, None),  # they are multiplied in bf16 anyway
    (FAST, HALVES + " input a: f32[16, 32] input b: f32[32, 64] node z: z: f32[16, 64] = MatMul(a, b) output z", None),  # and so are all others
    (FAST, conv(4), None),
    (FAST, CODES, None),
]

TOLERANCE = 0.03  # of experts: their operands and routing are not free
# Experts on two ranks: the price, the graph, and what it takes by width and by expert, whether the rows travel or not. A row goes through k experts, wherever they are. By expert
# the slower rank counts: of 2 routes it has 1.5, were they drawn one after another; tpc takes two Poisson numbers of mean 1.
LARGEST_OF_ONE = 1.5238  # sum over x of 1 - P(x)^2, P of mean 1
DECODED = 2 + 14  # operations for a number of a row's experts that is decoded for it; for many rows, twice
SPLIT_CASES = [
    ("flops", experts(64, 8, 16, 2, 1), 2 * 2 * 2 * 8 * 16 / 2 / RATE, LARGEST_OF_ONE * 2 * 2 * 8 * 16 / RATE),
    ("flops", experts(64, 8, 16, 2, 512), 2 * 1024 * 2 * 8 * 16 / 2 / RATE, (512 + 0.5642 * 512 ** 0.5) * 2 * 2 * 8 * 16 / RATE),
    ("flops", weighted_experts(64, 8, 16, 2, 512), 2 * 1024 * 2 * 8 * 16 / 2 / RATE, (512 + 0.5642 * 512 ** 0.5) * 2 * 2 * 8 * 16 / RATE),
    ("flops", weighted_experts(64, 8, 16, 2, 512, "ConstantOfShape(s)"), 2 * 1024 * 2 * 8 * 16 / 2 / RATE,
     (512 + 0.5642 * 512 ** 0.5) * 2 * 2 * 8 * 16 / RATE),
    ("memory_bandwidth", experts(16, 64, 64, 2, 1), 2 * 4 * 2 * 64 * 64 / 2 / RATE, larger_of_two(8, 2 / 16) * 4 * 2 * 64 * 64 / RATE),
    ("flops", coded_experts(16, 32, 32, 2, 1), 2 * DECODED * 2 * 32 * 32 / 2 / RATE, LARGEST_OF_ONE * DECODED * 2 * 32 * 32 / RATE),
    ("flops", coded_experts(16, 32, 32, 2, 512), (2 * 1024 + 2 * 14 * 16) * 2 * 32 * 32 / 2 / RATE,
     (2 * (512 + 0.5642 * 512 ** 0.5) + 2 * 14 * 8) * 2 * 32 * 32 / RATE),
    ("turn_seconds", experts(64, 8, 16, 2, 512), 64 * 2 * 8 * 16 / 2, 32 * 2 * 8 * 16),
]


def dealt_experts():
    """4 experts that are nodes each; a row goes through two of them."""
    each = [f"const e{e}: i64[] = [{e}] const w{e}: f32[64, 64] = {ones(4096)} node m{e}: m{e}: bool[1, 2] = Equal(id, e{e}) node z{e}: z{e}: i64[2, r{e}] = NonZero(m{e}) "
            f"node k{e}: k{e}: i64[r{e}] = Gather(z{e}, e0) {{axis = 0}} node g{e}: g{e}: f32[r{e}, 64] = Gather(x, k{e}) {{axis = 0}} "
            f"node {'y' if e == 2 else f'h{e}'}: y{e}: f32[r{e}, 64] = MatMul(g{e}, w{e}) output y{e}" for e in range(4)]
    return f"input x: f32[1, 64] input s: f32[1, 4] const two: i64[1] = [2] node top: best: f32[1, 2], id: i64[1, 2] = TopK(s, two) {' '.join(each)}"


# On two ranks, each has two whole experts; the busiest rank's share of a row's two choices follows; tpc assumes a Poisson distribution of mean 1.
# It reads its row whatever it has of the expert, and makes as much of the result.
DEALT = (1 - (3 / 4) ** 2) * 4 * (64 + LARGEST_OF_ONE / 2 * (64 * 64 + 64)) / RATE


def price_rows(build):
    text = subprocess.run([os.path.join(build, "tests", "prices")], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in text.splitlines()]


def free_machine(rows):
    free = {"name": "free"}
    for kind, key, unit, value, _ in rows:
        if kind == "version":
            free[kind] = int(value)
        elif kind not in ("about", "level"):
            free[key] = float(value)
        if kind in ("price", "together"):
            free[key] = {"PRICE_SECONDS": 0, "PRICE_OPERATIONS": 1e30, "PRICE_BYTES": 1e30}.get(unit, 1)
    return free


def write(work, machine, graph):
    with open(f"{work}/paid.json", "w", encoding="utf-8") as f:
        json.dump(machine, f)
    with open(f"{work}/paid.graph", "w", encoding="utf-8") as f:
        f.write(f"graph g {{ opset 23 {graph} }}")


def seconds(build, work, machine, graph, ranks=1, constraints=()):
    write(work, machine, graph)
    with open(f"{work}/plan.json", "w", encoding="utf-8") as f:
        json.dump({"constraints": list(constraints)}, f)
    p = subprocess.run([f"{build}/tpc-shard", f"{work}/paid.graph", "--tp", str(ranks), "-n", "-q", "--machine", f"{work}/paid.json", "--report", "json",
                        "--plan", f"{work}/plan.json"], capture_output=True, text=True)
    if p.returncode:
        sys.exit(p.stderr)
    return sum(s["seconds"][0] for s in json.loads(p.stdout)["steps"] if s.get("node") == "y")


def told(build, work, machine, graph):
    """What the report says that --fast takes of the time; None: nothing."""
    write(work, machine, graph)
    report = subprocess.run([f"{build}/tpc-shard", f"{work}/paid.graph", "--tp", "1", "-n", "--machine", f"{work}/paid.json"],
                            capture_output=True, text=True, check=True).stdout
    found = re.search(r"^tpc-run --fast is predicted to take ([0-9.]+) of this time", report, re.MULTILINE)
    return found and float(found[1])


def main():
    build, work = sys.argv[1:3]
    prices, wrong = price_rows(build), 0
    free = free_machine(prices)
    for key, value, others, graph, expected in CASES:
        machine = {**free, **others, key: value}
        machine["machine_flops"] = machine["flops"]
        found = seconds(build, work, machine, graph)
        if abs(found - expected) > 1e-9 * expected:
            print(f"{key} = {value}: {found} seconds, expected {expected}: {graph:.200}")
            wrong += 1
    for given, graph, expected in FAST_CASES:
        found = told(build, work, {**free, **given, "machine_flops": given.get("flops", free["flops"])}, graph)
        if (found is None) != (expected is None) or (expected and abs(found - expected) > 0.005):
            print(f"--fast: {found} of the time, expected {expected}: {graph:.200}")
            wrong += 1
    for key, graph, *both in SPLIT_CASES:
        value = {"turn_seconds": 1}.get(key, RATE)
        machine = {**free, key: value, "machine_ranks": 2, "link_bandwidth": 1e30, "hop_latency": 0, "collective_overhead": 0}
        machine.update({f"machine_{k}": 2 * value for k in ("flops", "memory_bandwidth") if k == key})
        for strategy, expected in zip(("R * S(1;*)* -> P(sum)", "R * S(0;*)* -> P(sum)", "S(0;*) S(0;*) S(0;*)* -> S(0;*)"), both + both[1:]):
            rows = [{"tensor": "x", "placement": "S(0)"}] if strategy.startswith("S") else []
            if rows and "input x: f32[1," in graph:  # nothing to split
                continue
            found = seconds(build, work, machine, graph, 2, [*rows, {"match": "y", "strategy": strategy}])
            if abs(found - expected) > TOLERANCE * expected:
                print(f"{key} = {value}, {strategy}: {found} seconds, expected {expected}: {graph:.200}")
                wrong += 1
    machine = {**free, "memory_bandwidth": RATE, "machine_memory_bandwidth": RATE}
    found = seconds(build, work, machine, dealt_experts(), 2, [{"weight": "w2", "placement": "S(1; t2:64:0-64/-)"}])
    if abs(found - DEALT) > 1e-4 * DEALT:
        print(f"an expert that is dealt: {found} seconds, expected {DEALT}")
        wrong += 1
    unpaid = {key for kind, key, *_ in prices if kind == "price"} - {key for key, *_ in CASES}
    for key in unpaid:
        print(f"{key}: no case")
    return wrong + len(unpaid) > 0


if __name__ == "__main__":
    sys.exit(main())
