/* out: files that are written front to back. A failed write names the file; the digest is computed on the way. A file that must appear
 * complete is written next to its name and renamed at the end. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A piece is written while it is in the cache after the digest. The kernel makes one page of each piece; larger pages are rarely free after
 * many writes, and a virtual machine then waits for its host. */
enum { PIECE = 1 << 18, ZEROS = 4096 };

void out_fail(const struct out *o)
{
    fail("%s: can't be written: %s", o->path, strerror(errno));
}

/* Opens neither an existing file nor a link's target. */
static FILE *create(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
    if (fd >= 0 && !f)
        (void)close(fd);
    return f;
}

/* A killed process with the same number may have left the name. */
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

static void start(struct out *o)
{
    if (!o->file)
        out_fail(o);
    o->open = scope_keep(close_file, o->file);
    o->arena = arena_new();
    o->digest = digest_begin(o->arena);
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

/* Whatever ends the program, the temporary file exists if and only if its name is set. */
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

void out_open_whole(struct arena *a, struct out *o, const char *path)
{
    bool special = path_is_special(path);
    *o = (struct out){.path = special ? path : path_followed(a, path)};
    if (special)
        o->file = fopen(path, "wb");
    else
        create_beside(a, o);
    start(o);
}

/* Preallocated blocks save a third of a write's time. A file system that can't preallocate allocates at the write. */
bool out_reserve_in(FILE *file, int64_t offset, int64_t bytes)
{
    return bytes <= 0 || fallocate(fileno(file), FALLOC_FL_KEEP_SIZE, offset, bytes) == 0 || errno != ENOSPC;
}

void out_reserve(struct out *o, int64_t offset, int64_t bytes)
{
    if (!out_reserve_in(o->file, offset, bytes))
        out_fail(o);
}

static void check_written(const struct out *o, int error)
{
    errno = error;
    if (error)
        out_fail(o);
}

/* Shows the held bytes that were not shown yet. */
static void show_held(struct out *o)
{
    if (o->also)
        o->also(o->with, o->piece + o->shown, o->held - o->shown);
    o->shown = o->held;
}

static void write_piece(struct out *o, const uint8_t *from, size_t bytes)
{
    digest_add(o->digest, from, bytes);
    if (o->behind) {
        check_written(o, write_behind_put(o->behind, from, bytes));
        o->piece = write_behind_room(o->behind);
    } else if (fwrite(from, 1, bytes, o->file) != bytes)
        out_fail(o);
}

static void write_held(struct out *o)
{
    show_held(o);
    if (o->held)
        write_piece(o, o->piece, o->held);
    o->held = o->shown = 0;
}

void out_behind(struct out *o)
{
    write_held(o);
    o->behind = write_behind_begin(o->arena, o->file, PIECE);
    if (o->behind)
        o->piece = write_behind_room(o->behind);
}

/* Pieces begin at multiples of their size, so that the kernel makes large pages of them. */
static size_t put_some(struct out *o, const uint8_t *from, size_t bytes)
{
    if (o->held == 0 && bytes >= PIECE) {
        if (o->also)
            o->also(o->with, from, PIECE);
        write_piece(o, from, PIECE);
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
    if (o->behind && bytes >= PIECE)
        check_written(o, write_behind_settle(o->behind));
    o->bytes += (int64_t)bytes;
}

void out_pad(struct out *o, int64_t to)
{
    static const uint8_t zeros[ZEROS];
    require(to >= o->bytes);
    while (o->bytes < to)
        out_put(o, zeros, to - o->bytes < ZEROS ? (size_t)(to - o->bytes) : ZEROS);
}

static void move_to(struct out *o, int64_t to)
{
    write_held(o);
    if (o->behind)
        check_written(o, write_behind_settle(o->behind));
    if (fseeko(o->file, (off_t)to, SEEK_SET) != 0)
        out_fail(o);
    o->bytes = to;
}

void out_seek(struct out *o, int64_t to)
{
    require(to >= 0);
    if (to != o->bytes)
        move_to(o, to);
}

void out_hole(struct out *o, int64_t bytes)
{
    require(bytes >= 0 && !o->also);
    move_to(o, o->bytes + bytes);
    digest_zeros(o->digest, bytes);
    o->ends_in_hole = true;
}

void out_also(struct out *o, void (*take)(void *, const void *, size_t), void *data)
{
    show_held(o);
    o->also = take;
    o->with = data;
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

uint64_t out_digest(struct out *o)
{
    write_held(o);
    if (o->behind)
        check_written(o, write_behind_settle(o->behind));
    if (fflush(o->file) != 0)
        out_fail(o);
    return digest_value(o->digest);
}

void out_sync(struct out *o)
{
    (void)out_digest(o);
    if (fsync(fileno(o->file)) != 0)
        out_fail(o);
}

struct written out_close(struct out *o)
{
    write_held(o);
    struct written w = {o->bytes, digest_value(o->digest)};
    if (o->behind)
        check_written(o, write_behind_end(o->behind));
    if (o->ends_in_hole && (fflush(o->file) != 0 || ftruncate(fileno(o->file), (off_t)o->bytes) != 0))
        out_fail(o);
    scope_forget(o->open);
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

/* The folder of an existing or future file or folder. */
static const char *folder_around(struct arena *a, const char *path)
{
    return path_dir(a, path_trimmed(a, path));
}

/* The path that must be writable: a folder that gets files, a device or pipe, or else the parent folder. */
static bool may_write(struct arena *a, const char *path, bool folder)
{
    if (path_is_special(path))
        return access(path, W_OK) == 0;
    bool inside = folder && path_exists(path);
    return access(inside ? path : folder_around(a, path_followed(a, path)), W_OK | X_OK) == 0;
}

static void check_made(const char *option, const char *path, bool folder)
{
    if (!*path)
        fail_usage("%s is '', expected the name of a %s", option, folder ? "folder" : "file");
    struct arena *a = arena_new();
    out_claim(a, option, path);
    bool fits = !path_exists(path) || path_is_folder(path) == folder;
    int why = !fits ? (folder ? ENOTDIR : EISDIR) : may_write(a, path, folder) ? 0 : errno;
    arena_free(a);
    if (why)
        fail("%s: can't be written: %s", path, strerror(why));
}

/* The beginning of a file has the text; an empty or missing file counts, too. */
static bool is_of_kind(const char *path, const char *kind)
{
    char start[4096];
    if (path_is_special(path) || !path_exists(path))
        return true;
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(start, 1, sizeof start, f) : 0;
    int why = f && !ferror(f) ? 0 : errno;
    if (f)
        (void)fclose(f);
    if (why)
        fail("%s exists already and can't be read, so it is not replaced: %s", path, strerror(why));
    return n == 0 || memmem(start, n, kind, strlen(kind));
}

void out_check(const char *option, const char *path, const char *kind)
{
    check_made(option, path, false);
    if (kind && !is_of_kind(path, kind))
        fail("%s exists already and is not what %s writes, so it is not replaced: name another file", path, option);
}

void out_check_folder(const char *option, const char *path)
{
    check_made(option, path, true);
}
