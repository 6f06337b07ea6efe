/* path: names of files and folders. */
#include "base/base.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool path_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool path_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool path_is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode);
}

/* An absolute name stays as it is; an empty folder is the current one. */
char *path_join(struct arena *a, const char *dir, const char *name)
{
    size_t n = strlen(dir);
    if (n == 0 || name[0] == '/')
        return arena_strdup(a, name);
    return arena_printf(a, dir[n - 1] == '/' ? "%s%s" : "%s/%s", dir, name);
}

char *path_dir(struct arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return arena_strdup(a, ".");
    return slash == path ? arena_strdup(a, "/") : arena_strndup(a, path, (size_t)(slash - path));
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *path_last_two(const char *path)
{
    const char *at = path_base(path);
    while (at > path && at[-1] == '/')
        at--;
    while (at > path && at[-1] != '/')
        at--;
    return at;
}

bool path_ends(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

bool path_same(const char *path, const char *other)
{
    struct stat a, b;
    return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

const char *path_trimmed(struct arena *a, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return arena_strndup(a, path, n);
}

const char *path_followed(struct arena *a, const char *path)
{
    enum { MOST_LINKS = 40 };
    char to[PATH_MAX];
    const char *at = path;
    for (int i = 0; i < MOST_LINKS; i++) {
        ssize_t n = readlink(at, to, sizeof to - 1);
        if (n <= 0)
            return at;
        at = path_join(a, path_dir(a, at), arena_strndup(a, to, (size_t)n));
    }
    fail("%s: can't be written: %s", path, strerror(ELOOP));
}

char *path_real(struct arena *a, const char *path)
{
    char buffer[PATH_MAX];
    return realpath(path, buffer) ? arena_strdup(a, buffer) : NULL;
}

const char *path_beside(struct arena *a, const char *folder, const char *name)
{
    const char *path = path_join(a, folder, name), *real = path_exists(path) ? NULL : path_real(a, folder);
    if (real && strcmp(path_base(real), "onnx") == 0)
        path = path_join(a, path_dir(a, real), name);
    return path_exists(path) ? path : NULL;
}
