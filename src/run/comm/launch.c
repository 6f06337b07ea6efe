/* launch: what the environment says of an MPI launcher. It calls nothing of the MPI library: tpc-shard is not linked with it. */
#include "config.h"

#include "run/comm/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *launch_variable(void)
{
    static const char *const name[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"};
    for (int i = 0; i < (int)(sizeof name / sizeof *name); i++) {
        const char *text = getenv(name[i]);
        if (text && atoi(text) > 1)
            return name[i];
    }
    return NULL;
}

const char *launch_beside(struct arena *a, const char *name)
{
    const char *me = program_invocation_name, *end = strrchr(me, '/');
    return end ? shell_word(a, arena_printf(a, "%.*s/%s", (int)(end - me), me, name)) : name;
}

static bool is_one(const char *variable)
{
    const char *text = getenv(variable);
    return text && strcmp(text, "1") == 0;
}

/* Open MPI refuses root, and more ranks than cores, unless told otherwise. */
bool launch_starts(int64_t ranks)
{
    if (!comm_mpi_kind() || strcmp(comm_mpi_kind(), "Open MPI") != 0)
        return comm_mpi_kind() != NULL;
    bool root = geteuid() == 0, allowed = is_one("OMPI_ALLOW_RUN_AS_ROOT") && is_one("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM");
    return (!root || allowed) && (ranks <= cores_online() || is_one("OMPI_MCA_rmaps_base_oversubscribe"));
}

const char *comm_mpi_kind(void)
{
#ifdef HAVE_MPI
    return MPI_KIND;
#else
    return NULL;
#endif
}
