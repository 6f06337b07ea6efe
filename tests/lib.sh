# Shared by the test scripts: where things are, TAP output, and mpirun whatever its flavour. Source it; needs $srcdir and $builddir.
srcdir=${srcdir:-.}
builddir=${builddir:-.}
shard=$builddir/tpc-shard
run=$builddir/tpc-run
samples=$srcdir/samples
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
count=0

# ok NAME COMMAND...: one TAP line; on failure the command's last lines as a comment.
ok() {
    name=$1
    shift
    count=$((count + 1))
    if "$@" >"$work/log" 2>&1; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        echo "# $*"
        tail -n 5 "$work/log" | sed 's/^/# /'
    fi
}

plan() { echo "1..$count"; }

# The folders that must work: every one with a model.
models() {
    for d in "$samples"/*/model.onnx; do
        basename "$(dirname "$d")"
    done
}

# Models whose plan can use --sp.
sp_flags() { echo "plain --sp"; }

# skip NAME WHY
skip() {
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

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
    with_mpi "${MPIRUN:-mpirun}" -n "$n" "$@"
}
