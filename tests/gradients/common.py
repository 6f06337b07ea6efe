"""What make.py and check.py share: inputs by formula, and projections of gradients, so that no array is stored."""
import numpy as np

BATCH, SEQUENCE, DIRECTIONS, IGNORED = 2, 6, 4, -100


def spread(shape, seed):
    """Numbers between -1 and 1 that every machine makes alike."""
    n = int(np.prod(shape, dtype=np.int64))
    x = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(2654435761) + np.uint64(seed) * np.uint64(40503)
    x ^= x >> np.uint64(15)
    x = x * np.uint64(2246822519) % np.uint64(1 << 32)
    return (x.astype(np.float64) / 2**31 - 1).reshape(shape)


def below(shape, seed, n):
    return ((spread(shape, seed) + 1) / 2 * n).astype(np.int64) % n


def inputs(names, classes, image):
    """By name, of those that a sample of text or images has."""
    rows = (BATCH, SEQUENCE)
    known = {
        "input_ids": below(rows, 1, classes),
        "attention_mask": np.ones(rows, np.int64),
        "position_ids": np.tile(np.arange(SEQUENCE), (BATCH, 1)),
        "token_type_ids": below(rows, 2, 2),
        "encoder_attention_mask": np.ones((BATCH, 5), np.int64),
        "encoder_hidden_states": spread((BATCH, 5, 64), 3).astype(np.float32),
        "pixel_values": spread((BATCH, 3, 32, 32), 4).astype(np.float32),
    }
    labels = below((BATCH,) if image else rows, 5, classes)
    labels.reshape(-1)[1] = IGNORED
    return {**{n: known[n] for n in names if n in known}, "labels": labels}


def projections(gradient):
    g = gradient.astype(np.float64)
    return [float((g * spread(g.shape, 100 + k)).sum()) for k in range(DIRECTIONS)]
