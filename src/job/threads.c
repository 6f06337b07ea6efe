/* threads: how many a rank computes with. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "job/job.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

int job_thread_count(const struct comm *comm, int64_t wanted)
{
    cpu_set_t set;
    if (wanted)
        return (int)wanted;
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    long mine = sched_getaffinity(0, sizeof set, &set) ? all : CPU_COUNT(&set);
    if (strcmp(comm->kind, "local") == 0 || mine >= all)
        mine /= comm->local_size;
    return mine < 1 ? 1 : (int)mine;
}
