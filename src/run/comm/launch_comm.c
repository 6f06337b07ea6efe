/* launch_comm: the processes that an MPI launcher started. Under the launcher of another MPI library each process believes that it is
 * alone. The launcher's environment variables show this, and tpc-run refuses: N separate runs are not what the user wants. */
#include "run/comm/launch.h"

#include <stdlib.h>
#include <string.h>

/* True for the first of the started processes: it alone prints the error. */
static bool started_first(void)
{
    static const char *const name[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (int i = 0; i < (int)(sizeof name / sizeof *name); i++) {
        const char *text = getenv(name[i]);
        if (text)
            return atoi(text) == 0;
    }
    return true;
}

static bool has_option(int argc, char **argv, const char *option)
{
    size_t n = strlen(option);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], option, n) == 0 && (argv[i][n] == '\0' || argv[i][n] == '='))
            return true;
    return false;
}

struct comm *launch_comm(int *argc, char ***argv)
{
    const char *variable = launch_variable(), *library = comm_mpi_library();
    if (!variable || has_option(*argc, *argv, "--local"))
        return comm_self();
    struct comm *comm = comm_mpi(argc, argv);
    if (!comm && !started_first())
        exit(1);
    if (!comm)
        fail("%s is %s, but this program was built without MPI: use --local", variable, getenv(variable));
    if (comm->size > 1)
        return comm;
    comm->free(comm);
    if (!started_first())
        exit(1);
    fail("%s is %s, but each process is alone: this program is linked with %s, "
         "and another library's launcher started it; use the mpirun of that library, or --local",
         variable, getenv(variable), library);
}
