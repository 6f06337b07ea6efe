/* integer_conv: convolutions of 8-bit integers with channels last. Padding is the zero point of x, which contributes nothing.
 *
 *     sum (x - s)(w - t) = sum x w - t sum x - s sum (w - t)
 *
 * x is read as unsigned: 128 is added to signed numbers and their zero point. The windows of a block of places are runs of bytes in x
 * (integer_windows.c), multiplied with tiles of the filter (gemm/bytes.c). Depthwise convolutions are in integer_depthwise.c. */
#include "kern/conv/integer_conv.h"

#include "ir/operands.h"
#include "kern/conv/conv.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <math.h>
#include <string.h>

enum { ROWS = 66, ROOM = 1 << 18 }; /* most places per block, and bytes of their windows */

/* ---- what the call says -------------------------------------------------------------------------------------------------------------- */

static void set_dimension(struct integer_conv *v, const struct conv *c, int from, int to)
{
    bool is = from >= 0;
    v->size[to] = is ? c->size[from] : 1;
    v->kernel[to] = is ? c->kernel[from] : 1;
    v->result[to] = is ? c->result[from] : 1;
    v->stride[to] = is ? c->stride[from] : 1;
    v->dilation[to] = is ? c->dilation[from] : 1;
    v->before[to] = is ? c->before[from] : 0;
}

static int64_t byte_of(const struct tensor *t)
{
    return !t ? 0 : t->dtype == DT_I8 ? *(const int8_t *)t->data : *(const uint8_t *)t->data;
}

static struct integer_conv conv_of(struct kcall *call)
{
    struct conv c;
    conv_read(call, &c, true);
    if (!dtype_is_byte(c.dtype) || !dtype_is_byte(c.stored) || c.spatial > 3)
        kcall_bad_type(call, dtype_is_byte(c.dtype) ? c.stored : c.dtype);
    struct integer_conv v = {.call = call, .batch = c.batch, .groups = c.groups, .in = c.in, .out = c.out, .x = c.x};
    for (int d = 0; d < 3; d++)
        set_dimension(&v, &c, d + c.spatial - 3, d);
    v.taps = tensor_dims_product(v.kernel, 0, 3);
    v.places = tensor_dims_product(v.result, 0, 3);
    v.flip = c.dtype == DT_I8 ? 0x80 : 0;
    v.x_zero = (uint8_t)((uint8_t)byte_of(kcall_in(call, IN_IntegerConv_X_zero)) ^ v.flip);
    return v;
}

/* Bounds are applied in the pass that makes results. */
static void take_bounds(struct integer_results *r, const char *activation)
{
    const struct result_function f = r->function;
    bool plain = f.scale >= 1 && f.scale <= 1 && f.shift >= 0 && f.shift <= 0;
    bool relu = strcmp(activation, "LeakyRelu") == 0 && f.alpha >= 0 && f.alpha <= 0, clip = strcmp(activation, "Clip") == 0;
    if (!plain || !(relu || clip))
        return;
    r->lo = relu ? 0 : f.alpha;
    r->hi = relu ? INFINITY : f.beta;
    r->function.run = NULL;
}

static void take_codes(struct integer_results *r, const struct kcall *call, const struct tensor *scale)
{
    r->is_signed = call->out[0].dtype == DT_I8;
    r->codes = call->out[0].data;
    r->per_scale = 1 / integer_float(scale, 1);
    r->zero = (int32_t)byte_of(kcall_in(call, IN_IntegerConv_Y_zero));
    r->least = (float)((r->is_signed ? -128 : 0) - r->zero);
    r->most = r->least + 255;
}

/* For codes directly from sums: folds the scale into the columns, and expresses bounds as codes. */
static float take_unit(struct integer_results *r)
{
    float by = r->per_scale, lo = r->lo * by, hi = r->hi * by;
    if (r->z || r->function.run || !isnormal(by))
        return 1;
    r->least = fminf(fmaxf(r->least, lo), r->most);
    r->most = fmaxf(fminf(r->most, hi), r->least);
    r->lo = -INFINITY;
    r->hi = INFINITY;
    r->per_scale = 1;
    return by;
}

/* z is codes, and so is the number to which it is added. */
static float take_residual(struct integer_results *r, const struct kcall *call)
{
    enum { Z_SCALE, Z_ZERO, SCALE, ZERO, LEAST, COUNT };
    const struct attr *a = node_attr(call->node, "residual");
    require(a->n == COUNT && r->codes && !r->function.run);
    bool is_signed = call->in[IN_IntegerConv_Z].dtype == DT_I8;
    float least = (float)(a->floats[LEAST] - a->floats[ZERO]);
    r->residual = (struct result_residual){.scale = (float)a->floats[SCALE],
                                           .least = least,
                                           .most = least + 255,
                                           .z_scale = (float)a->floats[Z_SCALE],
                                           .z_zero = (float)a->floats[Z_ZERO] + (is_signed ? 128 : 0),
                                           .is_signed = is_signed};
    r->z_codes = call->in[IN_IntegerConv_Z].data;
    return 1 / r->residual.scale;
}

