"""How a token is picked from scores, written again from the formulas: OpenAI's penalties over tokens that were made, biases, transformers'
temperature, top_k, top_p and min_p, and the draws of docs/decoding.md. For tests of the command line and of the server."""
import math

MASK = 2**64 - 1


def splitmix(state):
    z = (state + 0x9e3779b97f4a7c15) & MASK
    z = ((z ^ z >> 30) * 0xbf58476d1ce4e5b9) & MASK
    z = ((z ^ z >> 27) * 0x94d049bb133111eb) & MASK
    return z ^ z >> 31


def adjusted(scores, prompt, made, bias=None, repetition=1.0, presence=0.0, frequency=0.0):
    s = [float(x) for x in scores]
    for token, add in (bias or {}).items():
        s[int(token)] += add
    for t in set(prompt) | set(made):
        s[t] = s[t] / repetition if s[t] > 0 else s[t] * repetition
    for t in set(made):
        s[t] -= made.count(t) * frequency + presence
    return s


def kept(s, temperature, top_k=0, top_p=1.0, min_p=0.0):
    order = sorted(range(len(s)), key=lambda t: (-s[t], t))[:top_k or len(s)]
    weight = [math.exp((s[t] - s[order[0]]) / temperature) for t in order]
    total, n, before = sum(weight), 0, 0.0
    while n < len(order) and not (n and (before >= top_p * total or weight[n] < min_p)):
        before, n = before + weight[n], n + 1
    return order[:n]


def pick(s, position, temperature=0.0, seed=0, row=0, **limits):
    """Of adjusted scores. position: of the token in its text, prompt included."""
    if temperature == 0:
        return min(range(len(s)), key=lambda t: (-s[t], t))
    base = splitmix(splitmix(splitmix(seed) ^ row) ^ position)

    def drawn(t):
        u = ((splitmix(base ^ splitmix(t)) >> 11) + 0.5) * 2.0**-53
        return s[t] / temperature - math.log(-math.log(u))
    return min(kept(s, temperature, **limits), key=lambda t: (-drawn(t), t))


def log_softmax(scores):
    best = max(float(x) for x in scores)
    total = math.log(math.fsum(math.exp(float(x) - best) for x in scores))
    return [float(x) - best - total for x in scores]
