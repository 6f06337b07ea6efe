#!/bin/sh
# Shows the main use on a sample: installs what is missing, builds, and compiles a Llama export for four ranks with sequence parallelism.
# Runs it under mpirun and compares with the stored outputs and with the unsharded model.
#   ./demo.sh [MODEL-FOLDER] [RANKS]
set -eu
cd "$(dirname "$0")"
model=${1:-samples/llama}
ranks=${2:-4}
./setup.sh
srcdir=.
. tests/lib.sh
echo "+ tpc-shard $model/model.onnx --tp $ranks --sp -o OUT"
./tpc-shard "$model/model.onnx" --tp "$ranks" --sp -o "$work/out"
for data in "$model"/test_data_set_*; do
    echo "+ mpirun -n $ranks tpc-run OUT --test-data $data --check $model/model.onnx"
    mpirun_n "$ranks" ./tpc-run "$work/out" --test-data "$data"
    mpirun_n "$ranks" ./tpc-run "$work/out" --test-data "$data" --check "$model/model.onnx"
done
