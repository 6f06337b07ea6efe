/* available: how much more memory a program may take before the machine swaps or a limit is reached: the memory that the system reports as
 * available, or less if a control group (version 1 or 2) of this process or an ancestor allows less, and the process limits. */
#include "base/base.h"

#include <sys/resource.h>

static void lower_to(struct available *least, int64_t bytes, const char *limit)
{
    if (bytes < least->bytes)
        *least = (struct available){bytes > 0 ? bytes : 0, limit};
}

/* A group's file pages are reclaimed when it needs memory. The kernel updates their count and the use at different times, so the count may
 * exceed the use. */
static void lower_to_group(void *least, int version, const char *folder)
{
    const char *const *name = (const char *const[][4]){
        {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"},
        {"memory.max", "memory.current", "inactive_file", "active_file"}}[version - 1];
    int64_t most = control_number(folder, name[0], "", 0), used = control_number(folder, name[1], "", 0);
    int64_t pages[2] = {control_number(folder, "memory.stat", name[2], 0), control_number(folder, "memory.stat", name[3], 0)};
    for (int i = 0; i < 2 && used >= 0; i++)
        used -= pages[i] < 0 ? 0 : pages[i] < used ? pages[i] : used;
    if (most >= 0 && used >= 0)
        lower_to(least, most - used, "its control group");
}

struct available available_in(const struct control_root *root)
{
    struct available least = {INT64_MAX, "no limit"};
    control_groups(root, "memory", lower_to_group, &least);
    return least;
}

struct available available_memory(void)
{
    struct available least = {INT64_MAX, "no limit"};
    const struct available group = available_in(&control_system);
    int64_t kib = control_read("/proc/meminfo", "MemAvailable:", 0);
    if (kib >= 0)
        lower_to(&least, kib * 1024, "the machine");
    lower_to(&least, group.bytes, group.limit);
    return least;
}

/* ---- limits of this process ------------------------------------------------------------------------------------------------------ */

static void lower_to_rlimit(struct available *least, int what, const char *used_key, const char *limit)
{
    struct rlimit r;
    int64_t kib = control_read("/proc/self/status", used_key, 0);
    if (getrlimit(what, &r) == 0 && r.rlim_cur != RLIM_INFINITY && r.rlim_cur <= INT64_MAX && kib >= 0)
        lower_to(least, (int64_t)r.rlim_cur - kib * 1024, limit);
}

struct available available_addresses(void)
{
    struct available least = {INT64_MAX, "no limit"};
    lower_to_rlimit(&least, RLIMIT_AS, "VmSize:", "ulimit -v");
    return least;
}

struct available available_data(void)
{
    struct available least = {INT64_MAX, "no limit"};
    lower_to_rlimit(&least, RLIMIT_DATA, "VmData:", "ulimit -d");
    return least;
}
