#!/bin/bash
# Times tpc-run beside every other program that is here:  peers.sh BUILD MODEL.onnx...
#
# All take turns, $ROUNDS times, and the minima are compared, for machines are noisy. Rows: steps of one token and prompts, for N = 1 beside
# one thread and 2 ranks as threads beside two. Runtimes run the same file: its caches come in and go out, a prompt has all logits.
# llama.cpp decodes: its cache stays, a prompt has the last logits. So does tpc-run --bench, which is timed beside it. A ratio is our time
# over that of the fastest other one: below 1 means faster.
#   PYTHON   a python with numpy and onnxruntime; with onnx and openvino; with torch and transformers (and config.json beside the model)
#   LLAMA    llama-bench; `pip download --no-binary :all: --no-deps llama-cpp-python` has the source of llama.cpp, and there
#            `cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build -t llama-bench` makes it
#   GGUF     files of the same model for it, of which the fastest counts
#   SHARD, FLAGS   options for tpc-shard, as --weights int8, and for tpc-run, as --fast
#   MACHINE  a profile of tpc-run --local 2 --threads 1 --calibrate: a column has the predicted time of tpc, and its ratio to the measured one
#   WITH     a command that runs each program, as taskset -c 0,1
#   ROUNDS (3), REPEAT (6), PROMPTS ("128 512"), PASTS ("128 512"), RANKS ("1 2")
# What is missing is left out, and a line says why.
set -u
[ $# -ge 2 ] || { echo "usage: $0 BUILD MODEL.onnx..." >&2; exit 2; }
build=$1; shift
python=${PYTHON:-python3} rounds=${ROUNDS:-3} repeat=${REPEAT:-6} llama=${LLAMA:-llama-bench} here=$(dirname "$0")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

# Plans the model $1 for $2 ranks, and all rows in their order.
plan() {
    # shellcheck disable=SC2206 # options are words
    local options=(${SHARD:-})
    [ -z "${MACHINE:-}" ] || options+=(--machine "$MACHINE")
    for past in ${PASTS:-128 512}; do options+=(--workload "batch_size=1,sequence_length=1,past_sequence_length=$past"); done
    for rows in ${PROMPTS:-128 512}; do options+=(--workload "batch_size=1,sequence_length=$rows,past_sequence_length=0"); done
    "$build/tpc-shard" "$1" --tp "$2" "${options[@]}" -q --force -o "$work/$2"
}

least() { sort -g | head -n 1; }
# Each prints milliseconds, or nothing and a reason on stderr:  RUNNER MODEL ROWS PAST THREADS
tpc() { ${WITH:-} "$build/tpc-run" "$([ -d "$work/$1" ] && echo "$work/$1" || echo "$2")" --local "$1" --threads 1 ${FLAGS:-} "${@:3}"; }
run_tpc() {
    tpc "$4" "$1" --random --dim batch_size=1 --dim "sequence_length=$2" --dim "past_sequence_length=$3" --repeat "$repeat" -q |
        sed -n 's/^time: first .* then min \([0-9.]*\),.*/\1/p'
}
run_tpc_bench() {
    local rows=$2 tokens=1 test=0
    [ "$2" = 1 ] && rows=$3 tokens=16 test=1
    tpc "$4" "$1" --bench=json --dim batch_size=1 --dim "sequence_length=$rows" --generate "$tokens" --repeat "$repeat" |
        jq ".[$test] | (.runs | min) * 1000 / $tokens"
}
run_python() { ${WITH:-} "$python" "$here/peer.py" "$1" "$2" --rows "$3" --past "$4" --threads "$5" --repeat "$repeat" 2> >(tail -n 1 >&2); }
run_onnxruntime() { run_python onnxruntime "$@"; }
run_openvino() { run_python openvino "$@"; }
run_torch() { run_python torch "$@"; }
run_llama.cpp() {
    local tokens=(-p "$2" -n 0)
    command -v "$llama" >/dev/null || { echo "llama.cpp: there is no $llama (LLAMA)" >&2; return; }
    [ -n "${GGUF:-}" ] || { echo "llama.cpp: no model (GGUF)" >&2; return; }
    [ "$2" = 1 ] && tokens=(-p 0 -n 16 -d "$3")
    for file in $GGUF; do
        ${WITH:-} "$llama" -m "$file" -t "$4" -r "$repeat" "${tokens[@]}" -o json | jq '.[-1] | (.samples_ns | min) / 1e6 / ([.n_gen, 1] | max)'
    done | least
}

runtimes=() decoders=()
for peer in onnxruntime openvino torch llama.cpp; do
    why=$("run_$peer" "$1" 1 8 1 2>&1 >"$work/ms" | tail -n 1)
    if [ ! -s "$work/ms" ]; then echo "without ${why:-$peer: it does not run}"
    elif [ "$peer" = llama.cpp ]; then decoders=("$peer")
    else runtimes+=("$peer")
    fi
done
[ ${#runtimes[@]} = 0 ] || runtimes+=(tpc)
[ ${#decoders[@]} = 0 ] || decoders+=(tpc_bench)
echo
head='| model | work | threads |' line='|---|---|---|'
for peer in ${runtimes[@]+"${runtimes[@]}"} ${decoders[@]+"${decoders[@]}"}; do
    name=${peer/tpc_bench/tpc --bench} head="$head $name |" line="$line---|"
    [[ $peer = tpc* ]] && head="$head ratio |" line="$line---|"
done
[ -z "${MACHINE:-}" ] || head="$head predicted |" line="$line---|"
printf '%s\n%s\n' "$head" "$line"
row() { # MODEL ROWS PAST THREADS LABEL, as the next row of the plan
    # shellcheck disable=SC2155 # names that are always there
    local fastest='' expected='' line="| $(basename "$(dirname "$1")") | $5 | $4 |"
    for _ in $(seq "$rounds"); do
        for peer in "${runtimes[@]}" "${decoders[@]}"; do "run_$peer" "$1" "$2" "$3" "$4" 2>/dev/null >>"$work/$peer.ms"; done
    done
    for peer in "${runtimes[@]}" "${decoders[@]}"; do
        best=$(least <"$work/$peer.ms")
        rm "$work/$peer.ms"
        line="$line $(printf '%.*f' "$(awk -v a="${best:-0}" 'BEGIN { print a < 100 ? 1 : 0 }')" "${best:-0}") |"
        if [[ $peer = tpc* ]]; then
            line="$line $(awk -v a="$best" -v b="$fastest" 'BEGIN { printf(a > 0 && b > 0 ? "%.2f" : "-", a / (b + 0 ? b : 1)) }') |" fastest=''
        else
            fastest=$(printf '%s\n' $fastest $best | least)
        fi
        [ "$peer" != tpc ] || [ -z "${MACHINE:-}" ] || expected=$(predicted "$4" "$best")
    done
    echo "$line$expected"
}
predicted() { # RANKS MEASURED
    jq -r ".cost.workloads[$index].seconds * 1e3" "$work/$1/plan.json" | awk -v m="$2" '{ printf ($1 < 100 ? " %.1f" : " %.0f") " (%.2f) |", $1, $1 / m }'
}
for model in "$@"; do
    for threads in ${RANKS:-1 2}; do
        plan "$model" "$threads" || exit 1
        index=0
        for past in ${PASTS:-128 512}; do row "$model" 1 "$past" "$threads" "step on $past"; index=$((index + 1)); done
        for rows in ${PROMPTS:-128 512}; do row "$model" "$rows" 0 "$threads" "prompt of $rows"; index=$((index + 1)); done
    done
    rm -rf "$work/1" "$work/2"
done