/* *per_unit: factor of the columns. */
static struct integer_results results_of(struct kcall *call, float *per_unit)
{
    const struct tensor *z = kcall_in(call, IN_IntegerConv_Z), *scale = kcall_in(call, IN_IntegerConv_Y_scale);
    struct tensor *y = &call->out[0];
    struct integer_results r = {.channels = y->dim[y->rank - 1], .lo = -INFINITY, .hi = INFINITY, .per_scale = 1};
    r.function = result_function_of(call->node);
    take_bounds(&r, attr_string(call->node, "activation"));
    r.activates_last = z && attr_int(call->node, "activates_last");
    require(scale ? dtype_is_byte(y->dtype) : y->dtype == DT_F32);
    *per_unit = 1;
    r.real = scale ? NULL : y->data;
    if (scale)
        take_codes(&r, call, scale);
    if (z && dtype_is_byte(z->dtype))
        *per_unit = take_residual(&r, call);
    else if (z)
        r.z = z->data;
    else if (scale)
        *per_unit = take_unit(&r);
    return r;
}

/* ---- blocks of places ---------------------------------------------------------------------------------------------------------------- */

struct block_run {
    const struct integer_results *results;
    const struct bytes *w;
    const struct bytes_kernel *kernel;
    const struct results_kernel *store;
    const struct integer_columns *columns; /* of all tiles */
    struct integer_windows windows;
    int64_t rows; /* per block */
    size_t each;  /* scratch bytes per thread */
    char *scratch;
};

/* The sum of each row's window. */
static void sum_rows(const struct block_run *r, struct bytes_rows b, int64_t rows, int32_t *sums)
{
    const struct bytes *w = r->w;
    for (int64_t i = 0; i < rows; i += BYTES_ROWS, b.at += BYTES_ROWS * b.runs)
        r->kernel->add(&b, w->k / w->runs, (int)(rows - i < BYTES_ROWS ? rows - i : BYTES_ROWS), sums + i);
}

static void run_tile(const struct block_run *r, int64_t group, int64_t tile, int64_t rows, struct bytes_rows b, int32_t *sums)
{
    const struct bytes *w = r->w;
    const int8_t *weight = w->weight + (group * w->tiles + tile) * w->tile_bytes;
    int halves = bytes_halves(w, tile);
    for (int64_t i = 0; i < rows; i += BYTES_ROWS, b.at += BYTES_ROWS * b.runs)
        r->kernel->dot(weight, &b, (int)(rows - i < BYTES_ROWS ? rows - i : BYTES_ROWS), halves, sums + i * BYTES_WIDTH);
}

static void run_block(const struct block_run *r, int64_t first, int64_t rows, void *room)
{
    const struct bytes *w = r->w;
    const struct integer_conv *v = r->windows.v;
    struct bytes_rows b = {.at = integer_windows_find(&r->windows, first, rows, room), .runs = w->runs, .words = w->words, .flip = v->flip};
    _Alignas(64) int32_t sums[ROWS * BYTES_WIDTH];
    int32_t seen[ROWS];
    for (int64_t g = 0; g < w->groups; g++, b.offset += v->in / v->groups) {
        if (w->zero)
            sum_rows(r, b, rows, seen);
        for (int64_t t = 0; t < w->tiles; t++) {
            run_tile(r, g, t, rows, b, sums);
            integer_results_store(r->store, r->results, &r->columns[g * w->tiles + t], first, rows, sums, seen);
        }
    }
}

/* Blocks lo..hi. */
static void block_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct block_run *r = data;
    const struct integer_conv *v = r->windows.v;
    int64_t all = v->batch * v->places;
    for (int64_t i = lo; i < hi; i++) {
        int64_t first = i * r->rows, rows = all - first < r->rows ? all - first : r->rows;
        run_block(r, first, rows, r->scratch + (size_t)thread * r->each);
    }
}

/* At least as many blocks as threads, of about equal size. length: bytes of a window. */
static int64_t rows_of_blocks(const struct kcall *call, int64_t places, int64_t length)
{
    int64_t most = length * ROWS > ROOM ? ROOM / length : ROWS, threads = kenv_threads(call->env);
    most = most < BYTES_ROWS ? BYTES_ROWS : most;
    int64_t blocks = (places + most - 1) / most;
    blocks = (blocks + threads - 1) / threads * threads;
    int64_t rows = (places + blocks - 1) / blocks;
    rows = (rows + BYTES_ROWS - 1) / BYTES_ROWS * BYTES_ROWS;
    return rows < ROWS ? rows : ROWS;
}

