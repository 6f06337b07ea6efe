/* Attention of many rows (kern/attention/many_rows.c) for random sizes, types, masks, windows and lengths: results as in double, and the
 * same bits on any number of threads. */
#include "kern/attention/attention.h"
#include "tests/unit/main.h"

#include <math.h>
#include <string.h>

enum { MOST = 1 << 21, BEHIND = 1024 };
static uint32_t state;
static float q[MOST], k[MOST], v[MOST], bias[MOST], y[MOST], again[MOST], sink[8];
static char narrow_k[4 * MOST], narrow_v[4 * MOST];
static uint8_t allowed[MOST];
static int64_t offset[2], limit[2];

static int draw(int below)
{
    state = state * 1664525u + 1013904223u;
    return (int)((uint64_t)state * (uint64_t)below >> 32);
}

static void fill(float *x, int64_t n, float scale)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = ((float)draw(2001) - 1000) * 1e-3f * scale;
}

/* Heads whose rows alternate with another tensor's columns, in a narrower type, or quantised. NaN follows them. */
static struct head_rows heads_of(enum dtype t, float *x, char *narrow, int64_t batch, int64_t heads, int64_t rows, int64_t size)
{
    int64_t each = t == DT_I8 ? coded_rows_bytes(size) : size + draw(3), elements = batch * heads * rows * each;
    struct head_rows h = {t == DT_F32 ? (const void *)x : narrow, t, heads * rows * each, rows * each, each};
    fill(x, t == DT_I8 ? batch * heads * rows * size : elements, 2);
    if (t == DT_I8)
        for (int64_t i = 0; i < batch * heads * rows; i++) {
            coded_rows_write(x + i * size, size, narrow + i * each);
            coded_rows_read(narrow + i * each, 0, 1, size, x + i * size);
        }
    else if (t != DT_F32) {
        convert_from_f32(t, x, elements, narrow);
        convert_to_f32(t, narrow, elements, x);
        memset(narrow + elements * (int64_t)dtype_size(t), 0xff, BEHIND);
    } else
        memset(x + elements, 0xff, BEHIND);
    return h;
}

static float number(const struct head_rows *h, const float *x, int64_t size, int64_t b, int64_t head, int64_t row, int64_t i)
{
    if (h->dtype == DT_I8)
        return x[(b * h->batch + head * h->head + row * h->row) / coded_rows_bytes(size) * size + i];
    return x[b * h->batch + head * h->head + row * h->row + i];
}

/* A mask that ends, that excludes keys at both ends, and some rows; or numbers that exclude none. */
static void draw_mask(struct attention_core *a)
{
    int64_t dim[4] = {draw(2) ? a->batch : 1, draw(2) ? a->q_heads : 1, draw(4) ? a->rows : 1, a->keys - draw(3)}, n = dim[3];
    int kind = draw(5), slope = draw(3);
    if (kind == 0 || a->keys < 3)
        return;
    a->mask_keys = dim[3];
    for (int d = 3; d >= 0; n *= d > 0 ? dim[d - 1] : 1, d--)
        a->mask_step[d] = dim[d] == 1 ? 0 : n / dim[d];
    for (int64_t i = 0; i < n; i++) {
        int64_t row = i / dim[3] % dim[2], j = i % dim[3], edge = slope ? row + a->keys / 3 : a->keys - draw(9) % 4;
        bool keeps = j <= edge && j >= edge - a->keys / 2 && row % 17 != 16;
        bias[i] = kind == 1 ? ((float)draw(200) - 100) * 1e-2f : keeps ? 0 : kind == 2 ? -INFINITY : -3.4e38f;
        allowed[i] = keeps;
    }
    a->bias = kind < 4 ? bias : NULL;
    a->allowed = kind < 4 ? NULL : allowed;
}

static void draw_core(struct attention_core *a)
{
    static const enum dtype types[] = {DT_F32, DT_F32, DT_F16, DT_BF16, DT_I8};
    *a = (struct attention_core){.batch = 1 + draw(2), .kv_heads = 1 + draw(2), .rows = 5 + draw(draw(4) ? 30 : 200), .scale = 0.3f};
    a->size = 1 + draw(80);
    a->q_heads = a->kv_heads * (1 + draw(3));
    a->keys = draw(10) ? 1 + draw(draw(3) ? 60 : 600) : 0;
    a->value_size = 1 + draw(80);
    a->q = heads_of(DT_F32, q, NULL, a->batch, a->q_heads, a->rows, a->size);
    a->k = heads_of(types[draw(5)], k, narrow_k, a->batch, a->kv_heads, a->keys, a->size);
    a->v = heads_of(types[draw(5)], v, narrow_v, a->batch, a->kv_heads, a->keys, a->value_size);
    a->causal = draw(2);
    a->window = draw(4) ? -1 : 1 + draw(40);
    a->softcap = draw(4) ? 0 : 1.5f;
    a->sink = draw(4) ? NULL : sink;
    fill(sink, 8, 1);
    for (int b = 0; b < 2; b++) {
        offset[b] = draw(20);
        limit[b] = draw(2) ? a->keys : draw((int)a->keys + 1);
    }
    a->offset = draw(2) ? offset : NULL;
    a->limit = draw(2) ? limit : NULL;
    a->narrow = !draw(3);
    a->nan_rows = !draw(3);
    a->nan_to_zero = draw(2);
    draw_mask(a);
}

