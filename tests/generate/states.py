"""A saved state that is not as tpc-run wrote it: each of many is refused by one sentence, or decodes; none does anything else.

    python tests/generate/states.py STATE WORK COMMAND...
"""
import json
import pathlib
import random
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from spoil import join, parts, seal  # noqa: E402, of this folder above

good, work, command = pathlib.Path(sys.argv[1]).read_bytes(), pathlib.Path(sys.argv[2]) / "hostile", sys.argv[3:]
length = struct.unpack("<Q", good[:8])[0]
header, data = parts(good)
texts = "__metadata__"
key = next(k for k in header if k != texts and not k.startswith("tpc."))


def head(change):
    h = json.loads(json.dumps(header))
    change(h)
    return join(h, data)


def sets(name, field, value):
    return head(lambda h: h[name].__setitem__(field, value))


def fills(name, value):
    """Its elements, of 8 bytes."""
    a, b = header[name]["data_offsets"]
    return good[:8 + length] + data[:a] + struct.pack("<q", value) * ((b - a) // 8) + data[b:]


refused = [good[:n] for n in (0, 4, 8, 100, 8 + length, len(good) - 1)] + [struct.pack("<Q", 2 ** 63) + good[8:], struct.pack("<Q", length - 3) + good[8:]]
refused += [head(lambda h, k=k: h.pop(k)) for k in header]
refused += [head(lambda h, k=k: h[texts].pop(k)) for k in header[texts] if k != "model"]
refused += [head(lambda h: h.__setitem__("more", header[key]))]
refused += [sets(texts, k, v) for k in header[texts] if k not in ("text", "model") for v in ("", "nan", "99999999999999999999")]
for name in (key, "tpc.mask"):
    shape = header[name]["shape"]
    refused += [sets(name, "shape", s) for s in ([], [0] * len(shape), shape[:-1], shape + [1], [2 ** 62] * len(shape), [-1] * len(shape), ["1"] * len(shape), shape[::-1] + [1])]
    refused += [sets(name, "dtype", t) for t in ("F64", "U8", "F4", 3)]
    refused += [sets(name, "data_offsets", at) for at in ([0, 2 ** 62], [2 ** 62, 2 ** 62 + 8], [8, 0], [-8, 0], "x", [])]
refused += [fills("tpc.tokens", x) for x in (-1, 2 ** 31, 2 ** 62, -2 ** 63)] + [fills("tpc.mask", 2), fills("tpc.positions", -1), fills("tpc.positions", 2 ** 62)]
rows, columns = header["tpc.tokens"]["shape"]
tables = ("tpc.tokens", "tpc.mask", "tpc.positions")
refused += [head(lambda h: [h[t].__setitem__("shape", [1, rows * columns]) for t in tables])]
refused = [seal(r) for r in refused]
for at in (30, 60, length, 8 + length, len(good) - 1):  # what only the digest tells
    b = bytearray(good)
    b[at] ^= 4
    refused += [bytes(b)]
refused += [good + b"x", seal(good + bytes(8))]
refused += [seal(fills("tpc.tokens", 2 ** 31 - 1))]  # beyond the vocabulary: the graph says so
draw = random.Random(1)
flipped = []
for _ in range(12):
    b = bytearray(good)
    for _ in range(draw.choice((1, 3))):
        b[draw.randrange(8 + length)] = draw.randrange(256)
    flipped.append(seal(bytes(b)))
for i, content in enumerate(refused + flipped):
    work.write_bytes(content)
    done = subprocess.run(command + ["--load-state", work], capture_output=True, text=True, errors="replace", timeout=60)
    said = [line for line in done.stderr.splitlines() if line]
    if done.returncode not in ((1,) if i < len(refused) else (0, 1)) or (done.returncode and (len(said) != 1 or "hostile" not in said[0] and i != len(refused) - 1)):
        sys.exit(f"state {i}: status {done.returncode}: {done.stderr[-500:]}")
print(len(refused) + len(flipped), "states")
