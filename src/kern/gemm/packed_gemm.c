/* packed_gemm: products with a weight stored narrower than float32. The weight is never unpacked in full: a panel, a few columns of it, is
 * unpacked into scratch that stays in the L2 cache and is multiplied there. A few rows (a decode step) are multiplied directly from
 * storage: such a product takes the time of reading the weight once.
 *
 * Sums are float32. In deterministic mode all products run chunk by chunk (chunk_gemm.c). */
#include "kern/chunk/chunk.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

/* Columns from .. from + count: unpacked into `room`, or in place. */
static const float *panel_of(const struct panels *w, int64_t from, int64_t count, float *room)
{
    if (!w->unpack)
        return (const float *)w->weight + from * w->k;
    w->unpack(w, from, count, room);
    return room;
}

/* ---- chunk by chunk ---------------------------------------------------------------------------------------------------------- */

/* Column-major panels are unpacked after the space of the panel. */
static const float *weight_panel(const struct right *r, int64_t from, int64_t count, float *room)
{
    const struct panels *w = r->at;
    if (!w->by_column)
        return panel_of(w, from, count, room);
    struct right transposed = right_strided(panel_of(w, from, count, room + w->k * TILE), w->k, 1, w->k);
    return transposed.panel(&transposed, 0, count, room);
}

struct right right_weight(const struct panels *w)
{
    return (struct right){.panel = weight_panel, .k = w->k, .at = w};
}

void packed_gemm_chunks(struct kcall *call, const struct chunks *chunks, const struct panels *w, int64_t m, const float *a, float *c)
{
    struct right right = right_weight(w);
    float *partials = chunk_room(call, chunks, DT_F32, m * w->n, c);
    require(w->by_column || w->width == TILE);
    chunk_product(call, &(struct chunk_product){chunks, m, w->n, a, w->k, &right, partials, w->n, m * w->n});
    chunk_complete(call, chunks, DT_F32, partials, m * w->n, c);
}

SIMD float gemm_dot(const float *a, const float *b, int64_t n)
{
    float sum = 0;
    _Pragma("omp simd reduction(+:sum)") for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* ---- any storage ---------------------------------------------------------------------------------------------------------------- */
struct panel_run {
    struct kenv *env;
    const struct panels *w;
    int64_t m;
    const float *a; /* [m, k]; [k, m] for column-major panels */
    float *c;
    char *scratch; /* per thread: a panel, and its product, transposed */
    size_t scratch_each;
};

enum {
    FEW_COLUMNS = 8, /* unpacked for a few rows: they stay in a near cache */
    SINGLE_ROWS = 2  /* up to this many rows, each reads the weight from storage */
};

static bool has_few_rows(const struct panels *w, int64_t m)
{
    return m <= (w->by_column ? COLUMN_FEW_ROWS : PANEL_FEW_ROWS);
}

/* Columns that several rows read are unpacked once. */
static void few_rows(const struct panel_run *r, int64_t from, int64_t count, float *panel)
{
    const struct panels *w = r->w;
    bool each = w->unpack && (r->m <= SINGLE_ROWS || !w->by_column);
    for (int64_t i = 0; each && i < r->m; i++)
        w->row(w, r->a + i * w->k, from, count, r->c + i * w->n + from);
    int64_t step = w->unpack ? FEW_COLUMNS : count;
    for (int64_t at = from; !each && at < from + count; at += step) {
        int64_t n = from + count - at < step ? from + count - at : step;
        column_rows_product(&(struct column_rows){r->m, n, w->k, w->n, r->a, panel_of(w, at, n, panel), r->c + at});
    }
}

static void through_panel(const struct panel_run *r, int64_t from, int64_t count, float *panel)
{
    const struct panels *w = r->w;
    float *transposed = panel + w->width * w->k;
    const float *at = panel_of(w, from, count, panel);
    if (!w->by_column) {
        dnnl_product(r->env, false, false, r->m, count, w->k, 1.0f, r->a, w->k, at, w->width, 0.0f, r->c + from, w->n);
        return;
    }
    dnnl_product(r->env, false, false, count, r->m, w->k, 1.0f, at, w->k, r->a, r->m, 0.0f, transposed, r->m);
    for (int64_t i = 0; i < r->m; i++)
        for (int64_t j = 0; j < count; j++)
            r->c[i * w->n + from + j] = transposed[j * r->m + i];
}

/* Panels lo..hi. */
static void panel_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct panel_run *r = data;
    int64_t width = r->w->width;
    float *panel = (float *)(void *)(r->scratch + (size_t)thread * r->scratch_each);
    for (int64_t p = lo; p < hi; p++) {
        int64_t left = r->w->n - p * width, count = left < width ? left : width;
        if (has_few_rows(r->w, r->m))
            few_rows(r, p * width, count, panel);
        else
            through_panel(r, p * width, count, panel);
    }
}

const float *packed_gemm_transposed(struct kcall *call, const float *a, int64_t m, int64_t k)
{
    struct copy c = {.rank = 2, .size = sizeof *a, .dim = {k, m}, .to = {m, 1}, .from = {1, k}};
    float *to = kenv_room(call->env, ROOM_TURN_Q, kcall_bytes(call, m * k, sizeof *to));
    copy_strided(call->env, &c, to, a);
    return to;
}

void packed_gemm(struct kcall *call, const struct panels *w, int64_t m, const float *a, float *c)
{
    struct panel_run r = {.env = call->env, .w = w, .m = m, .a = a, .c = c};
    if (kenv_deterministic(call->env)) {
        struct chunks chunks = chunks_of(call, w->k, 1);
        packed_gemm_chunks(call, &chunks, w, m, a, c);
        return;
    }
    if (w->tiled && m <= TILE_ROWS) {
        tiled_product(call->env, w, m, a, c);
        return;
    }
    bool few = has_few_rows(w, m);
    int64_t column = w->k + (w->by_column ? m : 0);
    size_t panel = kcall_bytes(call, (few ? FEW_COLUMNS : w->width) * column, sizeof(float));
    if (!few && w->by_column) /* a product with a transposed operand takes twice as long */
        r.a = packed_gemm_transposed(call, a, m, w->k);
    r.scratch_each = (panel + 63) & ~(size_t)63;
    r.scratch = kenv_room(call->env, ROOM_THREADS, kcall_bytes(call, kenv_threads(call->env), r.scratch_each));
    kenv_parallel_shares(call->env, (w->n + w->width - 1) / w->width, m * w->width * w->k / 8 + 1, panel_range, &r);
}
