/* safetensors: files of named tensors: the length of a header (8 bytes), the header in JSON, the bytes of all tensors. The header has each
 * tensor's type, shape and byte range, and texts under "__metadata__". */
#include "onnx/onnx.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#define TEXTS "__metadata__"
#define DIGEST "xxh3" /* the first text: the file's digest, computed with zeros for its own digits */
#define DIGITS "0000000000000000"
#define HEAD "{\"" TEXTS "\":{\"" DIGEST "\":\""
enum { LENGTH = 8, DIGEST_AT = LENGTH + sizeof HEAD - 1, DIGEST_END = DIGEST_AT + sizeof DIGITS - 1 };

/* ---- reading ---- */

static const struct {
    const char *name;
    enum dtype dtype;
} types[] = {{"F32", DT_F32}, {"F16", DT_F16}, {"BF16", DT_BF16}, {"F64", DT_F64}, {"I64", DT_I64}, {"I32", DT_I32},  {"I16", DT_I16},
             {"I8", DT_I8},   {"U64", DT_U64}, {"U32", DT_U32},   {"U16", DT_U16}, {"U8", DT_U8},   {"BOOL", DT_BOOL}};

static enum dtype type_named(const char *name)
{
    int i = name ? NAMED_ROW(types, name) : -1;
    return i < 0 ? DT_NONE : types[i].dtype;
}

/* NULL: the format lacks the type. */
static const char *type_name(enum dtype dtype)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].dtype == dtype)
            return types[i].name;
    return NULL;
}

_Noreturn static void bad_file(const char *path, const char *why)
{
    fail("%s: not a safetensors file that tpc can read: %s", path, why);
}

static struct tensor read_entry(const char *path, const char *name, const json_t *entry, struct map data)
{
    const json_t *shape = json_object_get(entry, "shape"), *at = json_object_get(entry, "data_offsets");
    struct tensor t = {.dtype = type_named(json_string_value(json_object_get(entry, "dtype"))), .rank = (int)json_array_size(shape)};
    int64_t from = json_integer_value(json_array_get(at, 0)), to = json_integer_value(json_array_get(at, 1)), n, bytes;
    if (!json_is_array(shape) || json_array_size(shape) > MAX_RANK || !json_is_array(at) || t.dtype == DT_NONE)
        fail("%s: tensor '%s' has no type that tpc knows, no shape of at most %d sizes, or no place", path, name, MAX_RANK);
    for (int d = 0; d < t.rank; d++) {
        t.dim[d] = json_integer_value(json_array_get(shape, (size_t)d));
        if (!json_is_integer(json_array_get(shape, (size_t)d)) || t.dim[d] < 0)
            fail("%s: tensor '%s' has a size that is no integer of 0 or more", path, name);
    }
    if (!type_sizes_product(t.dim, t.rank, &n) || !i64_mul(n, (int64_t)dtype_size(t.dtype), &bytes) || from < 0 || to < from ||
        to > (int64_t)data.bytes || to - from != bytes)
        fail("%s: tensor '%s' lies at bytes %" PRId64 " to %" PRId64 " of %zu, which is not its size", path, name, from, to, data.bytes);
    t.data = (void *)(uintptr_t)(data.at + from);
    return t;
}

static void read_header(struct arena *a, struct safetensors *s, const json_t *root, struct map data)
{
    const char *key;
    json_t *value;
    size_t end = 0;
    s->tensor = NEWN(a, struct tensor, json_object_size(root));
    s->name = NEWN(a, const char *, json_object_size(root));
    json_object_foreach((json_t *)(uintptr_t)root, key, value)
    {
        if (strcmp(key, TEXTS) == 0)
            continue;
        s->name[s->n] = arena_strdup(a, key);
        s->tensor[s->n] = read_entry(s->path, key, value, data);
        name_index_put(a, &s->index, s->name[s->n], s->n);
        size_t to = (size_t)((const uint8_t *)s->tensor[s->n].data - data.at) + tensor_bytes(&s->tensor[s->n]);
        end = to > end ? to : end;
        s->n++;
    }
    if (end != data.bytes)
        fail("%s: has %zu bytes of data, and its tensors take %zu", s->path, data.bytes, end);
    json_object_foreach(json_object_get(root, TEXTS), key, value)
    {
        if (!json_is_string(value))
            fail("%s: its '%s' is not a text", s->path, key);
        struct named_text text = {arena_strdup(a, key), arena_strdup(a, json_string_value(value))};
        VEC_PUSH(a, &s->texts, text);
    }
}

struct safetensors *safetensors_read(struct arena *a, const char *path)
{
    struct safetensors *s = NEW(a, struct safetensors);
    struct map m = map_file(path);
    json_error_t error;
    uint64_t n = 0;
    s->path = path;
    s->file = m;
    if (m.bytes < LENGTH)
        bad_file(path, "it is too short");
    for (int i = 0; i < LENGTH; i++)
        n |= (uint64_t)m.at[i] << 8 * i;
    if (n > m.bytes - LENGTH)
        bad_file(path, "its header is cut off");
    json_t *root = json_loadb((const char *)m.at + LENGTH, (size_t)n, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(root))
        bad_file(path, "its header is not a JSON object");
    read_header(a, s, root, (struct map){m.at + LENGTH + n, m.bytes - LENGTH - (size_t)n});
    json_decref(root);
    return s;
}

