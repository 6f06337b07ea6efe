/* file.c: files as read-only maps, paths, and the removal of an output folder.
 *
 * A model's weights are mapped, never read: the kernel pages in what is touched. Only plain files are mapped; anything else (a
 * folder, a device, a pipe) is refused by name. remove_folder removes plain files and links one level deep, never recursively:
 * what tpc writes is flat, and a folder that holds folders isn't ours.
 */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* NULL when mapped, else why not. An empty file has no pages to map. */
static const char *map_open_file(int fd, struct map *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return strerror(errno);
    if (!S_ISREG(st.st_mode))
        return "not a plain file";
    *out = (struct map){NULL, (size_t)st.st_size};
    if (st.st_size == 0)
        return NULL;
    void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        return strerror(errno);
    out->at = at;
    return NULL;
}

static const char *map_path(const char *path, struct map *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return strerror(errno);
    const char *why = map_open_file(fd, out);
    (void)close(fd);
    return why;
}

struct map map_file(const char *path)
{
    struct map m = {NULL, 0};
    const char *why = map_path(path, &m);
    if (why)
        fail("%s: expected a readable file, found: %s", path, why);
    return m;
}

bool try_map_file(const char *path, struct map *out)
{
    return map_path(path, out) == NULL;
}

void unmap(struct map m)
{
    if (m.at)
        (void)munmap((void *)(uintptr_t)m.at, m.bytes);
}

void map_release(struct map m, size_t offset, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), from = (offset + page - 1) / page * page, to = (offset + bytes) / page * page;
    if (m.at && from < to)
        (void)madvise((void *)(uintptr_t)(m.at + from), to - from, MADV_DONTNEED);
}

bool path_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* An absolute name stands for itself; an empty folder is the current one. */
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

bool remove_folder(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return errno == ENOENT;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)unlinkat(dirfd(dir), e->d_name, 0);
    (void)closedir(dir);
    return rmdir(path) == 0;
}
