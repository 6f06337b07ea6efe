"""paid.py BUILD SOURCE WORK: every price of a kernel in schemas/prices.def is paid for what it says. On a machine where all else is free, one price
is set, and the seconds of one node of a small graph must be as many as it has to pay, by hand."""
import json
import os
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
PLACES = 3 * 4 * 4 * 9  # products of one channel in all results of a convolution
# what it costs: the key and its value, what else is not free; the graph; and how often the price is paid
CASES = [
    ("flops", RATE, {}, PRODUCT, 2 * 16 * 32 * 8 / RATE),
    ("integer_speed", 0.5, {"flops": RATE}, CODES, 2 * 64 * 32 / RATE / 0.5),
    ("conv_speed", 0.5, {"flops": RATE}, conv(4), 2 * 4 * PLACES / RATE / 0.5),
    ("depthwise_speed", 0.5, {"flops": RATE}, conv(3, 3), 2 * PLACES / RATE / 0.5),
    ("integer_conv_speed", 0.5, {"flops": RATE}, integer_conv(4), 2 * 4 * PLACES / RATE / 0.5),
    ("integer_conv_speed", 0.5, {"flops": RATE}, integer_conv(3, 3), 4 * 2 * PLACES / RATE / 0.5),
    ("vector_lanes", 16, {"flops": RATE}, conv(4), 16 / 3 * 2 * 4 * PLACES / RATE),
    ("memory_bandwidth", RATE, {"machine_memory_bandwidth": RATE}, PRODUCT, 4 * (16 * 32 + 32 * 8 + 16 * 8) / RATE),
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


def price_rows(build):
    text = subprocess.run([os.path.join(build, "tests", "prices")], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in text.splitlines()]


def version_of(source):
    with open(os.path.join(source, "schemas/machines/reference.json"), encoding="utf-8") as f:
        return json.load(f)["version"]


def free_machine(rows, source):
    free = {"name": "free", "version": version_of(source)}
    for kind, key, unit, value, _ in rows:
        if kind != "about":
            free[key] = float(value)
        if kind in ("price", "together"):
            free[key] = {"PRICE_SECONDS": 0, "PRICE_OPERATIONS": 1e30, "PRICE_BYTES": 1e30}.get(unit, 1)
    return free


def seconds(build, work, machine, graph):
    with open(f"{work}/paid.json", "w", encoding="utf-8") as f:
        json.dump(machine, f)
    with open(f"{work}/paid.graph", "w", encoding="utf-8") as f:
        f.write(f"graph g {{ opset 23 {graph} }}")
    p = subprocess.run([f"{build}/tpc-shard", f"{work}/paid.graph", "--tp", "1", "-n", "-q", "--machine", f"{work}/paid.json", "--report", "json"],
                       capture_output=True, text=True)
    if p.returncode:
        sys.exit(p.stderr)
    return sum(s["seconds"][0] for s in json.loads(p.stdout)["steps"] if s.get("node") == "y")


def main():
    build, source, work = sys.argv[1:4]
    rows, wrong = price_rows(build), 0
    free = free_machine(rows, source)
    for key, value, others, graph, expected in CASES:
        machine = {**free, **others, key: value}
        machine["machine_flops"] = machine["flops"]
        found = seconds(build, work, machine, graph)
        if abs(found - expected) > 1e-9 * expected:
            print(f"{key} = {value}: {found} seconds, expected {expected}: {graph:.200}")
            wrong += 1
    unpaid = {key for kind, key, *_ in rows if kind == "price"} - {key for key, *_ in CASES}
    for key in unpaid:
        print(f"{key}: no case")
    return wrong + len(unpaid) > 0


if __name__ == "__main__":
    sys.exit(main())
