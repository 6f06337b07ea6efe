"""libtpc by ctypes: tpc.h in Python's words."""
import ctypes
import os
import sys
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p

import numpy as np

MAX_RANK, NAME = 8, "libtpc.so.0"
STRING = 8
INVALID = 1


class Error(RuntimeError):
    """A call that failed; the text is libtpc's sentence."""


class InvalidCall(Error, ValueError):
    """A call that was wrong: nothing was done."""


class Options(ctypes.Structure):
    _fields_ = [("threads", c_int), ("mpi", c_int), ("keep_state", c_int), ("deterministic", c_int), ("cache", c_int),
                ("fast", c_int), ("wire", c_int), ("timeout", c_int), ("reserved", c_int * 8)]


class Info(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("type", c_int), ("rank", c_int), ("dim", c_int64 * MAX_RANK), ("symbol", c_char_p * MAX_RANK),
                ("state", c_int), ("reserved", c_int * 7)]


class Tensor(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("type", c_int), ("rank", c_int), ("dim", c_int64 * MAX_RANK), ("data", c_void_p),
                ("reserved", c_int * 4)]


MADE = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, c_int64)


class Decoding(ctypes.Structure):
    _fields_ = [("tokens", c_int64), ("temperature", c_double), ("top_p", c_double), ("min_p", c_double),
                ("repetition_penalty", c_double), ("top_k", c_int64), ("seed", c_uint64), ("end", c_void_p), ("ends", c_int),
                ("made", MADE), ("data", c_void_p), ("reserved", c_int * 8)]


class Prompt(ctypes.Structure):
    _fields_ = [("token", c_void_p), ("tokens", c_int64)]


FUNCTIONS = {
    "tpc_version": (c_char_p, []),
    "tpc_error": (c_char_p, []),
    "tpc_load_plugin": (c_int, [c_char_p]),
    "tpc_shard": (c_int, [c_char_p, c_int, c_char_p, POINTER(c_char_p)]),
    "tpc_open": (c_void_p, [c_char_p, POINTER(Options)]),
    "tpc_close": (None, [c_void_p]),
    "tpc_ranks": (c_int, [c_void_p]),
    "tpc_rank": (c_int, [c_void_p]),
    "tpc_type_size": (c_size_t, [c_int]),
    "tpc_input_count": (c_int, [c_void_p]),
    "tpc_output_count": (c_int, [c_void_p]),
    "tpc_input": (c_int, [c_void_p, c_int, POINTER(Info)]),
    "tpc_output": (c_int, [c_void_p, c_int, POINTER(Info)]),
    "tpc_run": (c_int, [c_void_p, POINTER(Tensor), c_int, POINTER(Tensor), c_int]),
    "tpc_generate": (c_int, [c_void_p, POINTER(Prompt), c_int, POINTER(Decoding), c_void_p]),
    "tpc_encode": (c_int, [c_void_p, c_char_p, c_int64, c_int, POINTER(POINTER(c_int64)), POINTER(c_int64)]),
    "tpc_decode": (c_int, [c_void_p, c_void_p, c_int64, c_int, POINTER(c_void_p), POINTER(c_int64)]),
}

# bfloat16 has no type in numpy: its bits are uint16. Strings are objects, each a str.
DTYPES = {1: np.dtype(np.float32), 2: np.dtype(np.uint8), 3: np.dtype(np.int8), 4: np.dtype(np.uint16), 5: np.dtype(np.int16),
          6: np.dtype(np.int32), 7: np.dtype(np.int64), STRING: np.dtype(object), 9: np.dtype(np.bool_), 10: np.dtype(np.float16), 11: np.dtype(np.float64),
          12: np.dtype(np.uint32), 13: np.dtype(np.uint64), 16: np.dtype(np.uint16)}
TYPES = {dtype: number for number, dtype in reversed(DTYPES.items())}


def _places():
    here = os.path.dirname(os.path.abspath(__file__))
    if os.environ.get("TPC_LIBRARY"):
        return [os.environ["TPC_LIBRARY"]]
    prefixes = [sys.prefix, os.path.join(here, "..", ".."), os.path.join(here, "..", "..", "build")]
    return [os.path.join(p, "lib", NAME) for p in prefixes] + [NAME]


def _load():
    tried = []
    for place in _places():
        place = os.path.join(place, NAME) if os.path.isdir(place) else place
        if os.sep in place and not os.path.exists(place):
            tried.append(f"{place}: no such file")
            continue
        try:
            return ctypes.CDLL(place)
        except OSError as error:
            tried.append(str(error))
    raise ImportError(f"{NAME} is missing: install tpc, or set TPC_LIBRARY to its file; tried: {'; '.join(tried)}")


call = _load()
for _name, (_result, _arguments) in FUNCTIONS.items():
    getattr(call, _name).restype, getattr(call, _name).argtypes = _result, _arguments


def version():
    return call.tpc_version().decode()


def sentence():
    return call.tpc_error().decode(errors="replace")


def check(status):
    if status:
        raise (InvalidCall if status == INVALID else Error)(sentence())


def choice(option, name, numbers):
    if name is not None and name not in numbers:
        raise InvalidCall(f"{option} is {name!r}, expected {' or '.join(map(repr, numbers))}")
    return numbers.get(name, 0)


def path(name):
    return os.fsencode(name)


def pointer(array):
    return array.ctypes.data_as(c_void_p)


def array(name, value, info):
    """The array in memory order, in the byte order of the machine; a list takes the input's type."""
    made = np.asarray(value) if isinstance(value, np.ndarray) or info is None else np.asarray(value, info.dtype)
    if made.dtype.kind == "U":
        made = made.astype(object)
    made = np.ascontiguousarray(made, made.dtype.newbyteorder("=")).reshape(made.shape)
    kind = TYPES.get(made.dtype)
    if info is not None and info.dtype == made.dtype:
        kind = info.type
    if kind is None:
        raise InvalidCall(f"input '{name}' has type {made.dtype}, which tpc does not take")
    if made.ndim > MAX_RANK:
        raise InvalidCall(f"input '{name}' has {made.ndim} dimensions, at most {MAX_RANK} are possible")
    return name, made, kind


def texts(name, made):
    """The elements in C's form. A NUL would end them early."""
    if not all(isinstance(text, str) and "\0" not in text for text in made.flat):
        raise InvalidCall(f"input '{name}' has elements that are no strings, or that hold a NUL")
    return (c_char_p * max(1, made.size))(*[text.encode(errors="surrogatepass") for text in made.flat])


def tensor(name, made, kind):
    """A tensor, and what holds its data."""
    dim = (c_int64 * MAX_RANK)(*made.shape)
    held = texts(name, made) if kind == STRING else made
    data = ctypes.addressof(held) if kind == STRING else made.ctypes.data
    return Tensor(name=name.encode(), type=kind, rank=made.ndim, dim=dim, data=data), held


def copy_of(t):
    dtype, shape = DTYPES.get(t.type), tuple(t.dim[: t.rank])
    if dtype is None:
        raise Error(f"output '{t.name.decode()}' has elements of ONNX's type {t.type}, which numpy lacks")
    size = int(np.prod(shape, dtype=np.int64))
    if t.type == STRING:
        at = ctypes.cast(t.data, POINTER(c_char_p))
        return np.array([at[i].decode() for i in range(size)], dtype).reshape(shape)
    bits = ctypes.string_at(t.data, size * dtype.itemsize) if size else b""
    return np.frombuffer(bits, dtype).reshape(shape).copy()
