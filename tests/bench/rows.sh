#!/bin/sh
# What steps of several rows take:  rows.sh BUILD MODEL...
#
# Decodes $TOKENS tokens behind prompts of 32, for 1, 2, 4 and 8 rows (ROWS), one thread. Prints the least milliseconds per step of $ROUNDS turns,
# and tokens/s over those of one row. MODEL: a model, or a folder for one rank, as `tpc-shard MODEL --tp 1 --weights bf16` makes one.
#   ROUNDS (4), TOKENS (16), ROWS ("1 2 4 8")
set -u
[ $# -ge 2 ] || { echo "usage: $0 BUILD MODEL..." >&2; exit 2; }
build=$1
shift
prompts() { for i in $(seq "$1"); do printf '[%s],' "$(seq -s , "$i" $((i + 31)))"; done | sed 's/,$//'; }
step() { "$build/tpc-run" "$1" --generate "${TOKENS:-16}" --input input_ids="$(prompts "$2")" --threads 1 2>&1 >/dev/null | sed -n 's/.*then \([0-9.]*\) ms per step.*/\1/p'; }
echo "| model | rows | ms per step | tokens/s over those of one row |"
echo "|---|---|---|---|"
for model in "$@"; do
    one=
    for rows in ${ROWS:-1 2 4 8}; do
        ms=$(for _ in $(seq "${ROUNDS:-4}"); do step "$model" "$rows"; done | sort -n | head -n 1)
        one=${one:-$ms}
        awk -v m="$model" -v r="$rows" -v t="$ms" -v o="$one" 'BEGIN { printf "| %s | %d | %s | %.2f |\n", m, r, t, (t > 0 ? r * o / t : 0) }'
    done
done
