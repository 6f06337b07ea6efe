""".npy files, without numpy.

    python tests/npy.py FILE TYPE SHAPE NUMBER...    as x.npy i8 1,2 3 4
    python tests/npy.py                              a file for each line of stdin
"""
import struct
import sys

CODES = {"i4": "i", "i8": "q", "f4": "f", "f8": "d"}


def save(path, dtype, shape, numbers):
    shape = "(" + "".join(f"{n}, " for n in shape) + ")"
    head = f"{{'descr': '<{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    number = float if dtype[0] == "f" else int
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack(f"<{len(numbers)}{CODES[dtype]}", *map(number, numbers)))


if __name__ == "__main__":
    for file, dtype, shape, *numbers in [sys.argv[1:]] if sys.argv[1:] else map(str.split, sys.stdin):
        save(file, dtype, shape.split(","), numbers)
