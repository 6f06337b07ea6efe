/* one_writer: at most one process at a time writes a file over a long time. It locks the file it writes, which has the final name or a name
 * next to it, so that another process finds the lock. The lock ends with the process. A file left by a killed process is removed if it is
 * the beginning of such a file. */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* "NAME.part-", a number, and perhaps another one. */
static bool is_beside(const char *name, const char *of)
{
    static const char mark[] = ".part-";
    size_t n = strlen(of);
    if (strncmp(name, of, n) != 0 || strncmp(name + n, mark, sizeof mark - 1) != 0)
        return false;
    const char *digits = name + n + sizeof mark - 1, *end = digits + strspn(digits, "0123456789");
    return end > digits && (!*end || (*end == '-' && end[1] && !end[1 + strspn(end + 1, "0123456789")]));
}

static void look_at(const struct one_writer *w, int folder, const char *name, const struct stat *own)
{
    struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    bool other = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_dev != own->st_dev || st.st_ino != own->st_ino);
    bool ours = other && flock(fd, LOCK_SH | LOCK_NB) == 0; /* without file locks, no file counts as a killed process's */
    if (other && !ours && errno == EWOULDBLOCK)
        fail("%s: another run writes its %s there, and has '%s' open: give this one a %s of its own", w->path, w->what, name, w->option);
    if (ours && strcmp(name, path_base(w->path)) != 0 && w->is_begun(fd))
        (void)unlinkat(folder, name, 0);
    (void)close(fd);
}

static void look_around(struct arena *tmp, const struct one_writer *w, int file)
{
    struct stat own;
    DIR *d = opendir(path_dir(tmp, w->path));
    if (!d || fstat(file, &own) != 0)
        fail("%s: can't be written: %s", w->path, strerror(errno));
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        if (strcmp(e->d_name, path_base(w->path)) == 0 || is_beside(e->d_name, path_base(w->path)))
            look_at(w, dirfd(d), e->d_name, &own);
    (void)closedir(d);
}

void one_writer_hold(FILE *file)
{
    (void)flock(fileno(file), LOCK_EX);
}

void one_writer_check(const struct one_writer *w, FILE *file)
{
    struct arena *tmp = arena_new();
    look_around(tmp, w, fileno(file));
    arena_free(tmp);
}
