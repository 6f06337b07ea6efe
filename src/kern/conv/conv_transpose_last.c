/* conv_transpose_last: transposed convolution with channels-last X, W and Y, and one group.
 *
 * The places of all images are processed in blocks. A product computes each place's contributions, [places, taps, channels], which are
 * added to the results while they are in the cache, contiguous to contiguous, all taps of a row at once. A result's addends are in the
 * order of blocks and taps, independent of threads. */
#include "kern/conv/conv_transpose.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { BLOCK = 1 << 16, FEWEST = 64, ROWS = 16, PIECE = 256 }; /* contributions; places; enough rows, or else pieces of a row */

struct additions {
    struct conv_transpose t;
    int64_t lo, hi;                    /* the block's places, counted over all images */
    int64_t rows, row_taps, rows_sent; /* per image: results, taps and places of all dimensions but the last */
    int64_t pieces, piece;             /* per row of results */
    const float *sent, *bias;
    float *y;
};

static SIMD void add_run(float *y, const float *sent, int64_t n)
{
    LOOP for (int64_t i = 0; i < n; i++) y[i] += sent[i];
}

/* The row of places that contributes to a row of results through a tap of all dimensions but the last; -1: none. */
static int64_t source_row(const struct conv_transpose *t, int64_t row, int64_t tap)
{
    int64_t at = 0, step = 1;
    for (int d = t->n - 2; d >= 0; d--) {
        int64_t i = row % t->result[d] + t->before[d] - tap % t->kernel[d] * t->dilation[d];
        if (i < 0 || i % t->stride[d] || i / t->stride[d] >= t->size[d])
            return -1;
        at += i / t->stride[d] * step;
        step *= t->size[d];
        row /= t->result[d];
        tap /= t->kernel[d];
    }
    return at;
}

/* Adds one place's contributions through the taps of a row to results lo..hi of y. */
static void add_place(const struct conv_transpose *t, int64_t place, const float *sent, int64_t lo, int64_t hi, float *y)
{
    int e = t->n - 1;
    int64_t first = place * t->stride[e] - t->before[e], taps = t->kernel[e], dilation = t->dilation[e];
    if (dilation == 1) {
        int64_t from = lo > first ? lo - first : 0, to = hi - first < taps ? hi - first : taps;
        add_run(y + (first + from) * t->out, sent + from * t->out, (to - from) * t->out);
        return;
    }
    for (int64_t k = 0; k < taps; k++)
        if (first + k * dilation >= lo && first + k * dilation < hi)
            add_run(y + (first + k * dilation) * t->out, sent + k * t->out, t->out);
}

/* Adds to results lo..hi of a row: from row `from` of all places, through row `tap` of the taps. */
static void add_row(const struct additions *a, int64_t from, int64_t tap, int64_t lo, int64_t hi, float *y)
{
    const struct conv_transpose *t = &a->t;
    int e = t->n - 1;
    int64_t width = t->size[e], s = t->stride[e], reach = (t->kernel[e] - 1) * t->dilation[e], least = lo + t->before[e] - reach;
    int64_t first = least > 0 ? (least + s - 1) / s : 0, end = (hi - 1 + t->before[e]) / s + 1;
    first = first > a->lo - from * width ? first : a->lo - from * width;
    end = end < a->hi - from * width ? end : a->hi - from * width;
    for (int64_t i = first; i < end && i < width; i++)
        add_place(t, i, a->sent + ((from * width + i - a->lo) * t->taps + tap * t->kernel[e]) * t->out, lo, hi, y);
}

/* A unit is a piece of a row of results. */
static void add_range(void *data, int64_t lo, int64_t hi)
{
    const struct additions *a = data;
    const struct conv_transpose *t = &a->t;
    for (int64_t u = lo; u < hi; u++) {
        int64_t row = u / a->pieces, width = t->result[t->n - 1], begin = u % a->pieces * a->piece,
                end = begin + a->piece < width ? begin + a->piece : width;
        for (int64_t tap = 0; tap < a->row_taps; tap++) {
            int64_t from = source_row(t, row % a->rows, tap);
            if (from >= 0)
                add_row(a, row / a->rows * a->rows_sent + from, tap, begin, end, a->y + row * width * t->out);
        }
    }
}

