/* mpi_kind: which MPI library the build is for, in programs that are not linked with it, too. */
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
