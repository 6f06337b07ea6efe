/* pool_places: the positions of MaxPool's maxima; MaxUnpool, which puts elements back at these positions, with zeros in between; and
 * MaxPoolGrad, which adds up the gradients of each. A position is a flat index into the whole tensor, by the window's sizes; a larger
 * output_shape has zeros at the end. */
#include "kern/core/core.h"
#include "kern/spatial/spatial.h"

#include <math.h>
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

static void read_places(const struct kcall *call, struct places *p, const struct tensor *y)
{
    const struct tensor *x = &call->in[0];
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

/* The position of element `tap` of the window at `place`: row-major in the plane, and as counted; false: in the padding. */
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

/* The maximum in the window at `place` of a plane, the first of equal ones; counted: its index. -1: none. */
static int64_t greatest_place(const struct places *p, const double *plane, int64_t place, int64_t *counted)
{
    int64_t taps = tensor_dims_product(p->kernel, 0, p->n), best = -1, at, number;
    for (int64_t tap = 0; tap < taps; tap++) {
        if (!tap_place(p, place, tap, &at, &number))
            continue;
        if (best < 0 || plane[at] > plane[best] || (isnan(plane[at]) && !isnan(plane[best]))) {
            best = at;
            *counted = number;
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
    read_places(call, &p, &call->out[0]);
    int64_t pixels = tensor_dims_product(p.size, 0, p.n), places = tensor_dims_product(p.result, 0, p.n), counted = 0;
    double *plane = kenv_scratch(call->env, kcall_bytes(call, pixels, sizeof *plane));
    for (int64_t i = 0; i < tensor_elements(index); i++) {
        if (i % places == 0)
            convert_to_f64(x->dtype, element_at_const(x->data, dtype_size(x->dtype), i / places * pixels), pixels, plane);
        bool any = greatest_place(&p, plane, i % places, &counted) >= 0;
        ((int64_t *)index->data)[i] = any ? i / places * pixels + counted : -1;
    }
}

/* ---- gradient ---------------------------------------------------------------------------------------------------------------------- */

struct pool_gradient {
    struct places p;
    const struct tensor *x, *dy;
    struct tensor *dx;
    int64_t pixels, places;
    double *room; /* per thread: planes of x, dx and dy */
};

static void gradient_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct pool_gradient *g = data;
    double *x = g->room + thread * (2 * g->pixels + g->places), *dx = x + g->pixels, *dy = dx + g->pixels;
    size_t size = dtype_size(g->x->dtype);
    for (int64_t i = lo; i < hi; i++) {
        convert_to_f64(g->x->dtype, element_at_const(g->x->data, size, i * g->pixels), g->pixels, x);
        convert_to_f64(g->dy->dtype, element_at_const(g->dy->data, size, i * g->places), g->places, dy);
        memset(dx, 0, (size_t)g->pixels * sizeof *dx);
        for (int64_t k = 0, counted; k < g->places; k++) {
            int64_t at = greatest_place(&g->p, x, k, &counted);
            if (at >= 0)
                dx[at] += dy[k];
        }
        convert_from_f64(g->dx->dtype, dx, g->pixels, element_at(g->dx->data, size, i * g->pixels));
    }
}

void kern_MaxPoolGrad(struct kcall *call)
{
    struct pool_gradient g = {.x = &call->in[0], .dy = &call->in[1], .dx = &call->out[0]};
    if (!dtype_is_float(g.x->dtype))
        kcall_bad_type(call, g.x->dtype);
    read_places(call, &g.p, g.dy);
    g.pixels = tensor_dims_product(g.p.size, 0, g.p.n);
    g.places = tensor_dims_product(g.p.result, 0, g.p.n);
    g.room = kenv_scratch(call->env, kcall_bytes(call, kenv_threads(call->env) * (2 * g.pixels + g.places), sizeof *g.room));
    int64_t taps = tensor_dims_product(g.p.kernel, 0, g.p.n);
    kenv_parallel_shares(call->env, g.x->dim[0] * g.x->dim[1], g.places * taps * 8 + g.pixels, gradient_range, &g);
}
