#!/bin/bash
# Times AllReduce and AllGather of the ranks of this machine, those of tpc and those of the MPI library of BUILD:  collectives.sh BUILD
#
# One program calls both in turn (tests/comm/times.c): on the same ranks, in the same memory, at the same time. Microseconds.
#   RANKS ("2 4 8"), EACH (0.5): seconds for each size, LIMIT (120): seconds for each number of ranks, MPIRUN (mpirun): of that library
set -u
[ $# = 1 ] || { echo "usage: $0 BUILD" >&2; exit 2; }
make --quiet -C "$1" tests/comm/times || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 LC_ALL=C
echo "| ranks | bytes | AllReduce, us: tpc | library | AllGather: tpc | library |"
echo "|---|---|---|---|---|---|"
for n in ${RANKS:-2 4 8}; do
    timeout "${LIMIT:-120}" "${MPIRUN:-mpirun}" -n "$n" "$1/tests/comm/times" "${EACH:-0.5}"
done
