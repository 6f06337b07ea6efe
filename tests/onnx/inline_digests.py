"""A flipped bit of a constant that is in a rank file itself is refused by its name, also in bodies and attributes; files that other tools have
saved again load: inline_digests.py BUILD WORK FOLDER, a case of tests/control with bodies."""
import os
import shutil
import subprocess
import sys

from bodies import graphs

try:
    import onnx
    from onnx import numpy_helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

build, work, case = sys.argv[1:]
STRINGS = """graph words {
  opset 23
  dim N >= 1
  input x: f32[N, 3]
  const names: string[3] = ["a", "", "two words"]
  const zeros: f32[3] = [0, 0, 0]
  node sum: s: ? = Add(x, zeros)
  node size: size: ? = Shape(x)
  node like: l: ? = ConstantOfShape(size) {value = f32[1] [2]}
  node all: y: ? = Concat(s, l) {axis = 0}
  node text: t: ? = Identity(names)
  output y
  output t
}
"""


def tensors(proto):
    """With what a message calls them."""
    for graph in graphs(proto.graph):
        for t in graph.initializer:
            yield t, f"initializer '{t.name}'"
        for node in graph.node:
            for a in node.attribute:
                if a.HasField("t"):
                    yield a.t, f"attribute '{a.name}'"


def inline(proto):
    return [(t, what) for t, what in tensors(proto) if t.data_location != onnx.TensorProto.EXTERNAL]


def flip(t):
    """The last bit of the last byte. False: the tensor has none."""
    if t.string_data:
        t.string_data[-1] = t.string_data[-1][:-1] + bytes([t.string_data[-1][-1] ^ 1])
    elif t.raw_data:
        t.raw_data = t.raw_data[:-1] + bytes([t.raw_data[-1] ^ 1])
    else:
        return False
    return True


def run(folder, *options):
    done = subprocess.run([os.path.join(build, "tpc-run"), folder, "--local", "2", "--threads", "1", "-q", *options], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def flipped(folder, options):
    path = os.path.join(folder, "rank-0.onnx")
    clean = onnx.load(path, load_external_data=False)
    tried = 0
    for i in range(len(inline(clean))):
        proto = onnx.ModelProto()
        proto.CopyFrom(clean)
        t, what = inline(proto)[i]
        if not flip(t):
            continue
        onnx.save(proto, path)
        status, said = run(folder, *options)
        if status != 1 or f"{what} is not what was written for this rank: its bytes have digest" not in said:
            sys.exit(f"{path}: {what}: {status} {said}")
        tried += 1
    onnx.save(clean, path)
    return tried


def typed(t):
    """As tools write that know no raw_data."""
    if t.HasField("raw_data") and t.data_type == onnx.TensorProto.FLOAT:
        values = numpy_helper.to_array(t).flatten().tolist()
        t.ClearField("raw_data")
        t.float_data.extend(values)


def saved_again(folder, options):
    for name, change in [("as they are", lambda t: None), ("in typed fields", typed), ("without metadata", lambda t: t.ClearField("metadata_props"))]:
        again = folder + ".again"
        shutil.copytree(folder, again, dirs_exist_ok=True)
        for r in range(2):
            path = os.path.join(again, f"rank-{r}.onnx")
            proto = onnx.load(path)  # with its weights, which become inline
            for t, _ in tensors(proto):
                change(t)
            onnx.save(proto, path)
        status, said = run(again, *options)
        if status:
            sys.exit(f"{folder} saved again, {name}: {status} {said}")
        shutil.rmtree(again)


graph = os.path.join(work, "words.graph")
with open(graph, "w") as f:
    f.write(STRINGS)
samples = os.path.join(os.environ.get("srcdir", "."), "samples")
for name, model, options in [("words", graph, ["--random", "--dim", "N=2"]), ("bodies", os.path.join(case, "model.onnx"), ["--test-data", os.path.join(case, "test_data_set_0")]),
                             ("llama", os.path.join(samples, "llama", "model.onnx"), ["--test-data", os.path.join(samples, "llama", "test_data_set_0")])]:
    out = os.path.join(work, f"inline-{name}")
    subprocess.run([os.path.join(build, "tpc-shard"), model, "--tp", "2", "-q", "--force", "-o", out], check=True)
    saved_again(out, options)
    n = flipped(out, options)
    print(f"{name}: {n} constants")
    if n < 3:
        sys.exit(f"{name}: {n} constants in the file, expected some")
