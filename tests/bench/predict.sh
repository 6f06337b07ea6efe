#!/bin/bash
# Predicted time of a step beside the measured one:  predict.sh BUILD MODEL.onnx...
#
# For every model, calibrates $RANKS ranks, plans for them and those sizes, and runs it on one rank and on all, taking turns; the least time of
# each counts, for machines are noisy. Sizes: prompts of $PROMPTS tokens, and a step of one token on a past as long.
#   RANKS (2), THREADS per rank (1), PROMPTS ("128 512"), ROUNDS (5), REPEAT (6), LOCAL=1: ranks are threads, MACHINE: a profile made before
set -u
[ $# -ge 2 ] || { echo "usage: $0 BUILD MODEL.onnx..." >&2; exit 2; }
build=$1; shift
ranks=${RANKS:-2} threads=${THREADS:-1} prompts=${PROMPTS:-128 512} rounds=${ROUNDS:-5} repeat=${REPEAT:-6}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

together() { # ARGUMENTS of tpc-run on all ranks
    if [ -n "${LOCAL:-}" ]; then "$build/tpc-run" --local "$ranks" "$@"; else mpirun --allow-run-as-root --oversubscribe -n "$ranks" "$build/tpc-run" "$@"; fi
}
# the least time of the later runs, in ms
least() { sed -n 's/^time: first .* then min \([0-9.]*\),.*/\1/p' "$1" | sort -n | head -n 1; }
# predicted ms of workload K: of $1 ("seconds" or "unsharded_seconds") in the plan $2
predicted() { jq -r --argjson k "$3" --arg key "$1" '.cost.workloads[$k][$key] * 1e3' "$2"; }
row() { awk -v n="$1" -v w="$2" -v r="$3" -v p="$4" -v m="$5" 'BEGIN { printf "| %s | %s | %d | %.4g | %.4g | %.2f |\n", n, w, r, p, m, p / m }'; }

machine=${MACHINE:-$work/machine.json}
for model in "$@"; do
    [ -n "${MACHINE:-}" ] || together --calibrate "$machine" --threads "$threads" || exit 1
    name=$(basename "$(dirname "$model")")
    sizes=() loads=()
    for n in $prompts; do sizes+=("$n 0" "1 $n"); done
    for s in "${sizes[@]}"; do loads+=(--workload "batch_size=1,sequence_length=${s% *},past_sequence_length=${s#* }"); done
    "$build/tpc-shard" "$model" --tp "$ranks" --machine "$machine" "${loads[@]}" -q --force -o "$work/$name" || exit 1
    for _ in $(seq "$rounds"); do
        for k in "${!sizes[@]}"; do
            sizing=(--random --dim batch_size=1 --dim "sequence_length=${sizes[k]% *}" --dim "past_sequence_length=${sizes[k]#* }" --threads "$threads" --repeat "$repeat" -q)
            "$build/tpc-run" "$model" "${sizing[@]}" >>"$work/one.$name.$k" || exit 1
            together "$work/$name" "${sizing[@]}" >>"$work/all.$name.$k" || exit 1
        done
    done
    echo
    echo "| model | work | ranks | predicted, ms | measured, ms | ratio |"
    echo "|---|---|---|---|---|---|"
    for k in "${!sizes[@]}"; do
        label="prompt of ${sizes[k]% *}"; [ "${sizes[k]% *}" = 1 ] && label="step on ${sizes[k]#* }"
        row "$name" "$label" 1 "$(predicted unsharded_seconds "$work/$name/plan.json" "$k")" "$(least "$work/one.$name.$k")"
        row "$name" "$label" "$ranks" "$(predicted seconds "$work/$name/plan.json" "$k")" "$(least "$work/all.$name.$k")"
    done
done
