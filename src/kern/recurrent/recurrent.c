/* recurrent: RNN, GRU and LSTM over whole sequences.
 *
 * The inputs of all steps are multiplied by W in one product. Each step then multiplies the hidden units by R, which is packed once, and
 * applies the gates. Directions and rows of the batch are divided among threads; each thread runs all steps of its rows. Storage of 16 bits
 * is computed in float32. The scales of 8-bit weights are applied to sums: of integers if the weights are constant (integers.c), else of
 * integers in float32. */
#include "kern/recurrent/recurrent.h"

#include "ir/operands.h"
#include "kern/gemm/gemm.h"

#include <math.h>
#include <string.h>

enum { FEW_INPUTS = 4 };

/* Kept between calls. */
struct packed {
    bool ready;
    void *product; /* W packed by the library */
    struct tiles w[MOST_DIRECTIONS], r[MOST_DIRECTIONS][MOST_PARTS];
    const struct codes *w_codes[MOST_DIRECTIONS], *r_codes[MOST_DIRECTIONS];
};

/* ---- operands ---------------------------------------------------------------------------------------------------------------- */

static const struct tensor *operand(const struct recurrence *r, int i)
{
    return i <= IN_LSTM_initial_h || r->cell->remembers ? kcall_in(r->call, i) : NULL;
}

static void read_directions(struct recurrence *r)
{
    const struct kcall *call = r->call;
    const char *direction = attr_string(call->node, "direction");
    int own = call->node->op->nin - 1;
    const struct tensor *backwards = strcmp(call->node->domain, "tpc") == 0 ? kcall_in(call, own) : NULL;
    for (int d = 0; d < r->directions; d++)
        r->backwards[d] = backwards ? ((const uint8_t *)backwards->data)[d] != 0 : d == 1 || strcmp(direction, "reverse") == 0;
    for (int d = 0; d < r->directions; d++)
        gates_read(call, backwards ? 0 : d * r->cell->functions, r->cell->functions, r->gate[d]);
}

static struct recurrence recurrence_of(struct kcall *call, const struct cell *cell, bool quantized)
{
    struct recurrence r = {.call = call, .cell = cell, .quantized = quantized, .clip = INFINITY};
    const struct tensor *x = &call->in[IN_LSTM_X], *w = &call->in[IN_LSTM_W], *state = &call->in[IN_LSTM_R];
    r.batch_first = attr_int(call->node, "layout") != 0;
    r.directions = w->dim[0];
    r.steps = x->dim[r.batch_first];
    r.batch = x->dim[!r.batch_first];
    r.inputs = x->dim[2];
    r.hidden = state->dim[quantized ? 1 : 2];
    r.own = w->dim[quantized ? 2 : 1] / cell->gates;
    if (x->dtype != DT_F32 && !dtype_is_half(x->dtype))
        kcall_bad_type(call, x->dtype);
    require(r.directions <= MOST_DIRECTIONS);
    if (attr_is_set(call->node, "clip") && attr_float(call->node, "clip") > 0)
        r.clip = (float)attr_float(call->node, "clip");
    read_directions(&r);
    return r;
}

/* An operand in float32: in place, or converted into scratch. */
static const float *floats(const struct tensor *t, float **room)
{
    float *to = *room;
    if (t->dtype == DT_F32)
        return t->data;
    convert_to_f32(t->dtype, t->data, tensor_elements(t), to);
    *room += tensor_elements(t);
    return to;
}

static int64_t floats_room(const struct recurrence *r, int i)
{
    const struct tensor *t = operand(r, i);
    return t && t->dtype != DT_F32 ? tensor_elements(t) : 0;
}

/* ---- bias and scales --------------------------------------------------------------------------------------------------------- */

/* Both biases are added to the inputs, except for the last gate of a GRU that resets after its product. */
static void read_bias(struct recurrence *r, float **room)
{
    const struct tensor *t = operand(r, IN_LSTM_B);
    int64_t n = recurrence_columns(r), added = r->resets_last ? n - r->own : n;
    float *bias = *room, *reset = bias + r->directions * n;
    *room = reset + r->directions * r->own;
    const float *from = t ? floats(t, room) : NULL;
    memset(bias, 0, (size_t)(r->directions * (n + r->own)) * sizeof *bias);
    for (int64_t d = 0; from && d < r->directions; d++, from += 2 * n) {
        for (int64_t j = 0; j < n; j++)
            bias[d * n + j] = j < added ? from[j] + from[n + j] : from[j];
        for (int64_t j = added; j < n; j++)
            reset[d * r->own + j - added] = from[n + j];
    }
    r->bias = bias;
    r->reset_bias = reset;
}

