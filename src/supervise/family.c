/* family: the descendants of this process. */
#include "supervise/supervise.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES = 32768, LINE = 512 }; /* processes examined; bytes of a process's status line */

struct relation {
    int pid, parent;
    bool ours;
};

/* From "PID (NAME) STATE PARENT ..", where a name may contain anything; 0: ended or gone. */
static int parent_of(int pid)
{
    char path[64], line[LINE];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC), parent = 0;
    ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        (void)close(fd);
    line[n > 0 ? n : 0] = '\0';
    const char *behind = strrchr(line, ')');
    char state;
    return behind && sscanf(behind + 1, " %c %d", &state, &parent) == 2 && state != 'Z' ? parent : 0;
}

static int list_processes(struct relation *to)
{
    int n = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && n < PROCESSES && (e = readdir(d));) {
        int64_t pid;
        if (!i64_parse(e->d_name, 1, INT32_MAX, &pid))
            continue;
        to[n] = (struct relation){.pid = (int)pid, .parent = parent_of((int)pid)};
        n += to[n].parent > 0;
    }
    if (d)
        (void)closedir(d);
    return n;
}

/* Marks the descendants of this process. */
static void mark_own(struct relation *all, int n)
{
    const int self = (int)getpid();
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < n; i++) {
            bool below = all[i].parent == self;
            for (int k = 0; k < n && !below; k++)
                below = all[k].ours && all[k].pid == all[i].parent;
            if (!below || all[i].ours)
                continue;
            more = all[i].ours = true;
        }
    }
}

struct family family_find(struct arena *a)
{
    struct arena *tmp = arena_new();
    struct relation *all = NEWN(tmp, struct relation, PROCESSES);
    int n = list_processes(all);
    struct family f = {.pid = NEWN(a, int, n + 1)};
    mark_own(all, n);
    for (int i = 0; i < n; i++)
        if (all[i].ours)
            f.pid[f.n++] = all[i].pid;
    arena_free(tmp);
    return f;
}

bool family_has(int pid)
{
    struct arena *tmp = arena_new();
    const struct family f = family_find(tmp);
    bool has = false;
    for (int i = 0; i < f.n; i++)
        has = has || f.pid[i] == pid;
    arena_free(tmp);
    return has;
}

bool family_member_ended(int pid)
{
    return parent_of(pid) == 0;
}
