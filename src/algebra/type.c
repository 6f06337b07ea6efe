/* type: element types and tensor types.
 *
 * A type prints as "f32[B, S, 64]": the element type's name, then the dimension expressions in brackets. The rank is bounded by
 * MAX_RANK, which the loader enforces and the parser here does too.
 */
#include "algebra/cell.h"

#include <string.h>

struct dtype_row {
    const char *name;
    size_t size;
    bool is_float;
};

static const struct dtype_row dtype_rows[] = {
    [DT_NONE] = {"none", 0, false},
    [DT_F32] = {"f32", 4, true},
    [DT_U8] = {"u8", 1, false},
    [DT_I8] = {"i8", 1, false},
    [DT_U16] = {"u16", 2, false},
    [DT_I16] = {"i16", 2, false},
    [DT_I32] = {"i32", 4, false},
    [DT_I64] = {"i64", 8, false},
    [DT_STRING] = {"string", 0, false},
    [DT_BOOL] = {"bool", 1, false},
    [DT_F16] = {"f16", 2, true},
    [DT_F64] = {"f64", 8, true},
    [DT_U32] = {"u32", 4, false},
    [DT_U64] = {"u64", 8, false},
    [DT_BF16] = {"bf16", 2, true},
    [DT_U4] = {"u4", 0, false},
    [DT_I4] = {"i4", 0, false},
    [DT_F8E4M3FN] = {"f8e4m3fn", 1, false},
    [DT_F8E4M3FNUZ] = {"f8e4m3fnuz", 1, false},
    [DT_F8E5M2] = {"f8e5m2", 1, false},
    [DT_F8E5M2FNUZ] = {"f8e5m2fnuz", 1, false},
    [DT_F8E8M0] = {"f8e8m0", 1, false},
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

bool dtype_is_packed(enum dtype t)
{
    return t == DT_U4 || t == DT_I4;
}

double dtype_width(enum dtype t)
{
    return dtype_is_packed(t) ? 0.5 : (double)dtype_size(t);
}

bool dtype_bytes(enum dtype t, int64_t n, int64_t *out)
{
    if (!dtype_is_packed(t))
        return dtype_size(t) && i64_mul(n, (int64_t)dtype_size(t), out);
    *out = n / 2 + n % 2;
    return true;
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
    return row && row->is_float;
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

static bool parse_type_dims(struct alg *alg, const char *at, int64_t sym_lo, struct type *out, const char **error)
{
    for (at = after_blanks(at); *at != ']'; at = after_blanks(at + (*at == ','))) {
        if (out->rank == MAX_RANK) {
            *error = "a type has too many dimensions";
            return false;
        }
        const struct dim *d = dim_parse_at(alg, &at, sym_lo, error);
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

bool type_parse(struct alg *alg, const char *text, int64_t sym_lo, struct type *out, const char **error)
{
    const char *why = NULL, *bracket = strchr(text, '[');
    struct type t = {0};
    if (bracket)
        t.dtype = dtype_parse(arena_strndup(alg->arena, text, (size_t)(bracket - text)));
    if (!bracket)
        why = "a type has no [";
    else if (t.dtype == DT_NONE && strncmp(text, "none[", 5) != 0)
        why = "an element type is not known";
    if (!why && parse_type_dims(alg, bracket + 1, sym_lo, &t, &why)) {
        *out = t;
        return true;
    }
    if (error)
        *error = why;
    return false;
}

/* Zero is only certain when no size is negative, so all are looked at. */
bool type_sizes_product(const int64_t *size, int n, int64_t *out)
{
    int64_t product = 1;
    bool zero = false, fits = true;
    for (int i = 0; i < n; i++) {
        if (size[i] < 0)
            return false;
        zero = zero || size[i] == 0;
        fits = fits && i64_mul(product, size[i], &product);
    }
    if (!fits && !zero)
        return false;
    *out = zero ? 0 : product;
    return true;
}
