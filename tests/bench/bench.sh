#!/bin/bash
# Times tpc-run beside ONNX Runtime, and tpc-shard's planning:  bench.sh BUILD MODEL.onnx...
#
# Runs of both programs take turns and the minima are compared, for machines are noisy. Rows: prompts of $PROMPTS tokens, and a step of one
# token on a past of $PAST, for N = 1 and for 2 ranks as threads and, where there is an mpirun, as processes, one thread each; ratio: time
# of ONNX Runtime (one thread) over ours, above 1 means faster; speed-up: our time for N = 1 over ours. Then planning for $RANKS ranks and
# writing them (RANKS=0: not).
#   PYTHON   a python with onnxruntime and numpy; without it the columns of ONNX Runtime stay empty
#   ROUNDS (3), REPEAT (6), PROMPTS ("128 512"), PAST (128)
set -u
[ $# -ge 2 ] || { echo "usage: $0 BUILD MODEL.onnx..." >&2; exit 2; }
build=$1; shift
python=${PYTHON:-} rounds=${ROUNDS:-3} repeat=${REPEAT:-6} prompts=${PROMPTS:-128 512} past=${PAST:-128} ranks=${RANKS:-8}
peer=$(dirname "$0")/peer.py
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

least() { awk -v a="${1:-}" -v b="${2:-}" 'BEGIN { print (a == "" || (b != "" && b + 0 < a + 0)) ? b : a }'; }
# min of the later runs of a tpc-run command, in ms
ours() { "$@" 2>/dev/null | sed -n 's/^time: first .* then min \([0-9.]*\),.*/\1/p'; }
theirs() { [ -n "$python" ] && "$python" "$peer" onnxruntime "$1" --threads 1 --repeat "$repeat" --rows "$2" --past "$3" 2>/dev/null; }
# model, work, how; times of this row, of ONNX Runtime and of one rank
row() {
    awk -v n="$1" -v w="$2" -v h="$3" -v t="$4" -v o="$5" -v one="$6" 'function over(a) { return t > 0 && a > 0 ? sprintf("%.2f", a / t) : "-" }
        BEGIN { printf "| %s | %s | %s | %s | %s | %s | %s |\n", n, w, h, t == "" ? "-" : t, o == "" ? "-" : o, over(o), over(one) }'
}

for model in "$@"; do "$build/tpc-shard" "$model" --tp 2 -q --force -o "$work/$(basename "$(dirname "$model")").tp2" || exit 1; done
echo "| model | work | how | tpc-run, ms | ONNX Runtime, ms | ratio | speed-up |"
echo "|---|---|---|---|---|---|---|"
for model in "$@"; do
    name=$(basename "$(dirname "$model")")
    for rows in $prompts 1; do
        before=0; [ "$rows" = 1 ] && before=$past
        sizes=(--random --dim batch_size=1 --dim "sequence_length=$rows" --dim "past_sequence_length=$before" --threads 1 --repeat "$repeat" -q)
        one='' two='' mpi='' ort=''
        for _ in $(seq "$rounds"); do
            one=$(least "$one" "$(ours "$build/tpc-run" "$model" "${sizes[@]}")")
            ort=$(least "$ort" "$(theirs "$model" "$rows" "$before")")
            two=$(least "$two" "$(ours "$build/tpc-run" "$work/$name.tp2" --local 2 "${sizes[@]}")")
            command -v mpirun >/dev/null && mpi=$(least "$mpi" "$(ours mpirun --allow-run-as-root --oversubscribe -n 2 "$build/tpc-run" "$work/$name.tp2" "${sizes[@]}")")
        done
        label="prompt $rows"; [ "$rows" = 1 ] && label="step at $past"
        row "$name" "$label" "1 rank" "$one" "$ort" "$one"
        row "$name" "$label" "--local 2" "$two" "$ort" "$one"
        row "$name" "$label" "mpirun -n 2" "$mpi" "$ort" "$one"
    done
done
[ "$ranks" = 0 ] && exit 0
echo
echo "| model | planning for $ranks ranks, s | peak, MB | writing them, s | peak, MB | model, MB |"
echo "|---|---|---|---|---|---|"
for model in "$@"; do
    name=$(basename "$(dirname "$model")")
    plan=$( { /usr/bin/time -f '%e %M' "$build/tpc-shard" "$model" --tp "$ranks" -n -q >/dev/null; } 2>&1 | tail -1)
    write=$( { /usr/bin/time -f '%e %M' "$build/tpc-shard" "$model" --tp "$ranks" -q -o "$work/written" >/dev/null; } 2>&1 | tail -1)
    rm -rf "$work/written"
    bytes=$(cat "$model" "$model"_data "$model".data 2>/dev/null | wc -c)
    awk -v n="$name" -v p="$plan" -v w="$write" -v b="$bytes" 'BEGIN { split(p, x, " "); split(w, y, " "); printf "| %s | %s | %.0f | %s | %.0f | %.0f |\n", n, x[1], x[2] * 1.024e-3, y[1], y[2] * 1.024e-3, b / 1e6 }'
done