/* One per direction, or one per column of it. */
static float at_column(const struct tensor *t, int64_t columns, int64_t d, int64_t j)
{
    float number = 0;
    int64_t each = t->rank == 2 && t->dim[1] == columns ? columns : 1, i = d * each + (each > 1 ? j : 0);
    if (dtype_fits_f32(t->dtype))
        convert_to_f32(t->dtype, element_at_const(t->data, dtype_size(t->dtype), i), 1, &number);
    else
        dequant_load(t, i, 1, &number);
    return number;
}

static float *scales_of(const struct recurrence *r, int i, float **room)
{
    int64_t n = recurrence_columns(r);
    float *to = *room;
    *room += r->directions * n;
    for (int64_t d = 0; d < r->directions; d++)
        for (int64_t j = 0; j < n; j++)
            to[d * n + j] = at_column(&r->call->in[i], n, d, j);
    return to;
}

/* ---- packing ----------------------------------------------------------------------------------------------------------------- */

/* Columns from.. of direction d of a weight of k rows, as tiles. room: for a copy in float32. */
static struct tiles pack_columns(const struct recurrence *r, int i, int64_t d, int64_t from, int64_t n, int64_t k, float *room, float *to)
{
    const struct tensor *w = &r->call->in[i];
    int64_t columns = recurrence_columns(r), each = columns * k;
    if (!r->quantized && w->dtype == DT_F32)
        return tiles_pack(to, n, k, (const float *)w->data + d * each + from * k, 1, k);
    if (!r->quantized) {
        convert_to_f32(w->dtype, element_at_const(w->data, dtype_size(w->dtype), d * each + from * k), n * k, room);
        return tiles_pack(to, n, k, room, 1, k);
    }
    for (int64_t j = 0; j < columns; j++)
        room[each + j] = at_column(&r->call->in[i == IN_LSTM_W ? IN_DynamicQuantizeLSTM_W_zero_point : IN_DynamicQuantizeLSTM_R_zero_point],
                                   columns, d, j);
    dequant_load(w, d * each, each, room);
    for (int64_t l = 0; l < k; l++)
        for (int64_t j = 0; j < columns; j++)
            room[l * columns + j] -= room[each + j];
    return tiles_pack(to, n, k, room + from, columns, 1);
}

static int64_t tile_numbers(const struct recurrence *r, int64_t n, int64_t k)
{
    return (int64_t)(tiles_bytes(r->call, n, k) / sizeof(float));
}

static bool is_constant(const struct kcall *call, int i)
{
    return call->cache && call->in_constant && call->in_constant[i] &&
        (call->nin <= IN_DynamicQuantizeLSTM_W_zero_point || !kcall_in(call, IN_DynamicQuantizeLSTM_W_zero_point) ||
         (call->in_constant[IN_DynamicQuantizeLSTM_W_zero_point] && call->in_constant[IN_DynamicQuantizeLSTM_R_zero_point]));
}

static float *copy_room(const struct recurrence *r, int64_t k)
{
    return kenv_room(r->call->env, ROOM_A, kcall_bytes(r->call, recurrence_columns(r) * (k + 1), sizeof(float)));
}

/* R by direction and part, kept if it is a weight. */
static void pack_recurrent(struct recurrence *r, struct packed *kept)
{
    int64_t h = r->hidden, numbers = 0, size[MOST_PARTS] = {r->cell->split * r->own, (r->cell->gates - r->cell->split) * r->own};
    for (int part = 0; part < r->cell->parts; part++)
        numbers += r->directions * tile_numbers(r, size[part], h);
    size_t bytes = kcall_bytes(r->call, numbers, sizeof(float));
    if (kept && kept->ready) {
        memcpy(r->r, kept->r, sizeof r->r);
        return;
    }
    float *to = kept ? kenv_weights(r->call->env, bytes) : kenv_room(r->call->env, ROOM_PANELS, bytes), *copy = copy_room(r, h);
    for (int d = 0; d < r->directions; d++)
        for (int part = 0; part < r->cell->parts; part++, to += tile_numbers(r, size[part - 1], h))
            r->r[d][part] = pack_columns(r, IN_LSTM_R, d, part * size[0], size[part], h, copy, to);
    if (!kept)
        return;
    memcpy(kept->r, r->r, sizeof kept->r);
    kept->ready = true;
}

