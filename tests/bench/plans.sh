#!/bin/bash
# Three plans of each model side by side:  plans.sh BUILD MODEL.onnx...
#
# The one found, the first assignment that fits, and Megatron's (tests/megatron, by the name of the model's folder), for each N of $RANKS, under
# the reference profile and the default workloads. First what is predicted: weighted milliseconds of a step, collectives, KiB that the fullest rank
# puts into them for a prompt and for a step, MiB of weights on the fullest rank. Then, with MEASURE=1, milliseconds as measured for two ranks of one
# thread: runs of the three take turns, and the least time of each counts. Sizes: a prompt of $PROMPT tokens, and a step of one on as many.
#   RANKS ("2 4"), FLAGS (--sp ...), PROMPT (128), ROUNDS (5), REPEAT (6)
set -u
[ $# -ge 2 ] || { echo "usage: $0 BUILD MODEL.onnx..." >&2; exit 2; }
builddir=$1; shift
srcdir=$(dirname "$0")/../..
. "$srcdir/tests/lib.sh"
flags=${FLAGS:-} prompt=${PROMPT:-128} rounds=${ROUNDS:-5} repeat=${REPEAT:-6}
name_of() { basename "$(dirname "$1")"; }

# Of the report on stdin: what is shown of the plan found and of both others, as lines of JSON.
figures='
    {ms: (.cost.seconds * 1e3), count: (.collectives | length), weights: ([.ranks[].weight_bytes] | max),
     bytes: [range(.workload | length) as $w | [.collectives[].bytes[$w]] | add // 0]},
    (.compared[] | {ms: (.seconds * 1e3), count: ([.collectives[].count] | add // 0), weights: .weight_bytes,
                    bytes: [range(.workloads | length) as $w | [.collectives[].bytes[$w]] | add // 0]})'
# FILTER: "found / first / Megatron"
three() { jq -r "$1" "$work/figures" | awk '{ printf (NR > 1 ? " / " : "") ($1 < 1000 ? "%.4g" : "%.0f"), $1 }'; }

echo "| model | ranks | ms a step, weighted | times | collectives | KiB a prompt | KiB a step | MiB of weights |"
echo "|---|---|---|---|---|---|---|---|"
for model in "$@"; do
    name=$(name_of "$model")
    for n in ${RANKS:-2 4}; do
        "$shard" "$model" --tp "$n" $flags -n -q --report json --compare first --compare "$(megatron "$name")" >"$work/report" || exit 1
        jq -c "$figures" "$work/report" >"$work/figures"
        step=-; [ "$(jq '.workload | length' "$work/report")" -gt 1 ] && step=$(three '.bytes[1] / 1024')
        times=$(jq -r '.compared | map(.times) | @tsv' "$work/report" | awk '{ printf "%.2f / %.2f", $1, $2 }')
        echo "| $name | $n | $(three .ms) | $times | $(three .count) | $(three '.bytes[0] / 1024') | $step | $(three '.weights / 1048576') |"
    done
done
[ -n "${MEASURE:-}" ] || exit 0

# the least time of the later runs, in ms
least() { sed -n 's/^time: first .* then min \([0-9.]*\),.*/\1/p' "$1" | sort -n | head -n 1; }
echo
echo "| model | work | found | first | Megatron |"
echo "|---|---|---|---|---|"
for model in "$@"; do
    name=$(name_of "$model")
    "$shard" "$model" --tp 2 $flags -q -o "$work/$name.found" && "$shard" "$model" --tp 2 $flags --solver first -q -o "$work/$name.first" &&
        "$shard" "$model" --tp 2 $flags --plan "$(megatron "$name")" -q -o "$work/$name.megatron" || exit 1
    for sizes in "$prompt 0" "1 $prompt"; do
        rows=${sizes% *} past=${sizes#* }
        for _ in $(seq "$rounds"); do
            for p in found first megatron; do
                "$run" "$work/$name.$p" --local 2 --threads 1 --random --dim batch_size=1 --dim "sequence_length=$rows" --dim "past_sequence_length=$past" \
                    --repeat "$repeat" -q >>"$work/$name.$p.$rows" || exit 1
            done
        done
        label="prompt of $rows"; [ "$rows" = 1 ] && label="step on $past"
        echo "| $name | $label | $(least "$work/$name.found.$rows") | $(least "$work/$name.first.$rows") | $(least "$work/$name.megatron.$rows") |"
    done
    rm -rf "$work/$name".*
done
