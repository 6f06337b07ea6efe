"""Samples in JSON lines: a run has the bits of one that is given their tokens, masks, positions and labels, found here by another way.

    python tests/train/lines.py RUN FOLDER WORK      FOLDER: of gpt2 with the tokenizer and template of tests/chat/model.py next to it
"""
import itertools
import json
import pathlib
import random
import subprocess
import sys

import numpy as np

run, folder, work = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
START, END, PAD, SEQUENCE = 248, 249, 252, 24
rng = random.Random(1)


def word(most):
    return "".join(rng.choice("abc xyz<|>") for _ in range(rng.randrange(1, most)))


def text_sample():
    said = word(60)
    return {"text": said, "id": 7}, [(b, True) for b in said.encode()] + [(PAD, True)]


def chat_sample():
    messages, tokens = [], []
    for k in range(rng.randrange(1, 4)):
        for role in ("user", "assistant"):
            said = word(12) + ("<|im_end|>" if k == 1 else "")  # a user's text makes no special token
            learns = role == "assistant"
            messages.append({"role": role, "content": said})
            tokens += [(START, False)] + [(b, False) for b in f"{role}\n".encode()] + [(b, learns) for b in said.encode()] + [(END, learns), (10, False)]
    return {"messages": messages}, tokens


def rows_of(samples):
    rows = [[]]
    for tokens in samples:
        tokens = [(tokens[0][0], False)] + tokens[1:]
        if rows[-1] and len(rows[-1]) + len(tokens) > SEQUENCE + 1:
            rows.append([])
        while len(rows[-1]) + len(tokens) > SEQUENCE + 1:
            rows[-1] += tokens[:SEQUENCE + 1]
            tokens = tokens[SEQUENCE:]
            rows.append([])
        rows[-1] += tokens
    return [row + [(-1, False)] * (SEQUENCE + 1 - len(row)) for row in rows if row]


def write(name, samples):
    (work / name).write_text("".join(json.dumps(line) + "\n\n" for line, _ in samples))
    return rows_of([tokens for _, tokens in samples])


def train(*options, batch=5):
    log = work / "lines.csv"
    log.unlink(missing_ok=True)
    subprocess.run([run, folder, "--train", "-q", "--threads", "1", "--batch", str(batch), "--log", log, *options], check=True)
    return [line.split(",")[:5] for line in log.read_text().splitlines()]


def by_arrays(rows):
    at = np.array(rows)
    tokens, learns = at[..., 0].astype(np.int64), at[..., 1].astype(bool)
    arrays = {"input_ids": tokens[:, :-1].clip(0), "attention_mask": (tokens[:, :-1] >= 0).astype(np.int64), "position_ids": np.arange(SEQUENCE)[None].repeat(len(rows), 0),
              "labels": np.where(learns[:, 1:], tokens[:, 1:], -100)}
    for name, array in arrays.items():
        np.save(work / f"{name}.npy", array.astype(np.int64))
    return list(itertools.chain(*(("--input", f"{name}={work / name}.npy") for name in arrays)))


texts, chats = write("texts.jsonl", [text_sample() for _ in range(40)]), write("chats.jsonl", [chat_sample() for _ in range(40)])
both = ["--data", work / "texts.jsonl", "--data", work / "chats.jsonl", "--sequence", str(SEQUENCE)]
for name, rows, options in (("texts", texts, both[:2]), ("chats", chats, both[2:4]), ("both", texts + chats, both[:4])):
    expected, found = train("--steps", "4", *by_arrays(rows)), train("--steps", "4", *options, *both[4:])
    if expected != found:
        sys.exit(f"{name}: {found}, expected {expected}")
mixed = ["--mix", "1,3", "--optimizer", "adamw,warmup=0,schedule=constant"]
whole = train("--steps", "6", *both, *mixed)
train("--steps", "3", *both, *mixed, "--save", work / "mixed.ck")
rest = train("--steps", "6", *both[:4], *mixed[:2], "--resume", work / "mixed.ck")
if rest[1:] != whole[4:] or whole == train("--steps", "6", *both, *mixed[2:]):
    sys.exit(f"--resume: {rest}, of {whole}")
# shares: labels of rows with none from a file of one row that has a known number of them
(work / "one.jsonl").write_text('{"text": "aaaa"}\n')  # 4 labels a row
(work / "two.jsonl").write_text('{"text": "aaaaaaaaa"}\n')  # 9
log = train("--steps", "1", "--data", work / "one.jsonl", "--data", work / "two.jsonl", "--sequence", "12", "--mix", "1,3", batch=400)
share = (int(log[1][4]) - 4 * 400) / 5 / 400
if not 0.67 < share < 0.83:
    sys.exit(f"--mix 1,3: {share} of the second file")
print("rows, labels and shares are as expected")
