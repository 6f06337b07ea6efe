/* folder: the output appears complete or not at all. Everything is written to a folder next to it, which takes the name at the end and is
 * removed on failure; what a killed writer left is removed by the next. An existing folder is replaced only when asked for, only if
 * tpc-shard wrote it all (or it is empty), and only after the new one is complete. */
#include "plan/folder/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RENAME_EXCHANGE_FLAG 2 /* <linux/fs.h>; renameat2(2) */

/* ---- what may be replaced ---------------------------------------------------------------------------------------------------------- */

static bool holds(int folder, const char *name)
{
    return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void check_replaced(struct arena *tmp, const char *out, int folder)
{
    struct folder_files files = folder_list(tmp, folder);
    if (files.n < 0)
        fail("%s: can't be read: %s", out, files.foreign);
    if (files.n > 0 && !(holds(folder, "plan.json") && holds(folder, "rank-0.onnx")))
        fail("%s is not a folder that tpc-shard wrote, so --force does not replace it", out);
    if (files.foreign)
        fail("%s holds '%s', which tpc-shard did not write, so --force does not replace it", out, files.foreign);
}

void folder_check(const char *out, bool force)
{
    struct stat st;
    if (lstat(out, &st) != 0) {
        out_check_folder("-o", out);
        return;
    }
    if (!force)
        fail("%s exists already: name another folder with -o, or replace it with --force", out);
    struct arena *tmp = arena_new();
    int folder = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 && (errno == ENOTDIR || errno == ENOENT))
        fail("%s is not a folder that tpc-shard wrote, so --force does not replace it", out);
    if (folder < 0)
        fail("%s: can't be read: %s", out, strerror(errno));
    check_replaced(tmp, out, folder);
    (void)close(folder);
    arena_free(tmp);
}

/* ---- the folder next to the output ------------------------------------------------------------------------------------------ */

/* Removes what is open under the name path. Again where another thread still made a file in it. */
static bool drop_part(const struct folder_part *p)
{
    for (int i = 0; i < 100; i++) {
        folder_remove_written(p->folder);
        if (rmdir(p->path) == 0 || errno == ENOENT)
            return true;
        (void)nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    return false;
}

static void drop_on_failure(void *part, int status)
{
    struct folder_part *p = part;
    (void)status;
    if (p->folder < 0)
        return;
    (void)drop_part(p);
    (void)close(p->folder);
    p->folder = -1;
}

/* The lock says that the writer lives; the mark, that it is tpc-shard. */
static bool make_part(struct folder_part *p, const char *mark)
{
    if (mkdir(p->path, 0777) != 0)
        return false;
    p->folder = open(p->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (p->folder < 0) {
        int why = errno;
        (void)rmdir(p->path);
        errno = why;
        return false;
    }
    (void)flock(p->folder, LOCK_EX | LOCK_NB);
    int fd = openat(p->folder, FOLDER_MARK, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    bool marked = fd >= 0 && write(fd, mark, strlen(mark)) == (ssize_t)strlen(mark);
    return fd >= 0 && close(fd) == 0 && marked;
}

/* The target of a link is replaced. */
struct folder_part *folder_begin(struct arena *a, const char *out)
{
    struct folder_part *p = NEW(a, struct folder_part);
    const char *real = path_real(a, out), *mark = folder_mark_text(a, getpid());
    p->out = real ? real : out;
    p->path = arena_printf(a, "%s" FOLDER_BESIDE "%ld", p->out, (long)getpid());
    p->folder = -1;
    folder_drop_abandoned(p->out);
    diag_on_failure(drop_on_failure, p);
    diag_hold();
    bool made = make_part(p, mark);
    int why = errno;
    diag_release();
    if (!made && why == EEXIST)
        fail("%s exists already, where %s would be written: remove it", p->path, out);
    if (!made)
        fail("%s: the folder cannot be made: %s", out, strerror(why));
    return p;
}

/* ---- taking the name --------------------------------------------------------------------------------------------------------------- */

/* Both names at one stroke; where the file system can't, the old folder is away for a moment. */
static bool exchange_folders(struct folder_part *p, const char *aside)
{
    if (syscall(SYS_renameat2, AT_FDCWD, p->path, AT_FDCWD, p->out, RENAME_EXCHANGE_FLAG) == 0)
        return true;
    if (rename(p->out, aside) != 0)
        return false;
    if (rename(p->path, p->out) != 0) {
        int why = errno;
        (void)rename(aside, p->out);
        errno = why;
        return false;
    }
    if (rename(aside, p->path) != 0)
        p->path = aside;
    return true;
}

/* Whatever ends the program, the hook finds under the name `path` what has to go: the new folder before, the old one after. */
static bool take_name(struct folder_part *p, int old, const char *aside)
{
    int made = p->folder;
    if (rename(p->path, p->out) == 0)
        p->folder = -1;
    else if (exchange_folders(p, aside))
        p->folder = old;
    else
        return false;
    (void)unlinkat(made, FOLDER_MARK, 0);
    (void)close(made);
    return true;
}

void folder_commit(struct arena *a, struct folder_part *p)
{
    require(p->folder >= 0);
    const char *aside = arena_printf(a, "%s.old-%ld", p->out, (long)getpid());
    int old = open(p->out, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (old >= 0)
        check_replaced(a, p->out, old);
    diag_hold();
    bool done = take_name(p, old, aside);
    int why = errno;
    diag_release();
    if (!done)
        fail("%s: cannot take the name %s: %s", p->path, p->out, strerror(why));
    if (p->folder >= 0 && !drop_part(p))
        fail("%s: is complete, but what it replaces stays in %s: %s", p->out, p->path, strerror(errno));
    diag_forget(drop_on_failure, p);
    if (old >= 0)
        (void)close(old);
}
