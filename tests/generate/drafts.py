#!/usr/bin/env python3
"""A chain of 8 tokens, chain.graph, with a cache that nothing reads; small.graph, which is nearly it and drafts for it, and many.graph, which
has more tokens; and texts that the chain makes: drafts.py make FOLDER, or check FILE TEMPERATURE TOP_K.
check: behind each token the tokens of all texts, a line each, are distributed as the scores say (chi-square, 56 degrees of freedom)."""
import math
import sys

N, TEXTS = 8, 100000
SCORES = [[5 if b == (a + 1) % N else math.log(1 + (a * 5 + b * 3) % 7) for b in range(N)] for a in range(N)]


NEAR = [[x + ((a * 3 + b * 7) % 5 - 2) * 0.4 for b, x in enumerate(row)] for a, row in enumerate(SCORES)]
MANY = [[float(a == b) for b in range(N + 1)] for a in range(N + 1)]


def make(folder):
    for name, scores in ("chain", SCORES), ("small", NEAR), ("many", MANY):
        write(f"{folder}/{name}.graph", scores)


def write(path, scores):  # a product with ones on the diagonal makes the large one large
    table = ", ".join(f"{x:.6f}" for row in scores for x in row)
    n = len(scores)
    ones = ", ".join(str(float(a == b)) for a in range(n) for b in range(n))
    open(path, "w").write(f"""graph chain {{
  opset 23
  dim B >= 1
  dim S >= 1
  dim P >= 0
  input input_ids: i64[B, S]
  input past: f32[B, 1, P, 1]
  const table: f32[{n}, {n}] = [{table}]
  const ones: f32[{n}, {n}] = [{ones}]
  const axes: i64[2] = [1, 3]
  node score: {"score" if scores == SCORES else "logits"}: ? = Gather(table, input_ids)
  {"node same: logits: ? = MatMul(score, ones)" if scores == SCORES else ""}
  node number: number: ? = Cast(input_ids) {{to = 1}}
  node own: own: ? = Unsqueeze(number, axes)
  node all: present: ? = Concat(past, own) {{axis = 2}}
  output logits
  output present
  state past -> present dim 2
}}
""")


def check(path, temperature, top_k):
    times, texts = [[0] * N for _ in range(N)], [list(map(int, line.split())) for line in open(path)]
    for text in texts:
        for a, b in zip(text, text[1:]):
            times[a][b] += 1
    chi, draws = 0, sum(map(sum, times))
    for a in range(N):
        best = sorted(range(N), key=lambda b: (-SCORES[a][b], b))[:top_k or N]
        weight = [math.exp(SCORES[a][b] / temperature) if b in best else 0 for b in range(N)]
        for b in range(N):
            want = sum(times[a]) * weight[b] / sum(weight)
            if want == 0 and times[a][b]:
                sys.exit(f"{b} came behind {a}")
            chi += (times[a][b] - want) ** 2 / want if want else 0
    print(f"{draws} draws, chi-square {chi:.1f}")
    if draws < TEXTS * 0.99 or chi > 120:  # 120: once in 10^6
        sys.exit("the tokens are not distributed as the scores say")


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    check(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
