/* constant: the bytes of constants, inline or in files (source.c), and single elements. */
#include "ir/constant/constant.h"

#include "base/half.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static struct source constant_source(const struct constant *c)
{
    struct source s = c->source;
    s.length = c->bytes;
    return s;
}

static void append(void *to, const void *from, size_t bytes)
{
    uint8_t **at = to;
    memcpy(*at, from, bytes);
    *at += bytes;
}

/* Assembled in memory, until the constant is released. */
static const void *whole_data(const struct source *s, const char *name)
{
    struct scatter *x = s->scatter;
    if (!x->whole)
        x->whole = arena_new_within(x->arena);
    uint8_t *data = arena_alloc(x->whole, s->length ? (size_t)s->length : 1), *end = data;
    source_stream(s, name, 1, &(struct byte_range){0, s->length}, append, &end);
    return data;
}

static const void *made_data(struct constant *c)
{
    struct made *m = c->made;
    m->whole = arena_new_within(m->arena);
    void *to = arena_alloc(m->whole, c->bytes ? (size_t)c->bytes : 1);
    m->make(m, m->from ? constant_data(m->from, m->name) : NULL, to);
    if (m->from)
        constant_release(m->from);
    return c->data = to;
}

const void *constant_data(struct constant *c, const char *name)
{
    const void *data = __atomic_load_n(&c->data, __ATOMIC_ACQUIRE);
    if (data)
        return data;
    if (c->made)
        return made_data(c);
    if (!c->source.path && c->bytes)
        bug("constant '%s' has neither bytes nor a file", name);
    struct source s = constant_source(c);
    data = s.scatter ? whole_data(&s, name) : s.path ? source_data(&s, name) : (const void *)"";
    __atomic_store_n(&c->data, data, __ATOMIC_RELEASE);
    return data;
}

void constant_open(struct constant *c, const char *name)
{
    struct source s = constant_source(c);
    if (s.path && c->bytes)
        source_open(&s);
    else
        (void)constant_data(c, name);
    c->opened++;
}

void constant_close(struct constant *c)
{
    require(c->opened-- > 0);
}

void constant_release(struct constant *c)
{
    if (c->opened)
        return;
    struct source s = constant_source(c);
    if (c->made && c->made->whole && !c->held) {
        arena_free(c->made->whole);
        c->made->whole = NULL;
        c->data = NULL;
    }
    if (!s.path || !c->bytes)
        return;
    if (s.scatter && s.scatter->whole) {
        arena_free(s.scatter->whole);
        s.scatter->whole = NULL;
        c->data = NULL;
    }
    source_release(&s);
}

void constant_release_operands(struct constant *c)
{
    for (int i = 0; c->made && i < c->made->noperands; i++) {
        struct constant *x = c->made->operand[i];
        if (x->held || (x->made && !x->data))
            continue;
        constant_release_operands(x);
        constant_release(x);
    }
}

bool constant_equal(struct constant *c, const char *name, struct constant *other, const char *other_name)
{
    if (c == other)
        return true;
    if (c->dtype != other->dtype || c->rank != other->rank || c->bytes != other->bytes ||
        memcmp(c->dim, other->dim, (size_t)c->rank * sizeof *c->dim) != 0)
        return false;
    bool equal = memcmp(constant_data(c, name), constant_data(other, other_name), (size_t)c->bytes) == 0;
    constant_release(c);
    constant_release(other);
    return equal;
}

void constant_stream(struct constant *c, const char *name, int n, const struct byte_range *range, byte_taker *take, void *data)
{
    struct source s = constant_source(c);
    if (s.path) {
        source_stream(&s, name, n, range, take, data);
        return;
    }
    for (int i = 0; i < n; i++)
        if (range[i].bytes)
            take(data, (const uint8_t *)constant_data(c, name) + range[i].offset, (size_t)range[i].bytes);
}

bool constant_is_hole(const struct constant *c)
{
    enum { LEAST = 1 << 16 };
    return c->source.path && !c->source.scatter && c->bytes >= LEAST && file_is_hole(c->source.path, c->source.offset, c->bytes);
}

bool constant_present(const struct constant *c)
{
    const struct made *m = c->made;
    bool present = m ? !m->from || constant_present(m->from) : !c->source.path || source_present(&c->source);
    for (int i = 0; m && present && i < m->noperands; i++)
        present = constant_present(m->operand[i]);
    return present;
}

bool constant_is_weight(const struct constant *c)
{
    return c->dtype != DT_STRING && (c->origin || c->source.path || c->made) && (c->bytes >= WEIGHT_BYTES || c->trained);
}

int64_t constant_elements(const struct constant *c)
{
    int64_t n;
    if (!type_sizes_product(c->dim, c->rank, &n))
        bug("a constant of impossible size");
    return n;
}

/* Element i as raw bits, zero-extended. */
static uint64_t element_bits(struct constant *c, const char *name, int64_t i)
{
    size_t size = dtype_size(c->dtype);
    if (i < 0 || i >= constant_elements(c) || !size || size > 8)
        bug("constant '%s' (%s) has no element %" PRId64, name, dtype_name(c->dtype), i);
    uint64_t bits = 0;
    if (dtype_is_packed(c->dtype))
        dtype_unpack(c->dtype, constant_data(c, name), i, 1, &bits);
    else
        memcpy(&bits, (const uint8_t *)constant_data(c, name) + (size_t)i * size, size);
    return bits;
}

int64_t constant_int(struct constant *c, const char *name, int64_t i)
{
    uint64_t bits = element_bits(c, name, i);
    switch (c->dtype) {
    case DT_I2:
    case DT_I4:
    case DT_I8: return (int8_t)bits;
    case DT_I16: return (int16_t)bits;
    case DT_I32: return (int32_t)bits;
    case DT_BOOL: return bits != 0;
    case DT_I64:
    case DT_STRING:
    case DT_U2:
    case DT_U4:
    case DT_U8:
    case DT_U16:
    case DT_U32:
    case DT_U64: return (int64_t)bits;
    default: bug("constant '%s' holds %s, not integers", name, dtype_name(c->dtype));
    }
}

double constant_float(struct constant *c, const char *name, int64_t i)
{
    uint64_t bits = element_bits(c, name, i);
    double d;
    if (c->dtype == DT_STRING)
        return NAN;
    switch (c->dtype) {
    case DT_F32: return (double)f32_from_bits((uint32_t)bits);
    case DT_BF16: return (double)bf16_to_f32((uint16_t)bits);
    case DT_F16: return (double)f16_to_f32((uint16_t)bits);
    case DT_F64: memcpy(&d, &bits, sizeof d); return d;
    default: return dtype_is_small_float(c->dtype) ? (double)small_float_decode(c->dtype, (uint8_t)bits) : (double)constant_int(c, name, i);
    }
}