static void begin_range(void *data, int64_t lo, int64_t hi)
{
    const struct additions *a = data;
    int64_t out = a->t.out;
    for (int64_t i = lo; i < hi; i++)
        for (int64_t c = 0; c < out; c++)
            a->y[i * out + c] = a->bias ? a->bias[c] : 0;
}

/* Adds to the results of the block's images. */
static void add_block(struct kenv *env, struct additions *a)
{
    const struct conv_transpose *t = &a->t;
    int64_t first = a->lo / t->places, end = (a->hi - 1) / t->places + 1, units = a->rows * a->pieces;
    float *y = a->y;
    a->lo -= first * t->places;
    a->hi -= first * t->places;
    a->y += first * t->results * t->out;
    kenv_parallel_for(env, (end - first) * units, a->row_taps * a->piece * t->kernel[t->n - 1] * t->out / t->stride[t->n - 1], add_range,
                      a);
    a->y = y;
}

/* sent[m, columns] = x[m, in] w[in, columns] */
static void send(struct kcall *call, const struct conv_transpose *t, int64_t m, int64_t columns, const float *x, const float *w,
                 float *sent)
{
    bool constant = call->in_constant && call->in_constant[1] && call->in[1].dtype == DT_F32;
    const struct tensor a = tensor_of_floats(x), b = tensor_of_floats(w);
    if (!constant || !dnnl_product_packed(call->env, call->cache, m, columns, t->in, &a, &b, false, NULL, sent))
        dnnl_product(call->env, false, false, m, columns, t->in, 1, x, t->in, w, columns, 0, sent, columns);
}

static void begin_additions(struct additions *a)
{
    const struct conv_transpose *t = &a->t;
    a->rows = tensor_dims_product(t->result, 0, t->n - 1);
    a->row_taps = tensor_dims_product(t->kernel, 0, t->n - 1);
    a->rows_sent = tensor_dims_product(t->size, 0, t->n - 1);
    a->piece = t->batch * a->rows < ROWS ? PIECE : t->result[t->n - 1];
    a->pieces = (t->result[t->n - 1] + a->piece - 1) / a->piece;
}

/* Processes the places block by block. */
static void add_places(struct kcall *call, struct additions *a, const float *x, const float *w)
{
    const struct conv_transpose *t = &a->t;
    int64_t places = t->batch * t->places, columns = t->taps * t->out, most = BLOCK / columns, floats;
    int64_t blocks = (places - 1) / (most < FEWEST ? FEWEST : most) + 1, each = (places - 1) / blocks + 1;
    if (!i64_mul(each, columns, &floats))
        fail("%s: a window of %lld over %lld places does not fit in memory", kcall_where(call), (long long)t->taps, (long long)each);
    float *sent = kenv_room(call->env, ROOM_KERNEL, kcall_bytes(call, floats, sizeof *sent));
    for (int64_t at = 0; at < places; at += each) {
        a->lo = at;
        a->hi = at + each < places ? at + each : places;
        a->sent = sent;
        send(call, t, a->hi - a->lo, columns, x + at * t->in, w, sent);
        add_block(call->env, a);
    }
}

void kern_ChannelsLastConvTranspose(struct kcall *call)
{
    const struct tensor *bias = kcall_in(call, 2);
    struct additions a;
    struct conv_transpose *t = &a.t;
    if (tensor_elements(&call->out[0]) == 0)
        return;
    conv_transpose_read(call, t, true);
    require(t->groups == 1);
    const float *x = tensor_f32(call->env, &call->in[0], ROOM_A), *w = tensor_f32(call->env, &call->in[1], ROOM_B);
    a.bias = bias ? tensor_f32(call->env, bias, ROOM_TURN_K) : NULL;
    a.y = kcall_result_f32(call, &call->out[0]);
    begin_additions(&a);
    kenv_parallel_for(call->env, t->batch * t->results, t->out, begin_range, &a);
    if (t->batch * t->places > 0 && t->taps > 0 && t->in > 0)
        add_places(call, &a, x, w);
    kcall_result_store(a.y, &call->out[0]);
}
