/* map: files as read-only memory, never read as a whole: the kernel pages in what is touched. Only plain files are mapped; anything else (a
 * folder, a device, a pipe) is a failure that names it. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a file was when it was mapped. */
struct mapped {
    const char *path;
    struct stat was;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct arena *mapped_arena; /* guarded by lock, as is mapped */
static VEC(struct mapped) mapped;

static void note_mapped(const char *path, const struct stat *was)
{
    pthread_mutex_lock(&lock);
    if (!mapped_arena)
        mapped_arena = arena_new();
    VEC_PUSH(mapped_arena, &mapped, ((struct mapped){arena_strdup(mapped_arena, path), *was}));
    pthread_mutex_unlock(&lock);
}

static bool is_unchanged(const struct mapped *m)
{
    struct stat st;
    return stat(m->path, &st) == 0 && st.st_dev == m->was.st_dev && st.st_ino == m->was.st_ino && st.st_size == m->was.st_size &&
        st.st_mtim.tv_sec == m->was.st_mtim.tv_sec && st.st_mtim.tv_nsec == m->was.st_mtim.tv_nsec;
}

void map_check_unchanged(void)
{
    for (int i = 0; i < mapped.n; i++)
        if (!is_unchanged(&mapped.at[i]))
            fail("%s: was changed while it was read", mapped.at[i].path);
}

/* NULL when mapped, else why not. An empty file has no pages to map. */
static const char *map_open_file(const char *path, int fd, struct map *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return strerror(errno);
    if (!S_ISREG(st.st_mode))
        return "not a plain file";
    note_mapped(path, &st);
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

void map_close(struct map m)
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
