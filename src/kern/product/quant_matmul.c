/* quant_matmul: products with a matrix of integers that have scales: as codes (scaled_codes.c), or decoded a panel at a time
 * (packed_gemm.c).
 *
 * Rows that share their scales (all of them in most files, else the rows of a block) are summed before scaling. */
#include "kern/chunk/chunk.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"
#include "kern/product/product.h"

#include <string.h>

enum { PANEL = 1 << 17, MOST_WIDTH = 256 }; /* a panel: elements that stay in the L2 cache */

struct coded {
    struct panels panels; /* first member */
    struct scaled s;
    const struct tensor *x;
    int64_t same; /* rows of x, from a multiple of that on, with the same scales */
};

static const struct coded *coded_of(const struct panels *panels)
{
    return (const struct coded *)(const void *)panels;
}

static SIMD void add_less(float *sum, float a, const float *x, const float *zero, int64_t n)
{
    LOOP for (int64_t i = 0; i < n; i++) sum[i] += a * (x[i] - zero[i]);
}

static SIMD void add_scaled(float *sum, const float *part, const float *scale, int64_t n)
{
    LOOP for (int64_t i = 0; i < n; i++) sum[i] += part[i] * scale[i];
}

/* ---- x [k, n] ------------------------------------------------------------------------------------------------------------------------ */

static void rows_unpack(const struct panels *panels, int64_t from, int64_t count, float *panel)
{
    const struct coded *w = coded_of(panels);
    float scale[MOST_WIDTH], zero[MOST_WIDTH];
    for (int64_t l = 0; l < panels->k; l++, panel += panels->width) {
        if (l % w->same == 0)
            scaled_read(&w->s, l, from, count, scale, zero);
        dequant_load(w->x, l * panels->n + from, count, panel);
        scaled_apply(panel, scale, zero, count);
    }
}

static void rows_row(const struct panels *panels, const float *a, int64_t from, int64_t count, float *c)
{
    const struct coded *w = coded_of(panels);
    float scale[MOST_WIDTH], zero[MOST_WIDTH], x[MOST_WIDTH], part[MOST_WIDTH];
    memset(c, 0, (size_t)count * sizeof *c);
    for (int64_t l = 0, end; l < panels->k; l = end) {
        end = panels->k - l < w->same ? panels->k : l + w->same;
        scaled_read(&w->s, l, from, count, scale, zero);
        memset(part, 0, (size_t)count * sizeof *part);
        for (int64_t i = l; i < end; i++) {
            dequant_load(w->x, i * panels->n + from, count, x);
            add_less(part, a[i], x, zero, count);
        }
        add_scaled(c, part, scale, count);
    }
}

/* ---- x [n, k] ------------------------------------------------------------------------------------------------------------------------ */

static void columns_unpack(const struct panels *panels, int64_t from, int64_t count, float *panel)
{
    const struct coded *w = coded_of(panels);
    for (int64_t j = 0; j < count; j++)
        for (int64_t l = 0; l < panels->k; l += CHUNK)
            scaled_decode(&w->s, w->x, from + j, l, panels->k - l < CHUNK ? panels->k - l : CHUNK, panel + j * panels->k + l);
}

static void columns_row(const struct panels *panels, const float *a, int64_t from, int64_t count, float *c)
{
    const struct coded *w = coded_of(panels);
    float part[CHUNK];
    for (int64_t j = 0; j < count; j++) {
        c[j] = 0;
        for (int64_t l = 0; l < panels->k; l += CHUNK) {
            int64_t n = panels->k - l < CHUNK ? panels->k - l : CHUNK;
            scaled_decode(&w->s, w->x, from + j, l, n, part);
            c[j] += gemm_dot(a + l, part, n);
        }
    }
}

/* ---- the op -------------------------------------------------------------------------------------------------------------------------- */

static void product_by_panels(struct kcall *call, int64_t m, float *out)
{
    const struct tensor *a = &call->in[0];
    struct coded w = {.s = scaled_of(call, 1), .x = &call->in[1]};
    bool columns = attr_int(call->node, "transposed") != 0;
    int64_t n = w.x->dim[!columns], k = w.x->dim[columns];
    int64_t width = m <= PANEL_FEW_ROWS || k == 0 || PANEL / k > MOST_WIDTH ? MOST_WIDTH : PANEL / k;
    w.same = !w.s.below && !w.s.wide && k > 0 ? k : w.s.below == 1 ? w.s.block : 1;
    w.panels = (struct panels){.n = n,
                               .k = k,
                               .width = kenv_deterministic(call->env) ? TILE
                                   : width < 16                       ? 16
                                                                      : width,
                               .by_column = columns,
                               .unpack = columns ? columns_unpack : rows_unpack,
                               .row = columns ? columns_row : rows_row};
    if (k == 0 && !call->share)
        memset(out, 0, kcall_bytes(call, m * n, sizeof *out));
    else
        packed_gemm(call, &w.panels, m, tensor_f32(call->env, a, ROOM_TURN_K), out);
}

void kern_QuantMatMul(struct kcall *call)
{
    const struct tensor *a = &call->in[0];
    struct tensor *y = &call->out[0];
    int64_t m = tensor_dims_product(a->dim, 0, a->rank - 1);
    if (tensor_elements(y) == 0)
        return;
    float *out = kcall_result_f32(call, y);
    const struct codes *codes = scaled_codes(call);
    if (codes)
        codes_product(call, codes, m, nbits_codes_digits(call), tensor_f32(call->env, a, ROOM_TURN_K), out);
    else
        product_by_panels(call, m, out);
    kcall_result_store(out, y);
}

/* Rows of a table: indices, then the table, its scale and its zero point. */
void kern_QuantGather(struct kcall *call)
{
    const struct tensor *index = &call->in[0], *x = &call->in[1];
    struct tensor *y = &call->out[0];
    struct scaled s = scaled_of(call, 1);
    float part[CHUNK];
    for (int64_t i = 0; i < tensor_elements(index) && s.inner > 0; i++) {
        int64_t row = kcall_index(call, 0, i, x->dim[0], 0);
        for (int64_t j = 0; j < s.inner; j += CHUNK) {
            int64_t n = s.inner - j < CHUNK ? s.inner - j : CHUNK;
            scaled_decode(&s, x, row, j, n, part);
            convert_from_f32(y->dtype, part, n, element_at(y->data, dtype_size(y->dtype), i * s.inner + j));
        }
    }
}
