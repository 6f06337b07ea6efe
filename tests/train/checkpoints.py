"""A checkpoint that is not as tpc-run wrote it is refused by one sentence that names it; nothing else is printed.

    python tests/train/checkpoints.py CHECKPOINT WORK COMMAND...
"""
import copy
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from spoil import TEXTS, XXHASH, join, parts, seal  # noqa: E402, of this folder above

good, work, command = pathlib.Path(sys.argv[1]).read_bytes(), pathlib.Path(sys.argv[2]) / "spoiled", sys.argv[3:]
header, data = parts(good)
VALUES = ("x", "", 5, None, -1, "-1", "nan", "missing")
FINE = {("tokenizer", v) for v in ("x", "", "-1", "nan")}  # the name of a file that tokens do not need
FINE |= {("validation", ""), ("validation", "missing"), ("validation", "-1"), ("keep", "missing")}  # older ones do not say it


def changed(key, value):
    h = copy.deepcopy(header)
    if value == "missing":
        del h[TEXTS][key]
    else:
        h[TEXTS][key] = value
    return join(h, data)


def flipped(at):
    return good[:at] + bytes([good[at] ^ 16]) + good[at + 1:]


cases = {f"{key} is {value!r}": changed(key, value) for key in header[TEXTS] for value in VALUES}
if XXHASH:
    cases |= {f"{key} is {value!r}, sealed": seal(changed(key, value)) for key in header[TEXTS] for value in VALUES if (key, value) not in FINE and key != "xxh3"}
size = len(good)
cases |= {f"a flipped bit at {at}": flipped(at) for at in (0, 9, 40, 70, size - len(data) - 1, size - len(data), size // 2, size - 1)}
cases |= {"a byte more": good + b"x", "8 bytes more, sealed": seal(good + bytes(8)), "a byte less": good[:-1], "half": good[:size // 2], "7 bytes": good[:7], "nothing": b""}
for name, content in cases.items():
    if content == good:
        continue
    work.write_bytes(content)
    done = subprocess.run(command + ["--resume", work], capture_output=True, text=True, errors="replace", timeout=60, check=False)
    said = [line for line in done.stderr.splitlines() if line]
    if done.returncode not in (1, 2) or done.stdout or len(said) != 1 or "spoiled" not in said[0] or work.read_bytes() != content:
        sys.exit(f"{name}: status {done.returncode}: {done.stderr[-500:]}")
print(len(cases), "checkpoints")
