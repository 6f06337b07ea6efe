/* mpi_kind: the MPI library of the build, also for programs that do not link it. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "run/comm/comm.h"

const char *comm_mpi_kind(void)
{
#ifdef HAVE_MPI
    return MPI_KIND;
#else
    return NULL;
#endif
}
