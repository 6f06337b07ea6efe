#!/usr/bin/env python3
"""Typed mutations of ONNX models: planned, written, run whole, run on two ranks and compared. Needs no package.

mutate.py SCHEMA BUILD WORK COUNT SEED MODEL...

A mutant is a model with one to three of its fields changed as their types allow: numbers at the edges, names of other things, ops of the list,
parts removed, doubled, swapped or copied from elsewhere. What it computes does not matter. Each command must end by itself within seconds,
with a result or with one sentence, within an amount of memory, and leave nothing behind; two ranks must compute what one computes.
Mutants that break this stay in WORK/found with what was said.
"""
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

SCALARS = {"int32": "int", "int64": "int", "uint64": "int", "float": "f32", "double": "f64", "string": "text", "bytes": "bytes"}
SECONDS, WALL = 10, 120
EDGES = [0, 1, -1, 2, 3, 7, 16, 127, 255, 65536, 2**31 - 1, 2**31, -2**31, 2**40, 2**62, 2**63 - 1, -2**63]
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, 3.4e38, float("inf"), float("-inf"), float("nan")]


# ---- the schema, and messages as lists of [field, value] ----
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


def parse(schema, kind, data):
    """A list of [number, wire type, value]: an int, bytes, or for a message a (kind, list)."""
    out, at = [], 0
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
                value = (of, parse(schema, of, value))
        else:
            n = 4 if wire == 5 else 8
            value, at = data[at:at + n], at + n
        out.append([number, wire, value])
    return out


def serialise(fields):
    out = bytearray()
    for number, wire, value in fields:
        out += put_varint(number << 3 | wire)
        if wire == 0:
            out += put_varint(value)
            continue
        value = serialise(value[1]) if isinstance(value, tuple) else value
        out += put_varint(len(value)) + value if wire == 2 else value
    return bytes(out)


def copy(fields):
    return [[n, w, (v[0], copy(v[1])) if isinstance(v, tuple) else v] for n, w, v in fields]


# ---- mutations ----
def places(schema, kind, fields, out):
    """Every field, as (its list, its index, the message's kind, its name, its type)."""
    for i, (number, _, value) in enumerate(fields):
        name, of = schema[kind].get(number, ("", "bytes"))
        out.append((fields, i, kind, name, of))
        if isinstance(value, tuple):
            places(schema, value[0], value[1], out)
    return out


def other_bytes(r, value):
    how = r.randrange(5)
    if how == 0 or not value:
        return value + bytes(r.randrange(256) for _ in range(r.randrange(1, 9)))
    if how == 1:
        return value[:r.randrange(len(value))]
    at, n = r.randrange(len(value)), r.choice([1, 2, 4, 8])
    new = r.choice([b"\xff", b"\x00", b"\x7f", b"\x80", bytes([r.randrange(256)])]) * n
    return value[:at] + new[:len(value) - at] + value[at + n:]


def other_text(r, all_places, kind, name, ops):
    if kind == "NodeProto" and name == "op_type" and r.random() < 0.8:
        return r.choice(ops).encode()
    if r.random() < 0.1:
        return r.choice([b"", b"\x01\xff", b"x" * 300, b"../../etc/passwd", b"-1", b"%s%n"])
    same = [p for p in all_places if p[3] == name or (p[4] == "text" and r.random() < 0.05)]
    fields, i, *_ = r.choice(same)
    value = fields[i][2]
    return value if isinstance(value, bytes) else b""


def change_value(r, all_places, place, ops):
    fields, i, kind, name, of = place
    number, wire, value = fields[i]
    if wire == 0:
        new = r.choice([r.choice(EDGES), value + 1, value - 1, value * 2, r.randrange(30)])
        fields[i] = [number, wire, new]
    elif of == "f32" and wire == 5:
        fields[i] = [number, wire, struct.pack("<f", r.choice(REALS))]
    elif of == "text":
        fields[i] = [number, wire, other_text(r, all_places, kind, name, ops)]
    elif isinstance(value, bytes) and wire == 2:
        fields[i] = [number, wire, other_bytes(r, value)]
    elif isinstance(value, tuple):
        fields[i] = [number, wire, (value[0], copy(value[1][:r.randrange(len(value[1]) + 1)]))]


def change_structure(r, all_places, place):
    fields, i, _, _, of = place
    how, j = r.randrange(4), r.randrange(len(fields))
    if how == 0:
        del fields[i]
    elif how == 1:
        fields.insert(j, copy([fields[i]])[0])
    elif how == 2:
        fields[i], fields[j] = fields[j], fields[i]
    else:
        alike = [p for p in all_places if p[4] == of and p[1] < len(p[0])]
        source, k, *_ = r.choice(alike)
        fields[i] = [fields[i][0], source[k][1], copy([source[k]])[0][2]]


def mutate(r, schema, model, ops):
    fields = copy(model)
    for _ in range(r.choice([1, 1, 2, 3])):
        all_places = places(schema, "ModelProto", fields, [])
        kinds = sorted({(p[2], p[3]) for p in all_places})
        kind = r.choice(kinds)        # kinds of fields alike, not fields: there are many names and few axes
        place = r.choice([p for p in all_places if (p[2], p[3]) == kind])
        if r.random() < 0.6:
            change_value(r, all_places, place, ops)
        else:
            change_structure(r, all_places, place)
    return serialise(fields)


