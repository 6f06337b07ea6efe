/* folder: the output appears complete or not at all. Everything is written to a folder beside it, which takes the name at the end and is
 * removed on failure; what a killed writer left is removed by the next. An existing folder is replaced only when asked for, only if
 * tpc-shard wrote it (or it is empty), and only after the new one is complete. */
#include "plan/folder/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BESIDE ".part-"
#define RENAME_EXCHANGE_FLAG 2 /* <linux/fs.h>; renameat2(2) */

static bool is_empty(const char *dir)
{
    DIR *d = opendir(dir);
    bool empty = d != NULL;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            empty = false;
    if (d)
        (void)closedir(d);
    return empty;
}

static bool is_ours(const char *dir)
{
    struct arena *tmp = arena_new();
    bool plan = path_exists(path_join(tmp, dir, "plan.json")) && path_exists(path_join(tmp, dir, "rank-0.onnx"));
    arena_free(tmp);
    return plan || is_empty(dir);
}

void folder_check(const char *out, bool force)
{
    if (!path_exists(out))
        return;
    if (!force)
        fail("%s exists already: name another folder with -o, or replace it with --force", out);
    if (!is_ours(out))
        fail("%s is not a folder that tpc-shard wrote, so --force does not replace it", out);
}

/* ---- the folder beside ------------------------------------------------------------------------------------------------------------ */

/* Who writes a folder holds a lock on it, which ends with its process. -1: someone holds it, or the file system has no locks. */
static int lock_folder(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static bool is_beside(const char *name, const char *of)
{
    size_t n = strlen(of);
    return strncmp(name, of, n) == 0 && strncmp(name + n, BESIDE, strlen(BESIDE)) == 0;
}

/* What writers that were killed left behind. */
static void drop_abandoned(const char *out)
{
    struct arena *tmp = arena_new();
    const char *name = path_base(out), *parent = path_dir(tmp, out);
    DIR *d = opendir(parent);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        const char *path = path_join(tmp, parent, e->d_name);
        int lock = is_beside(e->d_name, name) ? lock_folder(path) : -1;
        if (lock < 0)
            continue;
        (void)path_remove_folder(path);
        (void)close(lock);
    }
    if (d)
        (void)closedir(d);
    arena_free(tmp);
}

/* Again where another thread still made a file in it. */
static void drop_folder(void *path, int status)
{
    (void)status;
    for (int i = 0; i < 100 && !path_remove_folder(path); i++)
        (void)nanosleep(&(struct timespec){0, 10000000}, NULL);
}

char *folder_begin(struct arena *a, const char *out)
{
    drop_abandoned(out);
    char *dir = arena_printf(a, "%s" BESIDE "%ld", out, (long)getpid());
    diag_on_failure(drop_folder, dir);
    diag_hold();
    bool made = mkdir(dir, 0777) == 0;
    int why = errno;
    diag_release();
    if (!made)
        fail("%s: the folder cannot be made: %s", out, strerror(why));
    (void)lock_folder(dir); /* until the process ends */
    return dir;
}

/* ---- taking the name --------------------------------------------------------------------------------------------------------------- */

/* Both names at one stroke; where the file system can't, the old folder is away for a moment. */
static bool exchange_folders(const char *made, const char *out, const char *aside)
{
    return syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, out, RENAME_EXCHANGE_FLAG) == 0 ||
        (rename(out, aside) == 0 && rename(made, out) == 0 && rename(aside, made) == 0);
}

/* Whatever ends the program, the hook finds under the name `made` what has to go: the new folder before, the old one after. */
void folder_commit(struct arena *a, char *made, const char *out)
{
    require(strcmp(made, out) != 0);
    const char *aside = arena_printf(a, "%s.old-%ld", out, (long)getpid());
    diag_hold();
    bool done = rename(made, out) == 0 || exchange_folders(made, out, aside);
    int why = errno;
    diag_release();
    if (!done)
        fail("%s: cannot take the name %s: %s", made, out, strerror(why));
    drop_folder(made, 0);
    diag_forget(drop_folder, made);
}
