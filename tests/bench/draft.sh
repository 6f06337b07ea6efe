#!/bin/sh
# How many tokens a run makes where a small trained model drafts:  draft.sh BUILD [STEPS [TEXT-FILE]]
#
# Trains the samples llama and gpt2, whose 256 tokens become characters, on the texts of licences that Debian has (or TEXT-FILE), and holds back
# the end of the text. Then llama goes on behind lines from there, 200 tokens each, greedily and drawn, with drafts of gpt2 and of its own weights,
# both in 4 bits, and of the text before (--lookup). Prints tokens per run, and the share of drafted tokens that was kept. Models are too small
# for their speed to tell anything.
set -eu
[ $# -ge 1 ] || { echo "usage: $0 BUILD [STEPS [TEXT-FILE]]" >&2; exit 2; }
build=$(realpath "$1") steps=${2:-1500} source=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
if [ $# -gt 2 ]; then cat "$3"; else cat /usr/share/common-licenses/[!GL]* /usr/share/common-licenses/*GPL-[23]*; fi | LC_ALL=C tr -cd '\12\40-\176' >"$work/all.txt"
bytes=$(wc -c <"$work/all.txt")
head -c $((bytes * 9 / 10)) "$work/all.txt" >"$work/text.txt"
tail -c $((bytes / 10)) "$work/all.txt" | grep -E '^.{30}' | awk 'NR % 20 == 1 { print substr($0, 1, 30) }' | head -n 8 >"$work/lines"
for m in llama gpt2; do
    mkdir "$work/$m"
    cp "$source/tests/train/bytes.json" "$work/$m/tokenizer.json"
    "$build/tpc-shard" "$source/samples/$m/model.onnx" --train --tp 1 -q -o "$work/$m.train"
    "$build/tpc-run" "$work/$m.train" --train --data "$work/text.txt" --tokenizer "$work/$m/tokenizer.json" --sequence 64 --batch 16 --steps "$steps" --lr 5e-3 --save "$work/$m.ck" -q
    "$build/tpc-shard" --merge "$work/$m.train" --weights "$work/$m.ck" -q -o "$work/$m/model.onnx"
    "$build/tpc-shard" "$work/$m/model.onnx" --tp 1 --weights int4 -q -o "$work/$m.int4"
done
told() { # of all lines: tokens, runs, drafted, kept
    while IFS= read -r line; do
        "$build/tpc-run" "$work/llama/model.onnx" --prompt "$line" --generate 200 --eos 0 --threads 1 "$@" 2>&1 >/dev/null | sed -n 's/^drafts: \([0-9]*\) tokens in \([0-9]*\) runs.* \([0-9]*\) of \([0-9]*\) drafted.*/\1 \2 \4 \3/p'
    done <"$work/lines" | awk '{ t += $1; r += $2; d += $3; k += $4 } END { printf "%.2f | %.0f %%", t / r, 100 * k / d }'
}
echo "| drafts of | tokens | tokens a run | kept of the drafted ones |"
echo "|---|---|---|---|"
for drafts in "--draft $work/gpt2.int4" "--draft $work/llama.int4" --lookup; do
    for how in "--temperature 0" "--temperature 0.7 --seed 1" "--temperature 1 --seed 1"; do
        # shellcheck disable=SC2086 # options are words
        echo "| $(echo "$drafts" | sed "s|$work/||") | $how | $(told $drafts $how) |"
    done
done
