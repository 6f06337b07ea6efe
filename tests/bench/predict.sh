#!/bin/bash
# Predicted time of a step beside the measured one:  predict.sh BUILD MODEL.onnx[,NAME=SIZE]...
#
# Calibrates $RANKS ranks, plans every model for them and runs it on one rank and on all, taking turns; the least time of each counts, for
# machines are noisy. Sizes: of a model with a past, prompts of $PROMPTS tokens, and a step of one token on a past as long; of others, those
# given, else tpc-shard's own.
#   RANKS (2), THREADS per rank (1), PROMPTS ("128 512"), WEIGHTS ("f32"; also bf16, f16, int8, int4), ROUNDS (3), REPEAT (6), LOCAL=1: ranks are
#   threads, MACHINE: a profile made before, RUN: what starts every run ("chrt -f 50")
set -u
[ $# -ge 2 ] || { echo "usage: $0 BUILD MODEL.onnx[,NAME=SIZE]..." >&2; exit 2; }
build=$1; shift
ranks=${RANKS:-2} threads=${THREADS:-1} prompts=${PROMPTS:-128 512} types=${WEIGHTS:-f32} rounds=${ROUNDS:-3} repeat=${REPEAT:-6}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

together() { # ARGUMENTS of tpc-run on all ranks
    if [ -n "${LOCAL:-}" ]; then ${RUN:-} "$build/tpc-run" --local "$ranks" "$@"; else ${RUN:-} mpirun --allow-run-as-root --oversubscribe -n "$ranks" "$build/tpc-run" "$@"; fi
}
# the least time of the later runs, in ms
least() { sed -n 's/^time: first .* then min \([0-9.]*\),.*/\1/p' "$1" | sort -n | head -n 1; }
# predicted ms of workload K: of $1 ("seconds" or "unsharded_seconds") in the plan $2
predicted() { jq -r --argjson k "$3" --arg key "$1" '.cost.workloads[$k][$key] * 1e3' "$2"; }
row() { awk -v n="$1" -v w="$2" -v r="$3" -v p="$4" -v m="$5" 'BEGIN { printf "| %s | %s | %d | %.4g | %.4g | %.2f |\n", n, w, r, p, m, p / m }'; }

# sets sizes: a string of NAME=SIZE,... for each row of the model $1
choose_sizes() {
    local given="" own
    case $1 in *,*) given=${1#*,} ;; esac
    own=$("$build/tpc-shard" "${1%%,*}" --tp "$ranks" -n | sed -n 's/^workload [0-9]*: \(static sizes\)\{0,1\}\(.*\) (weight.*/\2/p')
    sizes=()
    if [ -n "$given" ]; then
        sizes=("$given")
    elif [[ $own == *past_sequence_length=* ]]; then
        for n in $prompts; do
            sizes+=("batch_size=1,sequence_length=$n,past_sequence_length=0" "batch_size=1,sequence_length=1,past_sequence_length=$n")
        done
    else
        sizes=("$(head -n 1 <<<"$own")")
    fi
}

# The folder of $2 ranks of the model $1 with weights of type $3, for all sizes, on the machine $4, as $5.
plan() {
    local loads=() as=()
    for s in "${sizes[@]}"; do [ -z "$s" ] || loads+=(--workload "$s"); done
    [ "$3" = f32 ] || as=(--weights "$3")
    "$build/tpc-shard" "$1" --tp "$2" --machine "$4" "${loads[@]}" "${as[@]}" -q --force -o "$5"
}

label_of() { # the sizes in words
    case ,$1, in
    ,,) echo "static sizes" ;;
    *,sequence_length=1,past*) echo "step on ${1##*past_sequence_length=}" ;;
    *,past_sequence_length=0,*) sed 's/.*[^_]sequence_length=\([0-9]*\).*/prompt of \1/' <<<"$1" ;;
    *) echo "${1//,/, }" ;;
    esac
}

machine=${MACHINE:-$work/machine.json}
[ -n "${MACHINE:-}" ] || together --calibrate "$machine" --threads "$threads" || exit 1
echo
echo "| model | work | ranks | predicted, ms | measured, ms | ratio |"
echo "|---|---|---|---|---|---|"
for model in "$@"; do for type in $types; do
    path=${model%%,*}
    name=$(basename "$path" .onnx); [ "$name" != model ] || name=$(basename "$(dirname "$path")")
    [ "$type" = f32 ] || name="$name, $type"
    choose_sizes "$model"
    plan "$path" 1 "$type" "$machine" "$work/one" && plan "$path" "$ranks" "$type" "$machine" "$work/all" || exit 1
    for round in $(seq "$rounds"); do
        for k in "${!sizes[@]}"; do
            sizing=(--random --threads "$threads" --repeat "$repeat" -q)
            for s in ${sizes[k]//,/ }; do sizing+=(--dim "$s"); done
            [ "$round" != 1 ] || rm -f "$work/one.$k" "$work/all.$k"
            ${RUN:-} "$build/tpc-run" "$work/one" --local 1 "${sizing[@]}" >>"$work/one.$k" || exit 1
            together "$work/all" "${sizing[@]}" >>"$work/all.$k" || exit 1
        done
    done
    for k in "${!sizes[@]}"; do
        label=$(label_of "${sizes[k]}")
        row "$name" "$label" 1 "$(predicted unsharded_seconds "$work/all/plan.json" "$k")" "$(least "$work/one.$k")"
        row "$name" "$label" "$ranks" "$(predicted seconds "$work/all/plan.json" "$k")" "$(least "$work/all.$k")"
    done
done; done
