#!/bin/sh
# make check-attack: trials against promises, in MINUTES (15) in all; what there is no time for is a SKIP. SAN and TSAN name builds with sanitizers, in which
# the server is tried, too. MPIRUN names another launcher. Each part says how much it tried.
. "${srcdir:-.}/tests/lib.sh"
if [ -z "${ATTACK:-}" ]; then
    export ATTACK=1
    with_mpi sh "$0"
    exit
fi
here=$srcdir/tests/attack
seed=${SEED:-1}
limit=$((${MINUTES:-15} * 60))
begin=$(date +%s)
last=15
left() { echo $((limit - $(date +%s) + begin)); }

# tried NAME SECONDS COMMAND...: as ok, within this time and what is left; its last line is told, too. Status 77: a skip, for what it printed last.
tried() {
    name=$1 most=$2
    shift 2
    rest=$(left)
    if [ "$rest" -lt 20 ]; then
        skip "$name" "no time left: MINUTES=$((limit / 60))"
        return
    fi
    [ "$rest" -gt "$most" ] || most=$rest
    timeout -k 5 "$most" "$@" >"$work/part" 2>&1
    status=$?
    [ $status != 124 ] || echo "ended after $most s" >>"$work/part"
    if [ $status = 77 ]; then
        skip "$name" "$(tail -n 1 "$work/part" | sed 's/^skipped: //')"
        return
    fi
    ok "$name" sh -c 'cat "$1"; exit "$2"' sh "$work/part" $status
    tail -n 1 "$work/part" | sed 's/^/# /'
}

# script NAME SECONDS SCRIPT ARGUMENT...: of $python
script() {
    name=$1 most=$2
    shift 2
    if lacks sys; then skip "$name" "no $python"; else tried "$name" "$most" "$python" "$@"; fi
}

# table NAME SECONDS PART: one of tests/attack/tables.sh
table() { tried "$1" "$2" env srcdir="$srcdir" builddir="$builddir" sh "$here/tables.sh" "$3"; }

# suite NAME SECONDS BUILD FILE: a test of make check, in this build or another
suite() { tried "$1" "$2" env srcdir="$srcdir" builddir="$3" sh "$here/suite.sh" "$srcdir/tests/$4.tap"; }

if ! mpi_works; then no_mpi=$NO_MPI; else no_mpi=; fi
# mpi PART...: a part that needs MPI
mpi() { if [ -n "$no_mpi" ]; then skip "$2" "$no_mpi"; else "$@"; fi; }

$shard "$samples/gpt2/model.onnx" --train --tp 2 -q -o "$work/trained"
$shard "$samples/llama/model.onnx" --tp 2 -q -o "$work/llama"
rows=$srcdir/tests/train/rows.npy
prompt=$srcdir/tests/generate/prompt.npy
mkdir "$work/found"
sizes="--dim batch_size=1 --dim sequence_length=16 --dim past_sequence_length=8"

# ---- files
script "kills while saving" 90 "$here/saves.py" kills 30 "$seed" "$run" "$work/trained" "$rows" "$work"
script "two writers of one checkpoint" 60 "$here/saves.py" writers 15 "$seed" "$run" "$work/trained" "$rows" "$work"
table "folders of ranks: mixed, swapped, cut, special files" 60 folders
table "data of a training that lies" 60 data
script "mutants of what lies beside models" 120 "$srcdir/tests/fuzz/mutate_files.py" "$srcdir" "$builddir" "$work/found" "0-${FILES:-200}" "$seed"

# ---- jobs
forever="$work/llama --random $sizes --repeat 1000000 --threads 1 -q"
# a training that is asked to end ends in order
export SIGNALS="SIGKILL SIGSEGV"
# shellcheck disable=SC2086 # commands are words
for what in "steps $forever" "decoding $work/llama --generate 100000 --input input_ids=$prompt --threads 1 -q" \
    "training $work/trained --train --data $rows --batch 7 --steps 1000000 --threads 1 -q"; do
    mpi script "a rank is killed, or crashes: ${what%% *}" 90 "$srcdir/tests/faults/kill.py" 12 "$seed" ${MPIRUN:-mpirun} -n 2 "$run" ${what#* }
done
unset SIGNALS
table "/dev/shm of many sizes" 120 shm
suite "a control group's quota, and limits" 60 "$builddir" doctor
suite "signals, stopped ranks, full disks, little memory" 240 "$builddir" faults
suite "few descriptors and closed streams" 60 "$builddir" output

# ---- the server
script "mutants of requests" 120 "$srcdir/tests/fuzz/mutate_requests.py" "$srcdir" "$builddir" "$work/found" "0-${REQUESTS:-200}" "$seed"
suite "requests and connections of many kinds" 120 "$builddir" serve-http
for named in "SAN ${SAN:-}" "TSAN ${TSAN:-}"; do
    build=${named#* }
    if [ -z "$build" ]; then
        skip "the server in a build with sanitizers" "${named%% *} names none"
    else
        export TSAN_OPTIONS="suppressions=$srcdir/tests/tsan.supp"
        suite "the server in $build" 300 "$build" serve-http
    fi
done
plan
