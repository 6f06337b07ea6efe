#!/usr/bin/env python3
"""Gives an edited manifest.json a right digest: seal.py manifest.json. Needs libxxhash."""
import ctypes
import sys

library = ctypes.CDLL("libxxhash.so.0")
library.XXH3_64bits.restype = ctypes.c_uint64
library.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
head, text = b'{"xxh3":"', open(sys.argv[1], "rb").read()
rest = text[len(head) + 18:].rstrip(b"\n")
with open(sys.argv[1], "wb") as out:
    out.write(head + b'%016x",' % library.XXH3_64bits(rest, len(rest)) + rest + b"\n")
