#!/bin/sh
# Instances of the ASPLOS / EuroSys 2025 contest on intra-operator parallelism, with tpc's own solver:  iopddl.sh BUILD [INSTANCE...]
#
# An instance is a file NAME.json or NAME.json.gz (https://github.com/google/iopddl); without any, all of the folder $IOPDDL. Prints a row for each:
# the least cost that the organisers published for any team or XLA, tpc's cost and its ratio to that, the lower bound and by how much the cost may be
# above the optimum, the peak of memory over the limit, seconds. Cost and peak are computed by iopddl.py, not by the solver.
#   IOPDDL (folder of instances), SECONDS_EACH (300), ANSWERS (folder that keeps the answers)
set -u
[ $# -ge 1 ] || { echo "usage: $0 BUILD [INSTANCE...]" >&2; exit 2; }
build=$1; shift
here=$(dirname "$0")
[ $# -ge 1 ] || { [ -n "${IOPDDL:-}" ] && set -- "$IOPDDL"/*.json*; }
[ $# -ge 1 ] || { echo "$0: no instance, and IOPDDL names no folder" >&2; exit 2; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
best_of() {
    awk -v name="$1" '$1 == name { print $2 }' <<'END'
A 6548641531
B 532843
G 217039
K 2274276676
M 49928460991
N 202739586553
P 651833115436
S 1534613444
U 2569342178
V 1632051
END
}
echo "| instance | nodes | edges | best published | tpc | ratio | bound | at most above | peak / limit | seconds |"
echo "|---|---|---|---|---|---|---|---|---|---|"
status=0
for file in "$@"; do
    name=$(basename "$file" .gz); name=$(basename "$name" .json); name=${name##*-}
    case $file in *.gz) gzip -dc "$file" ;; *) cat "$file" ;; esac >"$work/instance.json" || exit 1
    OMP_WAIT_POLICY=passive "$build/tests/bench/iopddl" "$work/instance.json" "${SECONDS_EACH:-300}" >"$work/answer.json" || { status=1; continue; }
    printf '| %s ' "$name"
    "${PYTHON:-python3}" "$here/iopddl.py" "$work/instance.json" "$work/answer.json" $(best_of "$name") || status=1
    [ -z "${ANSWERS:-}" ] || cp "$work/answer.json" "$ANSWERS/$name.json"
done
exit $status
