/* packed_gemm: products with a weight stored narrower than float32. The weight is never float32 in full: a panel, a few columns of it, is
 * unpacked into scratch that stays in the second-level cache and multiplied there. A few rows (a decode step) are multiplied straight
 * from storage: such a product takes the time of reading the weight once.
 *
 * f16 and bf16 weights are first packed: [n / TILE][k][TILE], the last tile filled with zeros, so that both ways read memory in order.
 * Sums are float32. In deterministic mode f32 weights are packed like this, too, and all products go chunk by chunk (chunk_gemm.c). */
#include "kern/chunk/chunk.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { TILE = CHUNK_TILE, AHEAD = 16 * CHUNK };

/* ---- chunk by chunk -------------------------------------------------------------------------------------------------------------------
 */

/* Columns that lie one after another are unpacked behind the room of the panel. */
static const float *weight_panel(const struct right *r, int64_t from, int64_t count, float *room)
{
    const struct panels *w = r->at;
    if (!w->unpack)
        return (const float *)w->weight + from * w->k;
    if (!w->by_column) {
        w->unpack(w, from, count, room);
        return room;
    }
    float *columns = room + w->k * TILE;
    w->unpack(w, from, count, columns);
    struct right transposed = right_strided(columns, w->k, 1, w->k);
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
    const float *a; /* [m, k]; [k, m] for panels of columns that lie one after another */
    float *c;
    char *scratch; /* per thread: a panel, and its product, transposed */
    size_t scratch_each;
};

static void few_rows(const struct panel_run *r, int64_t from, int64_t count)
{
    for (int64_t i = 0; i < r->m; i++)
        r->w->row(r->w, r->a + i * r->w->k, from, count, r->c + i * r->w->n + from);
}

static void through_panel(const struct panel_run *r, int64_t from, int64_t count, float *panel)
{
    const struct panels *w = r->w;
    float *transposed = panel + w->width * w->k;
    w->unpack(w, from, count, panel);
    if (!w->by_column) {
        dnnl_product(r->env, false, false, r->m, count, w->k, 1.0f, r->a, w->k, panel, w->width, 0.0f, r->c + from, w->n);
        return;
    }
    dnnl_product(r->env, false, false, count, r->m, w->k, 1.0f, panel, w->k, r->a, r->m, 0.0f, transposed, r->m);
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
        if (r->m <= PANEL_FEW_ROWS)
            few_rows(r, p * width, count);
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
    size_t panel = m <= PANEL_FEW_ROWS ? 0 : kcall_bytes(call, w->width * (w->k + (w->by_column ? m : 0)), sizeof(float));
    if (m > PANEL_FEW_ROWS && w->by_column) /* a product of a transposed operand takes twice the time */
        r.a = packed_gemm_transposed(call, a, m, w->k);
    r.scratch_each = (panel + 63) & ~(size_t)63;
    r.scratch = kenv_room(call->env, ROOM_THREADS, kcall_bytes(call, kenv_threads(call->env), r.scratch_each));
    kenv_parallel_for(call->env, (w->n + w->width - 1) / w->width, m * w->width * w->k / 8 + 1, panel_range, &r);
}

/* ---- f16 and bf16 ----------------------------------------------------------------------------------------------------------------- */
typedef float lanes __attribute__((vector_size(2 * TILE)));

/* sum[TILE] += a[k] tile[k, TILE]. */
static SIMD void tile_row(const float *tile, const float *a, int64_t k, float *sum)
{
    lanes left, right, x, y;
    memcpy(&left, sum, sizeof left);
    memcpy(&right, sum + TILE / 2, sizeof right);
    for (int64_t l = 0; l < k; l++) {
        memcpy(&x, tile + l * TILE, sizeof x);
        memcpy(&y, tile + l * TILE + TILE / 2, sizeof y);
        left += a[l] * x;
        right += a[l] * y;
    }
    memcpy(sum, &left, sizeof left);
    memcpy(sum + TILE / 2, &right, sizeof right);
}

static const uint16_t *tile_at(const struct panels *w, int64_t column)
{
    return (const uint16_t *)w->weight + column * w->k;
}

/* Prefetches what is needed soon into the second-level cache, while a stretch is multiplied. */
static void ask_for(const uint16_t *stretch)
{
    for (int i = 0; i < CHUNK; i += TILE)
        __builtin_prefetch(stretch + i, 0, 2);
}

/* A few rows of the tile at a time go through the first-level cache. */
static void half_row(const struct panels *w, const float *a, int64_t from, int64_t count, float *c)
{
    float sum[TILE] = {0}, part[CHUNK];
    const uint16_t *tile = tile_at(w, from);
    for (int64_t l = 0; l < w->k; l += CHUNK / TILE) {
        int64_t rows = w->k - l < CHUNK / TILE ? w->k - l : CHUNK / TILE;
        ask_for(tile + l * TILE + AHEAD);
        convert_to_f32(w->dtype, tile + l * TILE, rows * TILE, part);
        tile_row(part, a + l, rows, sum);
    }
    memcpy(c, sum, (size_t)count * sizeof *sum);
}

static void half_unpack(const struct panels *w, int64_t from, int64_t count, float *panel)
{
    (void)count;
    convert_to_f32(w->dtype, tile_at(w, from), w->k * TILE, panel);
}

/* Tile t of a weight. */
static void pack_tile(struct kenv *env, const struct panels *w, const void *from, bool transposed, int64_t t)
{
    size_t size = dtype_size(w->dtype);
    int64_t left = w->n - t * TILE, row = transposed ? 1 : w->n, column = transposed ? w->k : 1;
    struct copy c = {.rank = 2, .size = size, .dim = {w->k, left < TILE ? left : TILE}, .to = {TILE, 1}, .from = {row, column}};
    char *to = element_at((void *)(uintptr_t)w->weight, size, t * TILE * w->k);
    if (left < TILE)
        memset(to, 0, (size_t)(w->k * TILE) * size);
    copy_strided(env, &c, to, element_at_const(from, size, t * TILE * column));
}

const struct panels *packed_gemm_weight(struct kcall *call, const struct tensor *weight, int64_t n, int64_t k, bool transposed)
{
    struct panels *w = *call->cache;
    int64_t tiles = (n + TILE - 1) / TILE;
    if (w)
        return w;
    w = *call->cache = kenv_keep(call->env, sizeof *w);
    size_t size = dtype_size(weight->dtype);
    void *room = kenv_weights(call->env, kcall_bytes(call, tiles * k, TILE * size));
    *w = (struct panels){
        .n = n, .k = k, .width = TILE, .dtype = weight->dtype, .weight = room, .unpack = size == 2 ? half_unpack : NULL, .row = half_row};
    for (int64_t t = 0; t < tiles; t++)
        pack_tile(call->env, w, weight->data, transposed, t);
    return w;
}
