/* Sparse tensors, of initializers and of Constant nodes, as dense constants: 0 where no value is given. */
#include "onnx/read/read.h"

#include <string.h>

enum { SPARSE_BYTES_LOG2 = 31 }; /* a small file may claim any size */

static struct constant *part(struct import *im, const Onnx__TensorProto *t, const char *what, const char *name)
{
    if (!t)
        fail("%s: %s has no %s", im->path, what, name);
    struct constant *c = tensor_constant(im, t, arena_printf(im->tmp, "%s: its %s", what, name));
    if (!c->data)
        fail("%s: %s keeps its %s in another file, expected them in the model", im->path, what, name);
    return c;
}

/* Its size is set, its data are not. */
static struct constant *whole(struct import *im, const Onnx__SparseTensorProto *s, enum dtype dtype, const char *what)
{
    struct constant *c = NEW(im->arena, struct constant);
    Onnx__TensorProto t = ONNX__TENSOR_PROTO__INIT;
    t.data_type = (int)dtype;
    t.n_dims = s->n_dims;
    t.dims = s->dims;
    c->dtype = tensor_layout(im->tmp, &t, im->path, what, c->dim, &c->bytes);
    c->rank = (int)s->n_dims;
    if (c->bytes >> SPARSE_BYTES_LOG2)
        fail("%s: %s is a sparse tensor of %lld bytes, at most %lld are handled", im->path, what, (long long)c->bytes,
             1LL << SPARSE_BYTES_LOG2);
    return c;
}

/* The element's number, from the indices from `at` on: its number itself, or one index per dimension. */
static int64_t place(struct import *im, const struct constant *c, int n, const int64_t *at, const char *what)
{
    int64_t place = 0;
    for (int k = 0; k < n; k++) {
        int64_t most = n == c->rank ? c->dim[k] : constant_elements(c);
        if (at[k] < 0 || at[k] >= most)
            fail("%s: %s has index %lld, expected 0 to %lld", im->path, what, (long long)at[k], (long long)most - 1);
        place = place * most + at[k];
    }
    return place;
}

/* Indices are of shape [values], or [values, dimensions]. */
static int indices_each(struct import *im, const struct constant *c, const struct constant *values, const struct constant *indices,
                        const char *what)
{
    bool fits = values->rank == 1 && indices->dtype == DT_I64 && (indices->rank == 1 || indices->rank == 2) &&
        indices->dim[0] == values->dim[0] && (indices->rank == 1 || indices->dim[1] == c->rank);
    if (!fits)
        fail("%s: %s has indices that fit neither its %lld values nor its %d dimensions", im->path, what,
             (long long)constant_elements(values), c->rank);
    return indices->rank == 1 ? 1 : c->rank;
}

struct constant *sparse_constant(struct import *im, const Onnx__SparseTensorProto *s, const char *what)
{
    const struct constant *values = part(im, s->values, what, "values"), *indices = part(im, s->indices, what, "indices");
    struct constant *c = whole(im, s, values->dtype, what);
    size_t size = dtype_size(c->dtype);
    if (c->dtype == DT_STRING || dtype_bits(c->dtype) < 8)
        fail("%s: %s is a sparse tensor of %s, which tpc does not handle", im->path, what, dtype_name(c->dtype));
    int each = indices_each(im, c, values, indices, what);
    int64_t before = -1, n = constant_elements(values);
    uint8_t *out = arena_alloc(im->arena, c->bytes ? (size_t)c->bytes : 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = place(im, c, each, (const int64_t *)indices->data + i * each, what);
        if (at <= before)
            fail("%s: %s has its value %lld out of order", im->path, what, (long long)i);
        memcpy(out + (size_t)at * size, (const uint8_t *)values->data + (size_t)i * size, size);
        before = at;
    }
    c->data = out;
    return c;
}

void sparse_initializers(struct import *im, struct name_scope *scope, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *s = g->sparse_initializer[i];
        if (!s->values || !s->values->name || !*s->values->name)
            fail("%s: sparse initializer %zu has no name", im->path, i);
        const char *what = arena_printf(im->tmp, "sparse initializer '%s'", s->values->name);
        import_constant(im, name_scope_define(im, scope, s->values->name, what), sparse_constant(im, s, what));
    }
}
