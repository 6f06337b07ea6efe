#!/usr/bin/env python3
"""Typed mutations of ONNX models: planned, written, run whole, run on two ranks and compared. Needs no package.

mutate.py SCHEMA BUILD WORK FROM-TO SEED MODEL...

A mutant is a model with one to three of its fields changed as their types allow: numbers at the edges, names of other things, ops of the list,
parts removed, doubled, swapped or copied from elsewhere. What it computes does not matter. Each command must end by itself within seconds,
with a result or with one sentence, within an amount of memory, and leave nothing behind; two ranks must compute what one computes.
Mutants that break this stay in WORK/found with what was said. A mutant depends on SEED and its number alone; FROM-TO says which to try.

All lies in memory, in /dev/shm where there is one.
"""
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from trial import Trial

SCALARS = {"int32": "int", "int64": "int", "uint64": "int", "float": "f32", "double": "f64", "string": "text", "bytes": "bytes"}
EDGES = [0, 1, -1, 2, 3, 7, 16, 127, 255, 65536, 2**31 - 1, 2**31, -2**31, 2**40, 2**62, 2**63 - 1, -2**63]
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, 3.4e38, float("inf"), float("-inf"), float("nan")]


# ---- the schema, and messages ----
def read_schema(path):
    """Messages by name: fields by number, each (name, type)."""
    text = re.sub(r"//[^\n]*", "", open(path, encoding="utf-8").read())
    enums, messages, stack = set(re.findall(r"\benum\s+(\w+)", text)), {}, []
    for line in re.findall(r"(?:message|enum|oneof)\s+\w+\s*\{|\}|(?:repeated |optional |required )?[\w.]+\s+\w+\s*=\s*\d+[^;]*;", text):
        begin = re.match(r"(message|enum|oneof)\s+(\w+)", line)
        field = re.match(r"(?:repeated |optional |required )?([\w.]+)\s+(\w+)\s*=\s*(\d+)", line)
        if begin:
            kind, name = begin.groups()
            if kind == "message":
                messages[name] = {}
            stack.append(name if kind == "message" else (stack[-1] if stack else None) if kind == "oneof" else None)
        elif line == "}":
            if stack:
                stack.pop()
        elif field and stack and stack[-1]:
            kind = field.group(1).split(".")[-1]
            messages[stack[-1]][int(field.group(3))] = (field.group(2), "int" if kind in enums else SCALARS.get(kind, kind))
    return messages


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def put_varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


class Message:
    """A message of protobuf: its kind, its fields as (number, wire type, value), its bytes if they are known. It never changes."""
    __slots__ = ("kind", "fields", "data")

    def __init__(self, kind, fields, data=None):
        self.kind, self.fields, self.data = kind, fields, data


def parse(schema, kind, data):
    fields, at = [], 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 2:
            n, at = varint(data, at)
            value, at = data[at:at + n], at + n
            of = schema[kind].get(number, ("", "bytes"))[1]
            if of in schema:
                value = parse(schema, of, value)
        else:
            n = 4 if wire == 5 else 8
            value, at = data[at:at + n], at + n
        fields.append((number, wire, value))
    return Message(kind, fields, data)


def serialise(message):
    if message.data is not None:
        return message.data
    out = []
    for number, wire, value in message.fields:
        out.append(put_varint(number << 3 | wire))
        if wire == 0:
            out.append(put_varint(value))
            continue
        if isinstance(value, Message):
            value = serialise(value)
        if wire == 2:
            out.append(put_varint(len(value)))
        out.append(value)
    return b"".join(out)


class Model:
    """A model to make mutants of: where its fields are by what they are, and what it has of each name and type."""

    def __init__(self, schema, path):
        self.path, self.schema = path, schema
        with open(path, "rb") as f:
            self.root = parse(schema, "ModelProto", f.read())
        self.places, self.named, self.typed = {}, {}, {}
        self.note(self.root, ())

    def what(self, message, number):
        return self.schema[message.kind].get(number, ("", "bytes"))

    def note(self, message, path):
        for i, field in enumerate(message.fields):
            name, of = self.what(message, field[0])
            self.places.setdefault((message.kind, name), []).append((*path, i))
            self.typed.setdefault(of, []).append(field)
            if of == "text":
                self.named.setdefault(name, []).append(field[2])
            if isinstance(field[2], Message):
                self.note(field[2], (*path, i))


