/* Single tensors: TensorProto files as in ONNX's test data, and numpy's .npy.
 *
 * .npy: magic, version, a Python dict literal with descr, fortran_order and shape, padded to 64 bytes, then the elements. numpy has
 * no bfloat16; the ml_dtypes package stores it as '<V2', and so do we. */
#include "onnx/read/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- TensorProto ---- */

struct tensor tensor_of_proto(struct arena *arena, const Onnx__TensorProto *t, const char *path, const char *label, size_t most)
{
    struct tensor out = {.rank = (int)t->n_dims};
    int64_t bytes;
    out.dtype = tensor_layout(arena, t, path, label, out.dim, &bytes);
    if (t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        fail("%s: %s keeps its data in another file, expected it here", path, label);
    if (bytes > 64 * (int64_t)most)
        fail("%s: %s has dimensions for %lld bytes, the file has %zu", path, label, (long long)bytes, most);
    out.packed = dtype_is_packed(out.dtype);
    out.data = arena_alloc(arena, bytes ? (size_t)bytes : 1);
    tensor_content(t, out.dtype, bytes, path, label, out.data);
    return tensor_unpacked(arena, &out);
}

struct tensor tensor_read_pb(struct arena *arena, const char *path, const char **name)
{
    static const char what[] = "a TensorProto file";
    struct arena *tmp = arena_new();
    struct map file = map_file(path);
    if (file.bytes)
        wire_check(tmp, path, what, file, &onnx__tensor_proto__descriptor, NULL);
    const Onnx__TensorProto *t = wire_unpack(tmp, path, what, file, &onnx__tensor_proto__descriptor);
    const char *label = arena_printf(tmp, "tensor '%s'", proto_text_or(t->name, ""));
    struct tensor out = tensor_of_proto(arena, t, path, label, file.bytes);
    if (name)
        *name = arena_strdup(arena, proto_text_or(t->name, ""));
    map_close(file);
    arena_free(tmp);
    return out;
}

/* ---- .npy: types ---- */

static const struct {
    enum dtype dtype;
    const char *descr;
} descrs[] = {
    {DT_F32, "<f4"}, {DT_F64, "<f8"}, {DT_F16, "<f2"}, {DT_BF16, "<V2"}, {DT_I64, "<i8"}, {DT_I32, "<i4"},  {DT_I16, "<i2"},
    {DT_I8, "|i1"},  {DT_U64, "<u8"}, {DT_U32, "<u4"}, {DT_U16, "<u2"},  {DT_U8, "|u1"},  {DT_BOOL, "|b1"}, {DT_U8, "|V1"},
};

static enum dtype descr_parse(const char *at, size_t n)
{
    for (size_t i = 0; i < sizeof descrs / sizeof *descrs; i++) {
        bool order = n == 3 &&
            (at[0] == descrs[i].descr[0] || (at[0] == '=' && descrs[i].descr[0] == '<') || (at[0] == '|' && at[1] == 'V') ||
             (at[0] == '<' && at[2] == '1'));
        if (order && memcmp(at + 1, descrs[i].descr + 1, 2) == 0)
            return descrs[i].dtype;
    }
    return DT_NONE;
}

/* The length of each string, '<U5': four bytes per character, padded with NULs. */
static enum dtype descr_strings(const char *at, size_t n, int64_t *chars)
{
    *chars = 0;
    for (size_t i = 2; i < n; i++)
        if (at[i] < '0' || at[i] > '9' || !i64_mul(*chars, 10, chars) || !i64_add(*chars, at[i] - '0', chars))
            return DT_NONE;
    return n > 2 && at[0] == '<' && at[1] == 'U' && *chars ? DT_STRING : DT_NONE;
}

/* Types that numpy lacks: integers of few bits are written as bytes, small floats as their bits. */
static const char *small_descr(enum dtype dtype)
{
    return dtype_is_small(dtype) ? dtype == DT_I2 || dtype == DT_I4 ? "|i1" : "|u1" : NULL;
}

/* ---- .npy: the header ---- */

struct header {
    const char *path;
    int64_t chars; /* of each string */
    const char *at, *end;
};

static _Noreturn void bad_header(const struct header *h, const char *why)
{
    fail("%s: not a .npy file that tpc can read: %s", h->path, why);
}

static void skip_space(struct header *h)
{
    while (h->at < h->end && strchr(" \n\t\r", *h->at) && *h->at)
        h->at++;
}

static bool accept_char(struct header *h, char c)
{
    skip_space(h);
    if (h->at >= h->end || *h->at != c)
        return false;
    h->at++;
    return true;
}

static void expect_char(struct header *h, char c)
{
    if (!accept_char(h, c))
        bad_header(h, "its header is malformed");
}

static const char *read_quoted(struct header *h, size_t *n)
{
    skip_space(h);
    if (h->at >= h->end || (*h->at != '\'' && *h->at != '"'))
        bad_header(h, "its header is malformed");
    char quote = *h->at++;
    const char *start = h->at;
    while (h->at < h->end && *h->at != quote)
        h->at++;
    *n = (size_t)(h->at - start);
    expect_char(h, quote);
    return start;
}

static bool accept_word(struct header *h, const char *word)
{
    skip_space(h);
    size_t n = strlen(word);
    if ((size_t)(h->end - h->at) < n || memcmp(h->at, word, n))
        return false;
    h->at += n;
    return true;
}

static int64_t read_npy_size(struct header *h)
{
    int64_t n = 0;
    skip_space(h);
    if (h->at >= h->end || *h->at < '0' || *h->at > '9')
        bad_header(h, "its shape is malformed");
    for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
        if (!i64_mul(n, 10, &n) || !i64_add(n, *h->at - '0', &n))
            bad_header(h, "its shape is out of range");
    return n;
}

static void read_shape(struct header *h, struct tensor *t)
{
    expect_char(h, '(');
    t->rank = 0;
    while (!accept_char(h, ')')) {
        if (t->rank == MAX_RANK)
            bad_header(h, "it has more than 8 dimensions");
        t->dim[t->rank++] = read_npy_size(h);
        if (!accept_char(h, ',')) {
            expect_char(h, ')');
            return;
        }
    }
}

static void read_header_entry(struct header *h, struct tensor *t, bool *fortran, unsigned *seen)
{
    size_t n, d;
    const char *key = read_quoted(h, &n);
    expect_char(h, ':');
    if (n == 5 && memcmp(key, "descr", n) == 0) {
        const char *descr = read_quoted(h, &d);
        t->dtype = descr_parse(descr, d);
        if (t->dtype == DT_NONE)
            t->dtype = descr_strings(descr, d, &h->chars);
        if (t->dtype == DT_NONE)
            fail("%s: not a .npy file that tpc can read: its elements are '%.*s'%s", h->path, d > 20 ? 20 : (int)d, descr,
                 d == 2 && memcmp(descr, "|O", 2) == 0 ? " (Python objects); strings are '<U', as x.astype(str) has them" : "");
        *seen |= 1;
    } else if (n == 13 && memcmp(key, "fortran_order", n) == 0) {
        *fortran = accept_word(h, "True");
        if (!*fortran && !accept_word(h, "False"))
            bad_header(h, "its header is malformed");
        *seen |= 2;
    } else if (n == 5 && memcmp(key, "shape", n) == 0) {
        read_shape(h, t);
        *seen |= 4;
    } else
        bad_header(h, "its header has an unknown key");
}

/* Offset of the elements. */
static size_t read_header(const char *path, struct map file, struct tensor *t, bool *fortran, int64_t *chars)
{
    struct header h = {.path = path};
    if (file.bytes < 12 || memcmp(file.at, "\x93NUMPY", 6))
        bad_header(&h, "it does not begin with the magic string");
    unsigned major = file.at[6];
    if (major < 1 || major > 3)
        bad_header(&h, "its version is not 1, 2 or 3");
    size_t begin = major == 1 ? 10 : 12, length = file.at[8] | (size_t)file.at[9] << 8;
    if (major > 1)
        length |= (size_t)file.at[10] << 16 | (size_t)file.at[11] << 24;
    if (length > file.bytes - begin)
        bad_header(&h, "its header is cut off");
    h.at = (const char *)file.at + begin;
    h.end = h.at + length;
    unsigned seen = 0;
    expect_char(&h, '{');
    while (!accept_char(&h, '}')) {
        read_header_entry(&h, t, fortran, &seen);
        if (!accept_char(&h, ',')) {
            expect_char(&h, '}');
            break;
        }
    }
    if (seen != 7)
        bad_header(&h, "its header lacks descr, fortran_order or shape");
    *chars = h.chars;
    return begin + length;
}

/* ---- .npy: the elements ---- */

/* Column-major to row-major: walk the output in order, keeping the source position. */
static void from_fortran(const struct tensor *t, const uint8_t *from, int64_t elements, uint8_t *out)
{
    size_t size = dtype_size(t->dtype);
    int64_t stride[MAX_RANK] = {0}, index[MAX_RANK] = {0}, step = 1, at = 0;
    for (int d = 0; d < t->rank; step *= t->dim[d], d++)
        stride[d] = step;
    for (int64_t i = 0; i < elements; i++) {
        memcpy(out + (size_t)i * size, from + (size_t)at * size, size);
        for (int d = t->rank - 1; d >= 0; d--) {
            at += stride[d];
            if (++index[d] < t->dim[d])
                break;
            at -= stride[d] * t->dim[d];
            index[d] = 0;
        }
    }
}

/* The tensor, whose data are in the file. chars: characters of each string; 0: not strings. */
static struct tensor open_npy(const char *path, struct map file, bool *fortran, int64_t *chars)
{
    struct tensor t = {.dtype = DT_NONE};
    *fortran = false;
    size_t begin = read_header(path, file, &t, fortran, chars);
    int64_t elements, bytes, size = (int64_t)dtype_size(t.dtype);
    if ((*chars && !i64_mul(*chars, 4, &size)) || !type_sizes_product(t.dim, t.rank, &elements) || !i64_mul(elements, size, &bytes))
        fail("%s: its shape is out of range", path);
    if (bytes != (int64_t)(file.bytes - begin))
        fail("%s: it has %zu bytes of elements, its shape needs %lld", path, file.bytes - begin, (long long)bytes);
    t.data = (void *)(uintptr_t)(file.at + begin);
    return t;
}

static uint32_t char_at(const uint8_t *from)
{
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

/* The number of a string of at most n characters. text: a buffer for them. */
static int64_t read_string(const char *path, const uint8_t *from, int64_t n, char *text)
{
    size_t bytes = 0;
    while (n && !char_at(from + 4 * (n - 1)))
        n--;
    for (int64_t i = 0; i < n; i++) {
        if (!string_is_char(char_at(from + 4 * i)))
            fail("%s: a string holds U+%04X, which is no character", path, (unsigned)char_at(from + 4 * i));
        bytes += (size_t)string_put_char(char_at(from + 4 * i), text + bytes);
    }
    return string_number(text, bytes);
}

/* The numbers of all strings, in the order of the file. */
static const uint8_t *read_strings(struct arena *a, const char *path, const uint8_t *from, int64_t elements, int64_t chars)
{
    int64_t *number = NEWN(a, int64_t, elements + 1);
    char *text = arena_array(a, (size_t)chars, 4);
    for (int64_t i = 0; i < elements; i++)
        number[i] = read_string(path, from + 4 * chars * i, chars, text);
    return (const uint8_t *)number;
}

struct tensor tensor_read_npy(struct arena *arena, const char *path)
{
    struct map file = map_file(path);
    bool fortran;
    int64_t chars;
    struct tensor t = open_npy(path, file, &fortran, &chars);
    const uint8_t *from = chars ? read_strings(arena, path, t.data, tensor_elements(&t), chars) : t.data;
    size_t bytes = tensor_bytes(&t);
    t.data = arena_alloc(arena, bytes ? bytes : 1);
    if (bytes && fortran)
        from_fortran(&t, from, tensor_elements(&t), t.data);
    else if (bytes)
        memcpy(t.data, from, bytes);
    map_close(file);
    return t;
}

struct tensor tensor_map_npy(const char *path)
{
    bool fortran;
    int64_t chars;
    struct tensor t = open_npy(path, map_file(path), &fortran, &chars);
    if (chars)
        fail("%s: holds strings, expected numbers", path);
    if (fortran && t.rank > 1)
        fail("%s: is in Fortran order, expected C order: numpy.ascontiguousarray gives it", path);
    return t;
}

/* Length of the longest string; at least 1, because numpy has no strings of length 0. */
static int64_t longest_string(const struct tensor *t)
{
    const int64_t *number = t->data;
    int64_t most = 1;
    for (int64_t i = 0, n; i < tensor_elements(t); i++) {
        const char *at = string_text(number[i]);
        for (n = 0; string_next_char(&at); n++) {
        }
        most = n > most ? n : most;
    }
    return most;
}

static const char *descr_of(struct arena *a, const char *path, const struct tensor *t)
{
    enum dtype dtype = t->dtype;
    if (dtype == DT_STRING)
        return arena_printf(a, "<U%lld", (long long)longest_string(t));
    for (size_t i = 0; i < sizeof descrs / sizeof *descrs; i++)
        if (descrs[i].dtype == dtype)
            return descrs[i].descr;
    if (small_descr(dtype))
        return small_descr(dtype);
    fail("%s: can't be written: .npy has no type for %s", path, dtype_name(dtype));
}

/* Shape as a Python tuple, then the header padded so that elements begin at a multiple of 64. */
static size_t format_header(char *out, size_t room, const char *descr, const struct tensor *t)
{
    size_t n = (size_t)snprintf(out, room, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < t->rank; i++)
        n += (size_t)snprintf(out + n, room - n, i || t->rank == 1 ? (t->rank == 1 ? "%lld," : ", %lld") : "%lld", (long long)t->dim[i]);
    n += (size_t)snprintf(out + n, room - n, "), }");
    while ((10 + n + 1) % 64)
        out[n++] = ' ';
    out[n++] = '\n';
    return n;
}

static void put_strings(struct out *out, const struct tensor *t)
{
    const int64_t *number = t->data;
    int64_t most = longest_string(t);
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        const char *at = string_text(number[i]);
        for (int64_t k = 0; k < most; k++) {
            uint32_t c = string_next_char(&at);
            out_put(out, (uint8_t[]){(uint8_t)c, (uint8_t)(c >> 8), (uint8_t)(c >> 16), 0}, 4);
        }
    }
}

void tensor_write_npy(const char *path, const struct tensor *t)
{
    char text[512];
    struct arena *tmp = arena_new();
    size_t length = format_header(text, sizeof text - 64, descr_of(tmp, path, t), t);
    uint8_t head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)(length & 255), (uint8_t)(length >> 8)};
    struct out out;
    out_open_whole(tmp, &out, path);
    out_put(&out, head, sizeof head);
    out_put(&out, text, length);
    if (t->dtype == DT_STRING)
        put_strings(&out, t);
    else
        out_put(&out, t->data, tensor_bytes(t));
    out_close(&out);
    arena_free(tmp);
}
