/* abandoned: folders that a killed tpc-shard left next to an output. One is removed only if everything says so: its name ends in digits, it
 * is a folder of this user and no link, its mark names this host and that process, the lock of its writer is free, and it holds nothing
 * but files that tpc-shard writes. All else stays as it is. */
#include "plan/folder/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

char *folder_mark_text(struct arena *a, int64_t process)
{
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1);
    return arena_printf(a, "process %lld of tpc-shard on %s writes this folder\n", (long long)process, host);
}

/* The process whose folder next to out would have this name; -1: none. */
static int64_t writer_of(const char *name, const char *out)
{
    size_t n = strlen(out);
    int64_t process = -1;
    bool beside = strncmp(name, out, n) == 0 && strncmp(name + n, FOLDER_BESIDE, strlen(FOLDER_BESIDE)) == 0;
    const char *digits = beside ? name + n + strlen(FOLDER_BESIDE) : "";
    return *digits && digits[strspn(digits, "0123456789")] == '\0' && i64_parse(digits, 1, INT_MAX, &process) ? process : -1;
}

static bool has_mark(struct arena *tmp, int folder, int64_t process)
{
    const char *expected = folder_mark_text(tmp, process);
    char found[512] = "";
    struct stat st;
    int fd = openat(folder, FOLDER_MARK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool same = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && read(fd, found, sizeof found - 1) == (ssize_t)strlen(expected) &&
        strcmp(found, expected) == 0;
    if (fd >= 0)
        (void)close(fd);
    return same;
}

static bool is_abandoned(struct arena *tmp, int folder, int64_t process)
{
    struct stat st;
    return fstat(folder, &st) == 0 && st.st_uid == geteuid() && has_mark(tmp, folder, process) && flock(folder, LOCK_EX | LOCK_NB) == 0 &&
        !folder_list(tmp, folder).foreign;
}

static void drop_if_abandoned(struct arena *tmp, int parent, const char *name, int64_t process)
{
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    if (is_abandoned(tmp, folder, process)) {
        folder_remove_written(folder);
        (void)unlinkat(parent, name, AT_REMOVEDIR);
    }
    (void)close(folder);
}

void folder_drop_abandoned(const char *out)
{
    struct arena *tmp = arena_new();
    DIR *d = opendir(path_dir(tmp, out));
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        int64_t process = writer_of(e->d_name, path_base(out));
        if (process > 0)
            drop_if_abandoned(tmp, dirfd(d), e->d_name, process);
    }
    if (d)
        (void)closedir(d);
    arena_free(tmp);
}