def lookup(message, path):
    """The message and the index that path leads to; None where it leads nowhere."""
    for i in path[:-1]:
        if i >= len(message.fields) or not isinstance(message.fields[i][2], Message):
            return None
        message = message.fields[i][2]
    return (message, path[-1]) if path[-1] < len(message.fields) else None


def with_fields(message, path, fields):
    """The message, with other fields in the one that path leads to."""
    if len(path) > 1:
        below = list(message.fields)
        number, wire, value = below[path[0]]
        below[path[0]] = (number, wire, with_fields(value, path[1:], fields))
        fields = below
    return Message(message.kind, fields)


# ---- mutations ----
def other_bytes(r, value):
    how = r.randrange(5)
    if how == 0 or not value:
        return value + bytes(r.randrange(256) for _ in range(r.randrange(1, 9)))
    if how == 1:
        return value[:r.randrange(len(value))]
    at, n = r.randrange(len(value)), r.choice([1, 2, 4, 8])
    new = r.choice([b"\xff", b"\x00", b"\x7f", b"\x80", bytes([r.randrange(256)])]) * n
    return value[:at] + new[:len(value) - at] + value[at + n:]


def other_text(r, model, kind, name, ops):
    if kind == "NodeProto" and name == "op_type" and r.random() < 0.8:
        return r.choice(ops).encode()
    if r.random() < 0.1:
        return r.choice([b"", b"\x01\xff", b"x" * 300, b"../../etc/passwd", b"-1", b"%s%n"])
    return r.choice(model.named[name if r.random() < 0.7 else r.choice(sorted(model.named))])


def other_value(r, model, kind, field, ops):
    number, wire, value = field
    name, of = model.schema[kind].get(number, ("", "bytes"))
    if wire == 0:
        value = r.choice([r.choice(EDGES), value + 1, value - 1, value * 2, r.randrange(30)])
    elif of == "f32" and wire == 5:
        value = struct.pack("<f", r.choice(REALS))
    elif of == "text":
        value = other_text(r, model, kind, name, ops)
    elif isinstance(value, bytes) and wire == 2:
        value = other_bytes(r, value)
    elif isinstance(value, Message):
        value = Message(value.kind, value.fields[:r.randrange(len(value.fields) + 1)])
    return number, wire, value


def change_structure(r, model, fields, i, of):
    how, j = r.randrange(4), r.randrange(len(fields))
    if how == 0:
        del fields[i]
    elif how == 1:
        fields.insert(j, fields[i])
    elif how == 2:
        fields[i], fields[j] = fields[j], fields[i]
    else:
        fields[i] = (fields[i][0], *r.choice(model.typed[of])[1:])


def mutate(r, model, ops):
    root, changes = model.root, r.choice([1, 1, 2, 3])
    while changes:
        kind = r.choice(sorted(model.places))        # kinds of fields alike, not fields: there are many names and few axes
        path = r.choice(model.places[kind])
        found = lookup(root, path)
        if not found or found[0].kind != kind[0]:
            continue
        message, i = found
        fields = list(message.fields)
        of = model.what(message, fields[i][0])[1]
        if r.random() < 0.6 or of not in model.typed:
            fields[i] = other_value(r, model, message.kind, fields[i], ops)
        else:
            change_structure(r, model, fields, i, of)
        root, changes = with_fields(root, path, fields), changes - 1
    return serialise(root)