# ---- running ----
def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (4 * SECONDS, 4 * SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Trial:
    def __init__(self, build, work):
        self.build, self.work = os.path.abspath(build), work
        makefile = open(os.path.join(build, "Makefile"), encoding="utf-8").read()
        self.sanitized = bool(re.search(r"^TPC_SAN = .", makefile, re.M))
        self.env = dict(os.environ, ASAN_OPTIONS="quarantine_size_mb=8:detect_leaks=0:allocator_may_return_null=1", OMP_NUM_THREADS="1",
                        UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1")

    def run(self, *command):
        """Status, what stdout and stderr hold, a complaint or None."""
        begin = time.monotonic()
        p = subprocess.Popen(command, stdout=open(f"{self.work}/out", "wb"), stderr=open(f"{self.work}/err", "wb"), env=self.env, preexec_fn=limits)
        while True:
            pid, status, usage = os.wait4(p.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - begin > WALL:
                p.send_signal(signal.SIGKILL)
                os.wait4(p.pid, 0)
                return None, "", "", f"hangs: no end in {WALL} s"
            time.sleep(0.002)
        p.returncode = os.waitstatus_to_exitcode(status)
        out = open(f"{self.work}/out", errors="replace").read()
        err = open(f"{self.work}/err", errors="replace").read()
        return p.returncode, out, err, self.complaint(p.returncode, err, usage)

    def complaint(self, status, err, usage):
        if "runtime error:" in err or "Sanitizer" in err:
            return "a sanitizer speaks"
        if status not in (0, 1, 2):
            return f"ends with status {status}"
        if status and not re.match(r"tpc-(shard|run): .{8,}\n\Z", err):
            return "fails without one sentence"
        seconds = usage.ru_utime + usage.ru_stime
        if seconds > SECONDS * (4 if self.sanitized else 1):
            return f"takes {seconds:.1f} s"
        most = (20 * self.bytes + 200 * 2**20) * (3 if self.sanitized else 1)
        return f"takes {usage.ru_maxrss // 1024} MiB" if usage.ru_maxrss * 1024 > most else None

    def left(self, *allowed):
        other = set(os.listdir(self.work)) - {"out", "err", "found", "m", *allowed}
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

        def step(command, *allowed):
            nonlocal stage
            status, said, err, wrong = self.run(*command)
            wrong = wrong or self.left(*allowed)
            if wrong:
                found.append((" ".join(command), wrong, err[-2000:]))
            return status, said

        if step([shard, model, "--tp", "2", "-n", "-q"])[0] == 0:
            stage = 1
        status, _ = step([shard, model, "--tp", "2", "-q", "-o", out], "o" if stage else "")
        if stage and status == 0:
            stage = 2
        sizes = self.sizes() if stage == 2 else []
        if step([run, model, *random_run, *sizes], "o")[0] == 0 and stage == 2:
            stage = 3
            status, said = step([run, out, "--local", "2", *random_run, *sizes, "--check", model], "o")
            if status == 0:
                stage = 4
            elif status == 1 and "FAILED" in said:
                found.append(("--check", "two ranks differ from one", said[-500:]))
        shutil.rmtree(out, ignore_errors=True)
        return found, stage


def listed_ops(build):
    text = subprocess.run([f"{build}/tpc-shard", "--list-ops"], capture_output=True, text=True, check=True).stdout
    return sorted({line.split()[1] for line in text.splitlines()[1:]})


def write_mutant(r, schema, ops, parsed, folder):
    """Writes one to folder, with the weights beside its model. Returns the model's path."""
    path, fields = r.choice(parsed)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name in os.listdir(os.path.dirname(path)):
        if name.endswith(".data"):
            shutil.copy(os.path.join(os.path.dirname(path), name), f"{folder}/{name}")
    with open(f"{folder}/model.onnx", "wb") as f:
        f.write(mutate(r, schema, fields, ops))
    return path


def keep(work, name, path, found):
    shutil.copytree(f"{work}/m", f"{work}/found/{name}", dirs_exist_ok=True)
    with open(f"{work}/found/{name}/why", "w", encoding="utf-8") as f:
        for command, what, said in found:
            f.write(f"{path}\n{command}\n{what}\n{said}\n")
            print(f"found/{name} of {path}: {what}: {command[-200:]}\n{said[-300:]}", flush=True)


def main():
    schema_path, build, work, count, seed, *models = sys.argv[1:]
    schema, ops, r = read_schema(schema_path), listed_ops(build), random.Random(int(seed))
    parsed = [(path, parse(schema, "ModelProto", open(path, "rb").read())) for path in models]
    trial, wrong, stages = Trial(build, work), 0, [0] * 5
    try:
        for i in range(int(count)):
            path = write_mutant(r, schema, ops, parsed, f"{work}/m")
            found, stage = trial.all(f"{work}/m/model.onnx")
            stages[stage] += 1
            if found:
                wrong += 1
                keep(work, f"{seed}-{i}", path, found)
            for name in set(os.listdir(work)) - {"m", "found", "out", "err"}:
                shutil.rmtree(f"{work}/{name}", ignore_errors=True)
    except KeyboardInterrupt:
        print("interrupted")
    print(f"{sum(stages)} mutants: {stages[0]} refused, {stages[1]} planned, {stages[2]} written, {stages[3]} run whole, {stages[4]} run on two "
          f"ranks; {wrong} with findings")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
