/* col2im: adds up the columns of blocks at their positions in an image, plane by plane. */
#include "kern/core/core.h"
#include "kern/spatial/spatial.h"

struct col2im {
    const float *x;
    float *y;
    int n;
    int64_t image[MOST_SPATIAL], block[MOST_SPATIAL], count[MOST_SPATIAL], stride[MOST_SPATIAL], dilation[MOST_SPATIAL],
        pad[2 * MOST_SPATIAL], pixels, elements, blocks;
};

/* For a row of blocks, which differ only in the last dimension: the image row of element k in the other dimensions; -1: in the padding. */
static int64_t row_of(const struct col2im *c, int64_t k, int64_t row)
{
    const struct window_sizes w = {c->image, c->count, c->block, c->stride, c->dilation, c->pad};
    int64_t at = window_source(c->n - 1, &w, row, k / c->block[c->n - 1]);
    return at < 0 ? -1 : at * c->image[c->n - 1];
}

/* Element k of all blocks of a row; some are in the padding along the last dimension. */
static void add_row(const struct col2im *c, int64_t k, const float *x, float *y)
{
    int e = c->n - 1;
    int64_t shift = k % c->block[e] * c->dilation[e] - c->pad[e], stride = c->stride[e],
            lo = shift < 0 ? (-shift + stride - 1) / stride : 0;
    int64_t left = c->image[e] - 1 - shift, hi = left < 0 ? 0 : left / stride + 1;
    hi = hi > c->count[e] ? c->count[e] : hi;
    if (stride == 1)
        LOOP for (int64_t l = lo; l < hi; l++) y[l + shift] += x[l];
    else
        for (int64_t l = lo; l < hi; l++)
            y[l * stride + shift] += x[l];
}

static void plane_range(void *data, int64_t lo, int64_t hi)
{
    const struct col2im *c = data;
    int64_t width = c->count[c->n - 1], rows = c->blocks / width;
    for (int64_t i = lo; i < hi; i++) {
        const float *x = c->x + i * c->elements * c->blocks;
        float *y = c->y + i * c->pixels;
        for (int64_t p = 0; p < c->pixels; p++)
            y[p] = 0;
        for (int64_t k = 0; k < c->elements; k++)
            for (int64_t row = 0; row < rows; row++) {
                int64_t at = row_of(c, k, row);
                if (at >= 0)
                    add_row(c, k, x + k * c->blocks + row * width, y + at);
            }
    }
}

static void count_blocks(const struct kcall *call, struct col2im *c)
{
    c->pixels = c->elements = c->blocks = 1;
    for (int d = 0; d < c->n; d++) {
        int64_t span = (c->block[d] - 1) * c->dilation[d] + 1, room = c->image[d] + c->pad[d] + c->pad[c->n + d] - span;
        if (c->block[d] < 1 || c->block[d] > INT32_MAX || c->image[d] < 0 || room < 0)
            fail("%s: a block of %lld does not fit into an image of %lld", kcall_where(call), (long long)c->block[d],
                 (long long)c->image[d]);
        c->count[d] = room / c->stride[d] + 1;
        if (!i64_mul(c->blocks, c->count[d], &c->blocks) || !i64_mul(c->elements, c->block[d], &c->elements))
            fail("%s: there are too many blocks", kcall_where(call));
        c->pixels *= c->image[d];
    }
}

void kern_Col2Im(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    struct tensor *y = &call->out[0];
    struct col2im c = {.n = y->rank - 2};
    if (!dtype_fits_f32(x->dtype))
        kcall_bad_type(call, x->dtype);
    if (kcall_sizes(call, 1, "image_shape", c.image, MOST_SPATIAL) != c.n ||
        kcall_sizes(call, 2, "block_shape", c.block, MOST_SPATIAL) != c.n)
        fail("%s: image_shape and block_shape must have one entry for each of %d dimensions", kcall_where(call), c.n);
    kcall_spatial(call, "strides", c.n, 1, c.stride);
    kcall_spatial(call, "dilations", c.n, 1, c.dilation);
    kcall_spatial(call, "pads", 2 * c.n, 0, c.pad);
    count_blocks(call, &c);
    int64_t channels;
    if (x->dim[2] != c.blocks || !i64_mul(y->dim[1], c.elements, &channels) || channels != x->dim[1])
        fail("%s: the operand is [%lld, %lld, %lld], its sizes need %lld blocks of %lld elements", kcall_where(call), (long long)x->dim[0],
             (long long)x->dim[1], (long long)x->dim[2], (long long)c.blocks, (long long)c.elements);
    c.x = tensor_f32(call->env, x, ROOM_A);
    c.y = kcall_result_f32(call, y);
    kenv_parallel_for(call->env, y->dim[0] * y->dim[1], c.elements * c.blocks * (4 * c.n + 1) + c.pixels, plane_range, &c);
    kcall_result_store(c.y, y);
}
