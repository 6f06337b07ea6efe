/* Constants: their bytes, inline or in an external file, and single elements.
 *
 * An external file is mapped whole at first use and stays mapped for the life of the process; all constants of one file share the
 * mapping. Ranks that are threads of one process may ask at the same time, hence the lock. */
#include "base/half.h"
#include "ir/ir.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#define uthash_fatal(message) fail("out of memory: %s", message)
#include <uthash.h>

struct mapped { const char *path; struct map map; UT_hash_handle hh; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct arena *files_arena;    /* guarded by lock, as is files */
static struct mapped *files;

/* The mapping of a file; at NULL when it can't be opened. Called with the lock held. */
static struct map mapping(const char *path)
{
    struct mapped *m = NULL;
    HASH_FIND_STR(files, path, m);
    if (m)
        return m->map;
    struct map map;
    if (!try_map_file(path, &map))
        return (struct map){NULL, 0};
    if (!files_arena)
        files_arena = arena_new();
    m = NEW(files_arena, struct mapped);
    m->path = arena_strdup(files_arena, path);
    m->map = map;
    HASH_ADD_KEYPTR(hh, files, m->path, strlen(m->path), m);
    return map;
}

static struct map locked_mapping(const char *path)
{
    pthread_mutex_lock(&lock);
    struct map map = mapping(path);
    pthread_mutex_unlock(&lock);
    return map;
}

static const void *external_data(const struct constant *c, const char *name)
{
    int64_t end;
    struct map map = locked_mapping(c->source.path);
    if (!map.at && !path_exists(c->source.path))
        fail("%s: the external data of tensor '%s' is missing", c->source.path, name);
    if (c->bytes < 0 || c->source.offset < 0 || !add_i64(c->source.offset, c->bytes, &end) || (uint64_t)end > map.bytes)
        fail("%s: tensor '%s' needs %" PRId64 " bytes at offset %" PRId64 ", and the file has %zu", c->source.path, name, c->bytes,
             c->source.offset, map.bytes);
    return c->bytes ? map.at + c->source.offset : (const void *)"";
}

const void *constant_data(struct constant *c, const char *name)
{
    const void *data = __atomic_load_n(&c->data, __ATOMIC_ACQUIRE);
    if (data)
        return data;
    if (!c->source.path && c->bytes)
        bug("constant '%s' has neither bytes nor a file", name);
    data = c->source.path ? external_data(c, name) : (const void *)"";
    __atomic_store_n(&c->data, data, __ATOMIC_RELEASE);
    return data;
}

void constant_release(struct constant *c)
{
    const void *data = __atomic_load_n(&c->data, __ATOMIC_ACQUIRE);
    if (!data || !c->source.path || !c->bytes)
        return;
    struct map map = locked_mapping(c->source.path);
    if (!map.at || (const void *)(map.at + c->source.offset) != data)
        bug("constant data from %s is not where the file is mapped", c->source.path);
    map_release(map, (size_t)c->source.offset, (size_t)c->bytes);
}

int64_t constant_elements(const struct constant *c)
{
    int64_t n;
    if (!sizes_product(c->dim, c->rank, &n))
        bug("a constant of impossible size");
    return n;
}

enum dtype value_storage(const struct value *v) { return v->stored == DT_NONE ? v->type.dtype : v->stored; }

/* Element i as raw bits, zero-extended. */
static uint64_t element_bits(struct constant *c, const char *name, int64_t i)
{
    size_t size = dtype_size(c->dtype);
    if (i < 0 || i >= constant_elements(c) || !size || size > 8)
        bug("constant '%s' (%s) has no element %" PRId64, name, dtype_name(c->dtype), i);
    uint64_t bits = 0;
    memcpy(&bits, (const uint8_t *)constant_data(c, name) + (size_t)i * size, size);
    return bits;
}

int64_t constant_int(struct constant *c, const char *name, int64_t i)
{
    uint64_t bits = element_bits(c, name, i);
    switch (c->dtype) {
    case DT_I8: return (int8_t)bits;
    case DT_I16: return (int16_t)bits;
    case DT_I32: return (int32_t)bits;
    case DT_BOOL: return bits != 0;
    case DT_I64: case DT_U8: case DT_U16: case DT_U32: case DT_U64: return (int64_t)bits;
    default: bug("constant '%s' holds %s, not integers", name, dtype_name(c->dtype));
    }
}

double constant_float(struct constant *c, const char *name, int64_t i)
{
    uint64_t bits = element_bits(c, name, i);
    double d;
    switch (c->dtype) {
    case DT_F32: return (double)bits_f32((uint32_t)bits);
    case DT_BF16: return (double)bf16_to_f32((uint16_t)bits);
    case DT_F16: return (double)f16_to_f32((uint16_t)bits);
    case DT_F64: memcpy(&d, &bits, sizeof d); return d;
    default: return (double)constant_int(c, name, i);
    }
}
