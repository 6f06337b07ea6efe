#!/bin/bash
# What a profile of two levels predicts, beside what was measured:  levels.sh BUILD MODEL.onnx
#
# This machine emulates hosts on a switch (../hosts.sh). First 2 hosts of 2 ranks, with nothing else running: each kind of collective over
# all four ranks, by the profile that --calibrate fits to the ranks of a host and to those between hosts, each on its own. Then 2 hosts of
# one rank: prompts of $PROMPT tokens and steps after them, predicted by a profile of the same emulation. The least of $REPEAT runs counts.
#   MBIT of the links ("1000 10000"), MICROSECONDS of delay ("50 500"), PROMPT (128), REPEAT (20), SIZES: bytes of collectives
set -u
[ $# = 2 ] || { echo "usage: $0 BUILD MODEL.onnx" >&2; exit 2; }
build=$(realpath "$1") model=$2 prompt=${PROMPT:-128} repeat=${REPEAT:-20} bytes=${SIZES:-"1024 16384 262144 4194304"}
builddir=$build
# shellcheck source=tests/hosts.sh
. "$(dirname "$0")/../hosts.sh"
if lacks=$(hosts_lack); then echo "skipped: $lacks" >&2; exit 77; fi
work=$(mktemp -d); trap 'hosts_down; rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 LC_ALL=C

# Over four ranks: kind, bytes, predicted and measured, us.
collectives() {
    hosts_run 2 "$build/tpc-run" --calibrate "$work/four.json" --threads 1 -v 2>&1 |
        sed -n 's/.*: \([A-Z][A-Za-z]*\) of \([0-9]*\) bytes: \([0-9.]*\) us, the profile says \([0-9.]*\)$/\1 \2 \4 \3/p' |
        while read -r kind size predicted measured; do
            case " $bytes " in *" $size "*) row "$kind of $size bytes, us" 4 "$predicted" "$measured" ;; esac
        done
}
row() { awk -v l="$link" -v w="$1" -v r="$2" -v p="$3" -v m="$4" 'BEGIN { printf "| %s | %s | %d | %.4g | %.4g | %.2f |\n", l, w, r, p, m, p / m }'; }

# On two ranks: a prompt, and a step after it, ms.
steps() {
    sizes=("batch_size=1,sequence_length=$prompt,past_sequence_length=0" "batch_size=1,sequence_length=1,past_sequence_length=$prompt")
    hosts_run 1 "$build/tpc-run" --calibrate "$work/two.json" --threads 1 -q >/dev/null 2>&1 || return 1
    "$build/tpc-shard" "$model" --tp 2 -q --force --machine "$work/two.json" --workload "${sizes[0]}" --workload "${sizes[1]}" -o "$work/two" || return 1
    for k in 0 1; do
        dims=() names=("a prompt of $prompt, ms" "a step, ms")
        for d in ${sizes[k]//,/ }; do dims+=(--dim "$d"); done
        measured=$(hosts_run 1 "$build/tpc-run" "$work/two" --threads 1 --random "${dims[@]}" --repeat "$repeat" 2>/dev/null |
            sed -n 's/^time: first .* then min \([0-9.]*\),.*/\1/p')
        predicted=$(jq --argjson k $k '.cost.workloads[$k].seconds * 1e3' "$work/two/plan.json")
        row "${names[k]}" 2 "$predicted" "$measured"
    done
}

echo "| link | work | ranks | predicted | measured | ratio |"
echo "|---|---|---|---|---|---|"
for mbit in ${MBIT:-1000 10000}; do
    for delay in ${MICROSECONDS:-50 500}; do
        link="$mbit Mbit/s, $delay us"
        hosts_up 2 "$mbit" "$delay" && collectives && steps || exit 1
        hosts_down
    done
done
