/* type: element types and tensor types.
 *
 * A type prints as "f32[B, S, 64]": the element type's name, then the dimension expressions in brackets. The rank is at most MAX_RANK,
 * which both the loader and this parser enforce. */
#include "algebra/dim/cell.h"

#include <string.h>

enum dtype_kind { KIND_NONE, KIND_FLOAT, KIND_SMALL_FLOAT, KIND_UNSIGNED, KIND_SIGNED, KIND_BOOL };

struct dtype_row {
    const char *name;
    size_t size; /* bytes of an element of a value */
    int bits;    /* of an element of a constant, and in files */
    enum dtype_kind kind;
};

static const struct dtype_row dtype_rows[] = {
    [DT_NONE] = {"none", 0, 0, KIND_NONE},
    [DT_F32] = {"f32", 4, 32, KIND_FLOAT},
    [DT_U8] = {"u8", 1, 8, KIND_UNSIGNED},
    [DT_I8] = {"i8", 1, 8, KIND_SIGNED},
    [DT_U16] = {"u16", 2, 16, KIND_UNSIGNED},
    [DT_I16] = {"i16", 2, 16, KIND_SIGNED},
    [DT_I32] = {"i32", 4, 32, KIND_SIGNED},
    [DT_I64] = {"i64", 8, 64, KIND_SIGNED},
    [DT_STRING] = {"string", 8, 64, KIND_NONE},
    [DT_BOOL] = {"bool", 1, 8, KIND_BOOL},
    [DT_F16] = {"f16", 2, 16, KIND_FLOAT},
    [DT_F64] = {"f64", 8, 64, KIND_FLOAT},
    [DT_U32] = {"u32", 4, 32, KIND_UNSIGNED},
    [DT_U64] = {"u64", 8, 64, KIND_UNSIGNED},
    [DT_BF16] = {"bf16", 2, 16, KIND_FLOAT},
    [DT_F8E4M3FN] = {"f8e4m3fn", 1, 8, KIND_SMALL_FLOAT},
    [DT_F8E4M3FNUZ] = {"f8e4m3fnuz", 1, 8, KIND_SMALL_FLOAT},
    [DT_F8E5M2] = {"f8e5m2", 1, 8, KIND_SMALL_FLOAT},
    [DT_F8E5M2FNUZ] = {"f8e5m2fnuz", 1, 8, KIND_SMALL_FLOAT},
    [DT_U4] = {"u4", 1, 4, KIND_UNSIGNED},
    [DT_I4] = {"i4", 1, 4, KIND_SIGNED},
    [DT_F4E2M1] = {"f4e2m1", 1, 4, KIND_SMALL_FLOAT},
    [DT_F8E8M0] = {"f8e8m0", 1, 8, KIND_SMALL_FLOAT},
    [DT_U2] = {"u2", 1, 2, KIND_UNSIGNED},
    [DT_I2] = {"i2", 1, 2, KIND_SIGNED},
};

enum { DTYPE_ROWS = (int)(sizeof dtype_rows / sizeof dtype_rows[0]) };

static const struct dtype_row *find_dtype(enum dtype t)
{
    int i = (int)t;
    return i >= 0 && i < DTYPE_ROWS && dtype_rows[i].name ? &dtype_rows[i] : NULL;
}

size_t dtype_size(enum dtype t)
{
    const struct dtype_row *row = find_dtype(t);
    return row ? row->size : 0;
}

int dtype_bits(enum dtype t)
{
    const struct dtype_row *row = find_dtype(t);
    return row ? row->bits : 0;
}

bool dtype_is_packed(enum dtype t)
{
    return dtype_bits(t) > 0 && dtype_bits(t) < 8;
}

bool dtype_bytes(enum dtype t, int64_t n, int64_t *out)
{
    return dtype_size(t) && i64_mul(n, (int64_t)dtype_size(t), out);
}

bool dtype_packed_bytes(enum dtype t, int64_t n, int64_t *out)
{
    if (!dtype_is_packed(t))
        return dtype_bytes(t, n, out);
    int per_byte = 8 / dtype_bits(t);
    *out = n / per_byte + (n % per_byte != 0);
    return true;
}

bool dtype_is_small(enum dtype t)
{
    return dtype_is_packed(t) || dtype_is_small_float(t);
}

bool dtype_is_half(enum dtype t)
{
    return t == DT_F16 || t == DT_BF16;
}

