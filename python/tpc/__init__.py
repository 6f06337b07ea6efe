"""Tensor parallelism for ONNX models: a thin package on libtpc.

    tpc.shard("model.onnx", 2, out="model.tp2")
    with tpc.Session("model.tp2") as s:
        y = s.run({"x": x})["y"]
"""
import ctypes
import queue
import threading

import numpy as np

from . import _library as lib
from ._library import Error, InvalidCall, version

Error.__module__ = InvalidCall.__module__ = __name__
__version__ = "0.2.0"
__all__ = ["Error", "Info", "InvalidCall", "Session", "shard", "version"]


def shard(model, ranks, out, *options):
    """Compiles a model, or the models of a folder, for so many ranks into the folder `out`, whose name it returns. Options are words of
    the command line of tpc-shard: shard(model, 2, "model.tp2", "--sp", "--memory", "2GiB")."""
    words = (ctypes.c_char_p * (len(options) + 1))(*[str(o).encode() for o in options], None)
    lib.check(lib.call.tpc_shard(lib.path(model), ranks, lib.path(out), words))
    return out


def load_plugin(path):
    """Operators of a shared library, as --plugin of tpc-shard and tpc-run, for all models that are compiled or opened later."""
    lib.check(lib.call.tpc_load_plugin(lib.path(path)))


class Info:
    """An input or output of the model: name, dtype, shape (a size, or the text of a symbol), and whether it is state."""

    def __init__(self, info):
        self.name = info.name.decode()
        self.dtype = lib.DTYPES.get(info.type)
        self.shape = tuple(info.symbol[k].decode() if info.dim[k] < 0 else info.dim[k] for k in range(info.rank))
        self.state = bool(info.state)
        self.type = info.type

    def __repr__(self):
        return f"{self.name}: {self.dtype}{list(self.shape)}"


class Session:
    """A folder of ranks, or a model for one rank, that is loaded. For one thread at a time. cache: "f16" or "int8", in which generate keeps
    KV caches of float32. fast: products round what they read, to bf16 or 8 bits. wire: "f32", "bf16" or "q8", in which sums go between machines;
    None: as tpc-shard --wire said.
    timeout, with mpi: seconds for which a rank that others wait for may be stopped; 0: for ever."""

    def __init__(self, path, threads=0, mpi=False, keep_state=False, deterministic=False, cache=None, fast=False, wire=None, timeout=0):
        options = lib.Options(threads=threads, mpi=mpi, keep_state=keep_state, deterministic=deterministic, fast=fast, timeout=timeout,
                              cache=lib.choice("cache", cache, {"f16": 10, "int8": 3}),
                              wire=lib.choice("wire", wire, {"f32": 1, "bf16": 16, "q8": 3}))
        self._handle = lib.call.tpc_open(lib.path(path), ctypes.byref(options))
        if not self._handle:
            raise Error(lib.sentence())
        self.inputs = [self._info(lib.call.tpc_input, i) for i in range(lib.call.tpc_input_count(self._handle))]
        self.outputs = [self._info(lib.call.tpc_output, i) for i in range(lib.call.tpc_output_count(self._handle))]
        self._keeps = keep_state
        self.ranks = lib.call.tpc_ranks(self._handle)
        self.rank = lib.call.tpc_rank(self._handle)

    def _info(self, ask, index):
        info = lib.Info()
        lib.check(ask(self._handle, index, ctypes.byref(info)))
        return Info(info)

    def close(self):
        if self._handle:
            lib.call.tpc_close(self._handle)
        self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()

    def _open(self):
        if not self._handle:
            raise InvalidCall("the session is closed")
        return self._handle

    def run(self, inputs, outputs=None):
        """Runs the model on a dict of arrays by name. Returns a dict of arrays: of all outputs, or of those that are named. With keep_state
        those that are state are left out unless they are named."""
        handle, types = self._open(), {i.name: i for i in self.inputs}
        arrays = [lib.array(name, value, types.get(name)) for name, value in inputs.items()]
        tensors = [lib.tensor(n, a, t) for (n, a, t) in arrays]
        given = (lib.Tensor * max(1, len(arrays)))(*[t for t, held in tensors])
        names = list(outputs) if outputs is not None else [o.name for o in self.outputs if not (o.state and self._keeps)]
        made = (lib.Tensor * max(1, len(names)))(*[lib.Tensor(name=n.encode()) for n in names])
        lib.check(lib.call.tpc_run(handle, given, len(arrays), made, len(names)))
        return {n: lib.copy_of(made[k]) for k, n in enumerate(names)}

    def encode(self, text, special=True):
        """The token ids of a text, by the tokenizer.json beside the model. special: with those that it puts around a text."""
        ids, count, utf8 = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_int64(), text.encode()
        lib.check(lib.call.tpc_encode(self._open(), utf8, len(utf8), special, ctypes.byref(ids), ctypes.byref(count)))
        return ids[: count.value]

    def decode(self, ids, special=False):
        """The text of token ids. special: tokens such as that at the end of a text are written, too."""
        at, size, given = ctypes.c_void_p(), ctypes.c_int64(), np.ascontiguousarray(ids, np.int64)
        lib.check(lib.call.tpc_decode(self._open(), lib.pointer(given), given.size, special, ctypes.byref(at), ctypes.byref(size)))
        return ctypes.string_at(at, size.value).decode(errors="replace")

    def generate(self, prompts, tokens, end=None, made=None, **sampling):
        """Decodes after each prompt, a list of token ids or a text, at most so many tokens. Returns a list of ids for each. end: the tokens that end a
        row (default: those of generation_config.json). made(row, token) is called with each token; true: decoding ends. Sampling:
        temperature, top_k, top_p, min_p, repetition_penalty, seed."""
        handle = self._open()
        rows = [np.ascontiguousarray(self.encode(p) if isinstance(p, str) else p, np.int64) for p in prompts]
        given = (lib.Prompt * max(1, len(rows)))(*[lib.Prompt(lib.pointer(r), r.size) for r in rows])
        failure = []

        def call(unused, row, token):
            try:
                return 1 if made(row, token) else 0
            except BaseException as error:  # raised again in the caller's thread
                failure.append(error)
                return 1

        ends = None if end is None else np.ascontiguousarray(np.append(end, -1), np.int64)
        how = lib.Decoding(tokens=tokens, made=lib.MADE(call) if made else lib.MADE(), **sampling)
        if ends is not None:
            how.end, how.ends = lib.pointer(ends), ends.size - 1
        out = np.full((len(rows), max(0, tokens)), -1, np.int64)
        lib.check(lib.call.tpc_generate(handle, given, len(rows), ctypes.byref(how), lib.pointer(out)))
        if failure:
            raise failure[0]
        return [[int(t) for t in row if t >= 0] for row in out]

    def stream(self, prompts, tokens, **how):
        """As generate, and yields (row, token) as tokens are made."""
        made, end, stopped = queue.Queue(), object(), threading.Event()

        def hear(row, token):
            made.put((row, token))
            return stopped.is_set()

        def work():
            try:
                self.generate(prompts, tokens, made=hear, **how)
                made.put(end)
            except BaseException as error:
                made.put(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            while True:
                item = made.get()
                if item is end:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stopped.set()
            thread.join()
