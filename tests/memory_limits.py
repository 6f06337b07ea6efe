"""What tpc-shard --memory says of a limit, against all plans of small graphs.

    python3 tests/memory_limits.py TPC_SHARD FOLDER

A graph of five products of one input, and random graphs of products and functions, on 2 and 3 ranks and with --sp. Each plan is forced by a
plan file: for every node one of the strategies that --explain lists. For limits at which one of them just fits: the plan found fits, it
costs no more than the cheapest that fits (within 0.1 %, as every plan), and none that fits is below the lower bound.
"""
import itertools, json, pathlib, random, re, subprocess, sys

SHARD, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
NEAR = 1.001
LIMITS = 6  # of a graph
SIZES = [48, 96, 128, 176, 224, 312]


class Graph:
    def __init__(self, name, nodes, consts, outputs, options):
        self.path, self.options = FOLDER / f"{name}.graph", options
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
        return found and (found["memory"]["reached"], found["cost"]["objective"])

    def plans(self):
        """With links so slow that the fastest plan splits little."""
        machine = self.planned()["machine"] | {"name": "slow links", "link_bandwidth": 2e8}
        (FOLDER / "slow.json").write_text(json.dumps(machine))
        self.machine = "--machine", FOLDER / "slow.json"
        return [p for ways in itertools.product(*map(self.strategies, self.nodes)) if (p := self.forced(ways))]


def weight(name, rows, columns, at):
    return f'const {name}: f32[{rows}, {columns}] = file "{FOLDER}/weights" {at} {rows * columns * 4}'


def five_products():
    consts, at = [], 0
    for i, n in enumerate([96, 128, 176, 224, 312]):
        consts.append(weight(f"w{i}", 64, n, at))
        at += 64 * n * 4
    nodes = [f"node n{i}: y{i}: ? = MatMul(x, w{i})" for i in range(5)]
    return Graph("five", nodes, consts, [f"y{i}" for i in range(5)], ["--tp", "2"])


def random_graph(seed):
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
    return Graph(f"random{seed}", nodes, consts, outputs, ["--tp", str(2 + seed % 2), *["--sp=auto"] * (seed % 3 == 2)])


def check(graph):
    plans = graph.plans()
    held = sorted({bytes for bytes, _ in plans})
    faults = proven = 0
    for limit in held[:: max(1, len(held) // LIMITS)]:
        best = min(cost for bytes, cost in plans if bytes <= limit)
        found = graph.planned("--memory", str(limit), *graph.machine)
        cost, bound = found["cost"]["objective"], found["cost"]["lower_bound"]
        good = found["memory"]["reached"] <= limit and bound <= best * (1 + 1e-6) and cost <= best * NEAR
        faults += not good
        proven += found["cost"]["proven"]
        print(f"{graph.path.stem}, {limit}: holds {found['memory']['reached']}, costs {cost:.4g}, at least {bound:.4g}; "
              f"the cheapest that fits {best:.4g}{'' if good else ': wrong'}")
    print(f"{len(plans)} plans, {len(held)} limits, {proven} proven")
    return faults


def main():
    with open(FOLDER / "weights", "wb") as f:
        f.truncate(1 << 21)
    sys.exit(sum(check(g) for g in [five_products(), *map(random_graph, range(6))]) > 0)


main()
