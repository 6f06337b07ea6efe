/* digest: digests of bytes and of files. Large files are read on threads, while the program does other work. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "base/base.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
#ifdef HAVE_XXH_X86DISPATCH_H
#include <xxh_x86dispatch.h> /* the same functions, dispatched by the processor's vector width */
#endif

enum { PIECE = 1 << 16, MOST_READERS = 16 };

/* Threads that each take the next file. */
struct file_readers {
    int n;
    struct file_digest *const *file;
    int threads; /* 0: they have ended */
    pthread_t thread[MOST_READERS];
    atomic_int next;
    atomic_bool unwanted;
    struct scope_item *kept;
};
struct file_digest {
    const char *path;
    struct file_readers *by; /* NULL: none yet */
    bool done, readable;
    struct written found;
};

uint64_t digest_bytes(const void *at, size_t bytes)
{
    return XXH3_64bits(at, bytes);
}

struct digest {
    XXH3_state_t state;
};

static void digest_start(struct digest *d)
{
    XXH3_INITSTATE(&d->state);
    require(XXH3_64bits_reset(&d->state) == XXH_OK);
}

struct digest *digest_begin(struct arena *a)
{
    struct digest *d = NEW(a, struct digest);
    digest_start(d);
    return d;
}

void digest_add(struct digest *d, const void *from, size_t bytes)
{
    require(!bytes || XXH3_64bits_update(&d->state, from, bytes) == XXH_OK);
}

void digest_zeros(struct digest *d, int64_t bytes)
{
    static const uint8_t zeros[1 << 14]; /* they stay in the cache */
    for (int64_t left = bytes, n; left > 0; left -= n) {
        n = left < (int64_t)sizeof zeros ? left : (int64_t)sizeof zeros;
        digest_add(d, zeros, (size_t)n);
    }
}

uint64_t digest_value(const struct digest *d)
{
    return XXH3_64bits_digest(&d->state);
}

struct file_digest *digest_file(struct arena *a, const char *path)
{
    struct file_digest *d = NEW(a, struct file_digest);
    d->path = path;
    return d;
}

static int open_plain(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* Read, not mapped: with other threads at work, mapping and unmapping pages costs more than a copy to the cache. */
static void read_file(struct file_digest *d)
{
    struct digest all;
    uint8_t piece[PIECE];
    ssize_t n = 0;
    int fd = open_plain(d->path);
    digest_start(&all);
    d->found.bytes = 0;
    while (fd >= 0 && !(d->by && d->by->unwanted) && (n = read(fd, piece, sizeof piece)) > 0) {
        digest_add(&all, piece, (size_t)n);
        d->found.bytes += n;
    }
    d->readable = fd >= 0 && n == 0;
    d->found.digest = digest_value(&all);
    d->done = true;
    if (fd >= 0)
        (void)close(fd);
}

static void *read_files(void *readers)
{
    struct file_readers *r = readers;
    for (int i = atomic_fetch_add(&r->next, 1); i < r->n; i = atomic_fetch_add(&r->next, 1))
        read_file(r->file[i]);
    return NULL;
}

static void join_readers(struct file_readers *r)
{
    for (int i = 0; i < r->threads; i++)
        require(pthread_join(r->thread[i], NULL) == 0);
    r->threads = 0;
}

static void stop_readers(void *readers)
{
    struct file_readers *r = readers;
    r->unwanted = true;
    join_readers(r);
}

void digest_files_begin(struct arena *a, int n, struct file_digest *const *files)
{
    int most = cores_of_process() < MOST_READERS ? cores_of_process() : MOST_READERS;
    struct file_readers *r = NEW(a, struct file_readers);
    r->n = n;
    r->file = files;
    for (int i = 0; i < n; i++)
        files[i]->by = r;
    while (r->threads < most && r->threads < n && pthread_create(&r->thread[r->threads], NULL, read_files, r) == 0)
        r->threads++;
    r->kept = scope_keep(stop_readers, r);
}

bool digest_file_get(struct file_digest *d, struct written *found)
{
    if (d->by && d->by->threads) {
        scope_forget(d->by->kept);
        join_readers(d->by);
    }
    if (!d->done)
        read_file(d);
    *found = d->found;
    return d->readable;
}
