/* map: files as read-only memory, never read as a whole: the kernel loads pages on access. Only plain files are mapped; anything else (a
 * folder, a device, a pipe) is a failure that names it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file's state when it was mapped, the scope that mapped it, and the pages' address (NULL: unmapped). */
struct mapped {
    struct mapped *next;
    struct scope *scope;
    char *path;
    struct stat was;
    void *at;
    size_t bytes;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapped *all; /* guarded by lock */

static void free_mapped(struct mapped *m)
{
    if (m->at)
        (void)munmap(m->at, m->bytes);
    free(m->path);
    free(m);
}

static void drop_mapped(void *mapped)
{
    pthread_mutex_lock(&lock);
    for (struct mapped **at = &all; *at; at = &(*at)->next)
        if (*at == mapped) {
            *at = (*at)->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    free_mapped(mapped);
}

static void note_mapped(const char *path, const struct stat *was, const struct map *map)
{
    struct mapped *m = calloc(1, sizeof *m);
    char *copy = strdup(path);
    if (!m || !copy)
        fail("out of memory: %s was mapped", path);
    *m = (struct mapped){NULL, scope_current(), copy, *was, (void *)(uintptr_t)map->at, map->bytes};
    pthread_mutex_lock(&lock);
    m->next = all;
    all = m;
    pthread_mutex_unlock(&lock);
    (void)scope_keep(drop_mapped, m);
}

/* The entry stays, so its file is checked until the end. */
static void note_closed(const void *at)
{
    pthread_mutex_lock(&lock);
    for (struct mapped *m = all; m; m = m->next)
        if (m->at == at)
            m->at = NULL;
    pthread_mutex_unlock(&lock);
}

static bool is_unchanged(const struct mapped *m)
{
    struct stat st;
    return stat(m->path, &st) == 0 && st.st_dev == m->was.st_dev && st.st_ino == m->was.st_ino && st.st_size == m->was.st_size &&
        st.st_mtim.tv_sec == m->was.st_mtim.tv_sec && st.st_mtim.tv_nsec == m->was.st_mtim.tv_nsec;
}

/* The first in mapping order; NULL: none. */
static const struct mapped *find_changed(void)
{
    const struct mapped *found = NULL;
    pthread_mutex_lock(&lock);
    for (const struct mapped *m = all; m; m = m->next)
        if (m->scope == scope_current() && !is_unchanged(m))
            found = m;
    pthread_mutex_unlock(&lock);
    return found;
}

bool map_reads(const char *path)
{
    struct stat st;
    bool found = false;
    if (stat(path, &st) != 0)
        return false;
    pthread_mutex_lock(&lock);
    for (const struct mapped *m = all; m; m = m->next)
        found |= m->scope == scope_current() && m->was.st_dev == st.st_dev && m->was.st_ino == st.st_ino;
    pthread_mutex_unlock(&lock);
    return found;
}

void map_check_unchanged(void)
{
    const struct mapped *m = find_changed();
    if (m)
        fail("%s: was changed while it was read", m->path);
}

/* NULL when mapped, else why not. An empty file has no pages to map. */
static const char *map_open_file(const char *path, int fd, struct map *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return strerror(errno);
    if (!S_ISREG(st.st_mode))
        return "not a plain file";
    *out = (struct map){NULL, (size_t)st.st_size};
    void *at = st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (at == MAP_FAILED)
        return strerror(errno);
    out->at = at;
    note_mapped(path, &st, out);
    return NULL;
}

static const char *map_path(const char *path, struct map *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return strerror(errno);
    const char *why = map_open_file(path, fd, out);
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

bool map_try_file(const char *path, struct map *out)
{
    return map_path(path, out) == NULL;
}

/* In a hole at the end of a file, SEEK_DATA gives ENXIO. */
bool file_is_hole(const char *path, int64_t offset, int64_t bytes)
{
    int64_t end;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool within = i64_add(offset, bytes, &end) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && offset >= 0 && bytes > 0 &&
        end <= st.st_size;
    errno = 0;
    off_t data = within ? lseek(fd, (off_t)offset, SEEK_DATA) : 0;
    bool hole = within && (data >= end || (data < 0 && errno == ENXIO));
    (void)close(fd);
    return hole;
}

void map_close(struct map m)
{
    if (!m.at)
        return;
    note_closed(m.at);
    (void)munmap((void *)(uintptr_t)m.at, m.bytes);
}

void map_release(struct map m, size_t offset, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), from = (offset + page - 1) / page * page, to = (offset + bytes) / page * page;
    if (m.at && from < to)
        (void)madvise((void *)(uintptr_t)(m.at + from), to - from, MADV_DONTNEED);
}
