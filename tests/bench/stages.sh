#!/bin/sh
# What stages are worth on two hosts:  stages.sh BUILD MODEL.onnx...
#
# This machine emulates two hosts on a switch (../hosts.sh), one rank of one thread on each. Each model runs on one host, in two stages
# (--pp 2) and tensor parallel (--tp 2), which alternate; the least of all rounds counts. Text is decoded after a prompt of $PROMPT tokens. By
# R rows a group, the stages decode 2 R rows in two groups. Their ideal is that each stage does half of a host's work on R rows, all of the
# time: a step of 2 R rows takes as long as one of R rows on one host. The ideal of one text is a host's step and two hops, of a long prompt
# half its time and that of one part of 64 tokens.
#   MBIT (1000), MICROSECONDS (500), PROMPT (128), LONG (512), ROWS ("4 16"), STEPS (16), ROUNDS (3); PYTHON with numpy
set -u
[ $# -ge 2 ] || { echo "usage: $0 BUILD MODEL.onnx..." >&2; exit 2; }
build=$(realpath "$1") prompt=${PROMPT:-128} long=${LONG:-512} steps=${STEPS:-16} rounds=${ROUNDS:-3} mbit=${MBIT:-1000} delay=${MICROSECONDS:-500}
shift
builddir=$build
# shellcheck source=tests/hosts.sh
. "$(dirname "$0")/../hosts.sh"
if lacks=$(hosts_lack); then echo "skipped: $lacks" >&2; exit 77; fi
work=$(mktemp -d)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 LC_ALL=C
trap 'hosts_down; rm -rf "$work"' EXIT

tokens() { # FILE ROWS TOKENS
    "${PYTHON:-python3}" -c "import sys, numpy as np
np.save(sys.argv[1], np.random.default_rng(1).integers(1, 250, (int(sys.argv[2]), int(sys.argv[3]))))" "$1" "$2" "$3"
}
# run WAY ROWS TOKENS: milliseconds of the first token and of a step
run() {
    file=$work/$2-$3.npy
    [ -e "$file" ] || tokens "$file" "$2" "$3"
    if [ "$1" = one ]; then
        "$build/tpc-run" "$model" --threads 1 --generate "$steps" --input input_ids="$file" 2>&1 >/dev/null
    else
        hosts_run 1 "$build/tpc-run" "$work/$1" --threads 1 --generate "$steps" --input input_ids="$file" 2>&1 >/dev/null
    fi | sed -n 's/^time: first token after \([0-9.]*\) ms, then \([0-9.]*\) ms per step.*/\1 \2/p'
}
least() { # WAY ROWS TOKENS: keeps the least of each in $work/time-WAY-ROWS-TOKENS
    at=$work/time-$1-$2-$3
    [ -e "$at" ] || echo "1e9 1e9" >"$at"
    run "$1" "$2" "$3" | cat "$at" - | awk '{ if (NR == 1 || $1 < f) f = $1; if (NR == 1 || $2 < s) s = $2 } END { print f, s }' >"$at.new" && mv "$at.new" "$at"
}
first() { cut -d ' ' -f 1 "$work/time-$1-$2-$3"; }
step() { cut -d ' ' -f 2 "$work/time-$1-$2-$3"; }
row() { # WORK ONE STAGES TENSOR IDEAL, in ms
    awk -v w="$1" -v o="$2" -v s="$3" -v t="$4" -v i="$5" -v m="$name" 'BEGIN { printf "| %s | %s | %.1f | %.1f | %.1f | %.2f | %.2f |\n", m, w, o, t, s, s / o, i / o }'
}
hosts_up 2 "$mbit" "$delay" || exit 1
echo "| model | work | one host, ms | --tp 2, ms | --pp 2, ms | ratio to one host | ideal |"
echo "|---|---|---|---|---|---|---|"
for model; do
    model=$(realpath "$model") name=$(basename "$(dirname "$(realpath "$model")")")
    rm -f "$work"/time-*
    "$build/tpc-shard" "$model" --tp 1 --pp 2 -q --force -o "$work/stages" && "$build/tpc-shard" "$model" --tp 2 -q --force -o "$work/tensor" || exit 1
    for _ in $(seq "$rounds"); do
        for way in one stages tensor; do
            least $way 1 "$prompt"
            least $way 1 "$long"
            for r in ${ROWS:-4 16}; do least $way $((2 * r)) "$prompt"; done
        done
        least one 1 64
        for r in ${ROWS:-4 16}; do least one "$r" "$prompt"; done
    done
    row "a step of one text" "$(step one 1 "$prompt")" "$(step stages 1 "$prompt")" "$(step tensor 1 "$prompt")" \
        "$(step one 1 "$prompt" | awk -v d="$delay" '{ print $1 + 2 * d / 1000 }')"
    row "a prompt of $long" "$(first one 1 "$long")" "$(first stages 1 "$long")" "$(first tensor 1 "$long")" \
        "$(first one 1 "$long" | awk -v p="$(first one 1 64)" '{ print $1 / 2 + p / 2 }')"
    for r in ${ROWS:-4 16}; do
        row "a step of 2 x $r rows" "$(step one $((2 * r)) "$prompt")" "$(step stages $((2 * r)) "$prompt")" "$(step tensor $((2 * r)) "$prompt")" "$(step one "$r" "$prompt")"
    done
done