/* W by direction. */
static void pack_inputs(const struct recurrence *r, struct packed *kept, struct tiles *w)
{
    int64_t n = recurrence_columns(r), numbers = tile_numbers(r, n, r->inputs);
    if (kept && kept->w[0].at) {
        memcpy(w, kept->w, sizeof kept->w);
        return;
    }
    size_t bytes = kcall_bytes(r->call, r->directions * numbers, sizeof(float));
    float *to = kept ? kenv_weights(r->call->env, bytes) : kenv_room(r->call->env, ROOM_TURN_K, bytes), *copy = copy_room(r, r->inputs);
    for (int d = 0; d < r->directions; d++)
        w[d] = pack_columns(r, IN_LSTM_W, d, 0, n, r->inputs, copy, to + d * numbers);
    if (kept)
        memcpy(kept->w, w, sizeof kept->w);
}

/* 8-bit weights as integers; false if only float32 is exact enough. */
static bool pack_integers(struct recurrence *r, struct packed *kept)
{
    struct kcall *call = r->call;
    int64_t n = recurrence_columns(r);
    if (!r->quantized || !kept || n == 0 || r->hidden > INTEGERS_MOST || r->inputs > INTEGERS_MOST)
        return false;
    for (int64_t d = 0; d < r->directions && !kept->ready; d++) {
        kept->w_codes[d] = integers_pack(call, &call->in[IN_LSTM_W], &call->in[IN_DynamicQuantizeLSTM_W_zero_point], d, n, r->inputs);
        kept->r_codes[d] = integers_pack(call, &call->in[IN_LSTM_R], &call->in[IN_DynamicQuantizeLSTM_R_zero_point], d, n, r->hidden);
    }
    memcpy(r->codes, kept->r_codes, sizeof r->codes);
    kept->ready = true;
    return true;
}

/* ---- the inputs of all steps ------------------------------------------------------------------------------------------------- */

struct projection {
    const struct recurrence *r;
    const struct tiles *w;
    const float *x, *scale; /* scale: of the columns, if quantised */
    float step, *y;
    const struct codes *const *codes; /* instead of w and x, with digits and their zero point */
    const int8_t *digits;
    int zero;
};

enum { INPUT_ROWS = 32 };

static void project_integers(const struct projection *p, int64_t from, int64_t m)
{
    const struct recurrence *r = p->r;
    int64_t n = recurrence_columns(r);
    float *c[INPUT_ROWS];
    for (int64_t d = 0; d < r->directions; d++) {
        for (int64_t i = 0; i < m; i++) {
            c[i] = p->y + ((from + i) * r->directions + d) * n;
            memcpy(c[i], r->bias + d * n, (size_t)n * sizeof *c[i]);
        }
        integers_product(p->codes[d], m, p->digits + from * integers_row(p->codes[d]), p->zero, p->step, p->scale + d * n, c);
    }
}

/* Blocks lo..hi of rows. */
static void project_range(void *data, int64_t lo, int64_t hi)
{
    const struct projection *p = data;
    const struct recurrence *r = p->r;
    int64_t n = recurrence_columns(r), rows = r->steps * r->batch, width = r->directions * n;
    const float *a[INPUT_ROWS];
    float *c[INPUT_ROWS];
    for (int64_t block = lo; block < hi; block++) {
        int64_t from = block * INPUT_ROWS, m = rows - from < INPUT_ROWS ? rows - from : INPUT_ROWS;
        if (p->codes)
            project_integers(p, from, m);
        for (int64_t d = 0; d < r->directions && !p->codes; d++) {
            for (int64_t i = 0; i < m; i++) {
                a[i] = p->x + (from + i) * r->inputs;
                c[i] = p->y + (from + i) * width + d * n;
                if (p->scale)
                    memset(c[i], 0, (size_t)n * sizeof *c[i]);
                else
                    memcpy(c[i], r->bias + d * n, (size_t)n * sizeof *c[i]);
            }
            tiles_product(&p->w[d], m, a, c);
            for (int64_t i = 0; p->scale && i < m; i++)
                for (int64_t j = 0; j < n; j++)
                    c[i][j] = c[i][j] * (p->step * p->scale[d * n + j]) + r->bias[d * n + j];
        }
    }
}

