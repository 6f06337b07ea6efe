"""session: the Python package against ONNX Runtime's outputs of a sample, on the library of a build. session.py FOLDER-OF-SAMPLE WORK."""
import glob
import os
import subprocess
import sys

import numpy as np

import tpc

sample, work = sys.argv[1:]
count = 0


def ok(good, name):
    global count
    count += 1
    print(f"{'ok' if good else 'not ok'} {count} - {name}")


def raises(kind, part, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        return part in str(error)
    return False


def read_pb(path):
    """A TensorProto with dims (1), data_type (2), name (8), raw_data (9)."""
    data, at, dims, kind, name, raw = open(path, "rb").read(), 0, [], 0, "", b""

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            value = number()
            dims, kind = (dims + [value], kind) if tag >> 3 == 1 else (dims, value if tag >> 3 == 2 else kind)
            continue
        length = number()
        bits = data[at:at + length]
        at += length
        if tag >> 3 == 1:
            dims = list(bits)
        elif tag >> 3 == 8:
            name = bits.decode()
        elif tag >> 3 == 9:
            raw = bits
    return name, np.frombuffer(raw, {1: np.float32, 7: np.int64}[kind]).reshape(dims)


def tensors(kind):
    paths = sorted(glob.glob(os.path.join(sample, "test_data_set_1", kind + "_*.pb")))
    return dict(read_pb(p) for p in paths)


def near(got, want, rtol=1e-4, atol=1e-5):
    return set(got) == set(want) and all(np.allclose(got[n], want[n], rtol, atol) for n in want)


inputs, want = tensors("input"), tensors("output")
folder = tpc.shard(os.path.join(sample, "model.onnx"), 2, os.path.join(work, "two"))
with tpc.Session(folder) as s:
    ok(s.ranks == 2 and s.inputs[0].dtype == np.int64 and "batch_size" in s.inputs[0].shape, "a folder opens and tells its inputs")
    ok(near(s.run(inputs), want), "outputs are ONNX Runtime's")
    ok(list(s.run(inputs, ["logits"])) == ["logits"], "one output by name")
    ok(near(s.run({n: np.asfortranarray(v) for n, v in inputs.items()}), want), "arrays in another order of memory")
    ok(raises(tpc.InvalidCall, "did you mean", s.run, {"input_id": inputs["input_ids"]}), "a name that is none")
    ok(raises(tpc.InvalidCall, "type", s.run, dict(inputs, input_ids=inputs["input_ids"].astype(np.float32))), "a wrong type")
    ok(raises(tpc.Error, "out of range", s.run, dict(inputs, input_ids=inputs["input_ids"] + 10**6)), "a run that fails")
    ok(near(s.run(inputs), want), "the session goes on")
    rows = s.generate([[5, 6, 7], [9]], tokens=5, end=[])
    heard = []
    again = s.generate([[5, 6, 7], [9]], tokens=5, end=[], made=lambda row, token: heard.append((row, token)))
    ok(rows == again and [t for r, t in heard if r == 0] == rows[0] and [len(r) for r in rows] == [5, 5], "tokens, as they are made")
    ok([t for _, t in s.stream([[5, 6, 7]], tokens=5, end=[])] == rows[0], "a stream")
    for _ in s.stream([[5, 6, 7]], tokens=5, end=[]):
        break
    ok(raises(tpc.Error, "", s.encode, "no tokenizer"), "no tokenizer")
    if "built without text" not in tpc._library.sentence():
        with open(os.path.join(folder, "tokenizer.json"), "w") as f:
            subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "../tokenizer/bytes.py")], stdout=f, check=True)
        text = "two ranks, \u00e9"
        ok(s.encode(text) == list(text.encode()) and s.decode(s.encode(text)) == text, "text and ids")
        ok(s.generate([text], tokens=5, end=[]) == s.generate([list(text.encode())], tokens=5, end=[]), "a prompt of text")
        ok(s.decode([255]) == "\ufffd" and s.decode([]) == "", "bytes that are no text")
    ok(raises(ZeroDivisionError, "", s.generate, [[5]], tokens=3, made=lambda row, token: 1 // 0), "an error of the caller's function")
with tpc.Session(os.path.join(sample, "model.onnx")) as whole:
    ok(whole.ranks == 1 and whole.generate([[5, 6, 7], [9]], tokens=5, end=[]) == rows, "the same tokens on one rank")
with tpc.Session(folder, cache="f16", fast=True) as s:
    ok(s.generate([[5, 6, 7], [9]], tokens=5, end=[]) == rows and near(s.run(inputs), want, 2**-5, 2**-4), "caches in fewer bytes")
ok(raises(tpc.InvalidCall, "cache is 'f8', expected 'f16' or 'int8'", tpc.Session, folder, cache="f8"), "a cache of no such type")
with tpc.Session(folder, keep_state=True) as s:
    ok(raises(tpc.InvalidCall, "closed", whole.run, inputs), "a session that is closed")
    first = s.run({"input_ids": [[5, 6]], "attention_mask": [[1, 1]], "position_ids": [[0, 1]]})
    second = s.run({"input_ids": [[7]], "attention_mask": [[1, 1, 1]], "position_ids": [[2]]})
    short = {"input_ids": [[8]], "attention_mask": [[1, 1, 1]], "position_ids": [[3]]}
    ok(raises(tpc.InvalidCall, "input 'attention_mask' has 3 in dimension 1", s.run, short), "a wrong size behind kept state is the input's")
    with tpc.Session(folder, keep_state=True) as t:
        both = t.run({"input_ids": [[5, 6, 7]], "attention_mask": [[1, 1, 1]], "position_ids": [[0, 1, 2]]})
    ok(list(first) == ["logits"] and np.allclose(both["logits"][:, 2], second["logits"][:, 0], 1e-4, 1e-5), "state is kept")
with open(os.path.join(work, "words.graph"), "w") as f:
    f.write("graph words { opset 23  dim N >= 1  input x: string[N, 2]  node turned: y: ? = Transpose(x)  output y }")
with tpc.Session(os.path.join(work, "words.graph")) as s:
    words = [["one", ""], ["zwei \u00df", "22"]]
    ok(all(s.run({"x": form})["y"].tolist() == [["one", "zwei \u00df"], ["", "22"]] for form in (words, np.array(words))), "strings")
    ok(raises(tpc.InvalidCall, "no strings", s.run, {"x": [["a", 1]]}), "an object that is no string")
ok(raises(tpc.Error, "nowhere", tpc.Session, "nowhere"), "no such folder")
print(f"1..{count}")
