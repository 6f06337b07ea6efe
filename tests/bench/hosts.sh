#!/bin/bash
# Times prompts and steps on several hosts that this machine emulates, one rank of one thread on each:  hosts.sh BUILD MODEL.onnx
#
# Columns: ranks that wait for every collective, and collectives that go on while ranks compute, each with the messages of --wire. Steps do not
# overlap. They take turns, and the least of all runs counts. All hosts share the cores of this machine: with more hosts than cores only the
# columns compare.
#   HOSTS ("2 3 4"), MBIT of the links ("1000 10000"), MICROSECONDS of delay ("50 500"), PROMPT (128), ROUNDS (2),
#   SHARD: options for tpc-shard, as --sp
set -u
[ $# = 2 ] || { echo "usage: $0 BUILD MODEL.onnx" >&2; exit 2; }
build=$(realpath "$1") builddir=$build model=$2 prompt=${PROMPT:-128} rounds=${ROUNDS:-2}
# shellcheck source=tests/hosts.sh
. "$(dirname "$0")/../hosts.sh"
if lacks=$(hosts_lack); then echo "skipped: $lacks" >&2; exit 77; fi
work=$(mktemp -d); trap 'hosts_down; rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

# Appends the least times of a prompt and of a step to $work/FILE:  times FILE LAUNCH...
times() {
    file=$work/$1; shift
    "$@" --threads 1 --dim "sequence_length=$prompt" --bench=json 2>/dev/null |
        jq -r '[.[] | (.runs | min) * 1000 / (if .test | startswith("tg") then .tokens else 1 end)] | @tsv' >>"$file"
}
least() { sort -g -k "$2" "$work/$1" | head -n 1 | cut -f "$2"; }

# HOSTS MBIT MICROSECONDS
cell() {
    rm -rf "${work:?}"/*
    hosts_up "$1" "$2" "$3" || return 1
    hosts_run 1 "$build/tpc-run" --calibrate "$work/links.json" --threads 1 -q >/dev/null 2>&1 || return 1
    jq '.overlap_overhead = 0' "$work/links.json" >"$work/waits.json"
    # shellcheck disable=SC2086 # SHARD is words
    for how in links waits; do "$build/tpc-shard" "$model" --tp "$1" ${SHARD:-} -q --machine "$work/$how.json" -o "$work/$how" || return 1; done
    for _ in $(seq "$rounds"); do
        for wire in f32 bf16 q8; do
            for how in waits links; do times $how.$wire hosts_run 1 "$build/tpc-run" "$work/$how" --wire $wire; done
        done
    done
    hosts_down
    printf '| %s | %s | %s |' "$1" "$2" "$3"
    for wire in f32 bf16 q8; do for how in waits links; do printf ' %.1f |' "$(least $how.$wire 1)"; done; done
    for wire in f32 bf16 q8; do printf ' %.1f |' "$(least waits.$wire 2)"; done
    echo
}

echo "| hosts | Mbit/s | us | prompt of $prompt, ms: waits | overlaps | bf16: waits | overlaps | q8: waits | overlaps | step, ms | bf16 | q8 |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|"
export LC_ALL=C
times one "$build/tpc-run" "$model" --local 1
printf '| 1 | - | - | %.1f | - | - | - | - | - | %.1f | - | - |\n' "$(least one 1)" "$(least one 2)"
for n in ${HOSTS:-2 3 4}; do
    for mbit in ${MBIT:-1000 10000}; do
        for delay in ${MICROSECONDS:-50 500}; do cell "$n" "$mbit" "$delay" || exit 1; done
    done
done
