/* cores: how many cores a program can keep busy. A control group may limit it to less than the machine: threads beyond the quota stop for
 * the rest of each period, and the others wait for them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/base.h"

#include <math.h>
#include <sched.h>
#include <unistd.h>

static void lower_to_quota(void *least, int version, const char *folder)
{
    const char *file = version == 1 ? "cpu.cfs_quota_us" : "cpu.max";
    int64_t time = control_number(folder, file, "", 0);
    int64_t period = version == 1 ? control_number(folder, "cpu.cfs_period_us", "", 0) : control_number(folder, file, "", 1);
    if (time > 0 && period > 0)
        *(double *)least = fmin(*(double *)least, (double)time / (double)period);
}

double cores_quota(const struct control_root *root)
{
    double least = INFINITY;
    control_groups(root, "cpu", lower_to_quota, &least);
    return least;
}

/* n, or the whole cores of a quota; at least one. */
static int within_quota(long n)
{
    double quota = cores_quota(&control_system);
    return n <= 1 || quota < 2 ? 1 : quota < (double)n ? (int)quota : (int)n;
}

int cores_online(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : (int)n;
}

int cores_of_machine(void)
{
    return within_quota(cores_online());
}

int cores_of_process(void)
{
    cpu_set_t mine;
    return within_quota(sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : cores_online());
}
