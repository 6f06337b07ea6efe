#!/usr/bin/env python3
"""Clients of a server with a prefix cache, for tests/prefix-cache.tap: prefix_cache.py PORT CASE [...]. Its tokens are words w0 to w255, so that texts tell ids.
Exit status 1 and a sentence where an answer is not as it must be.
"""
import concurrent.futures
import random
import sys

from calls import ask, events, expect, metric

BLOCK, WORDS, MADE = 64, 256, 12


def ids_of(text):
    return [int(w[1:]) for w in text.split()]


def answer(prompt, **more):
    """The ids after a prompt of ids, and how many of its tokens were stored."""
    reply = ask(prompt=prompt, **{"max_tokens": MADE, "temperature": 0, **more})
    return ids_of(reply["choices"][0]["text"]), reply["usage"]["prompt_tokens_details"]["cached_tokens"]


class Stored:
    """What a cache of any size has: the beginnings of texts, in whole blocks."""

    def __init__(self, made):
        self.made, self.blocks = made, set()

    def found(self, prompt):
        n = 0
        while n + BLOCK < len(prompt) and tuple(prompt[:n + BLOCK]) in self.blocks:
            n += BLOCK
        return n

    def put(self, prompt, made):
        """The last token that was made is not in the cache."""
        text = prompt + made[:-1] if self.made else prompt
        self.blocks |= {tuple(text[:n]) for n in range(BLOCK, len(text) + 1, BLOCK)}


def prompts(seed, count, longest):
    """Prompts that often begin like earlier ones, up to any position."""
    draw, all = random.Random(seed), []
    for _ in range(count):
        base = draw.choice(all)[:draw.randrange(longest)] if all and draw.random() < 0.8 else []
        more = draw.choice([1, 2, 30, 64, 65, 128, 150])
        prompt = (base + [draw.randrange(WORDS) for _ in range(more)])[:longest]
        all.append(prompt)
    return all


def write(path, answers):
    with open(path, "w") as f:
        f.writelines(" ".join(map(str, made)) + "\n" for made in answers)


def read(path):
    with open(path) as f:
        return [[int(x) for x in line.split()] for line in f]


# ---- cases ----

def record(path, count, longest):
    """Without a cache: the answers."""
    write(path, [answer(p)[0] for p in prompts(5, int(count), int(longest))])
    expect("texts that began behind stored tokens", metric("prefix_cache_hits_total"), 0)


def same(path, count, longest, size="any"):
    """The same answers one after another; as many tokens are stored as there can be, or blocks give way."""
    stored, saved, hits = Stored(True), 0, 0
    for prompt, wanted in zip(prompts(5, int(count), int(longest)), read(path)):
        made, cached = answer(prompt)
        expect(f"ids after {len(prompt)} tokens of which {cached} are stored", made, wanted)
        if size == "any":
            expect("stored tokens", cached, stored.found(prompt))
        elif cached > stored.found(prompt):
            sys.exit(f"{cached} tokens are stored of {stored.found(prompt)}")
        stored.put(prompt, made)
        saved, hits = saved + cached, hits + (cached > 0)
    expect("hits", metric("prefix_cache_hits_total"), hits)
    expect("tokens that did not run", metric("prefix_cache_tokens_total"), saved)
    if hits < 3:
        sys.exit(f"only {hits} texts began behind stored tokens")
    if size == "any":
        expect("blocks", metric("prefix_cache_blocks"), len(stored.blocks))
        expect("dropped", metric("prefix_cache_dropped_total"), 0)
    else:
        expect("as many blocks as there may be", metric("prefix_cache_blocks"), metric("prefix_cache_blocks_most"))
        expect("blocks that gave way", metric("prefix_cache_dropped_total") > 0, True)
        expect("bytes within the size", 0 < metric("prefix_cache_bytes") <= int(size), True)


def together(path, count, longest):
    """The same answers, many at once, twice."""
    all = prompts(5, int(count), int(longest))
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        got = list(pool.map(lambda p: answer(p)[0], all * 2))
    expect("ids", got, read(path) * 2)
    expect("texts that began behind stored tokens", metric("prefix_cache_hits_total") > len(all) / 2, True)


def converse(seed, stored):
    """Each question after the conversation so far; the answers. stored: tokens in the cache; None: not checked."""
    draw, said, answers = random.Random(seed), [], []
    for _ in range(5):
        said += [draw.randrange(WORDS) for _ in range(draw.randrange(5, 60))]
        made, cached = answer(said, max_tokens=90)
        if stored:
            expect("stored tokens", cached, stored.found(said))
            stored.put(said, made)
        said += made
        answers.append(made)
    return answers


def check(path, answers):
    """They are as in the file, which is written if there is no cache."""
    if metric("prefix_cache_blocks_most") > 0:
        expect("answers", answers, read(path))
    else:
        write(path, answers)


def chat(path, steps):
    """One chat; with a cache, all of it is stored that can be: answers, too, or prompts alone."""
    cache = metric("prefix_cache_blocks_most") > 0
    check(path, converse(7, Stored(steps == "steps") if cache else None))


def chats(path):
    """Several at once, of unequal lengths."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda seed: converse(seed, None), range(4)))
    check(path, sum(answers, []))


def blocks(least, most):
    """How many there may be."""
    there = metric("prefix_cache_blocks_most")
    if not int(least) <= there <= int(most):
        sys.exit(f"{there} blocks may be stored, expected {least} to {most}")


def choices():
    """Several texts of one prompt: the first one stores it. A stream tells of it, too. All of a prompt runs whose scores are asked for."""
    prompt = [random.Random(3).randrange(WORDS) for _ in range(150)]
    reply = ask(prompt=prompt, n=5, max_tokens=3, temperature=2)
    expect("usage", reply["usage"], {"prompt_tokens": 150, "completion_tokens": 15, "total_tokens": 165, "prompt_tokens_details": {"cached_tokens": 0}})
    expect("hits", metric("prefix_cache_hits_total"), 4)
    last = events(prompt=prompt[:129], max_tokens=1, stream_options={"include_usage": True})[-1]
    expect("of a stream", last["usage"]["prompt_tokens_details"], {"cached_tokens": 128})
    both = ask(prompt=[prompt[:128], prompt], max_tokens=1)
    expect("of two prompts, of which one ends with a block", both["usage"]["prompt_tokens_details"], {"cached_tokens": 64 + 128})
    scored = ask(prompt=prompt, max_tokens=1, echo=True, logprobs=1)
    expect("of a prompt whose scores are asked for", scored["usage"]["prompt_tokens_details"], {"cached_tokens": 0})
    expect("its scores", len(scored["choices"][0]["logprobs"]["token_logprobs"]), 151)


globals()[sys.argv[2]](*sys.argv[3:])
