"""Write rows of 3, 6 and 1 tokens to FOLDER: row-R.npy; and together, padded to 6: SIDE.npy and SIDE-mask.npy. With TOKEN: last.npy, which holds it,
and ten.npy, a mask of ten.

    python tests/generate/pad.py FOLDER [TOKEN]
"""
import sys
try:
    import numpy as np
except ImportError:
    print("skipped: no numpy")
    sys.exit(77)
folder = sys.argv[1]


def save(name, values):
    np.save(f"{folder}/{name}.npy", np.asarray(values, np.int64))


if len(sys.argv) > 2:
    save("last", [[int(sys.argv[2])]])
    save("ten", np.ones((1, 10)))
    sys.exit()
rows = [[17, 3, 99], [5, 88, 120, 1, 64, 31], [42]]
places = {"front": ((3, 4, 5), range(6), (5,)), "behind": ((0, 1, 2), range(6), (0,)), "within": ((0, 2, 5), range(6), (3,))}
for side, columns in places.items():
    ids, mask = np.full((3, 6), 7), np.zeros((3, 6))
    for row, tokens, at in zip(range(3), rows, columns):
        ids[row, list(at)], mask[row, list(at)] = tokens, 1
    save(side, ids)
    save(side + "-mask", mask)
for row, tokens in enumerate(rows):
    save(f"row-{row}", [tokens])
