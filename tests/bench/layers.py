#!/usr/bin/env python3
"""Layers like those of large mixtures, planned by tpc and by the placements of vLLM:  layers.py BUILD [deepseek] [gpt-oss]

deepseek: latent attention (low-rank projections q_a and kv_a, then q_b and kv_b by heads), a shared expert, routed experts. gpt-oss: grouped
attention, routed experts of 4 bits. vLLM holds q_a, kv_a and the router on every rank, splits by heads and by the width of experts, and reduces
twice a layer: behind the attention's output and behind all experts.

Prints collectives of a layer and predicted times for --ranks, by the profile `reference` and with 25 us for a message. --measure: also times of two
ranks of this machine, of smaller layers, by a profile that is measured first; both plans take turns, the least times count.
--travel: where rows that --sp splits travel to their experts: by ranks and by the bandwidth of links.
RUN in the environment: what starts every run ("chrt -f 50").
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

from graph_text import GraphText

LAYERS = 2
RUN = os.environ.get("RUN", "").split()
SIZES = {"deepseek": dict(hidden=7168, heads=128, q_rank=1536, kv_rank=512, experts=64, k=8, inner=512, shared=2048),
         "gpt-oss": dict(hidden=2880, heads=64, experts=32, k=4, inner=2880)}
SMALL = {"deepseek": dict(hidden=2048, heads=16, q_rank=768, kv_rank=512, experts=16, k=2, inner=1024, shared=1024),
         "gpt-oss": dict(hidden=1440, heads=32, experts=16, k=2, inner=1440)}
WIDE = dict(hidden=1024, heads=16, experts=32, k=4, inner=1024)
NOPE, ROPE, VALUE, HEAD = 128, 64, 128, 64


class Layers(GraphText):
    def __init__(self, sizes, path):
        super().__init__(path, os.path.getsize(path))
        self.__dict__.update(sizes)

    def product(self, name, x, rows, columns):
        return self.node(name, f"MatMul({x}, {self.weight(f'{name}_w', rows, columns)})")

    def norm(self, name, x, width):
        return self.node(name, f"RMSNormalization({x}, {self.weight(f'{name}_g', width)})")

    def by_heads(self, name, x, *sizes):
        r = self.node(f"{name}_r", f"Reshape({x}, {self.ints(f'{name}_s', 0, 0, *sizes)})")
        return self.node(f"{name}_t", f"Transpose({r}) {{perm = [0, 2, 1, 3]}}")

    def latent(self, p, n):
        q = self.product(f"{p}q_b", self.norm(f"{p}q_n", self.product(f"{p}q_a", n, self.hidden, self.q_rank), self.q_rank), self.q_rank, self.heads * (NOPE + ROPE))
        kv = self.product(f"{p}kv_a", n, self.hidden, self.kv_rank + ROPE)
        self.node(f"{p}kv_c,{p}turned", f"Split({kv}, {self.ints(f'{p}parts', self.kv_rank, ROPE)}) {{axis = -1}}")
        kv = self.product(f"{p}kv_b", self.norm(f"{p}kv_n", f"{p}kv_c", self.kv_rank), self.kv_rank, self.heads * (NOPE + VALUE))
        self.node(f"{p}still,{p}v", f"Split({self.by_heads(f'{p}kv', kv, self.heads, NOPE + VALUE)}, {self.ints(f'{p}both', NOPE, VALUE)}) {{axis = -1}}")
        turned = self.node(f"{p}every", f"Expand({self.by_heads(f'{p}turn', f'{p}turned', 1, ROPE)}, {self.ints(f'{p}all', 1, self.heads, 1, 1)})")
        k = self.node(f"{p}k", f"Concat({p}still, {turned}) {{axis = -1}}")
        a = self.node(f"{p}att", f"Attention({self.by_heads(f'{p}q', q, self.heads, NOPE + ROPE)}, {k}, {p}v) {{is_causal = 1}}")
        a = self.node(f"{p}back", f"Transpose({a}) {{perm = [0, 2, 1, 3]}}")
        return self.product(f"{p}o", self.node(f"{p}rest", f"Reshape({a}, {self.ints(f'{p}flat', 0, 0, self.heads * VALUE)})"), self.heads * VALUE, self.hidden)

    def grouped(self, p, n):
        q, k, v = (self.product(f"{p}{name}", n, self.hidden, heads * HEAD) for name, heads in (("q", self.heads), ("k", self.heads // 8), ("v", self.heads // 8)))
        a = self.node(f"{p}att", f"Attention({q}, {k}, {v}) {{is_causal = 1, q_num_heads = {self.heads}, kv_num_heads = {self.heads // 8}}}")
        return self.product(f"{p}o", a, self.heads * HEAD, self.hidden)

    def mixture(self, p, n, coded):
        e, h, i = self.experts, self.hidden, self.inner
        scores = self.node(f"{p}scores", f"Reshape({self.product(f'{p}router', n, h, e)}, {self.ints(f'{p}rows', -1, e)})")
        how = f'k = {self.k}, activation_type = "silu", normalize_routing_weights = 1'
        if not coded:
            return self.node(f"{p}moe", f"com.microsoft::MoE({n}, {scores}, {self.weight(f'{p}up', e, i, h)}, _, {self.weight(f'{p}down', e, h, i)}) {{{how}}}")
        up, down = ((self.weight(f"{p}{name}", e, r, c // 2, dtype="u8"), self.weight(f"{p}{name}_s", e, r, c // 32)) for name, r, c in (("up", i, h), ("down", h, i)))
        return self.node(f"{p}moe", f"com.microsoft::QMoE({n}, {scores}, {up[0]}, {up[1]}, _, {down[0]}, {down[1]}) {{{how}, expert_weight_bits = 4, block_size = 32}}")

    def shared_expert(self, p, n):
        gate, up = (self.product(f"{p}{name}", n, self.hidden, self.shared) for name in ("sg", "su"))
        act = self.node(f"{p}act", f"Mul({gate}, {self.node(f'{p}sig', f'Sigmoid({gate})')})")
        return self.product(f"{p}sd", self.node(f"{p}gated", f"Mul({act}, {up})"), self.shared, self.hidden)

    def text(self, form):
        x = "x"
        for p in (f"l{i}_" for i in range(LAYERS)):
            n = self.norm(f"{p}n1", x, self.hidden)
            x = self.node(f"{p}r1", f"Add({x}, {self.latent(p, n) if form == 'deepseek' else self.grouped(p, n)})")
            n = self.norm(f"{p}n2", x, self.hidden)
            y = self.mixture(p, n, form == "gpt-oss")
            x = self.node(f"{p}r2", f"Add({x}, {self.node(f'{p}y', f'Add({y}, {self.shared_expert(p, n)})') if form == 'deepseek' else y})")
        return f"graph layers {{ opset 23 dim B >= 1 dim S >= 1 input x: f32[B, S, {self.hidden}]\n" + "\n".join(self.lines) + f"\noutput {x}\n}}\n"


def placements(form):
    """vLLM's: what it replicates, and no norm or residual split."""
    whole = ["q_a", "kv_a", "router"] if form == "deepseek" else ["router"]
    return [{"match": f"l?_{name}", "strategy": "R R -> R"} for name in whole] + [{"tensor": f"l?_{name}", "placement": "R"} for name in ("n1", "n2", "r1", "r2")]