bool dtype_is_byte(enum dtype t)
{
    return t == DT_U8 || t == DT_I8;
}

bool dtype_is_integer(enum dtype t)
{
    const struct dtype_row *row = find_dtype(t);
    return row && (row->kind == KIND_UNSIGNED || row->kind == KIND_SIGNED);
}

void dtype_range(enum dtype t, int64_t *lo, int64_t *hi)
{
    require(dtype_is_integer(t));
    bool is_signed = dtype_rows[t].kind == KIND_SIGNED;
    int bits = dtype_rows[t].bits - is_signed;
    *hi = bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
    *lo = is_signed ? -*hi - 1 : 0;
}

const char *dtype_name(enum dtype t)
{
    const struct dtype_row *row = find_dtype(t);
    return row ? row->name : "unknown";
}

enum dtype dtype_parse(const char *name)
{
    for (int i = 0; i < DTYPE_ROWS; i++)
        if (dtype_rows[i].name && strcmp(dtype_rows[i].name, name) == 0)
            return (enum dtype)i;
    return DT_NONE;
}

bool dtype_is_float(enum dtype t)
{
    const struct dtype_row *row = find_dtype(t);
    return row && row->kind == KIND_FLOAT;
}

bool dtype_is_small_float(enum dtype t)
{
    const struct dtype_row *row = find_dtype(t);
    return row && row->kind == KIND_SMALL_FLOAT;
}

bool type_uses(const struct type *t, const char *symbol)
{
    for (int d = 0; d < t->rank; d++)
        if (dim_uses(t->dim[d], symbol))
            return true;
    return false;
}

bool type_eq(const struct type *a, const struct type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

const struct dim *type_elements(struct alg *alg, const struct type *t)
{
    const struct dim *n = dim_int(alg, 1);
    for (int i = 0; i < t->rank; i++)
        n = dim_mul(alg, n, t->dim[i]);
    return n;
}

char *type_str(struct arena *arena, const struct type *t)
{
    const char *dims = "";
    for (int i = 0; i < t->rank; i++)
        dims = arena_printf(arena, "%s%s%s", dims, i ? ", " : "", dim_str(arena, t->dim[i]));
    return arena_printf(arena, "%s[%s]", dtype_name(t->dtype), dims);
}

static const char *after_blanks(const char *s)
{
    return s + strspn(s, " \t");
}

static bool parse_type_dims(struct alg *alg, const char *at, int64_t usual, struct type *out, const char **error)
{
    for (at = after_blanks(at); *at != ']'; at = after_blanks(at + (*at == ','))) {
        if (out->rank == MAX_RANK) {
            *error = "a type has too many dimensions";
            return false;
        }
        const struct dim *d = dim_parse_at(alg, &at, usual, error);
        if (!d)
            return false;
        out->dim[out->rank++] = d;
        at = after_blanks(at);
        if (*at != ',' && *at != ']') {
            *error = "a dimension is followed by neither , nor ]";
            return false;
        }
    }
    if (*after_blanks(at + 1) == 0)
        return true;
    *error = "something follows the type";
    return false;
}

bool type_parse(struct alg *alg, const char *text, int64_t usual, struct type *out, const char **error)
{
    const char *why = NULL, *bracket = strchr(text, '[');
    struct type t = {0};
    if (bracket)
        t.dtype = dtype_parse(arena_strndup(alg->arena, text, (size_t)(bracket - text)));
    if (!bracket)
        why = "a type has no [";
    else if (t.dtype == DT_NONE && strncmp(text, "none[", 5) != 0)
        why = "an element type is not known";
    if (!why && parse_type_dims(alg, bracket + 1, usual, &t, &why)) {
        *out = t;
        return true;
    }
    if (error)
        *error = why;
    return false;
}

bool type_sizes_product(const int64_t *size, int n, int64_t *out)
{
    int64_t product = 1;
    bool zero = false;
    for (int i = 0; i < n; i++) {
        zero = zero || size[i] == 0;
        if (size[i] < 0 || (size[i] > 0 && !i64_mul(product, size[i], &product)))
            return false;
    }
    *out = zero ? 0 : product;
    return true;
}

bool type_bytes(const struct type *t, int64_t *out)
{
    int64_t size[MAX_RANK], n;
    for (int d = 0; d < t->rank; d++)
        if (!dim_is_int(t->dim[d], &size[d]))
            return false;
    return type_sizes_product(size, t->rank, &n) && dtype_bytes(t->dtype, n, out);
}
