"""Write rows of 3, 6 and 1 tokens to FOLDER: row-R.npy; and together, padded to 6: SIDE.npy and SIDE-mask.npy. With TOKEN: last.npy, which holds it,
and ten.npy, a mask of ten.

    python tests/generate/pad.py FOLDER [TOKEN]
"""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import npy
folder = sys.argv[1]


def save(name, rows):
    npy.save(f"{folder}/{name}.npy", "i8", (len(rows), len(rows[0])), [v for row in rows for v in row])


if len(sys.argv) > 2:
    save("last", [[sys.argv[2]]])
    save("ten", [[1] * 10])
    sys.exit()
rows = [[17, 3, 99], [5, 88, 120, 1, 64, 31], [42]]
places = {"front": ((3, 4, 5), range(6), (5,)), "behind": ((0, 1, 2), range(6), (0,)), "within": ((0, 2, 5), range(6), (3,))}
for side, columns in places.items():
    ids, mask = [[7] * 6 for _ in rows], [[0] * 6 for _ in rows]
    for row, tokens in enumerate(rows):
        for column, token in zip(columns[row], tokens):
            ids[row][column], mask[row][column] = token, 1
    save(side, ids)
    save(side + "-mask", mask)
for row, tokens in enumerate(rows):
    save(f"row-{row}", [tokens])
