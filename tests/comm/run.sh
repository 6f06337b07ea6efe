#!/bin/sh
# run.sh: tests/comm/collectives on every communicator this build and machine have.
set -e
test=${1:-./tests/comm/collectives}
"$test" self
for n in 1 2 3 4 8; do "$test" local $n; done
mpirun=$(command -v mpirun) || { echo "no mpirun: MPI is not tested"; exit 0; }
flags=
"$mpirun" --version 2>/dev/null | grep -q "Open MPI" && flags="--allow-run-as-root --oversubscribe"
status=0
"$test" mpi >/dev/null 2>&1 || status=$?
test $status = 77 && { echo "built without MPI"; exit 0; }
"$mpirun" $flags -n 1 "$test" mpi | grep -q "1 ranks" || exit 1
for n in 2 4; do
    out=$("$mpirun" $flags -n $n "$test" mpi) || exit 1
    echo "$out"
    # another library's mpirun starts processes that are alone
    echo "$out" | grep -q " $n ranks" || { echo "mpirun is not of the linked MPI library: MPI is not tested"; exit 0; }
done
