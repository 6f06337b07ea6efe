"""Files of safetensors that tpc-run writes, spoiled for tests: with a right digest, or with the one that they had."""
import ctypes
import json
import struct

TEXTS, AT = "__metadata__", 8 + len('{"__metadata__":{"xxh3":"')


def library():
    """None: there is no libxxhash to load."""
    try:
        xxhash = ctypes.CDLL("libxxhash.so.0")
    except OSError:
        return None
    xxhash.XXH3_64bits.restype = ctypes.c_uint64
    xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return xxhash


XXHASH = library()


def seal(content):
    """With a right digest, where there is room for one."""
    if XXHASH is None or content[8:AT] != b'{"__metadata__":{"xxh3":"' or len(content) < AT + 16:
        return content
    zeros = content[:AT] + b"0" * 16 + content[AT + 16:]
    return content[:AT] + b"%016x" % XXHASH.XXH3_64bits(zeros, len(zeros)) + content[AT + 16:]


def parts(content):
    """Header and data."""
    length = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8:8 + length]), content[8 + length:]


def join(header, data):
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data
