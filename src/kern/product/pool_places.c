/* pool_places: where the greatest elements are that MaxPool takes, and MaxUnpool, which puts elements back at the places that MaxPool took
 * them from, zeros between. A place is an index into the whole tensor, flattened, as the window's sizes make it; an output_shape that is
 * larger leaves zeros behind it. */
#include "kern/core/core.h"
#include "kern/product/product.h"

#include <string.h>

void kern_MaxUnpool(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *index = &call->in[1];
    struct tensor *y = &call->out[0];
    int n = x->rank - 2;
    int64_t size[MAX_RANK] = {x->dim[0], x->dim[1]}, step[MAX_RANK], kernel[MOST_SPATIAL], stride[MOST_SPATIAL], pad[2 * MOST_SPATIAL];
    kcall_spatial(call, "kernel_shape", n, 1, kernel);
    kcall_spatial(call, "strides", n, 1, stride);
    kcall_spatial(call, "pads", 2 * n, 0, pad);
    for (int d = 0; d < n; d++)
        size[2 + d] = (x->dim[2 + d] - 1) * stride[d] - pad[d] - pad[n + d] + kernel[d];
    tensor_dense_strides(y->rank, y->dim, step);
    memset(y->data, 0, tensor_bytes(y));
    for (int64_t i = 0; i < tensor_elements(x); i++) {
        int64_t left = kcall_index_at(call, index, i), to = 0;
        bool inside = left >= 0;
        for (int d = x->rank - 1; inside && d >= 0; d--) {
            inside = size[d] > 0 && left % size[d] < y->dim[d];
            to += inside ? left % size[d] * step[d] : 0;
            left = inside ? left / size[d] : left;
        }
        if (!inside || left)
            fail("%s: index %lld is out of range", kcall_where(call), (long long)kcall_index_at(call, index, i));
        memcpy(element_at(y->data, dtype_size(x->dtype), to), element_at_const(x->data, dtype_size(x->dtype), i), dtype_size(x->dtype));
    }
}

/* ---- the places -------------------------------------------------------------------------------------------------------------------- */

struct places {
    int n;
    int64_t size[MOST_SPATIAL], kernel[MOST_SPATIAL], stride[MOST_SPATIAL], dilation[MOST_SPATIAL], before[MOST_SPATIAL],
        result[MOST_SPATIAL], step[MOST_SPATIAL]; /* step: of an index, by storage_order */
};

static void read_places(const struct kcall *call, struct places *p)
{
    const struct tensor *x = &call->in[0], *y = &call->out[0];
    const char *how = attr_string(call->node, "auto_pad");
    int64_t pads[2 * MOST_SPATIAL] = {0}, inner = 1;
    bool columns = attr_int(call->node, "storage_order") != 0, same = strncmp(how, "SAME", 4) == 0;
    p->n = x->rank - 2;
    memcpy(p->size, x->dim + 2, (size_t)p->n * sizeof *p->size);
    memcpy(p->result, y->dim + 2, (size_t)p->n * sizeof *p->result);
    kcall_spatial(call, "kernel_shape", p->n, 1, p->kernel);
    kcall_spatial(call, "strides", p->n, 1, p->stride);
    kcall_spatial(call, "dilations", p->n, 1, p->dilation);
    if (strcmp(how, "VALID") != 0 && !same)
        kcall_spatial(call, "pads", 2 * p->n, 0, pads);
    for (int i = 0; i < p->n; i++) {
        int d = columns ? i : p->n - 1 - i;
        int64_t total = (p->result[d] - 1) * p->stride[d] + (p->kernel[d] - 1) * p->dilation[d] + 1 - p->size[d];
        total = total < 0 ? 0 : total;
        p->before[d] = !same ? pads[d] : strcmp(how, "SAME_LOWER") == 0 ? total - total / 2 : total / 2;
        p->step[d] = inner;
        inner *= p->size[d];
    }
}

/* Where element `tap` of the window at `place` lies: row-major in the plane, and as it is counted; false: in the padding. */
static bool tap_place(const struct places *p, int64_t place, int64_t tap, int64_t *at, int64_t *counted)
{
    int64_t step = 1;
    *at = *counted = 0;
    for (int d = p->n - 1; d >= 0; d--) {
        int64_t i = place % p->result[d] * p->stride[d] - p->before[d] + tap % p->kernel[d] * p->dilation[d];
        place /= p->result[d];
        tap /= p->kernel[d];
        if (i < 0 || i >= p->size[d])
            return false;
        *at += i * step;
        *counted += i * p->step[d];
        step *= p->size[d];
    }
    return true;
}

/* Of equal elements the first. */
static int64_t greatest_place(const struct places *p, const struct tensor *x, int64_t plane, int64_t pixels, int64_t place)
{
    int64_t taps = tensor_dims_product(p->kernel, 0, p->n), best = -1, at, counted;
    double most = 0, value;
    for (int64_t tap = 0; tap < taps; tap++) {
        if (!tap_place(p, place, tap, &at, &counted))
            continue;
        convert_to_f64(x->dtype, element_at_const(x->data, dtype_size(x->dtype), plane * pixels + at), 1, &value);
        if (best < 0 || value > most || (value != value && most == most)) {
            best = plane * pixels + counted;
            most = value;
        }
    }
    return best;
}

void pool_places(struct kcall *call)
{
    struct tensor *index = kcall_out(call, 1);
    const struct tensor *x = &call->in[0];
    struct places p;
    if (!index || tensor_elements(index) == 0)
        return;
    read_places(call, &p);
    int64_t pixels = tensor_dims_product(p.size, 0, p.n), places = tensor_dims_product(p.result, 0, p.n);
    for (int64_t i = 0; i < tensor_elements(index); i++)
        ((int64_t *)index->data)[i] = greatest_place(&p, x, i / places, pixels, i % places);
}
