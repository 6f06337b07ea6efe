/* digest: digests of bytes and of files. A large file is read on a thread, while the program does other work. */
#include "base/base.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { PIECE = 1 << 20 };

struct file_digest {
    const char *path;
    pthread_t thread;
    bool begun, done, readable;
    atomic_bool unwanted;
    struct scope_item *kept;
    struct written found;
};

uint64_t digest_bytes(const void *at, size_t bytes)
{
    return XXH3_64bits(at, bytes);
}

struct file_digest *digest_file(struct arena *a, const char *path)
{
    struct file_digest *d = NEW(a, struct file_digest);
    d->path = path;
    return d;
}

static bool map_it(struct file_digest *d, struct map *m)
{
    struct stat st;
    int fd = open(d->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool plain = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    void *at = plain && st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (fd >= 0)
        (void)close(fd);
    *m = (struct map){at, plain ? (size_t)st.st_size : 0};
    return plain && at != MAP_FAILED;
}

/* Not by map_file, for its table is of the scope's thread. */
static void *read_file(void *data)
{
    struct file_digest *d = data;
    struct map m;
    d->readable = map_it(d, &m);
    XXH3_state_t *state = XXH3_createState();
    require(state && XXH3_64bits_reset(state) == XXH_OK);
    for (size_t at = 0, n; d->readable && at < m.bytes && !d->unwanted; at += n) {
        n = m.bytes - at < PIECE ? m.bytes - at : PIECE;
        require(XXH3_64bits_update(state, m.at + at, n) == XXH_OK);
        map_release(m, at, n);
    }
    if (d->readable && m.at)
        (void)munmap((void *)(uintptr_t)m.at, m.bytes);
    d->found = (struct written){(int64_t)m.bytes, XXH3_64bits_digest(state)};
    (void)XXH3_freeState(state);
    return NULL;
}

static void stop_reading(void *digest)
{
    struct file_digest *d = digest;
    d->unwanted = true;
    (void)pthread_join(d->thread, NULL);
}

void digest_file_begin(struct file_digest *d)
{
    d->begun = pthread_create(&d->thread, NULL, read_file, d) == 0;
    d->kept = d->begun ? scope_keep(stop_reading, d) : NULL;
}

bool digest_file_get(struct file_digest *d, struct written *found)
{
    if (d->begun && !d->done) {
        scope_forget(d->kept);
        require(pthread_join(d->thread, NULL) == 0);
    } else if (!d->done) {
        (void)read_file(d);
    }
    d->done = true;
    *found = d->found;
    return d->readable;
}