/* The inputs as integers: digits if weights are integers, else float32 minus their zero point. */
static void round_inputs(const struct recurrence *r, struct projection *p)
{
    int64_t rows = r->steps * r->batch, n = rows * r->inputs, width = p->codes ? integers_row(p->codes[0]) : r->inputs;
    size_t bytes = kcall_bytes(r->call, rows, (size_t)width * (p->codes ? 1 : sizeof(float)));
    void *to = kenv_room(r->call->env, ROOM_B, bytes);
    struct rounding rounding = rounding_of(1, n, &p->x);
    for (int64_t i = 0; p->codes && i < rows; i++)
        rounding_digits(rounding, r->inputs, width, p->x + i * r->inputs, (int8_t *)to + i * width);
    p->digits = to;
    p->zero = (int)rounding.zero;
    p->step = rounding.scale;
    if (p->codes)
        return;
    rounding_apply(rounding, n, p->x, to);
    p->x = to;
}

static void project(struct recurrence *r, struct packed *kept, const float *w_scale, const float *x)
{
    int64_t rows = r->steps * r->batch, n = r->directions * recurrence_columns(r);
    const struct tensor *w = &r->call->in[IN_LSTM_W];
    float *y = kenv_room(r->call->env, ROOM_C, kcall_bytes(r->call, rows * n, sizeof *y));
    struct tiles tiles[MOST_DIRECTIONS];
    bool library = !r->quantized && kept && n > 0 && rows > FEW_INPUTS && r->inputs > 0 && w->dtype == DT_F32 &&
        !kenv_deterministic(r->call->env);
    const struct tensor in = tensor_of_floats(x);
    r->projected = y;
    if (library && dnnl_product_packed(r->call->env, &kept->product, rows, n, r->inputs, &in, w, true, r->bias, y))
        return;
    struct projection p = {.r = r, .w = tiles, .x = x, .scale = w_scale, .y = y, .codes = r->codes[0] ? kept->w_codes : NULL};
    if (!p.codes)
        pack_inputs(r, kept, tiles);
    if (r->quantized)
        round_inputs(r, &p);
    kenv_parallel_for(r->call->env, (rows + INPUT_ROWS - 1) / INPUT_ROWS, INPUT_ROWS * n * r->inputs / 8 + 1, project_range, &p);
}

/* ---- steps ------------------------------------------------------------------------------------------------------------------- */

int64_t recurrence_room(const struct recurrence *r, int64_t rows)
{
    int64_t digits = r->codes[0] ? integers_row(r->codes[0]) / (int64_t)sizeof(float) : 0;
    return rows * (r->own + r->hidden + recurrence_columns(r) + r->hidden + digits + 8 * ROW_POINTER);
}

/* Rows lo..hi of the batch in one direction, on one thread. */
struct lane {
    const struct recurrence *r;
    int64_t d, lo, hi;
    float *state, *z, *room; /* [rows, hidden] of h, then [rows, own] of this rank's part and of c; [rows, g own] */
    float **h, **own, **c, **now_h, **now_own, **now_c, **now_z; /* by row; the rows that run this step */
    int64_t *length;
};

/* The index of [d, b] or [b, d], with this many units. */
static int64_t state_at(const struct recurrence *r, int64_t d, int64_t b, int64_t units)
{
    return (r->batch_first ? b * r->directions + d : d * r->batch + b) * units;
}

static void read_state(const struct lane *l, int i, int64_t units, float *const *to)
{
    const struct tensor *t = operand(l->r, i);
    for (int64_t b = l->lo; b < l->hi; b++)
        if (t)
            convert_to_f32(t->dtype, element_at_const(t->data, dtype_size(t->dtype), state_at(l->r, l->d, b, units)), units, to[b - l->lo]);
        else
            memset(to[b - l->lo], 0, (size_t)units * sizeof(float));
}

/* For a sequence of length 0, the state is zero, as in ONNX Runtime. */
static void write_state(const struct lane *l, int i, int64_t units, float *const *from)
{
    struct tensor *t = kcall_out(l->r->call, i);
    for (int64_t b = l->lo; t && b < l->hi; b++) {
        if (operand(l->r, IN_LSTM_sequence_lens) && l->length[b - l->lo] == 0)
            memset(from[b - l->lo], 0, (size_t)units * sizeof(float));
        convert_from_f32(t->dtype, from[b - l->lo], units, element_at(t->data, dtype_size(t->dtype), state_at(l->r, l->d, b, units)));
    }
}