/* What is added to the score of a key; -INFINITY where it is not seen. */
static double addend(const struct attention_core *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    int64_t edge = i + (a->offset ? offset[b] : 0),
            at = b * a->mask_step[0] + h * a->mask_step[1] + i * a->mask_step[2] + j * a->mask_step[3];
    if ((a->causal && j > edge) || (a->window >= 0 && j <= edge - a->window) || (a->limit && j >= limit[b]))
        return -(double)INFINITY;
    if ((a->bias || a->allowed) && j >= a->mask_keys)
        return -(double)INFINITY;
    return a->bias ? (double)a->bias[at] : a->allowed && !a->allowed[at] ? -(double)INFINITY : 0;
}

/* Scores of a row; their exponentials, with the sum of those. */
static double weights(const struct attention_core *a, int64_t b, int64_t h, int64_t i, double *p, bool *any)
{
    double max = a->sink ? (double)sink[h] : -(double)INFINITY, sum = 0;
    *any = false;
    for (int64_t j = 0; j < a->keys; j++) {
        double dot = 0, more = addend(a, b, h, i, j);
        for (int64_t l = 0; l < a->size; l++)
            dot += (double)number(&a->q, q, a->size, b, h, i, l) *
                (double)number(&a->k, k, a->size, b, h / (a->q_heads / a->kv_heads), j, l);
        dot *= (double)a->scale;
        dot = a->softcap > 0 ? tanh(dot / (double)a->softcap) * (double)a->softcap : dot;
        p[j] = (double)(float)(dot + more);
        *any = *any || more > -(double)INFINITY;
        max = p[j] > max ? p[j] : max;
    }
    for (int64_t j = 0; j < a->keys; j++)
        sum += p[j] = exp(p[j] - max);
    return sum + (a->sink ? exp((double)sink[h] - max) : 0);
}

static void check_row(const struct attention_core *a, int64_t b, int64_t h, int64_t i)
{
    double p[700];
    bool any;
    double sum = weights(a, b, h, i, p, &any);
    bool zero = a->keys == 0 || (!any && !a->nan_rows) || (a->nan_to_zero && !(sum > 0));
    for (int64_t c = 0; c < a->value_size; c++) {
        double want = 0;
        for (int64_t j = 0; j < a->keys; j++)
            want += p[j] / sum * (double)number(&a->v, v, a->value_size, b, h / (a->q_heads / a->kv_heads), j, c);
        float found = y[b * a->y_batch + h * a->y_head + i * a->y_row + c];
        bool same = zero ? found == 0.0f : isnan(want) ? isnan(found) : fabs((double)found - want) < (a->narrow ? 3e-2 : 2e-5);
        ck_assert_msg(same, "row %d of head %d, of %d rows and %d keys: %g, not %g", (int)i, (int)h, (int)a->rows, (int)a->keys,
                      (double)found, zero ? 0 : want);
    }
}

START_TEST(rows_are_those_of_double)
{
    for (int r = 0; r < 40; r++) {
        struct attention_core a;
        state = (uint32_t)(_i * 40 + r);
        draw_core(&a);
        int64_t n = a.batch * a.q_heads * a.rows * a.value_size;
        struct tensor t = {.dtype = DT_F32, .rank = 1, .dim = {n}, .data = again};
        a.y = &t;
        a.y_row = a.value_size;
        a.y_head = a.rows * a.y_row;
        a.y_batch = a.q_heads * a.y_head;
        for (int threads = 3; threads > 0; threads -= 2, t.data = y) {
            struct kenv *env = kenv_new(threads, false);
            attention_core_run(&(struct kcall){.env = env}, &a);
            kenv_free(env);
        }
        ck_assert_msg(memcmp(y, again, (size_t)n * sizeof *y) == 0, "other bits on 3 threads");
        for (int64_t i = 0; i < a.batch * a.q_heads * a.rows; i++)
            check_row(&a, i / a.rows / a.q_heads, i / a.rows % a.q_heads, i % a.rows);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("many_rows");
    tcase_add_loop_test(unit_case(suite, "rows", NULL, NULL), rows_are_those_of_double, 0, 8);
    return unit_run(suite);
}
