/* source: the bytes of constants in files: in one range, or scattered over several files.
 *
 * A file is mapped at first use and stays mapped for the life of the process, or of the scope; all constants of one file share the mapping.
 * A lock guards the table, because ranks may be threads of one process. */
#include "ir/constant/constant.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <uthash.h>

struct mapped_file {
    struct arena *arena; /* of the part from an offset to the end */
    const char *key;
    struct map map;
    UT_hash_handle hh;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapped_file *files; /* guarded by lock */

static void drop_file(void *mapped_file)
{
    struct mapped_file *m = mapped_file;
    pthread_mutex_lock(&lock);
    HASH_DEL(files, m);
    pthread_mutex_unlock(&lock);
}

/* The mapping of a file; `at` is NULL if there is none, or the file is empty. Called with the lock held. */
static struct map mapping(const char *path)
{
    char key[PATH_MAX + 32];
    struct mapped_file *m = NULL;
    if (snprintf(key, sizeof key, "%p %s", (const void *)scope_current(), path) >= (int)sizeof key)
        return (struct map){NULL, 0};
    HASH_FIND_STR(files, key, m);
    if (m)
        return m->map;
    if (!path_exists(path))
        return (struct map){NULL, 0};
    struct map map = map_file(path);
    struct arena *a = arena_new();
    m = NEW(a, struct mapped_file);
    m->arena = a;
    m->key = arena_strdup(a, key);
    m->map = map;
    HASH_ADD_KEYPTR(hh, files, m->key, strlen(m->key), m);
    (void)scope_keep(drop_file, m);
    return map;
}

static struct map locked_mapping(const char *path)
{
    diag_lock(&lock);
    struct map map = mapping(path);
    diag_unlock(&lock);
    return map;
}

static const uint8_t *bytes_at(const char *path, struct map map, const char *name, int64_t offset, int64_t bytes)
{
    int64_t end;
    if (!map.at && !path_exists(path))
        fail("%s: the data of tensor '%s' is missing", path, name);
    if (bytes < 0 || offset < 0 || !i64_add(offset, bytes, &end) || (uint64_t)end > map.bytes)
        fail("%s: tensor '%s' needs %" PRId64 " bytes at offset %" PRId64 ", and the file has %zu", path, name, bytes, offset, map.bytes);
    return bytes ? map.at + offset : (const uint8_t *)"";
}

const void *source_data(const struct source *s, const char *name)
{
    require(!s->scatter);
    return bytes_at(s->path, locked_mapping(s->path), name, s->offset, s->length);
}

/* ---- scattered bytes ------------------------------------------------------------------------------------------------------ */

static struct map strip_map(const struct scatter *x, const struct strip *t)
{
    struct map *m = &x->files->map[t->file];
    if (!m->at)
        *m = locked_mapping(x->files->path[t->file]);
    return *m;
}

/* The strip with a byte of the period of size * row bytes, which repeats for every outer index; `at` is a guess. */
static const struct strip *find_strip(const struct scatter *x, const struct strip *at, int64_t byte)
{
    int64_t index = byte / x->row;
    if (at == x->at + x->n || index < at->lo)
        at = x->at;
    while (index >= at->hi)
        at++;
    return at;
}

static void stream_strips(const struct scatter *x, const char *name, struct byte_range range, byte_taker *take, void *data)
{
    const struct strip *t = x->at;
    int64_t at = range.offset, end = at + range.bytes, period = x->size * x->row;
    while (at < end) {
        int64_t outer = at / period, byte = at - outer * period;
        t = find_strip(x, t, byte);
        int64_t stop = outer * period + t->hi * x->row, bytes = (stop < end ? stop : end) - at;
        int64_t offset = t->offset + outer * t->stride + byte - t->lo * x->row;
        take(data, bytes_at(x->files->path[t->file], strip_map(x, t), name, offset, bytes), (size_t)bytes);
        at += bytes;
    }
}

static void release_strips(const struct scatter *x)
{
    EACH (const struct strip, t, *x) {
        map_release(strip_map(x, t), (size_t)t->offset, (size_t)((x->outer - 1) * t->stride + (t->hi - t->lo) * x->row));
    }
}

/* ---- both ----------------------------------------------------------------------------------------------------------------- */

void source_stream(const struct source *s, const char *name, int n, const struct byte_range *range, byte_taker *take, void *data)
{
    const uint8_t *at = n && !s->scatter ? source_data(s, name) : NULL;
    for (int i = 0; i < n; i++) {
        const struct byte_range *r = &range[i];
        require(r->offset >= 0 && r->bytes >= 0 && r->offset <= s->length - r->bytes);
        if (s->scatter)
            stream_strips(s->scatter, name, *r, take, data);
        else if (r->bytes)
            take(data, at + r->offset, (size_t)r->bytes);
    }
}

/* Fills the table of the scatter's maps. */
void source_open(const struct source *s)
{
    for (int i = 0; s->scatter && i < s->scatter->n; i++)
        (void)strip_map(s->scatter, &s->scatter->at[i]);
}

void source_release(const struct source *s)
{
    if (s->scatter)
        release_strips(s->scatter);
    else
        map_release(locked_mapping(s->path), (size_t)s->offset, (size_t)s->length);
}

bool source_present(const struct source *s)
{
    for (int i = 0; s->scatter && i < s->scatter->n; i++)
        if (!path_exists(s->scatter->files->path[s->scatter->at[i].file]))
            return false;
    return s->scatter || path_exists(s->path);
}
