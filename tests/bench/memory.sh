#!/bin/bash
# Predicted memory beside what is resident:  memory.sh BUILD MODEL.onnx...
#
# Predicted, for the fullest rank: weights without tables that are only looked up in, state, activations and blocks of collectives as
# plan.json has them, the past as tpc-run is given it (whole, on every rank), and a base: what the program and its libraries take, which a
# tiny model tells (samples/llama). Measured: resident bytes per process, from tpc-run --stats. One thread per rank.
#   RANKS ("1 2 4"), PROMPT (512), PAST (1023)
set -u
[ $# -ge 2 ] || { echo "usage: $0 BUILD MODEL.onnx..." >&2; exit 2; }
build=$1; shift
ranks=${RANKS:-1 2 4} prompt=${PROMPT:-512} past=${PAST:-1023}
tiny=$(dirname "$0")/../../samples/llama/model.onnx
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

sizes() { echo "batch_size=1,sequence_length=$1,past_sequence_length=$2"; }
# MODEL N ROWS PAST: the plan, then bytes resident on the fullest rank
measure() {
    rm -rf "$work/out"
    "$build/tpc-shard" "$1" --tp "$2" --workload "$(sizes "$3" "$4")" -q -o "$work/out" || exit 1
    set -- "$2" --random --dim batch_size=1 --dim "sequence_length=$3" --dim "past_sequence_length=$4" --threads 1 -q --stats
    n=$1; shift
    if [ "$n" = 1 ]; then "$build/tpc-run" "$work/out/rank-0.onnx" "$@"; else mpirun -n "$n" "$build/tpc-run" "$work/out" "$@"; fi 2>"$work/err" |
        sed -n 's/^rank [0-9]*:.*; \([0-9.]*\) MiB resident.*/\1/p' | sort -n | tail -1
}
predicted() { jq '[.ranks[] | .weight_bytes - .table_bytes + .state_bytes + .peak_bytes + .block_bytes] | max / 1048576' "$work/out/plan.json"; }
whole_state() { "$build/tpc-shard" "$1" --tp 1 -n -q --workload "$(sizes 1 "$2")" --report json | jq '.ranks[0].state_bytes / 1048576'; }

for n in $ranks; do
    got=$(measure "$tiny" "$n" 16 0)
    base[n]=$(awk -v g="$got" -v p="$(predicted)" 'BEGIN { print g - p }')
done
echo "| model | work | ranks | base, MiB | predicted, MiB | resident, MiB | ratio |"
echo "|---|---|---|---|---|---|---|"
models=("$@")
for model in "${models[@]}"; do
    for work_of in "$prompt 0" "1 $past"; do
        set -- $work_of
        rows=$1 before=$2 inputs=0
        [ "$before" -gt 0 ] && inputs=$(whole_state "$model" "$before")
        for n in $ranks; do
            got=$(measure "$model" "$n" "$rows" "$before")
            what="prompt of $rows"; [ "$before" -gt 0 ] && what="step on $before"
            awk -v m="$(basename "$(dirname "$model")")" -v w="$what" -v n="$n" -v b="${base[n]}" -v p="$(predicted)" -v i="$inputs" -v g="$got" \
                'BEGIN { printf "| %s | %s | %d | %.0f | %.0f | %.0f | %.2f |\n", m, w, n, b, p + b + i, g, (p + b + i) / g }'
        done
    done
done
