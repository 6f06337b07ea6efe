#!/bin/bash
# Times tpc-run beside every other program that is here:  peers.sh BUILD MODEL.onnx...
#
# All take turns, $ROUNDS times, and the minima are compared, for machines are noisy. Rows: steps of one token and prompts, for N = 1 beside
# one thread and 2 ranks as threads beside two. The last column is our time over that of the fastest other one: below 1 means faster.
#   PYTHON   a python with numpy and onnxruntime; with onnx and openvino; with torch and transformers (and config.json beside the model)
#   LLAMA    llama-bench of llama.cpp; GGUF: the same model for it
#   FLAGS    options for tpc-run, as --fast
#   ROUNDS (3), REPEAT (6), PROMPTS ("128 512"), PASTS ("128 512"), RANKS ("1 2")
# What is missing is left out, and a line says why.
set -u
[ $# -ge 2 ] || { echo "usage: $0 BUILD MODEL.onnx..." >&2; exit 2; }
build=$1; shift
python=${PYTHON:-python3} rounds=${ROUNDS:-3} repeat=${REPEAT:-6} llama=${LLAMA:-llama-bench} here=$(dirname "$0")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

least() { awk -v a="${1:-}" -v b="${2:-}" 'BEGIN { print (a == "" || (b != "" && b + 0 < a + 0)) ? b : a }'; }
# Each prints milliseconds, or nothing and a reason on stderr:  RUNNER MODEL ROWS PAST THREADS
run_tpc() {
    "$build/tpc-run" "$([ "$4" = 1 ] && echo "$1" || echo "$work/$4")" --local "$4" ${FLAGS:-} --random --dim batch_size=1 --dim "sequence_length=$2" \
        --dim "past_sequence_length=$3" --threads 1 --repeat "$repeat" -q | sed -n 's/^time: first .* then min \([0-9.]*\),.*/\1/p'
}
run_python() { "$python" "$here/peer.py" "$1" "$2" --rows "$3" --past "$4" --threads "$5" --repeat "$repeat" 2> >(tail -n 1 >&2); }
run_onnxruntime() { run_python onnxruntime "$@"; }
run_openvino() { run_python openvino "$@"; }
run_torch() { run_python torch "$@"; }
run_llama.cpp() {
    command -v "$llama" >/dev/null || { echo "llama.cpp: there is no $llama (LLAMA)" >&2; return; }
    [ -n "${GGUF:-}" ] || { echo "llama.cpp: no model (GGUF)" >&2; return; }
    if [ "$2" = 1 ]; then tokens=(-p 0 -n 16 -d "$3"); else tokens=(-p "$2" -n 0); fi
    "$llama" -m "$GGUF" -t "$4" -r "$repeat" "${tokens[@]}" -o json | "$python" -c 'import json, sys; r = json.load(sys.stdin)[-1]
print("%.3f" % (min(r["samples_ns"]) / 1e6 / (r["n_gen"] or 1)))'
}

peers=()
for peer in onnxruntime openvino llama.cpp torch; do
    why=$("run_$peer" "$1" 1 8 1 2>&1 >"$work/ms" | tail -n 1)
    if [ -s "$work/ms" ]; then peers+=("$peer"); else echo "without ${why:-$peer: it does not run}"; fi
done
echo
printf '| model | work | threads |'; printf ' %s, ms |' "${peers[@]}"; echo " tpc, ms | ratio |"
printf -- '|---%.0s' $(seq $((${#peers[@]} + 5))); echo "|"
row() { # MODEL ROWS PAST THREADS LABEL
    declare -A best=()
    for _ in $(seq "$rounds"); do
        for peer in tpc "${peers[@]}"; do best[$peer]=$(least "${best[$peer]:-}" "$("run_$peer" "$1" "$2" "$3" "$4" 2>/dev/null)"); done
    done
    others='' fastest=''
    for peer in "${peers[@]}"; do others="$others ${best[$peer]:--} |" fastest=$(least "$fastest" "${best[$peer]}"); done
    awk -v a="${best[tpc]}" -v b="$fastest" -v head="| $(basename "$(dirname "$1")") | $5 | $4 |$others" \
        'BEGIN { printf("%s %s | %s |\n", head, a == "" ? "-" : a, (a > 0 && b > 0) ? sprintf("%.2f", a / b) : "-") }'
}
for model in "$@"; do
    for threads in ${RANKS:-1 2}; do
        [ "$threads" = 1 ] || "$build/tpc-shard" "$model" --tp "$threads" -q --force -o "$work/$threads" || exit 1
        for past in ${PASTS:-128 512}; do row "$model" 1 "$past" "$threads" "step on $past"; done
        for rows in ${PROMPTS:-128 512}; do row "$model" "$rows" 0 "$threads" "prompt $rows"; done
    done
done