def command(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return done.stdout


def plan(args, work, form, by, ranks, tokens, machine, *options):
    with open(f"{work}/plan.json", "w", encoding="utf-8") as f:
        json.dump({"constraints": placements(form) if by == "vllm" else []}, f)
    return command(f"{args.build}/tpc-shard", f"{work}/{form}.graph", "--tp", str(ranks), "--machine", machine, "--workload", f"B=1,S={tokens}", "--plan", f"{work}/plan.json", *options)


def predict(args, work, form):
    with open(f"{work}/{form}.graph", "w", encoding="utf-8") as f:
        f.write(Layers(SIZES[form], args.weights).text(form))
    for ranks in args.ranks:
        for tokens in args.tokens:
            row = f"| {form} | {ranks} | {tokens} |"
            for machine in (f"{args.source}/schemas/machines/reference.json", f"{work}/far.json"):
                for by in ("tpc", "vllm"):
                    p = json.loads(plan(args, work, form, by, ranks, tokens, machine, "-n", "--report", "json"))
                    row += f" {len(p['collectives']) / LAYERS:g}, {p['cost']['workloads'][0]['seconds'] * 1e3:.4g} ms |"
            print(row, flush=True)


def measure(args, work, form):
    with open(f"{work}/{form}.graph", "w", encoding="utf-8") as f:
        f.write(Layers(SMALL[form], args.weights).text(form))
    for tokens in args.tokens:
        least, told = {}, {}
        for by in ("tpc", "vllm"):
            plan(args, work, form, by, 2, tokens, args.machine, "-q", "--force", "-o", f"{work}/{by}")
            with open(f"{work}/{by}/plan.json", encoding="utf-8") as f:
                p = json.load(f)
            told[by], least[by] = (len(p["collectives"]) / LAYERS, p["cost"]["workloads"][0]["seconds"] * 1e3), float("inf")
        for _ in range(args.rounds):
            for by in least:
                out = command(*RUN, f"{args.build}/tpc-run", f"{work}/{by}", "--local", "2", "--threads", "1", "--random", "1", "--dim", "B=1", "--dim", f"S={tokens}",
                              "--repeat", str(60 if tokens < 64 else 8), "-q")
                least[by] = min(least[by], float(re.search(r"time: first .* then min ([0-9.]*),", out).group(1)))
        print(f"| {form}, smaller | {tokens} | " + " | ".join(f"{told[by][0]:g}, {told[by][1]:.4g}, {least[by]:.4g} ms" for by in least)
              + f" | {told['vllm'][1] / told['tpc'][1]:.2f}, {least['vllm'] / least['tpc']:.2f} |", flush=True)


def travel(args, work):
    links = (4e9, 2e9, 1e9, 5e8)
    with open(f"{work}/travel.graph", "w", encoding="utf-8") as f:
        f.write(Layers(WIDE, args.weights).text("gpt-oss"))
    print("| ranks | " + " | ".join(f"{link / 1e9:g} GB/s" for link in links) + " |\n|" + "---|" * (1 + len(links)))
    for ranks in (2, 4, 8):
        found = []
        for link in links:
            with open(f"{work}/link.json", "w", encoding="utf-8") as f:
                json.dump({**args.reference, "link_bandwidth": link}, f)
            p = json.loads(plan(args, work, "travel", "tpc", ranks, 2048, f"{work}/link.json", "-n", "--sp", "--report", "json"))
            found.append("rows travel" if "Dispatch" in [c["op"] for c in p["collectives"]] else "by width")
        print(f"| {ranks} | " + " | ".join(found) + " |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("forms", nargs="*")
    p.add_argument("--ranks", type=int, nargs="+", default=[2, 8])
    p.add_argument("--tokens", type=int, nargs="+", default=[1, 512])
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--measure", action="store_true")
    p.add_argument("--travel", action="store_true")
    p.add_argument("--machine", help="a profile made before")
    args = p.parse_args()
    args.source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    with tempfile.TemporaryDirectory() as work:
        args.weights = f"{work}/weights"
        with open(args.weights, "wb") as f:  # small numbers of both signs
            f.write(bytes(n for b in os.urandom(1 << 16) for n in (b, 85, b, 0x3c | b & 0x80)) * 4096)
        with open(f"{args.source}/schemas/machines/reference.json", encoding="utf-8") as f:
            args.reference = json.load(f)
        with open(f"{work}/far.json", "w", encoding="utf-8") as f:
            json.dump({**args.reference, "hop_latency": 25e-6}, f)
        if args.travel:
            travel(args, work)
            return
        if args.measure and not args.machine:
            args.machine = f"{work}/machine.json"
            command(*RUN, f"{args.build}/tpc-run", "--local", "2", "--threads", "1", "--calibrate", args.machine)
        if not args.measure:
            print("| layer | ranks | tokens | tpc | vLLM's | tpc, 25 us | vLLM's, 25 us |\n|---|---|---|---|---|---|---|")
        else:
            print("| layer | tokens | tpc: collectives, predicted, measured | vLLM's | vLLM's over tpc's: predicted, measured |\n|---|---|---|---|---|")
        for form in args.forms or SIZES:
            (measure if args.measure else predict)(args, work, form)


if __name__ == "__main__":
    main()
