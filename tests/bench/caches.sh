#!/bin/bash
# Times a decode step by the type of the KV cache:  caches.sh BUILD FOLDER TOKENS...
#
# FOLDER is tpc-shard's, for one rank. A prompt of so many tokens is computed once for each type and its state saved; then steps go on from
# the states, in turns, on one thread. The least of all runs counts.  ROUNDS (3), STEPS (12), STATES (a folder to keep the states in)
set -eu
[ $# -gt 2 ] || { echo "usage: $0 BUILD FOLDER TOKENS..." >&2; exit 2; }
build=$(realpath "$1") folder=$2
shift 2
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
states=${STATES:-$work}
run() { # TYPE OPTIONS...
    cache=$1; shift
    if [ "$cache" = f32 ]; then "$build/tpc-run" "$folder" --local 1 "$@"; else "$build/tpc-run" "$folder" --local 1 --cache "$cache" "$@"; fi
}

echo "| step on | f32 | --cache f16 | --cache int8 |"
echo "|---|---|---|---|"
for tokens; do
    prompt=$(seq 1 "$tokens" | awk '{ printf "%s%d", (NR > 1 ? "," : ""), $1 * 7919 % 997 }')
    for c in f32 f16 int8; do
        [ -f "$states/$tokens.$c" ] || run "$c" -q --generate 1 --input input_ids="$prompt" --save-state "$states/$tokens.$c" >/dev/null
    done
    for _ in $(seq "${ROUNDS:-3}"); do
        for c in f32 f16 int8; do
            run "$c" --threads 1 --load-state "$states/$tokens.$c" --generate $((${STEPS:-12} + 1)) 2>&1 >/dev/null |
                sed -n 's/.* then \([0-9.]*\) ms per step.*/\1/p' >>"$work/$tokens.$c.ms"
        done
    done
    printf '| %s |' "$tokens"
    for c in f32 f16 int8; do printf ' %.1f ms |' "$(sort -g "$work/$tokens.$c.ms" | head -n 1)"; done
    echo
done
