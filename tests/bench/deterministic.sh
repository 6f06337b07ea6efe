#!/bin/bash
# What --deterministic costs:  deterministic.sh BUILD MODEL.onnx...
#
# Runs with and without it take turns, minima are compared: prompts of $PROMPTS tokens and a step of one token on a past of $PAST, on one
# rank and on 2 ranks as threads, one thread each.  ROUNDS (3), REPEAT (6), PROMPTS ("128 512"), PAST (128)
set -u
[ $# -ge 2 ] || { echo "usage: $0 BUILD MODEL.onnx..." >&2; exit 2; }
build=$1; shift
rounds=${ROUNDS:-3} repeat=${REPEAT:-6} prompts=${PROMPTS:-128 512} past=${PAST:-128}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

least() { awk -v a="${1:-}" -v b="${2:-}" 'BEGIN { print (a == "" || (b != "" && b + 0 < a + 0)) ? b : a }'; }
# min of the later runs of a tpc-run command, in ms
ours() { "$build/tpc-run" "$@" 2>/dev/null | sed -n 's/^time: first .* then min \([0-9.]*\),.*/\1/p'; }

echo "| model | work | 1 rank, ms | --deterministic | ratio | 2 ranks, ms | --deterministic | ratio |"
echo "|---|---|---|---|---|---|---|---|"
for model in "$@"; do
    name=$(basename "$(dirname "$model")")
    "$build/tpc-shard" "$model" --tp 2 -q -o "$work/$name" || exit 1
    for rows in $prompts 1; do
        before=0; [ "$rows" = 1 ] && before=$past
        sizes=(--random --dim batch_size=1 --dim "sequence_length=$rows" --dim "past_sequence_length=$before" --threads 1 --repeat "$repeat" -q)
        one='' one_d='' two='' two_d=''
        for _ in $(seq "$rounds"); do
            one=$(least "$one" "$(ours "$model" "${sizes[@]}")")
            one_d=$(least "$one_d" "$(ours "$model" "${sizes[@]}" --deterministic)")
            two=$(least "$two" "$(ours "$work/$name" --local 2 "${sizes[@]}")")
            two_d=$(least "$two_d" "$(ours "$work/$name" --local 2 "${sizes[@]}" --deterministic)")
        done
        label="prompt of $rows"; [ "$rows" = 1 ] && label="one step on $past"
        awk -v n="$name" -v l="$label" -v a="$one" -v b="$one_d" -v c="$two" -v d="$two_d" \
            'BEGIN { printf "| %s | %s | %s | %s | %.2f | %s | %s | %.2f |\n", n, l, a, b, b / a, c, d, d / c }'
    done
done
