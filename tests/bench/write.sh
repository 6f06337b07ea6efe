#!/bin/bash
# Times tpc-shard's writing beside cp of the same bytes:  write.sh BUILD MODEL.onnx...
#
# cp (the model and its files of external data into one folder), tpc-shard for every N of $RANKS, sharding the folder of the last N again
# for one rank more, and --merge of it take turns, each with its sources in the page cache; minima of $ROUNDS, ratios to cp and the peak of
# resident memory. Each runs twice, and the second time counts: a virtual machine waits for its host when it takes memory that it did not use
# lately, and what the first run wrote is used lately.
#   RANKS ("1 2 4"), ROUNDS (7), WORK (a folder to write in; default: a temporary one)
set -u
[ $# -ge 2 ] || { echo "usage: $0 BUILD MODEL.onnx..." >&2; exit 2; }
shard=$1/tpc-shard; shift
ranks=${RANKS:-1 2 4} rounds=${ROUNDS:-7} last=${ranks##* }
work=$(mktemp -d -p "${WORK:-${TMPDIR:-/tmp}}"); trap 'rm -rf "$work"' EXIT
declare -A least peak

# NAME FOLDER COMMAND...: runs it twice, and keeps the least seconds of the second and the most memory; what it wrote goes. What it reads, the
# model's files or those of FOLDER, is read before: the kernel may have dropped pages that the command would then wait for.
timed() {
    name=$1 from=$2; shift 2
    if [ -n "$from" ]; then cat "$from"/*; else cat "${files[@]}"; fi >/dev/null || exit 1
    for _ in 1 2; do
        rm -rf "$work/out" "$work/copy"; mkdir "$work/copy"
        took=$( { /usr/bin/time -f '%e %M' "$@" >/dev/null; } 2>&1 | tail -1)
    done
    set -- $took
    least[$name]=$(awk -v a="${least[$name]:-}" -v b="$1" 'BEGIN { print (a == "" || b + 0 < a + 0) ? b : a }')
    peak[$name]=$(awk -v a="${peak[$name]:-0}" -v b="$2" 'BEGIN { print (b + 0 > a + 0 ? b : a) }')
    rm -rf "$work/out" "$work/copy"
}

echo "| model | MB | what | seconds | cp, s | ratio | peak, MB |"
echo "|---|---|---|---|---|---|---|"
for model in "$@"; do
    least=() peak=()
    files=("$model"); for f in "${model}_data" "$model.data"; do [ -e "$f" ] && files+=("$f"); done
    "$shard" "$model" --tp "$last" -q -o "$work/folder" || exit 1
    for _ in $(seq "$rounds"); do
        timed cp "" cp "${files[@]}" "$work/copy"
        for n in $ranks; do timed "--tp $n" "" "$shard" "$model" --tp "$n" -q -o "$work/out"; done
        timed "again" "$work/folder" "$shard" "$work/folder" --tp $((last + 1)) -q -o "$work/out"
        timed "merge" "$work/folder" "$shard" --merge "$work/folder" -q -o "$work/copy/$(basename "$model")"
    done
    rm -rf "$work/folder"
    for n in $ranks "again" "merge"; do
        case $n in again) name=again what="folder of $last, --tp $((last + 1))";; merge) name=merge what="--merge";; *) name="--tp $n" what=$name;; esac
        awk -v m="$(basename "$(dirname "$model")")" -v b="$(cat "${files[@]}" | wc -c)" -v w="$what" -v s="${least[$name]}" -v c="${least[cp]}" -v p="${peak[$name]}" \
            'BEGIN { printf "| %s | %.0f | %s | %s | %s | %.1f | %.0f |\n", m, b / 1e6, w, s, c, s / c, p * 1.024e-3 }'
    done
done
