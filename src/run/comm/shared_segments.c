/* shared_segments: memory that the processes of one machine share. Each rank creates its own segment, and the others open it through /proc.
 * It is in no file system: a small /dev/shm does not limit it, and a killed job leaves nothing behind. If ranks cannot open each other's
 * segments, for example in separate PID namespaces, there are none: a failure on one rank is the result on all. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "run/comm/comm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORBIDDEN = -1, UNSEEN = -2 }; /* why a rank cannot take part, besides the errno of creating its own */

struct offered { /* by one rank */
    int64_t process, device, inode;
    int file, why; /* why: 0, or why it has no file */
};

/* NULL: not possible. */
static char *map(int file, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? NULL : at;
}

static bool forbidden(void)
{
    const char *messages = getenv("TPC_MESSAGES");
    return messages && strcmp(messages, "1") == 0;
}

/* Allocates its pages now: later a lack of memory would be a fault. On older kernels a signal ends the attempt. */
static bool take_pages(int file, size_t bytes)
{
    int status;
    do
        status = fallocate(file, 0, 0, (off_t)bytes);
    while (status != 0 && errno == EINTR);
    return status == 0;
}

static struct offered make_own(size_t bytes, char **at)
{
    if (forbidden())
        return (struct offered){.file = -1, .why = FORBIDDEN};
    struct offered o = {.process = getpid(), .file = memfd_create("tpc", MFD_CLOEXEC)};
    struct stat s;
    if (o.file >= 0 && take_pages(o.file, bytes) && fstat(o.file, &s) == 0 && (*at = map(o.file, bytes))) {
        o.device = (int64_t)s.st_dev;
        o.inode = (int64_t)s.st_ino;
        return o;
    }
    o.why = errno;
    if (o.file >= 0)
        (void)close(o.file);
    o.file = -1;
    return o;
}

static bool is_offered(const struct offered *o, const struct stat *s, size_t bytes)
{
    return S_ISREG(s->st_mode) && (int64_t)s->st_dev == o->device && (int64_t)s->st_ino == o->inode && s->st_size == (off_t)bytes;
}

/* Opens a rank's segment; another process may have its PID in this namespace. NULL: not possible. */
static char *open_of(const struct offered *o, size_t bytes)
{
    char path[64];
    struct stat s;
    (void)snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)o->process, o->file);
    if (o->file < 0 || stat(path, &s) != 0 || !is_offered(o, &s, bytes))
        return NULL;
    int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    char *at = file >= 0 && fstat(file, &s) == 0 && is_offered(o, &s, bytes) ? map(file, bytes) : NULL;
    if (file >= 0)
        (void)close(file);
    return at;
}

/* The first rank's reason; 0: none. */
static int agree_why(struct arena *a, struct comm *comm, int own)
{
    const int *why = comm_gather(comm, a, "memory that ranks share", &own, sizeof own);
    for (int r = 0; r < comm->size; r++)
        if (why[r])
            return why[r];
    return 0;
}

static const char *why_text(struct arena *a, int why)
{
    if (why == FORBIDDEN)
        return "TPC_MESSAGES is 1";
    if (why == UNSEEN)
        return "they can't open each other's memory in /proc";
    return arena_printf(a, "memory for them to share can't be taken: %s", strerror(why));
}

char **shared_segments_make(struct arena *a, struct comm *comm, size_t bytes, const char **why)
{
    char **segment = NEWN(a, char *, comm->size);
    const struct offered own = make_own(bytes, &segment[comm->rank]);
    const struct offered *of = comm_gather(comm, a, "memory that ranks share", &own, sizeof own);
    int lacks = own.why;
    for (int r = 0; r < comm->size && !lacks; r++) {
        if (r != comm->rank)
            segment[r] = open_of(&of[r], bytes);
        lacks = of[r].why ? of[r].why : segment[r] ? 0 : UNSEEN;
    }
    lacks = agree_why(a, comm, lacks);
    if (own.file >= 0)
        (void)close(own.file);
    *why = lacks ? why_text(a, lacks) : NULL;
    if (!lacks)
        return segment;
    shared_segments_free(segment, comm->size, bytes);
    return NULL;
}

void shared_segments_free(char **segment, int ranks, size_t bytes)
{
    for (int r = 0; r < ranks; r++)
        if (segment[r])
            (void)munmap(segment[r], bytes);
}
