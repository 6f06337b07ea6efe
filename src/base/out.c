/* out.c: files that are written front to back. A write that fails names the file; the digest of what was written comes for nothing. A
 * file that appears whole is written beside its name, which it takes when it is complete. */
#include "base/base.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { BUFFER = 1 << 20, ZEROS = 4096 };

static _Noreturn void cannot(const struct out *o)
{
    fail("%s: can't be written: %s", o->path, strerror(errno));
}

static void open_as(struct out *o, const char *path, const char *name)
{
    *o = (struct out){.path = path, .file = fopen(name, "wb"), .digest = XXH3_createState()};
    if (!o->file || setvbuf(o->file, NULL, _IOFBF, BUFFER) != 0)
        cannot(o);
    require(o->digest && XXH3_64bits_reset(o->digest) == XXH_OK);
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

void out_put(void *data, const void *from, size_t bytes)
{
    struct out *o = data;
    if (bytes == 0)
        return;
    if (fwrite(from, 1, bytes, o->file) != bytes)
        cannot(o);
    require(XXH3_64bits_update(o->digest, from, bytes) == XXH_OK);
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
    struct written w = {o->bytes, XXH3_64bits_digest(o->digest)};
    (void)XXH3_freeState(o->digest);
    if (ferror(o->file) || fclose(o->file) != 0 || (o->beside && rename(o->beside, o->path) != 0))
        cannot(o);
    if (o->beside)
        diag_forget(drop_file, o->beside);
    return w;
}

struct written write_text(const char *path, const char *text)
{
    struct out o;
    out_open(&o, path);
    out_put(&o, text, strlen(text));
    return out_close(&o);
}