# ---- running ----
class ModelTrial(Trial):
    def left(self, *allowed):
        other = set(os.listdir(self.work)) - {"said", "m", *allowed}
        return f"leaves {sorted(other)[0]}" if other else None

    def sizes(self):
        """A small size for each symbol of the plan that was written."""
        text = open(f"{self.work}/o/plan.json", encoding="utf-8").read()
        dims = re.search(r'^ "dims": \{(.*?)^ \}', text, re.M | re.S)
        names = re.findall(r'^  "((?:[^"\\]|\\.)*)": \{', dims.group(1), re.M) if dims else []
        return [x for name in names for x in ("--dim", f"{name}=3")]

    def all(self, model):
        """A list of (command, complaint, text), and how far it came: 0 refused, 1 planned, 2 written, 3 run whole, 4 run on two ranks."""
        shard, run, out = f"{self.build}/tpc-shard", f"{self.build}/tpc-run", f"{self.work}/o"
        random_run = ["--random", "--threads", "1", "-q"]
        self.bytes = sum(os.path.getsize(os.path.join(os.path.dirname(model), f)) for f in os.listdir(os.path.dirname(model)))
        found, stage = [], 0
        with open(model, "rb") as f:
            loops = b"Loop" in f.read()

        def step(command, *allowed):
            nonlocal stage
            status, said, err, wrong = self.run(*command)
            wrong = wrong or self.left(*allowed)
            if wrong:
                found.append((" ".join(command), wrong, err[-2000:]))
            return status, said

        if step([shard, model, "--tp", "2", "-n", "-q"])[0] == 0:
            stage = 1
        step([shard, model, "--train", "--tp", "2", "-n", "-q"])
        status, _ = step([shard, model, "--tp", "2", "-q", "-o", out], "o" if stage else "")
        if stage and status == 0:
            stage = 2
        sizes = self.sizes() if stage == 2 else []
        self.may_last = loops
        if step([run, model, *random_run, *sizes], "o")[0] == 0 and stage == 2:
            stage = 3
            status, said = step([run, out, "--local", "2", *random_run, *sizes, "--check", model], "o")
            if status == 0:
                stage = 4
            elif status == 1 and "FAILED" in said:
                found.append(("--check", "two ranks differ from one", said[-500:]))
        self.may_last = False
        shutil.rmtree(out, ignore_errors=True)
        return found, stage


def listed_ops(build):
    text = subprocess.run([f"{build}/tpc-shard", "--list-ops"], capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[1] for line in text.splitlines()[1:]})


def write_mutant(r, model, ops, folder):
    """Writes one to folder, with the weights next to its model."""
    os.makedirs(folder)
    beside = os.path.dirname(model.path)
    for name in os.listdir(beside):
        if name.endswith(".data"):
            shutil.copy(f"{beside}/{name}", f"{folder}/{name}")
    with open(f"{folder}/model.onnx", "wb") as f:
        f.write(mutate(r, model, ops))


def keep(folder, kept, model, found):
    shutil.copytree(folder, kept, dirs_exist_ok=True)
    with open(f"{kept}/why", "w", encoding="utf-8") as f:
        for command, what, said in found:
            f.write(f"{model.path}\n{command}\n{what}\n{said}\n")
            print(f"{kept} of {model.path}: {what}: {command[-200:]}\n{said[-300:]}", flush=True)


def try_all(numbers, seed, models, ops, trial, kept):
    """How many came how far, and how many broke the rules."""
    stages, wrong = [0] * 5, 0
    try:
        for i in numbers:
            r = random.Random(f"{seed}-{i}")
            model = r.choice(models)
            write_mutant(r, model, ops, f"{trial.work}/m")
            found, stage = trial.all(f"{trial.work}/m/model.onnx")
            stages[stage] += 1
            if found:
                wrong += 1
                keep(f"{trial.work}/m", f"{kept}/{seed}-{i}", model, found)
            for name in set(os.listdir(trial.work)) - {"said"}:
                shutil.rmtree(f"{trial.work}/{name}", ignore_errors=True)
    except KeyboardInterrupt:
        print(f"interrupted at {i}")
    return stages, wrong


def main():
    schema_path, build, kept, numbers, seed, *paths = sys.argv[1:]
    schema, ops = read_schema(schema_path), listed_ops(build)
    first, last = (int(n) for n in numbers.split("-"))
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tpc-mutants-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as work:
        trial = ModelTrial(build, work)
        stages, wrong = try_all(range(first, last), seed, [Model(schema, p) for p in paths], ops, trial, kept)
        trial.server.end()
    n = sum(stages)
    print(f"{n} mutants, {n / (time.monotonic() - begin):.1f} a second: {stages[0]} refused, {stages[1]} planned, {stages[2]} written, "
          f"{stages[3]} run whole, {stages[4]} run on two ranks, {trial.lasted} runs of long loops; {wrong} with findings")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