static void write_step(const struct lane *l, int64_t t, int64_t b, const float *h)
{
    const struct recurrence *r = l->r;
    struct tensor *y = kcall_out(r->call, 0);
    int64_t at = r->batch_first ? (b * r->steps + t) * r->directions + l->d : (t * r->directions + l->d) * r->batch + b;
    if (y)
        convert_from_f32(y->dtype, h, r->hidden, element_at(y->data, dtype_size(y->dtype), at * r->hidden));
}

static int64_t length_of(const struct recurrence *r, int64_t b)
{
    const struct tensor *t = operand(r, IN_LSTM_sequence_lens);
    int64_t n = t ? kcall_index_at(r->call, t, b) : r->steps;
    if (n < 0 || n > r->steps)
        fail("%s: sequence %lld has %lld steps, expected 0 to %lld", kcall_where(r->call), (long long)b, (long long)n, (long long)r->steps);
    return n;
}

static int64_t time_of(const struct lane *l, int64_t step, int64_t row)
{
    return l->r->backwards[l->d] ? l->length[row] - 1 - step : step;
}

static void take_step(const struct lane *l, int64_t step)
{
    const struct recurrence *r = l->r;
    struct recurrent_rows now = {.n = 0, .h = l->now_h, .own = l->now_own, .c = l->now_c, .z = l->now_z};
    int64_t width = recurrence_columns(r);
    for (int64_t i = 0; i < l->hi - l->lo; i++) {
        if (step >= l->length[i])
            continue;
        int64_t t = time_of(l, step, i), b = l->lo + i, row = r->batch_first ? b * r->steps + t : t * r->batch + b;
        l->now_h[now.n] = l->h[i];
        l->now_own[now.n] = l->own[i];
        l->now_c[now.n] = l->c[i];
        l->now_z[now.n] = l->z + now.n * width;
        memcpy(l->now_z[now.n++], r->projected + (row * r->directions + l->d) * width, (size_t)width * sizeof(float));
    }
    if (now.n > 0)
        r->cell->step(r, (int)l->d, &now, l->room);
    recurrence_gather(r, now.n, (const float *const *)l->now_own, l->now_h);
    for (int64_t i = 0; i < l->hi - l->lo; i++)
        if (step < l->length[i])
            write_step(l, time_of(l, step, i), l->lo + i, l->h[i]);
}

/* This rank's units, out of all. */
static void take_own(const struct units *units, const float *all, float *own)
{
    for (int i = 0; i < units->n; own += units->at[i].hi - units->at[i].lo, i++)
        memcpy(own, all + units->at[i].lo, (size_t)(units->at[i].hi - units->at[i].lo) * sizeof *own);
}

static void run_lane(struct lane *l)
{
    const struct units *units = l->r->call->units;
    int64_t longest = 0, rows = l->hi - l->lo;
    for (int64_t i = 0; i < rows; i++) {
        l->h[i] = l->state + i * l->r->hidden;
        l->own[i] = units ? l->state + rows * l->r->hidden + i * l->r->own : l->h[i];
        l->c[i] = l->state + rows * (l->r->hidden + l->r->own) + i * l->r->own;
        l->length[i] = length_of(l->r, l->lo + i);
        longest = l->length[i] > longest ? l->length[i] : longest;
    }
    read_state(l, IN_LSTM_initial_h, l->r->hidden, l->h);
    read_state(l, IN_LSTM_initial_c, l->r->own, l->c);
    for (int64_t i = 0; units && i < rows; i++)
        take_own(units, l->h[i], l->own[i]);
    for (int64_t step = 0; step < longest; step++)
        take_step(l, step);
    write_state(l, 1, l->r->hidden, l->h);
    if (l->r->cell->remembers)
        write_state(l, 2, l->r->own, l->c);
}

struct lanes {
    const struct recurrence *r;
    int64_t pieces, room; /* of the batch; floats per lane */
    float *at;
};

static int64_t lane_numbers(const struct recurrence *r, int64_t rows)
{
    return rows * (r->hidden + 2 * r->own + recurrence_columns(r) + 8 * ROW_POINTER) + recurrence_room(r, rows) + 16;
}

