"""A .npy file, without numpy.

    python tests/npy.py FILE TYPE SHAPE NUMBER...    as x.npy i8 1,2 3 4
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
    save(sys.argv[1], sys.argv[2], sys.argv[3].split(","), sys.argv[4:])
