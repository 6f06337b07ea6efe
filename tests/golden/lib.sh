# Shared by golden.tap and styles.tap: a case is a graph, its inputs, what it gives, and the collectives of its plan. Source it after lib.sh.
python=${PYTHON:-python3}
$python -c '' 2>/dev/null || { echo "1..0 # SKIP no python3"; exit 0; }
data=$work/data
exact=0
none='{}'

made() { # CASE N: a graph of make.py
    rm -rf "$data" && mkdir "$data" && $python "$srcdir/tests/golden/make.py" "$1" "$2" "$data"
}
given() { # GRAPH TENSOR... -- TENSOR...: a graph of golden/, inputs, outputs
    rm -rf "$data" && mkdir "$data" && cp "$srcdir/tests/golden/$1.graph" "$data/model.graph"
    shift
    $python "$srcdir/tests/golden/make.py" data "$data" "$@"
}
compiled() { # N CONSTRAINTS COLLECTIVES [FLAGS]
    echo "{\"constraints\": [$2]}" >"$work/plan.json"
    $shard "$data/model.graph" --tp "$1" --plan "$work/plan.json" $4 -q --force -o "$work/out" || return 1
    found=$(jq -c '[.collectives[].op] | group_by(.) | map({(.[0]): length}) | add // {}' "$work/out/plan.json")
    [ "$found" = "$3" ] || { echo "collectives: $found, expected $3"; return 1; }
}
ran() { $run "$work/out" --local "$1" --threads 1 -q --test-data "$data" --rtol 0 --atol "$2"; } # N TOLERANCE
holds() { compiled "$1" "$3" "$4" "$5" && ran "$1" "$2"; } # N TOLERANCE CONSTRAINTS COLLECTIVES [FLAGS]
checked() { # N CONSTRAINTS COLLECTIVES [FLAGS]: what it gives is compared with the unsharded run
    compiled "$@" && $run "$work/out" --local "$1" --threads 1 -q --random 1 --check "$data/model.graph"
}
