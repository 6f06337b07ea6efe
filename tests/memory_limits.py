"""What tpc-shard --memory says of a limit, against all plans of small graphs.

    python3 tests/memory_limits.py TPC_SHARD FOLDER PRODUCTS GRAPHS

A graph of up to five products of one input, and random graphs of products and functions, on 2 and 3 ranks, with --sp, and on unequal ranks. Each
plan is forced by a plan file: for every node one of the strategies that --explain lists. For limits at which one of them just fits, of all
ranks or by rank: the plan found fits, it costs no more than the cheapest of these that fits (within 0.1 %, as every plan), and none that fits
is below the lower bound. With limits by rank it may cost less: there are shares by what ranks may hold, too.
"""
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys

SHARD, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
PRODUCTS, GRAPHS = map(int, sys.argv[3:])
NEAR = 1.001
LIMITS = 6  # of a graph
SIZES = [48, 96, 128, 176, 224, 312]


class Graph:
    def __init__(self, name, nodes, consts, outputs, options, by_rank=False):
        self.path, self.options, self.by_rank = FOLDER / f"{name}.graph", options, by_rank
        self.nodes = [n.split(":")[0].split()[1] for n in nodes]
        lines = ["graph g {", "opset 23", "input x: f32[S, 64]", *consts, *nodes, *(f"output {o}" for o in outputs)]
        self.path.write_text("\n  ".join(lines) + "\n}\n")

    def run(self, *options):
        command = [SHARD, self.path, *self.options, "--workload", "S=16", "-n", *options]
        return subprocess.run(command, capture_output=True, text=True)

    def planned(self, *options):
        done = self.run("-q", "--report", "json", *options)
        if done.returncode > 1 or (done.returncode and "can't be" not in done.stderr):
            sys.exit(done.stderr)
        return None if done.returncode else json.loads(done.stdout)

    def strategies(self, node):
        found = re.findall(r"^  [* ] (\S.*? -> .*?)  +", self.run("--explain", node, *self.machine).stdout, re.M)
        assert found, node
        return found

    def forced(self, ways):
        plan = {"constraints": [{"match": n, "strategy": w} for n, w in zip(self.nodes, ways)]}
        (FOLDER / "forced.json").write_text(json.dumps(plan))
        found = self.planned("--plan", FOLDER / "forced.json", *self.machine)
        return found and (held_by(found), found["cost"]["objective"])

    def plans(self):
        """With links so slow that the fastest plan splits little."""
        machine = self.planned()["machine"] | {"name": "slow links", "link_bandwidth": 2e8}
        (FOLDER / "slow.json").write_text(json.dumps(machine))
        self.machine = "--machine", FOLDER / "slow.json"
        return [p for ways in itertools.product(*map(self.strategies, self.nodes)) if (p := self.forced(ways))]


def held_by(plan):
    """Bytes of each rank."""
    return tuple(sum(r[f"{what}_bytes"] for what in ("weight", "state", "peak", "block")) for r in plan["ranks"])


def fits(held, limits):
    return all(bytes <= limit for bytes, limit in zip(held, limits))


def weight(name, rows, columns, at):
    return f'const {name}: f32[{rows}, {columns}] = file "{FOLDER}/weights" {at} {rows * columns * 4}'


def products():
    consts, at = [], 0
    for i, n in enumerate([96, 128, 176, 224, 312][:PRODUCTS]):
        consts.append(weight(f"w{i}", 64, n, at))
        at += 64 * n * 4
    nodes = [f"node n{i}: y{i}: ? = MatMul(x, w{i})" for i in range(PRODUCTS)]
    return Graph("products", nodes, consts, [f"y{i}" for i in range(PRODUCTS)], ["--tp", "2"])


def random_graph(seed, speed=None):
    """Products, each of an earlier result, and functions."""
    draw, made, consts, nodes, at, read = random.Random(seed), [("x", 64)], [], [], 0, set()
    for i in range(3):
        of, rows = draw.choice(made[-2:])
        read.add(of)
        if i and draw.random() < 0.3:
            nodes.append(f"node n{i}: y{i}: ? = Relu({of})")
            made.append((f"y{i}", rows))
            continue
        columns = draw.choice(SIZES)
        consts.append(weight(f"w{i}", rows, columns, at))
        at += rows * columns * 4
        nodes.append(f"node n{i}: y{i}: ? = MatMul({of}, w{i})")
        made.append((f"y{i}", columns))
    outputs = [name for name, _ in made if name not in read]
    options = ["--tp", str(2 + seed % 2), *["--sp=auto"] * (seed % 3 == 2), *(["--speed", speed] if speed else [])]
    return Graph(f"random{seed}", nodes, consts, outputs, options, by_rank=speed is not None)


def limits_of(graph, plans):
    """Of all ranks, what the fullest holds in a plan; by rank, what each does."""
    held = sorted({held if graph.by_rank else (max(held),) * len(held) for held, _ in plans})
    return held[:: max(1, len(held) // LIMITS)]


def check(graph):
    plans = graph.plans()
    limits = limits_of(graph, plans)
    faults = proven = 0
    for limit in limits:
        best = min(cost for held, cost in plans if fits(held, limit))
        found = graph.planned("--memory", ",".join(map(str, limit if graph.by_rank else limit[:1])), *graph.machine)
        cost, bound = found["cost"]["objective"], found["cost"]["lower_bound"]
        good = fits(held_by(found), limit) and bound <= best * (1 + 1e-6) and cost <= best * NEAR
        faults += not good
        proven += found["cost"]["proven"]
        print(f"{graph.path.stem}, {limit}: holds {held_by(found)}, costs {cost:.4g}, at least {bound:.4g}; "
              f"the cheapest that fits {best:.4g}{'' if good else ': wrong'}")
    print(f"{len(plans)} plans, {len(limits)} limits, {proven} proven")
    return faults


def main():
    with open(FOLDER / "weights", "wb") as f:
        f.truncate(1 << 21)
    sys.exit(sum(check(g) for g in [products(), *map(random_graph, range(GRAPHS)), random_graph(6, "1,0.4"), random_graph(7, "0.5,1,0.8")]) > 0)


main()
