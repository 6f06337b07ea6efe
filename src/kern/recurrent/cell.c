/* cell: one step of RNN, GRU and LSTM. z of a row is [gates, own], h and c are its state. */
#include "kern/recurrent/recurrent.h"

#include <math.h>

static void apply(const struct recurrence *r, const struct gate *gate, float *x, int64_t n)
{
    if (isfinite(r->clip))
        for (int64_t i = 0; i < n; i++)
            x[i] = x[i] > r->clip ? r->clip : x[i] < -r->clip ? -r->clip : x[i];
    gate->apply(x, n, gate->alpha, gate->beta);
}

/* x += a b */
static SIMD void add_product(int64_t n, const float *a, const float *b, float *x)
{
    LOOP for (int64_t i = 0; i < n; i++) x[i] += a[i] * b[i];
}

static SIMD void multiply(int64_t n, const float *a, const float *b, float *to)
{
    LOOP for (int64_t i = 0; i < n; i++) to[i] = a[i] * b[i];
}

/* ---- RNN: h = f(x W + h R + bias) ---- */

static void rnn_step(const struct recurrence *r, int d, const struct recurrent_rows *rows, float *room)
{
    recurrence_add(r, d, 0, rows->n, (const float *const *)rows->h, rows->z, room);
    for (int64_t i = 0; i < rows->n; i++) {
        apply(r, &r->gate[d][0], rows->z[i], r->own);
        for (int64_t j = 0; j < r->own; j++)
            rows->own[i][j] = rows->z[i][j];
    }
}

const struct cell cell_rnn = {"RNN", 1, 1, 1, 1, false, rnn_step};

/* ---- GRU: gates z, r, n ---- */

/* h = (1 - z) n + z h */
static SIMD void mix(int64_t n, const float *z, const float *new, float *h)
{
    LOOP for (int64_t i = 0; i < n; i++) h[i] = (1 - z[i]) * new[i] + z[i] * h[i];
}

/* The left operand of R if the reset comes first: r h, of all units. */
static const float *const *gather_reset(const struct recurrence *r, int64_t rows, float **reset, float **all, float *each)
{
    if (!r->call->units)
        return (const float *const *)reset;
    for (int64_t i = 0; i < rows; i++)
        all[i] = each + i * r->hidden;
    recurrence_gather(r, rows, (const float *const *)reset, all);
    return (const float *const *)all;
}

/* The reset comes first: n = g(x W + (r h) R), or last: n = g(x W + r (h R + bias)). */
static void gru_step(const struct recurrence *r, int d, const struct recurrent_rows *rows, float *room)
{
    int64_t n = r->own;
    float **reset = (float **)(void *)room, **to = reset + rows->n, **all = to + rows->n, *each = room + 3 * rows->n * ROW_POINTER;
    const float *const *read = (const float *const *)rows->h;
    room = each + rows->n * (n + r->hidden);
    recurrence_add(r, d, 0, rows->n, (const float *const *)rows->h, rows->z, room);
    for (int64_t i = 0; i < rows->n; i++) {
        apply(r, &r->gate[d][0], rows->z[i], 2 * n);
        reset[i] = each + i * n;
        to[i] = r->resets_last ? reset[i] : rows->z[i] + 2 * n;
        for (int64_t j = 0; j < n; j++)
            reset[i][j] = r->resets_last ? r->reset_bias[d * n + j] : rows->z[i][n + j] * rows->own[i][j];
    }
    if (!r->resets_last)
        read = gather_reset(r, rows->n, reset, all, each + rows->n * n);
    recurrence_add(r, d, 1, rows->n, read, to, room);
    for (int64_t i = 0; i < rows->n; i++) {
        float *new = rows->z[i] + 2 * n;
        if (r->resets_last)
            add_product(n, rows->z[i] + n, reset[i], new);
        apply(r, &r->gate[d][1], new, n);
        mix(n, rows->z[i], new, rows->own[i]);
    }
}

const struct cell cell_gru = {"GRU", 3, 2, 2, 2, false, gru_step};

/* ---- LSTM: gates i, o, f, c ---- */

/* c = f c + i g */
static SIMD void remember(int64_t n, const float *i, const float *f, const float *g, float *c)
{
    LOOP for (int64_t k = 0; k < n; k++) c[k] = f[k] * c[k] + i[k] * g[k];
}

/* Peepholes are for i, o, f. */
static void lstm_row(const struct recurrence *r, int d, float *z, float *h, float *c)
{
    int64_t n = r->own;
    const struct gate *f = &r->gate[d][0], *g = &r->gate[d][1];
    const float *p = r->peephole ? r->peephole + d * 3 * n : NULL;
    if (p) {
        add_product(n, p, c, z);
        add_product(n, p + 2 * n, c, z + 2 * n);
        apply(r, f, z, n);
        apply(r, f, z + 2 * n, n);
    } else {
        apply(r, f, z, 3 * n);
    }
    for (int64_t k = 0; r->forgets_input && k < n; k++)
        z[2 * n + k] = 1 - z[k];
    apply(r, g, z + 3 * n, n);
    remember(n, z, z + 2 * n, z + 3 * n, c);
    if (p) {
        add_product(n, p + n, c, z + n);
        apply(r, f, z + n, n);
    }
    for (int64_t k = 0; k < n; k++)
        z[k] = c[k];
    r->gate[d][2].apply(z, n, r->gate[d][2].alpha, r->gate[d][2].beta);
    multiply(n, z, z + n, h);
}

static void lstm_step(const struct recurrence *r, int d, const struct recurrent_rows *rows, float *room)
{
    recurrence_add(r, d, 0, rows->n, (const float *const *)rows->h, rows->z, room);
    for (int64_t i = 0; i < rows->n; i++)
        lstm_row(r, d, rows->z[i], rows->own[i], rows->c[i]);
}

const struct cell cell_lstm = {"LSTM", 4, 3, 1, 4, true, lstm_step};
