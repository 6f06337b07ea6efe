#!/bin/sh
# suite.sh FILE: a TAP file, whose failures it prints, and how many tests it has.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
sh "$1" >"$log" 2>&1
grep -A 5 '^not ok' "$log"
bad=$(grep -c '^not ok' "$log")
grep -o '# SKIP.*' "$log" | sort | uniq -c
grep -q '^1\.\.' "$log" || { tail -n 5 "$log"; echo "$1 did not end"; exit 1; }
echo "$(grep -c '^ok' "$log") tests of $(basename "$1"), $(grep -c '# SKIP' "$log") of them skipped; $bad with findings"
[ "$bad" = 0 ]
