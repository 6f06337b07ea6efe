/* available: how much memory a program may still take before the machine swaps or a limit refuses: what the system reports as available, or
 * less if a control group (version 1 or 2) of this process or one around it allows less, and the limits of the process itself. */
#include "base/base.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void lower_to(struct available *least, int64_t bytes, const char *limit)
{
    if (bytes < least->bytes)
        *least = (struct available){bytes > 0 ? bytes : 0, limit};
}

/* Takes no memory: what is short of it asks, too. The number that follows a key at the begin of a line of a file, or, key "", the first
 * number of it; -1: there is none. */
static int64_t number_in(const char *path, const char *key)
{
    char text[8192], name[128];
    int64_t found;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        (void)close(fd);
    if (!*key)
        return sscanf(text, "%" SCNd64, &found) == 1 ? found : -1;
    for (const char *line = text; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
        if (sscanf(line, "%127s %" SCNd64, name, &found) == 2 && strcmp(name, key) == 0)
            return found;
    return -1;
}

/* ---- control groups -------------------------------------------------------------------------------------------------------------- */

struct group_files {
    const char *folder, *limit, *usage, *inactive, *active;
};
static const struct group_files version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                             "total_inactive_file", "total_active_file"};
static const struct group_files version_2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file", "active_file"};

static int64_t number_of(const struct group_files *v, const char *group, const char *file, const char *key)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s%s/%s", v->folder, group, file);
    return number_in(path, key);
}

/* Pages of files are given back when a group needs room. The kernel counts them at another time than what is used: they may be more. */
static void lower_to_group(struct available *least, const struct group_files *v, const char *group)
{
    int64_t most = number_of(v, group, v->limit, ""), used = number_of(v, group, v->usage, "");
    int64_t pages[2] = {number_of(v, group, "memory.stat", v->inactive), number_of(v, group, "memory.stat", v->active)};
    for (int i = 0; i < 2 && used >= 0; i++)
        used -= pages[i] < 0 ? 0 : pages[i] < used ? pages[i] : used;
    if (most >= 0 && used >= 0)
        lower_to(least, most - used, "its control group");
}

/* The group and all around it. Inside a container the path may be one of the host's, of which only the end is there: then only "". */
static void lower_to_groups(struct available *least, const struct group_files *v, char *group)
{
    for (char *slash; (slash = strrchr(group, '/')); *slash = '\0')
        lower_to_group(least, v, group);
    lower_to_group(least, v, "");
}

/* A line of the list is "0::PATH" or "N:CONTROLLERS:PATH". */
static void lower_to_control_groups(struct available *least)
{
    char line[4096];
    FILE *f = fopen("/proc/self/cgroup", "r");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        if (controllers[1] == '\0')
            lower_to_groups(least, &version_2, group);
        else if (strcmp(controllers + 1, "memory") == 0)
            lower_to_groups(least, &version_1, group);
    }
    if (f)
        (void)fclose(f);
}

struct available available_memory(void)
{
    struct available least = {INT64_MAX, "no limit"};
    int64_t kib = number_in("/proc/meminfo", "MemAvailable:");
    if (kib >= 0)
        lower_to(&least, kib * 1024, "the machine");
    lower_to_control_groups(&least);
    return least;
}

/* ---- limits of this process ------------------------------------------------------------------------------------------------------ */

static void lower_to_rlimit(struct available *least, int what, const char *used_key, const char *limit)
{
    struct rlimit r;
    int64_t kib = number_in("/proc/self/status", used_key);
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
