/* digest: digests of bytes and of files. A large file is read on a thread, while the program does other work. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include <xxhash.h>

enum { PIECE = 1 << 17 };

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

/* At most a piece; 0 at the end, below 0: can't be read. */
static ssize_t read_piece(int fd, uint8_t *piece)
{
    ssize_t n = -1;
    do
        n = read(fd, piece, PIECE);
    while (n < 0 && errno == EINTR);
    return n;
}

static void *read_file(void *data)
{
    struct file_digest *d = data;
    uint8_t piece[PIECE];
    XXH3_state_t *state = XXH3_createState();
    require(state && XXH3_64bits_reset(state) == XXH_OK);
    int fd = open(d->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read_piece(fd, piece);
    for (; n > 0 && !d->unwanted; n = read_piece(fd, piece)) {
        require(XXH3_64bits_update(state, piece, (size_t)n) == XXH_OK);
        d->found.bytes += n;
    }
    if (fd >= 0)
        (void)close(fd);
    d->readable = n == 0;
    d->found.digest = XXH3_64bits_digest(state);
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
