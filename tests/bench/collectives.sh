#!/bin/bash
# Times AllReduce and AllGather of the ranks of this machine, those of tpc and those of the MPI library:  collectives.sh BUILD
#
# Of both the least time over some seconds on the slowest rank, of operands just written; microseconds. tpc's are those of `--calibrate`, which
# exchanges by memory that ranks share. The library is that of BUILD.
#   RANKS ("2 4 8"), MPICC (mpicc) and MPIRUN (mpirun) of that library
set -u
[ $# = 1 ] || { echo "usage: $0 BUILD" >&2; exit 2; }
build=$1
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 LC_ALL=C
cat >"$work/library.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static double time_calls(int gather, int n, int size, float *x, float *y)
{
    int calls = n > 1 << 17 ? 2 : n > 1 << 13 ? (1 << 17) / n : 64;
    double seconds = 0, most;
    for (int i = 0; i < calls; i++) {
        memset(x, 0, (size_t)n * sizeof *x);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        if (gather)
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, n / size, MPI_FLOAT, MPI_COMM_WORLD);
        else
            MPI_Allreduce(x, y, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        seconds += MPI_Wtime() - start;
    }
    seconds /= calls;
    MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}
int main(int argc, char **argv)
{
    enum { SIZES = 9, ROUNDS = 20 };
    int rank, size;
    double least[2][SIZES];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    float *x = malloc(4 << 20), *y = malloc(4 << 20);
    for (int round = 0; round < ROUNDS; round++)
        for (int gather = 0; gather < 2; gather++)
            for (int k = 0; k < SIZES; k++) {
                double took = time_calls(gather, 16 << 2 * k, size, x, y);
                if (round == 0 || took < least[gather][k])
                    least[gather][k] = took;
            }
    for (int gather = 0; gather < 2 && rank == 0; gather++)
        for (int k = 0; k < SIZES; k++)
            printf("%s %d %.2f\n", gather ? "AllGather" : "AllReduce", 64 << 2 * k, 1e6 * least[gather][k]);
    MPI_Finalize();
}
END
${MPICC:-mpicc} -O2 -o "$work/library" "$work/library.c" || exit 1
echo "| ranks | bytes | AllReduce, us: tpc | library | AllGather: tpc | library |"
echo "|---|---|---|---|---|---|"
for n in ${RANKS:-2 4 8}; do
    ${MPIRUN:-mpirun} -n "$n" "$build/tpc-run" --calibrate "$work/machine.json" --threads 1 -v 2>&1 |
        sed -n 's/.*\(All[A-Z][a-z]*\) of \([0-9]*\) bytes: \([0-9.]*\) us.*/\1 \2 \3/p' >"$work/tpc"
    ${MPIRUN:-mpirun} -n "$n" "$work/library" >"$work/other"
    awk -v n="$n" 'NR == FNR { own[$1, $2] = $3; next } { other[$1, $2] = $3; if ($1 == "AllReduce") size[++sizes] = $2 }
        END { for (k = 1; k <= sizes; k++) { b = size[k]; printf "| %d | %d | %.2f | %.2f | %.2f | %.2f |\n", n, b, own["AllReduce", b], other["AllReduce", b],
            own["AllGather", b], other["AllGather", b] } }' "$work/tpc" "$work/other"
done
