#!/usr/bin/env python3
"""Decodes greedily with ONNX Runtime, on the ranks of a folder that tpc-shard wrote: each process runs its own rank's file. Needs numpy.

    mpirun -n 2 python3 docs/run_ort.py gpt2.tp2 prompt.npy --tokens 8 --library lib/libtpc_ort.so

States, such as a KV cache, stay as each rank's graph has them: its outputs are its next inputs. Inputs and outputs that are not split are whole.
"""
import argparse
import os
import sys

import numpy as np
import onnxruntime


def own_rank():
    """As the launcher numbers this process: of Open MPI, MPICH, Slurm."""
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        if name in os.environ:
            return int(os.environ[name])
    sys.exit("start this with mpirun")


def open_rank(folder, rank, library):
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(library)
    return onnxruntime.InferenceSession(f"{folder}/rank-{rank}.onnx", options, providers=["CPUExecutionProvider"])


def empty_states(session, rows):
    """The first values of states, and which output is the next value of which input, from the file's metadata."""
    inputs, states, follows = {i.name: i for i in session.get_inputs()}, {}, {}
    for key, text in session.get_modelmeta().custom_metadata_map.items():
        if not key.startswith("tpc.state."):
            continue
        past, present, axis = text.split("|")[:3]
        sizes = [n if isinstance(n, int) else rows for n in inputs[past].shape]
        sizes[int(axis)] = 0
        kind = {"tensor(float)": np.float32, "tensor(float16)": np.float16}[inputs[past].type]
        states[past], follows[present] = np.zeros(sizes, kind), past
    return states, follows


def main():
    p = argparse.ArgumentParser(description="decode greedily with ONNX Runtime on several ranks")
    p.add_argument("folder")
    p.add_argument("prompt", help=".npy of token ids, int64[rows, length]")
    p.add_argument("--tokens", type=int, default=8)
    p.add_argument("--library", default=os.path.join(os.path.dirname(__file__), "..", "lib", "libtpc_ort.so"), help="libtpc_ort.so")
    o = p.parse_args()
    rank, ids = own_rank(), np.load(o.prompt)
    session, made, total = open_rank(o.folder, rank, os.path.abspath(o.library)), [], 0
    states, follows = empty_states(session, len(ids))
    names, takes = [out.name for out in session.get_outputs()], {i.name for i in session.get_inputs()}
    for _ in range(o.tokens):
        rows, length = ids.shape
        positions, total = np.arange(total, total + length), total + length
        given = {"input_ids": ids, "attention_mask": np.ones((rows, total), np.int64), "position_ids": np.tile(positions, (rows, 1)), **states}
        outputs = dict(zip(names, session.run(None, {name: x for name, x in given.items() if name in takes})))
        states = {past: outputs[present] for present, past in follows.items()}
        ids = outputs["logits"][:, -1:].argmax(-1)
        made.append(ids)
    if rank == 0:
        for row in np.concatenate(made, 1):
            print(*row)


if __name__ == "__main__":
    main()