const struct tensor *safetensors_find(const struct safetensors *s, const char *name)
{
    int at = name_index_find(&s->index, name);
    return at < 0 ? NULL : &s->tensor[at];
}

const char *safetensors_text(const struct safetensors *s, const char *key)
{
    int i = NAMED_AT(s->texts.at, s->texts.n, key);
    return i < 0 ? NULL : s->texts.at[i].text;
}

void safetensors_check(const struct safetensors *s, const char *format)
{
    const char *found = safetensors_text(s, "format"), *digest = safetensors_text(s, DIGEST);
    bool placed = s->file.bytes > DIGEST_END && memcmp(s->file.at + LENGTH, HEAD, sizeof HEAD - 1) == 0;
    struct arena *tmp = arena_new();
    struct digest *own = digest_begin(tmp);
    if (!found || strcmp(found, format) != 0)
        fail("%s: its format is '%s', expected '%s': not written by this version of tpc-run", s->path, found ? found : "", format);
    if (!placed || !digest)
        fail("%s: has no digest of its bytes where tpc-run writes one", s->path);
    digest_add(own, s->file.at, DIGEST_AT);
    digest_add(own, DIGITS, sizeof DIGITS - 1);
    digest_add(own, s->file.at + DIGEST_END, s->file.bytes - DIGEST_END);
    const char *is = arena_printf(tmp, "%016" PRIx64, digest_value(own));
    if (strcmp(is, digest) != 0)
        fail("%s: is not as it was written: expected digest %s, found %s", s->path, digest, is);
    arena_free(tmp);
}

/* ---- writing ---- */

static json_t *entry_of(const char *path, const char *name, const struct tensor *t, int64_t *at)
{
    json_t *shape = json_array();
    int64_t from = *at;
    const char *type = type_name(t->dtype);
    for (int d = 0; d < t->rank; d++)
        json_array_append_new(shape, json_integer(t->dim[d]));
    if (!type)
        fail("%s: '%s' is %s, for which safetensors has no name", path, name, dtype_name(t->dtype));
    if (!i64_add(from, (int64_t)tensor_bytes(t), at))
        fail("%s: its tensors are too large", path);
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", type, "shape", shape, "data_offsets", (json_int_t)from, (json_int_t)*at);
}

bool safetensors_takes(const char *text)
{
    json_t *v = json_string(text);
    bool takes = v;
    json_decref(v);
    return takes;
}

void safetensors_begin(struct out *out, int n, const char *const *name, const struct tensor *tensor, int texts,
                       const struct named_text *text)
{
    json_t *root = json_object(), *meta = json_pack("{s:s}", DIGEST, DIGITS);
    int64_t at = 0;
    for (int i = 0; i < texts; i++)
        if (json_object_set_new(meta, text[i].key, json_string(text[i].text)) != 0)
            fail("%s: its '%s' is not UTF-8, which the file's header must be", out->path, text[i].key);
    json_object_set_new(root, TEXTS, meta);
    for (int i = 0; i < n; i++)
        if (json_object_set_new(root, name[i], entry_of(out->path, name[i], &tensor[i], &at)) != 0)
            fail("%s: a tensor's name is not UTF-8", out->path);
    struct arena *tmp = arena_new();
    size_t size = json_dumpb(root, NULL, 0, JSON_COMPACT);
    uint64_t length = (size + 7) / 8 * 8;
    char *header = arena_alloc(tmp, size + 1);
    require(json_dumpb(root, header, size, JSON_COMPACT) == size);
    uint8_t bytes[LENGTH];
    for (int i = 0; i < LENGTH; i++)
        bytes[i] = (uint8_t)(length >> 8 * i);
    out_put(out, bytes, sizeof bytes);
    out_put(out, header, size);
    out_put(out, "        ", length - size);
    arena_free(tmp);
    json_decref(root);
}

void safetensors_end(struct out *out)
{
    char digits[sizeof DIGITS];
    (void)snprintf(digits, sizeof digits, "%016" PRIx64, out_digest(out));
    if (pwrite(fileno(out->file), digits, sizeof digits - 1, DIGEST_AT) != (ssize_t)sizeof digits - 1)
        out_fail(out);
}

/* ---- a file that is not complete ---- */

enum { MOST_MARK = 256 };

/* The start of a header, without its length. Returns the bytes to write: all but the final zero. */
static size_t write_mark(char *to, const char *format)
{
    int n = snprintf(to, MOST_MARK, "%*s" HEAD DIGITS "\",\"format\":\"%s\"", LENGTH, "", format);
    require(n > 0 && n < MOST_MARK);
    return (size_t)n;
}

bool safetensors_mark(FILE *file, const char *format)
{
    char mark[MOST_MARK];
    size_t n = write_mark(mark, format);
    return fwrite(mark, 1, n, file) == n && fflush(file) == 0 && fseeko(file, 0, SEEK_SET) == 0;
}

bool safetensors_is_begun(int file, const char *format)
{
    char mark[MOST_MARK], found[MOST_MARK];
    size_t n = write_mark(mark, format);
    if (pread(file, found, n, 0) != (ssize_t)n)
        return false;
    memcpy(found + DIGEST_AT, DIGITS, sizeof DIGITS - 1);
    return memcmp(found + LENGTH, mark + LENGTH, n - LENGTH) == 0;
}