static void lane_range(void *data, int64_t lo, int64_t hi)
{
    const struct lanes *all = data;
    const struct recurrence *r = all->r;
    for (int64_t i = lo; i < hi; i++) {
        int64_t d = i / all->pieces, piece = i % all->pieces;
        struct lane l = {.r = r, .d = d, .lo = piece * r->batch / all->pieces, .hi = (piece + 1) * r->batch / all->pieces};
        int64_t rows = l.hi - l.lo;
        l.h = (float **)(void *)(all->at + i * all->room);
        l.own = l.h + rows;
        l.c = l.own + rows;
        l.now_h = l.c + rows;
        l.now_own = l.now_h + rows;
        l.now_c = l.now_own + rows;
        l.now_z = l.now_c + rows;
        l.length = (int64_t *)(void *)(l.now_z + rows);
        l.room = (float *)(void *)(l.length + rows);
        l.state = l.room + recurrence_room(r, rows);
        l.z = l.state + rows * (r->hidden + 2 * r->own);
        run_lane(&l);
    }
}

/* All rows of the quantised form share a scale in each step. Ranks that exchange hidden units do so in one order. */
static void run_lanes(struct recurrence *r)
{
    int64_t wanted = (kenv_threads(r->call->env) + r->directions - 1) / r->directions;
    int64_t pieces = r->quantized || r->call->units || wanted < 1 ? 1 : wanted < r->batch ? wanted : r->batch;
    struct lanes all = {.r = r, .pieces = pieces, .room = (lane_numbers(r, (r->batch + pieces - 1) / pieces) + 15) / 16 * 16};
    all.at = kenv_room(r->call->env, ROOM_KERNEL, kcall_bytes(r->call, r->directions * pieces * all.room, sizeof *all.at));
    if (r->call->units)
        lane_range(&all, 0, r->directions);
    else
        kenv_parallel_for(r->call->env, r->directions * pieces,
                          r->steps * (r->batch / pieces + 1) * recurrence_columns(r) * r->hidden / 8 + 1, lane_range, &all);
}

/* ---- the ops ----------------------------------------------------------------------------------------------------------------- */

static void run_recurrence(struct recurrence *r)
{
    static const int converted[] = {IN_LSTM_X, IN_LSTM_B, IN_LSTM_P};
    struct kcall *call = r->call;
    int64_t n = recurrence_columns(r), numbers = 0;
    struct packed *kept = NULL;
    for (size_t i = 0; i < sizeof converted / sizeof *converted; i++)
        numbers += floats_room(r, converted[i]);
    float *room = kenv_room(call->env, ROOM_JOIN, kcall_bytes(call, numbers + r->directions * (3 * n + r->own), sizeof *room));
    if (is_constant(call, IN_LSTM_W) && is_constant(call, IN_LSTM_R)) {
        if (!*call->cache)
            *call->cache = kenv_keep(call->env, sizeof *kept);
        kept = *call->cache;
    }
    read_bias(r, &room);
    r->peephole = operand(r, IN_LSTM_P) ? floats(operand(r, IN_LSTM_P), &room) : NULL;
    float *w_scale = r->quantized ? scales_of(r, IN_DynamicQuantizeLSTM_W_scale, &room) : NULL;
    r->r_scale = r->quantized ? scales_of(r, IN_DynamicQuantizeLSTM_R_scale, &room) : NULL;
    if (!pack_integers(r, kept))
        pack_recurrent(r, kept);
    project(r, kept, w_scale, floats(&call->in[IN_LSTM_X], &room));
    run_lanes(r);
}

static void run_cell(struct kcall *call, const struct cell *cell, bool quantized)
{
    struct recurrence r = recurrence_of(call, cell, quantized);
    r.resets_last = cell == &cell_gru && attr_int(call->node, "linear_before_reset") != 0;
    r.forgets_input = cell == &cell_lstm && attr_int(call->node, "input_forget") != 0;
    if (kcall_out(call, 0)) /* after the end of a sequence */
        memset(call->out[0].data, 0, tensor_bytes(&call->out[0]));
    if (r.directions * r.batch * r.hidden > 0)
        run_recurrence(&r);
}

KERNEL_IS(RNN, run_cell(call, &cell_rnn, false))
KERNEL_IS(GRU, run_cell(call, &cell_gru, false))
KERNEL_IS(LSTM, run_cell(call, &cell_lstm, false))
KERNEL_IS(DynamicQuantizeLSTM, run_cell(call, &cell_lstm, true))
