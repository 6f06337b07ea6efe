/* out: files that are written front to back. A failed write names the file; the digest is computed on the way. A file that must appear
 * complete is written beside its name and renamed at the end. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { PIECE = 1 << 18, ZEROS = 4096 }; /* bytes are written in pieces, from the cache that the digest brought them to */

void out_fail(const struct out *o)
{
    fail("%s: can't be written: %s", o->path, strerror(errno));
}

/* Neither a file that exists nor one that a link names. */
static FILE *create(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
    if (fd >= 0 && !f)
        (void)close(fd);
    return f;
}

/* A name may be taken by what a killed process of the same number left. */
FILE *out_create_beside(struct arena *a, const char *path, char **name)
{
    FILE *f = NULL;
    errno = EEXIST;
    for (int i = 0; i < 100 && !f && errno == EEXIST; i++) {
        *name = arena_printf(a, i ? "%s.part-%ld-%d" : "%s.part-%ld", path, (long)getpid(), i);
        f = create(*name);
    }
    return f;
}

static void close_file(void *file)
{
    (void)fclose(file);
}

static void free_digest(void *digest)
{
    (void)XXH3_freeState(digest);
}

static void start(struct out *o)
{
    if (!o->file)
        out_fail(o);
    o->open = scope_keep(close_file, o->file);
    o->digest = XXH3_createState();
    require(o->digest && XXH3_64bits_reset(o->digest) == XXH_OK);
    o->counted = scope_keep(free_digest, o->digest);
    o->arena = arena_new();
    o->piece = arena_alloc(o->arena, PIECE);
}

void out_open(struct out *o, const char *path)
{
    out_open_created(o, path, create(path));
}

void out_open_created(struct out *o, const char *path, FILE *file)
{
    *o = (struct out){.path = path, .file = file};
    start(o);
}

/* Whatever ends the program, the file beside exists if and only if its name is set. */
static void drop_beside(void *data, int status)
{
    const struct out *o = data;
    (void)status;
    if (o->beside)
        (void)remove(o->beside);
}

static void create_beside(struct arena *a, struct out *o)
{
    char *name;
    diag_on_failure(drop_beside, o);
    diag_hold();
    o->file = out_create_beside(a, o->path, &name);
    o->beside = o->file ? name : NULL;
    int why = errno;
    diag_release();
    errno = why;
}

/* A device or a pipe is written as it is; of a link what it names is replaced. */
void out_open_whole(struct arena *a, struct out *o, const char *path)
{
    const char *real = path_real(a, path);
    struct stat st;
    *o = (struct out){.path = real ? real : path};
    if (real && stat(real, &st) == 0 && !S_ISREG(st.st_mode))
        o->file = fopen(real, "wb");
    else
        create_beside(a, o);
    start(o);
}

static void write_bytes(struct out *o, const uint8_t *from, size_t bytes)
{
    if (bytes && fwrite(from, 1, bytes, o->file) != bytes)
        out_fail(o);
}

static void write_held(struct out *o)
{
    write_bytes(o, o->piece, o->held);
    o->held = 0;
}

static size_t write_some(struct out *o, const uint8_t *from, size_t bytes)
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

void out_write(void *data, const void *from, size_t bytes)
{
    struct out *o = data;
    for (size_t at = 0; at < bytes;)
        at += write_some(o, (const uint8_t *)from + at, bytes - at);
    o->bytes += (int64_t)bytes;
}

void out_digest(void *data, const void *from, size_t bytes)
{
    struct out *o = data;
    require(XXH3_64bits_update(o->digest, from, bytes) == XXH_OK);
    o->digested += (int64_t)bytes;
}

void out_put(void *data, const void *from, size_t bytes)
{
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < PIECE ? bytes - at : PIECE;
        out_digest(data, (const uint8_t *)from + at, n);
        out_write(data, (const uint8_t *)from + at, n);
    }
}

static void pad(struct out *o, int64_t bytes, void (*put)(void *, const void *, size_t))
{
    static const uint8_t zeros[ZEROS];
    require(bytes >= 0);
    for (int64_t n; bytes > 0; bytes -= n) {
        n = bytes < ZEROS ? bytes : ZEROS;
        put(o, zeros, (size_t)n);
    }
}

void out_pad(struct out *o, int64_t to)
{
    pad(o, to - o->bytes, out_put);
}

void out_write_pad(struct out *o, int64_t to)
{
    pad(o, to - o->bytes, out_write);
}

void out_digest_pad(struct out *o, int64_t to)
{
    pad(o, to - o->digested, out_digest);
}

static void take_name(struct out *o)
{
    diag_hold();
    bool taken = rename(o->beside, o->path) == 0;
    int why = errno;
    if (taken)
        o->beside = NULL;
    diag_release();
    errno = why;
    if (!taken)
        out_fail(o);
    diag_forget(drop_beside, o);
}

struct written out_close(struct out *o)
{
    write_held(o);
    require(o->digested == o->bytes);
    struct written w = {o->bytes, XXH3_64bits_digest(o->digest)};
    scope_forget(o->counted);
    scope_forget(o->open);
    free_digest(o->digest);
    if (ferror(o->file) || fclose(o->file) != 0)
        out_fail(o);
    if (o->beside)
        take_name(o);
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

/* ---- before there is anything to write ---- */

/* Where a file or folder lies or will lie. */
static const char *folder_around(struct arena *a, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return path_dir(a, arena_strndup(a, path, n));
}

static void check_made(const char *path, bool folder)
{
    struct arena *a = arena_new();
    bool there = path_exists(path), fits = !there || path_is_folder(path) == folder;
    bool open = (there && access(path, W_OK) == 0) || access(folder_around(a, path), W_OK) == 0;
    int why = !fits ? (folder ? ENOTDIR : EISDIR) : open ? 0 : errno;
    arena_free(a);
    if (why)
        fail("%s: can't be written: %s", path, strerror(why));
}

void out_check(const char *path)
{
    check_made(path, false);
}

void out_check_folder(const char *path)
{
    check_made(path, true);
}
