"""Compare two .npy files of float32: shapes equal, |a-b| <= LIMIT max(1, max|b|): close.py A B [1e-4]. Standard library only."""
import ast
import struct
import sys


def read(path):
    data = open(path, "rb").read()
    assert data[:6] == b"\x93NUMPY", path
    size = struct.unpack_from("<H", data, 8)[0]
    head = ast.literal_eval(data[10:10 + size].decode())
    assert head["descr"] == "<f4" and not head["fortran_order"], head
    body = data[10 + size:]
    return head["shape"], struct.unpack(f"<{len(body) // 4}f", body)


(shape, got), (expected, want) = read(sys.argv[1]), read(sys.argv[2])
worst = max(abs(a - b) for a, b in zip(got, want)) / max(1, max(map(abs, want)))
print(shape, expected, worst)
sys.exit(shape != expected or not worst <= float((sys.argv + ["1e-4"])[3]))
