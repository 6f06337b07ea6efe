#!/usr/bin/env python3
"""Mutations of the files next to a model: plans, profiles, tokenizers, settings of a model, manifests, checkpoints, states, tensors, tokens.
Needs no package.

mutate_files.py SOURCE BUILD WORK FROM-TO SEED

The programs themselves write the files to mutate. A mutant takes the place of its file, and the commands that read the file run. Each must end as
trial.py says, and leave the folder as it was. What breaks this stays in WORK. A mutant depends on SEED and its number alone.
"""
import json
import os
import random
import shutil
import struct
import sys
import tempfile
import time

from mutate import EDGES, other_bytes
from trial import Trial

FAR = "1e400 stands here"
VALUES = [*EDGES, 0.5, -1e-300, FAR, float("nan"), "", "x" * 300, "../../etc/passwd", "\x1b[2J%s%n", "\u0000", "-1", None, True, False, [], {}, [[]],
          [[[[[[[[[[1]]]]]]]]]], 2**64, 10**40]


# ---- mutants ----
def places(value, path=()):
    """The paths of all values within one of JSON, and its own."""
    yield path
    within = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in within:
        yield from places(below, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def change(r, root):
    """The root, with one value within it changed, moved, doubled or gone."""
    path = r.choice(list(places(root)))
    if not path:
        return r.choice(VALUES) if r.random() < 0.1 else root
    above, key = at(root, path[:-1]), path[-1]
    how = r.randrange(6)
    if how == 0:
        del above[key]
    elif how == 1:
        above[key] = json.loads(json.dumps(at(root, r.choice(list(places(root))))))       # a copy: nothing within itself
    elif how == 2 and isinstance(above, dict):
        above[r.choice([*above, "", "x" * 300, "-1", "\u0000", key + " "])] = above.pop(key)
    elif how == 3 and isinstance(above, list):
        above.insert(r.randrange(len(above)), above[key])
    elif isinstance(above[key], int) and r.random() < 0.5:
        above[key] += r.choice([1, -1, above[key], 2**32])
    else:
        above[key] = r.choice(VALUES)
    return root


def json_mutant(r, data):
    root = json.loads(data)
    for _ in range(r.choice([1, 1, 2, 3])):
        root = change(r, root)
    out = json.dumps(root, indent=1).replace(f'"{FAR}"', "1e400").encode()
    if r.random() < 0.1:
        out = other_bytes(r, out)
    return b"[" * 100000 + out if r.random() < 0.01 else out


def safetensors_mutant(r, data):
    """A header's length, the header, a bit of the tensors, their end."""
    n, = struct.unpack("<Q", data[:8])
    header, tensors, how = data[8:8 + n], data[8 + n:], r.randrange(6)
    if how < 3:
        header = json_mutant(r, header)
        n = len(header)
    elif how == 3:
        n = r.choice([*(e % 2**64 for e in EDGES), n + 1, n - 1])
    elif how == 4:
        i = r.randrange(len(tensors))
        tensors = tensors[:i] + bytes([tensors[i] ^ 1 << r.randrange(8)]) + tensors[i + 1:]
    else:
        tensors = r.choice([tensors[:r.randrange(len(tensors))], tensors + b"\0", b""])
    return struct.pack("<Q", n) + header + tensors


def bytes_mutant(r, data):
    for _ in range(r.choice([1, 1, 2, 3])):
        data = other_bytes(r, data)
    return data


NPY_WORDS = [b"True", b"'<f8'", b"'>f4'", b"'|O'", b"'<i8'", b"'<U9'", b"()", b"(0,)", b"(-1, 2)", b"(4294967296, 4294967296)", b"(9223372036854775807,)",
             b"(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)", b"{}", b"'"]


def npy_mutant(r, data):
    """Of the header, a word takes another's place; else any bytes."""
    end = data.find(b"\n") + 1
    words = [w for w in data[10:end].split(b", '") if w]
    if r.random() < 0.5 or not words:
        return bytes_mutant(r, data)
    word = r.choice(words)
    key, _, _ = word.partition(b": ")
    return data[:end].replace(word, key + b": " + r.choice(NPY_WORDS), 1) + data[end:]


# ---- what is mutated ----
class Kind:
    """Files of a folder, one of which is mutated at a time, and the commands that read it; {} in one is the file's path."""

    def __init__(self, name, folder, files, mutant, *commands):
        self.name, self.folder, self.files, self.mutant, self.commands = name, folder, files, mutant, commands


def must(trial, *command):
    status, _, err, wrong = trial.run(*command)
    if status or wrong:
        sys.exit(f"{' '.join(command)}: {wrong}: {err}")


def read_seeds(folder, *paths):
    """Copies files into a folder; their names."""
    os.makedirs(folder)
    for i, path in enumerate(paths):
        shutil.copy(path, f"{folder}/{i}-{os.path.basename(path)}")
    return sorted(os.listdir(folder))


def make_kinds(trial, source):
    """All kinds. Programs write in trial.work/seeds what they are to read."""
    top, shard, run = f"{trial.work}/seeds", f"{trial.build}/tpc-shard", f"{trial.build}/tpc-run"
    gpt2, out = f"{source}/samples/gpt2/model.onnx", f"{trial.work}/out"
    quiet, two = ["-q", "--threads", "1"], ["--local", "2", "-q", "--threads", "1"]
    rows, bytes_json = f"{source}/tests/train/rows.npy", f"{source}/tests/train/bytes.json"
    os.makedirs(f"{top}/model")
    for name in os.listdir(f"{source}/samples/gpt2"):
        if os.path.isfile(f"{source}/samples/gpt2/{name}"):
            shutil.copy(f"{source}/samples/gpt2/{name}", f"{top}/model")
    shutil.copy(bytes_json, f"{top}/model/tokenizer.json")
    with open(f"{top}/model/generation_config.json", "w", encoding="utf-8") as f:
        json.dump({"eos_token_id": [1, 2], "pad_token_id": 0, "temperature": 0.7, "top_k": 5, "top_p": 0.9, "repetition_penalty": 1.1, "do_sample": True}, f)
    with open(f"{top}/model/config.json", "w", encoding="utf-8") as f:
        json.dump({"model_type": "gpt2", "n_positions": 64, "max_position_embeddings": 64, "rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, f)
    model = f"{top}/model/model.onnx"
    ranks, trained, saved = f"{top}/ranks", f"{top}/trained", f"{top}/saved"
    plans = [f"{source}/tests/pass/{n}" for n in sorted(os.listdir(f"{source}/tests/pass")) if n.endswith(".json")]
    must(trial, shard, model, "--tp", "2", "-q", "-o", ranks)
    must(trial, shard, gpt2, "--train", "--tp", "2", "-q", "-o", trained)
    os.makedirs(saved)
    train = [run, trained, *two, "--train", "--batch", "2", "--steps", "2"]
    must(trial, *train[:-1], "1", "--data", rows, "--save", f"{saved}/checkpoint")
    must(trial, run, ranks, *two, "--generate", "2", "--input", "input_ids=1,2,3", "--save-state", f"{saved}/state")
    prompt = ["--prompt", "a b\u00e9 ", "--generate", "2"]
    sharded = [[run, ranks, *two, *prompt], [run, ranks, *two, "--verify", "--random", "--check", model], [shard, "--merge", ranks, "-q", "-o", out],
               [shard, ranks, "--tp", "3", "-q", "-n"]]
    merged = [shard, "--merge", trained, "--weights", "{}", "-q", "-o", out]
    tensors = read_seeds(f"{top}/tensors", f"{source}/tests/generate/prompt.npy", f"{source}/tests/generate/short.npy", rows)
    inputs = f"{source}/samples/gpt2/test_data_set_0"
    return [
        Kind("plan", f"{top}/plans", read_seeds(f"{top}/plans", f"{ranks}/plan.json", *plans), json_mutant,
             [shard, gpt2, "--tp", "2", "-q", "-n", "--plan", "{}"]),
        Kind("profile", f"{top}/profiles", read_seeds(f"{top}/profiles", f"{source}/schemas/machines/reference.json"), json_mutant,
             [shard, gpt2, "--tp", "2", "-q", "-n", "--machine", "{}"]),
        Kind("tokenizer and settings", f"{top}/model", [n for n in os.listdir(f"{top}/model") if n.endswith(".json")], json_mutant,
             [run, model, *quiet, *prompt], [shard, model, "--tp", "2", "-q", "-o", out]),
        Kind("folder of ranks", ranks, ["manifest.json", "plan.json"], json_mutant, *sharded),
        Kind("weights of ranks", ranks, ["rank-0.data", "rank-1.data"], bytes_mutant, *sharded),
        Kind("checkpoint", saved, ["checkpoint"], safetensors_mutant, [*train, "--data", rows, "--resume", "{}"], merged),
        Kind("state", saved, ["state"], safetensors_mutant, [run, ranks, *two, "--generate", "2", "--load-state", "{}"]),
        Kind("array", f"{top}/tensors", tensors, npy_mutant, [run, model, *quiet, "--random", "--input", "input_ids={}"],
             [*train, "--sequence", "8", "--data", "{}"], [run, ranks, *two, "--generate", "2", "--input", "input_ids={}"]),
        Kind("tensor", f"{top}/pb", read_seeds(f"{top}/pb", *(f"{inputs}/{n}" for n in sorted(os.listdir(inputs)) if n.startswith("input"))), bytes_mutant,
             [run, model, *quiet, "--random", "--input", "input_ids={}"]),
    ]


# ---- trials ----
def listing(folder):
    return {os.path.join(path, name) for path, _, names in os.walk(folder) for name in names}


def try_one(r, trial, kind):
    """A list of (command, complaint, text), whether a command took the mutant, the file, and the mutant."""
    path = f"{kind.folder}/{r.choice(kind.files)}"
    with open(path, "rb") as f:
        whole = f.read()
    mutant = kind.mutant(r, whole)
    os.rename(path, f"{trial.work}/whole")
    with open(path, "wb") as f:
        f.write(mutant)
    trial.bytes = len(mutant) + 2**20
    found, before, taken = [], listing(f"{trial.work}/seeds"), False
    for words in kind.commands:
        command = [w.replace("{}", path) for w in words]
        status, _, err, wrong = trial.run(*command)
        out, odd = f"{trial.work}/out", listing(f"{trial.work}/seeds") ^ before
        left = os.path.exists(out) and status
        wrong = wrong or (f"leaves or takes {sorted(odd)[0]}" if odd else "leaves half of a result" if left else None)
        if wrong:
            found.append((" ".join(command), wrong, err[-2000:]))
        taken |= status == 0
        shutil.rmtree(out, ignore_errors=True) if os.path.isdir(out) else os.path.lexists(out) and os.remove(out)
        if os.path.exists(f"{out}.data"):
            os.remove(f"{out}.data")
    os.replace(f"{trial.work}/whole", path)
    return found, taken, path, mutant


def keep(kept, path, mutant, found):
    os.makedirs(kept, exist_ok=True)
    with open(f"{kept}/{os.path.basename(path)}", "wb") as f:
        f.write(mutant)
    with open(f"{kept}/why", "w", encoding="utf-8") as f:
        for command, what, said in found:
            f.write(f"{command}\n{what}\n{said}\n")
            print(f"{kept}: {what}: {command[-200:]}\n{said[-300:]}", flush=True)


def main():
    source, build, kept, numbers, seed = sys.argv[1:]
    first, last = (int(n) for n in numbers.split("-"))
    begin, wrong = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="tpc-mutants-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as work:
        trial = Trial(build, work)
        trial.bytes = 2**22
        kinds = make_kinds(trial, os.path.abspath(source))
        counts = {kind.name: [0, 0] for kind in kinds}
        for i in range(first, last):
            r = random.Random(f"{seed}-{i}")
            kind = kinds[i % len(kinds)]
            found, taken, path, mutant = try_one(r, trial, kind)
            counts[kind.name][0] += 1
            counts[kind.name][1] += taken
            if found:
                wrong += 1
                keep(f"{kept}/files-{seed}-{i}", path, mutant, found)
        trial.server.end()
    for name, (n, taken) in counts.items():
        print(f"{name}: {n}, {taken} of them taken by a command")
    print(f"{last - first} mutants, {(last - first) / (time.monotonic() - begin):.1f} a second; {wrong} with findings")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
