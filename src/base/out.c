/* out: files that are written front to back. A failed write names the file; the digest is computed on the way. A file that must appear
 * complete is written beside its name and renamed at the end. */
#include "base/base.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { PIECE = 1 << 18, ZEROS = 4096 }; /* bytes are written in pieces, from the cache that the digest brought them to */

static _Noreturn void fail_to_write(const struct out *o)
{
    fail("%s: can't be written: %s", o->path, strerror(errno));
}

static void open_as(struct out *o, const char *path, const char *name)
{
    *o = (struct out){.path = path, .file = fopen(name, "wb"), .digest = XXH3_createState(), .arena = arena_new()};
    if (!o->file)
        fail_to_write(o);
    require(o->digest && XXH3_64bits_reset(o->digest) == XXH_OK);
    o->piece = arena_alloc(o->arena, PIECE);
}

void out_open(struct out *o, const char *path)
{
    open_as(o, path, path);
}

static void drop_file(void *path, int status)
{
    (void)status;
    (void)remove(path);
}

/* A device or a pipe is written as it is; of a link what it names is replaced. */
void out_open_whole(struct arena *a, struct out *o, const char *path)
{
    const char *real = path_real(a, path);
    struct stat st;
    path = real ? real : path;
    if (real && stat(real, &st) == 0 && !S_ISREG(st.st_mode)) {
        out_open(o, path);
        return;
    }
    char *beside = arena_printf(a, "%s.part-%ld", path, (long)getpid());
    diag_on_failure(drop_file, beside);
    open_as(o, path, beside);
    o->beside = beside;
}

static void write_bytes(struct out *o, const uint8_t *from, size_t bytes)
{
    require(XXH3_64bits_update(o->digest, from, bytes) == XXH_OK);
    if (bytes && fwrite(from, 1, bytes, o->file) != bytes)
        fail_to_write(o);
}

static void write_held(struct out *o)
{
    write_bytes(o, o->piece, o->held);
    o->held = 0;
}

static size_t put_some(struct out *o, const uint8_t *from, size_t bytes)
{
    if (bytes >= PIECE) {
        write_held(o);
        write_bytes(o, from, PIECE);
        return PIECE;
    }
    size_t n = bytes < PIECE - o->held ? bytes : PIECE - o->held;
    memcpy(o->piece + o->held, from, n);
    o->held += n;
    if (o->held == PIECE)
        write_held(o);
    return n;
}

void out_put(void *data, const void *from, size_t bytes)
{
    struct out *o = data;
    for (size_t at = 0; at < bytes;)
        at += put_some(o, (const uint8_t *)from + at, bytes - at);
    o->bytes += (int64_t)bytes;
}

void out_pad(struct out *o, int64_t to)
{
    static const uint8_t zeros[ZEROS];
    require(to >= o->bytes);
    while (o->bytes < to)
        out_put(o, zeros, (size_t)(to - o->bytes < ZEROS ? to - o->bytes : ZEROS));
}

struct written out_close(struct out *o)
{
    write_held(o);
    struct written w = {o->bytes, XXH3_64bits_digest(o->digest)};
    (void)XXH3_freeState(o->digest);
    if (ferror(o->file) || fclose(o->file) != 0 || (o->beside && rename(o->beside, o->path) != 0))
        fail_to_write(o);
    if (o->beside)
        diag_forget(drop_file, o->beside);
    arena_free(o->arena);
    return w;
}

struct written out_write_text(const char *path, const char *text)
{
    struct out o;
    out_open(&o, path);
    out_put(&o, text, strlen(text));
    return out_close(&o);
}
