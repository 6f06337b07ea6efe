# Shared by the test scripts: where things are, TAP output, and mpirun whatever its flavour. Source it; needs $srcdir and $builddir.
srcdir=${srcdir:-.}
builddir=${builddir:-.}
shard=$builddir/tpc-shard
run=$builddir/tpc-run
samples=$srcdir/samples
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
count=0

# ok NAME COMMAND...: one TAP line; on failure the command's last lines, $last of them, as a comment.
last=5
ok() {
    name=$1
    shift
    count=$((count + 1))
    if "$@" >"$work/log" 2>&1; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        echo "# $*"
        tail -n "$last" "$work/log" | sed 's/^/# /'
    fi
}

plan() {
    echo "1..$count"
    times >"$work/times"
    awk -F '[ms ]+' '{ user += 60 * $1 + $2; kernel += 60 * $3 + $4 } END { printf "# CPU: %.1f s, %.1f s of it in the kernel\n", user + kernel, kernel }' "$work/times"
}

# slow_machine FILE [TIMES]: the reference profile with products TIMES (30) times as slow, so that splitting pays in models as small as
# samples.
slow_machine() {
    jq --argjson times "${2:-30}" \
        'with_entries(if (.key | test("flops|memory_bandwidth|half_bandwidth|byte_bandwidth|code_bandwidth|pass_bandwidth")) then .value /= $times else . end)' \
        "$srcdir/schemas/machines/reference.json" >"$1"
}

# The folders that must work: every one with a model.
models() {
    for d in "$samples"/*/model.onnx; do
        basename "$(dirname "$d")"
    done
}

# refused STATUS PATTERN COMMAND...: one line on stderr (of those that match $ours, where launchers speak, too), which matches, and nothing
# of what left_over tells of. Extended patterns; one that every message has, for it names a program and perhaps a folder, proves nothing.
left_over() { :; }
hydra=$(${MPIRUN:-mpirun} --version 2>/dev/null | grep -i hydra || :)
refused() {
    status=$1
    pattern=$2
    shift 2
    if echo "tpc-shard: tpc-run: /tmp/tmp.0123456789/plan.json" | grep -Eq -- "$pattern"; then echo "any message has: $pattern"; return 1; fi
    "$@" >"$work/out.txt" 2>"$work/err.txt"
    got=$?
    cat "$work/err.txt"
    [ "$got" = 9 ] && [ -n "$hydra" ] && got=$status    # of a rank that MPICH's launcher killed for the one that failed
    [ "$got" = "$status" ] || { echo "exit status $got, expected $status"; return 1; }
    [ "$(grep -ac "${ours:-.}" "$work/err.txt")" = 1 ] || { echo "expected one line"; return 1; }
    grep -a "${ours:-.}" "$work/err.txt" | grep -aEq -- "$pattern" || { echo "expected: $pattern"; return 1; }
    [ -z "$(left_over)" ] || { echo "left: $(left_over)"; return 1; }
}

# skip NAME WHY
skip() {
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

# lacks MODULE: what is asked of $python; once for each module.
python=${PYTHON:-python3}
# python_tool NAME: a program of .ci/requirements.txt, next to $python; fails if it is not there.
python_tool() { found=$(dirname "$(command -v "$python")")/$1; [ -x "$found" ] && echo "$found"; }
lacks() {
    eval "known=\${lacks_$1:-}"
    if [ -z "$known" ]; then
        known=yes
        "$python" -c "import $1" >/dev/null 2>&1 && known=no
        eval "lacks_$1=$known"
    fi
    [ "$known" = yes ]
}

# ok_python "MODULE..." NAME COMMAND...: as ok if $python has these modules, else a skip. No module: python itself.
ok_python() {
    missing=
    for module in ${1:-sys}; do
        if lacks "$module"; then missing="$missing $module"; fi
    done
    shift
    if [ -z "$missing" ]; then ok "$@"; elif lacks sys; then skip "$1" "no $python"; else skip "$1" "$python lacks$missing"; fi
}

# part NAME SCRIPT ARGUMENT...: as ok of a script of $python, whose exit status 77 is a skip, for what it printed last.
part() {
    name=$1
    shift
    if lacks sys; then
        skip "$name" "no $python"
        return
    fi
    "$python" "$@" >"$work/part" 2>&1
    status=$?
    if [ $status = 77 ]; then skip "$name" "$(tail -n 1 "$work/part" | sed 's/^skipped: //')"; else ok "$name" sh -c 'cat "$1"; exit "$2"' part "$work/part" $status; fi
}

# mpi_works: tpc-run is built with MPI, and mpirun is of the same library (another's starts processes that are alone).
mpi_works() {
    case $($run --version | sed -n 's/^MPI: //p') in
        "" | none*) false ;;
        *MPICH*) [ -n "$hydra" ] ;;
        *) [ -z "$hydra" ] && ${MPIRUN:-mpirun} --version >/dev/null 2>&1 ;;
    esac
}
NO_MPI="no mpirun of the MPI library that tpc-run is linked with"

# with_mpi COMMAND...: in the settings by which Open MPI serves small machines, root and containers; MPICH needs none.
with_mpi() {
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
        PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none \
        OMPI_MCA_hwloc_base_binding_policy=none "$@"
}

# mpirun_n N COMMAND...
mpirun_n() {
    n=$1
    shift
    # shellcheck disable=SC2086 # MPIRUN may be several words
    with_mpi ${MPIRUN:-mpirun} -n "$n" "$@"
}

# megatron MODEL: the hand-written plan for its folder's name. Exporters name nodes alike whatever the model holds.
megatron() {
    case $1 in
        llama | llama-f16 | llama-bf16 | mistral | qwen2) family=llama ;;
        llama-dynamo*) family=llama-dynamo ;;
        gpt2-dynamo*) family=gpt2-dynamo ;;
        llama-genai-* | llama-int4-tied) family=llama-genai ;;
        bert*) family=bert ;;
        t5-decoder*) family=t5-decoder ;;
        *) family=$1 ;;
    esac
    echo "$srcdir/tests/megatron/$family.json"
}
