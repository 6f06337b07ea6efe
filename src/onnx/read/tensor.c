/* TensorProto to constants: one layout (little-endian, fixed width) from raw bytes, typed fields or external data.
 *
 * The length by the dimensions is computed with overflow checks and compared with the actual length before anything is allocated or read.
 * Float16 and bfloat16 are bit patterns in int32_data, booleans and small integers as numbers. */
#include "ir/rank_meta.h"
#include "onnx/read/read.h"

#include <string.h>

#define MAX_TENSOR_BYTES ((int64_t)1 << 46)

enum dtype tensor_layout(struct arena *arena, const Onnx__TensorProto *t, const char *path, const char *what, int64_t *dim, int64_t *bytes)
{
    enum dtype dtype = (enum dtype)t->data_type;
    if (!dtype_size(dtype))
        fail("%s: %s has data type %s, which tpc does not handle", path, what, proto_data_type_name(arena, t->data_type));
    if (t->segment)
        fail("%s: %s is one segment of a tensor, which tpc does not handle", path, what);
    if (t->n_dims > MAX_RANK)
        fail("%s: %s has %zu dimensions, at most %d are handled", path, what, t->n_dims, MAX_RANK);
    for (size_t i = 0; i < t->n_dims; i++) {
        dim[i] = t->dims[i];
        if (dim[i] < 0)
            fail("%s: %s has dimension %zu of size %lld, expected 0 or more", path, what, i, (long long)dim[i]);
    }
    int64_t elements;
    if (!type_sizes_product(dim, (int)t->n_dims, &elements) || !dtype_packed_bytes(dtype, elements, bytes) || *bytes > MAX_TENSOR_BYTES)
        fail("%s: %s has dimensions whose product is out of range", path, what);
    return dtype;
}

/* ---- typed fields ---- */

static void truncate_i32(const int32_t *from, size_t n, size_t size, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)from[i];
        for (size_t k = 0; k < size; k++)
            *out++ = (uint8_t)(bits >> (8 * k));
    }
}

static void truncate_u64(const uint64_t *from, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)from[i];
        memcpy(out + i * sizeof bits, &bits, sizeof bits);
    }
}

static void copy_booleans(const int32_t *from, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = from[i] != 0;
}

struct typed {
    const char *field;
    size_t n;
    const void *at;
};

static struct typed typed_field(const Onnx__TensorProto *t, enum dtype dtype)
{
    switch (dtype) {
    case DT_F32: return (struct typed){"float_data", t->n_float_data, t->float_data};
    case DT_F64: return (struct typed){"double_data", t->n_double_data, t->double_data};
    case DT_I64: return (struct typed){"int64_data", t->n_int64_data, t->int64_data};
    case DT_STRING: return (struct typed){"string_data", t->n_string_data, t->string_data};
    case DT_U32:
    case DT_U64: return (struct typed){"uint64_data", t->n_uint64_data, t->uint64_data};
    default: return (struct typed){"int32_data", t->n_int32_data, t->int32_data};
    }
}

static void convert(enum dtype dtype, struct typed data, int64_t bytes, void *out)
{
    switch (dtype) {
    case DT_F32:
    case DT_F64:
    case DT_I64:
    case DT_U64: memcpy(out, data.at, (size_t)bytes); break;
    case DT_U32: truncate_u64(data.at, data.n, out); break;
    case DT_BOOL: copy_booleans(data.at, data.n, out); break;
    default: truncate_i32(data.at, data.n, dtype_size(dtype), out); break;
    }
}

int64_t tensor_string(const ProtobufCBinaryData *from, const char *path, const char *what, size_t i)
{
    const char *text = (const char *)from->data, *fault = string_fault(text, from->len);
    if (fault)
        fail("%s: %s: string %zu %s", path, what, i, fault);
    return string_number(text, from->len);
}

static void take_strings(const Onnx__TensorProto *t, const char *path, const char *what, int64_t *out)
{
    for (size_t i = 0; i < t->n_string_data; i++)
        out[i] = tensor_string(&t->string_data[i], path, what, i);
}

void tensor_content(const Onnx__TensorProto *t, enum dtype dtype, int64_t bytes, const char *path, const char *what, void *out)
{
    if (t->has_raw_data && dtype == DT_STRING)
        fail("%s: %s has raw data, expected strings in string_data", path, what);
    if (t->has_raw_data) {
        if ((int64_t)t->raw_data.len != bytes)
            fail("%s: %s has %zu bytes of raw data, its type and dimensions need %lld", path, what, t->raw_data.len, (long long)bytes);
        if (bytes)
            memcpy(out, t->raw_data.data, (size_t)bytes);
        return;
    }
    struct typed data = typed_field(t, dtype);
    int64_t elements = bytes / (int64_t)dtype_size(dtype);
    if ((int64_t)data.n != elements)
        fail("%s: %s has %zu elements in %s, its dimensions need %lld", path, what, data.n, data.field, (long long)elements);
    if (dtype == DT_STRING)
        take_strings(t, path, what, out);
    else if (elements)
        convert(dtype, data, bytes, out);
}

/* ---- constants ---- */

/* In-message data are small or typed: the length is checked against the message before the copy is allocated. */
static void *inline_data(struct import *im, const Onnx__TensorProto *t, const struct constant *c, const char *what)
{
    size_t held = t->has_raw_data ? t->raw_data.len : typed_field(t, c->dtype).n * dtype_size(c->dtype);
    void *out = arena_alloc(im->arena, (int64_t)held == c->bytes && held ? held : 1);
    tensor_content(t, c->dtype, c->bytes, im->path, what, out);
    return out;
}

/* NULL: the tensor has no digest. */
static const struct constant_digest *stated_digest(struct import *im, const Onnx__TensorProto *t, const char *what)
{
    for (size_t i = 0; i < t->n_metadata_props; i++) {
        if (strcmp(proto_text_or(t->metadata_props[i]->key, ""), RANK_META_DIGEST))
            continue;
        struct constant_digest *d = NEW(im->arena, struct constant_digest);
        if (!digest_parse(proto_text_or(t->metadata_props[i]->value, ""), d))
            fail("%s: %s has the digest '%s', expected two of 16 hexadecimal digits", im->path, what,
                 proto_text_or(t->metadata_props[i]->value, ""));
        return d;
    }
    return NULL;
}

/* In-message data have been read anyway. */
static void check_digest(struct import *im, const Onnx__TensorProto *t, const struct constant *c, const char *what)
{
    const struct constant_digest *stated = stated_digest(im, t, what);
    if (stated)
        digest_compare(im->path, what, stated->whole, tensor_digest_of(t, c->data, c->bytes).whole);
}

struct constant *tensor_constant(struct import *im, const Onnx__TensorProto *t, const char *what)
{
    struct constant *c = NEW(im->arena, struct constant);
    c->dtype = tensor_layout(im->tmp, t, im->path, what, c->dim, &c->bytes);
    c->rank = (int)t->n_dims;
    if (!proto_is_external(t)) {
        c->data = inline_data(im, t, c, what);
        check_digest(im, t, c, what);
        return c;
    }
    if (c->dtype == DT_STRING)
        fail("%s: %s keeps its strings in another file, expected string_data", im->path, what);
    c->source = external_source(&im->external, t, what, c->bytes);
    c->digest = stated_digest(im, t, what);
    if (!c->bytes)
        c->data = arena_alloc(im->arena, 1);
    return c;
}