static void set_columns(const struct integer_conv *v, const struct bytes *w, struct integer_columns *to)
{
    for (int64_t i = 0; i < w->groups * w->tiles; i++) {
        int64_t from = i % w->tiles * BYTES_WIDTH, n = w->n - from < BYTES_WIDTH ? w->n - from : BYTES_WIDTH;
        integer_conv_columns(v, i / w->tiles * w->n + from, n, w->sums + i * BYTES_WIDTH, w->zero ? w->zero + i * BYTES_WIDTH : NULL,
                             &to[i]);
    }
}

static void run_blocks(const struct integer_conv *v, const struct integer_results *results, const struct bytes *w)
{
    struct kcall *call = v->call;
    int64_t all = v->batch * v->places, words = w->runs * w->words;
    struct block_run r = {
        .results = results, .w = w, .kernel = bytes_best(), .store = integer_results_best(), .windows = integer_windows_of(v, w)};
    size_t columns = (kcall_bytes(call, w->groups * w->tiles, sizeof *r.columns) + 63) & ~(size_t)63;
    r.rows = rows_of_blocks(call, all, r.windows.copy * w->runs);
    r.each = integer_windows_bytes(&r.windows, r.rows);
    char *room = kenv_room(call->env, ROOM_THREADS, columns + kcall_bytes(call, kenv_threads(call->env), r.each));
    set_columns(v, w, (struct integer_columns *)(void *)room);
    r.columns = (const struct integer_columns *)(const void *)room;
    r.scratch = room + columns;
    kenv_parallel_shares(call->env, (all + r.rows - 1) / r.rows, r.rows * w->groups * w->tiles * BYTES_WIDTH * words / 16 + 1, block_range,
                         &r);
}

/* ---- the filter ---------------------------------------------------------------------------------------------------------------------- */

static bool keeps_filter(const struct kcall *call)
{
    bool zero = call->nin > IN_IntegerConv_W_zero && call->node->in[IN_IntegerConv_W_zero];
    return call->cache && call->in_constant && call->in_constant[IN_IntegerConv_W] && (!zero || call->in_constant[IN_IntegerConv_W_zero]);
}

/* Whether all taps along the last dimension are contiguous. */
static bool runs_along(const struct kcall *call)
{
    const struct tensor *w = &call->in[IN_IntegerConv_W];
    int64_t dilation[MOST_SPATIAL];
    kcall_spatial(call, "dilations", w->rank - 2, 1, dilation);
    return attr_int(call->node, "group") == 1 && dilation[w->rank - 3] == 1;
}

static struct bytes_source source_of(const struct kcall *call)
{
    const struct tensor *w = &call->in[IN_IntegerConv_W], *zero = kcall_in(call, IN_IntegerConv_W_zero);
    int64_t groups = attr_int(call->node, "group"), taps = tensor_dims_product(w->dim, 2, w->rank);
    return (struct bytes_source){.groups = groups,
                                 .n = w->dim[0] / groups,
                                 .k = w->dim[1] * taps,
                                 .run = w->dim[1] * (runs_along(call) ? w->dim[w->rank - 1] : 1),
                                 .is_signed = w->dtype == DT_I8,
                                 .w = w->data,
                                 .zero = zero ? zero->data : NULL,
                                 .zeros = zero ? tensor_elements(zero) : 1,
                                 .inner = w->dim[1]};
}

static void pack(struct kcall *call, struct bytes *to, bool keep)
{
    struct bytes_source from = source_of(call);
    *to = from.n == 1 && from.inner == 1 ? integer_depthwise_pack(call, &from, keep) : bytes_pack(call, &from, keep);
}

static const struct bytes *kept_filter(struct kcall *call)
{
    if (!*call->cache) {
        struct bytes *w = kenv_keep(call->env, sizeof *w);
        pack(call, w, true);
        *call->cache = w;
    }
    return *call->cache;
}

bool integer_conv_packs(const struct kcall *call, struct packed_key *key)
{
    const struct tensor *w = &call->in[IN_IntegerConv_W];
    if (!keeps_filter(call) || tensor_elements(w) == 0)
        return false;
    key->weight = call->node->in[IN_IntegerConv_W]->constant;
    key->zeros = kcall_in(call, IN_IntegerConv_W_zero) ? call->node->in[IN_IntegerConv_W_zero]->constant : NULL;
    key->dtype = w->dtype;
    key->transposed = runs_along(call);
    key->n = attr_int(call->node, "group");
    key->k = w->dim[1];
    return true;
}

bool integer_conv_pack(struct kcall *call, const struct packed_key *key)
{
    (void)key;
    (void)kept_filter(call);
    return true;
}

void kern_IntegerConv(struct kcall *call)
{
    struct integer_conv v = conv_of(call);
    struct integer_results results = results_of(call, &v.per_unit);
    struct bytes once;
    const struct bytes *w = &once;
    if (tensor_elements(&call->out[0]) == 0)
        return;
    if (keeps_filter(call))
        w = kept_filter(call);
    else
        pack(call, &once, false);
    if (w->n == 1 && v.in == v.groups)
        integer_depthwise_run(&v, &results, w);
    else
        run_blocks(&v, &results, w);
}
