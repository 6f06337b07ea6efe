/* dnnl_product: matrix products through oneDNN.
 *
 * Products of two computed operands use sgemm: its code does not depend on the shape, so a growing cache costs nothing. Products with a
 * weight use a matmul primitive for the shape; the weight is reordered once to the primitive's layout. The first layout chosen for a
 * weight's shape is offered for every later number of rows, so that one copy serves prompt and decode. */
#include "kern/core/core.h"
#include "kern/gemm/dnnl_primitive.h"
#include "kern/gemm/gemm.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define PANEL_DEPTH 16   /* rows to which BA16a64b is padded; BA16a64b2a pads to twice as many */
#define TYPICAL_ROWS 128 /* the prompt length for which a layout is chosen; every later number of rows is offered the same */

static struct favourite *favourite_of(struct dnnl_state *s, const struct primitive_key *key)
{
    struct favourite *f;
    struct primitive_key shape = *key;
    shape.m = 0;
    shape.bias = 0;
    HASH_FIND(hh, s->favourites, &shape, sizeof shape, f);
    if (!f) {
        f = dnnl_zeroed(sizeof *f);
        f->key = shape;
        HASH_ADD(hh, s->favourites, key, sizeof f->key, f);
    }
    return f;
}

/* Plans a product, first with the favourite layout of its weights, then with a free choice, which becomes the favourite. */
static bool plan_product(struct dnnl_state *s, struct primitive *p, dnnl_primitive_desc_t *pd)
{
    const struct primitive_key *key = &p->key;
    struct favourite *f = favourite_of(s, key);
    layout_make(&p->layout[SRC], 2, (int64_t[]){key->m, key->k}, dnnl_operand_type(key), dnnl_ab);
    if (key->bias)
        layout_make(&p->layout[BIAS], 2, (int64_t[]){1, key->n}, dnnl_f32, dnnl_ab);
    layout_make(&p->layout[DST], 2, (int64_t[]){key->m, key->n}, dnnl_f32, dnnl_ab);
    if (f->layout.set) {
        layout_assign(&p->layout[WEIGHTS], &f->layout);
        if (product_desc(pd, s->engine, p->layout, key->bias) == dnnl_success) {
            if (!dnnl_is_reference(*pd))
                return true;
            dnnl_primitive_desc_destroy(*pd);
        }
        layout_free(&p->layout[WEIGHTS]);
    }
    layout_make(&p->layout[WEIGHTS], 2, (int64_t[]){key->k, key->n}, dnnl_operand_type(key), dnnl_format_tag_any);
    if (product_desc(pd, s->engine, p->layout, key->bias) != dnnl_success)
        return false;
    if (!f->layout.set)
        layout_query(&f->layout, *pd, dnnl_query_weights_md);
    return true;
}

static struct primitive_key product_key(bool narrow, int64_t m, int64_t n, int64_t k, bool bias)
{
    struct primitive_key key;
    memset(&key, 0, sizeof key);
    key.kind = PRODUCT;
    key.narrow = narrow;
    key.bias = bias;
    key.m = m;
    key.n = n;
    key.k = k;
    return key;
}

static int64_t padded_depth(const struct primitive_key *key)
{
    int64_t deep = key->narrow ? 2 * PANEL_DEPTH : PANEL_DEPTH;
    return (key->k + deep - 1) / deep * deep;
}

/* Panels of bf16 by our own loops; the library's take 2 to 10 times as long. */
static const void *pack_panels(struct kenv *env, void **cache, const struct primitive *p, const struct tensor *w, bool transposed)
{
    bool full;
    void *at = dnnl_packed_room(env, cache, p, &full);
    if (!full)
        narrow_panels(env, w, p->key.n, p->key.k, transposed, padded_depth(&p->key), at);
    return at;
}

static const void *pack_product(struct kenv *env, void **cache, const struct primitive *p, const struct tensor *w, bool transposed)
{
    struct md_layout plain = {.set = false};
    if (p->key.narrow && p->panels)
        return pack_panels(env, cache, p, w, transposed);
    layout_make(&plain, 2, (int64_t[]){p->key.k, p->key.n}, dnnl_f32, transposed ? dnnl_ba : dnnl_ab);
    const void *at = dnnl_packed(env, cache, p, &plain, w, NULL);
    layout_free(&plain);
    return at;
}

/* ---- in our own tiles ----------------------------------------------------------------------------------------------------- */

/* Elements of k in such a panel. */
static int64_t tiles_depth(int64_t k)
{
    return (k + NARROW_TILE_DEPTH - 1) / NARROW_TILE_DEPTH * NARROW_TILE_DEPTH;
}

/* The weight in panels, kept in *cache; for this call only if cache is NULL. */
static const uint16_t *kept_panels(struct kenv *env, void **cache, int64_t n, int64_t k, const struct tensor *w, bool transposed)
{
    int64_t padded = tiles_depth(k);
    size_t bytes = (size_t)((n + PANEL_COLUMNS - 1) / PANEL_COLUMNS * PANEL_COLUMNS * padded) * sizeof(uint16_t);
    if (cache && *cache)
        return *cache;
    void *at = cache ? kenv_weights(env, bytes) : kenv_room(env, ROOM_DNNL, bytes);
    narrow_panels(env, w, n, k, transposed, padded, at);
    if (cache)
        *cache = at;
    return at;
}

static void tiles_product(struct kenv *env, const uint16_t *panels, int64_t m, int64_t n, int64_t k, const struct tensor *a,
                          bool transposed, const float *bias, float *c)
{
    int64_t pairs = (k + 1) / 2, padded = tiles_depth(k);
    if (m <= NARROW_GROUP && !transposed)
        narrow_row_product(env, &(struct narrow_row){m, n, pairs, padded, narrow_rows(env, a, m, k, 2 * pairs), panels, bias, c});
    else
        narrow_tiles_product(env, &(struct narrow_tiles){m, n, k, a, transposed, panels, bias, c});
}

/* ---- a constant weight ------------------------------------------------------------------------------------------------------- */

bool dnnl_product_packed(struct kenv *env, void **cache, int64_t m, int64_t n, int64_t k, const struct tensor *a, const struct tensor *w,
                         bool transposed, const float *bias, float *c)
{
    struct dnnl_state *s = dnnl_state_of(env);
    bool narrow = dnnl_narrows_weight(env, w->dtype);
    if (narrow && narrow_tiles_fast() && m > 0 && n > 0 && k > 0) {
        tiles_product(env, kept_panels(env, cache, n, k, w, transposed), m, n, k, a, false, bias, c);
        return true;
    }
    struct primitive_key key = product_key(narrow, m, n, k, bias != NULL);
    struct primitive *p = dnnl_primitive_of(s, &key, plan_product);
    if (p->missing)
        return false;
    const void *data[OPERANDS] = {a->data, pack_product(env, cache, p, w, transposed), bias, c};
    int64_t pairs = (k + 1) / 2, padded = padded_depth(&key);
    bool few = p->panels && m <= (narrow ? NARROW_FEW_ROWS : PANEL_ROWS);
    if (narrow)
        data[SRC] = narrow_rows(env, a, m, k, few ? 2 * pairs : k);
    if (few && narrow)
        narrow_row_product(env, &(struct narrow_row){m, n, pairs, padded, data[SRC], data[WEIGHTS], bias, c});
    else if (few)
        panel_row_product(env, &(struct panel_row){m, n, k, padded, data[SRC], data[WEIGHTS], bias, c});
    else
        dnnl_run(s, p, data);
    return true;
}

bool dnnl_pack_weight(struct kenv *env, void **cache, int64_t n, int64_t k, const struct tensor *w, bool transposed)
{
    bool narrow = dnnl_narrows_weight(env, w->dtype);
    if (narrow && narrow_tiles_fast() && n > 0 && k > 0)
        return kept_panels(env, cache, n, k, w, transposed) != NULL;
    struct primitive_key key = product_key(narrow, TYPICAL_ROWS, n, k, false);
    struct primitive *p = dnnl_primitive_of(dnnl_state_of(env), &key, plan_product);
    return !p->missing && pack_product(env, cache, p, w, transposed) != w->data;
}

/* ---- products of operands rounded to bf16, with float32 sums ---- */
enum { NARROW_LEAST = 1 << 20 }; /* multiplications that pay for rounding the operands */

/* The left operand, [k, m] if transposed. */
static const void *narrow_left(struct kenv *env, const struct primitive *p, bool transposed, const struct tensor *a)
{
    struct md_layout plain = {.set = false};
    int64_t m = p->key.m, k = p->key.k;
    if (!transposed)
        return narrow_rows(env, a, m, k, k);
    void *at = kenv_room(env, ROOM_NARROW, dnnl_memory_desc_get_size(MD(&p->layout[SRC])));
    layout_make(&plain, 2, (int64_t[]){m, k}, dnnl_f32, dnnl_ba);
    dnnl_convert(dnnl_state_of(env), &plain, a->data, &p->layout[SRC], at);
    layout_free(&plain);
    return at;
}

static bool narrow_product(struct kenv *env, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    struct dnnl_state *s = dnnl_state_of(env);
    const struct tensor left = tensor_of_floats(a), right = tensor_of_floats(b);
    if (narrow_tiles_fast()) {
        tiles_product(env, kept_panels(env, NULL, n, k, &right, tb), m, n, k, &left, ta, NULL, c);
        return true;
    }
    struct primitive_key key = product_key(true, m, n, k, false);
    struct primitive *p = dnnl_primitive_of(s, &key, plan_product);
    if (p->missing)
        return false;
    const void *data[OPERANDS] = {narrow_left(env, p, ta, &left), pack_product(env, NULL, p, &right, tb), NULL, c};
    dnnl_run(s, p, data);
    return true;
}

void dnnl_product(struct kenv *env, bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                  const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                c[i * ldc + j] = beta > 0.0f || beta < 0.0f ? beta * c[i * ldc + j] : 0.0f;
        return;
    }
    bool whole = lda == (ta ? m : k) && ldb == (tb ? k : n) && ldc == n && !(alpha < 1 || alpha > 1 || beta < 0 || beta > 0);
    bool narrow = kenv_narrows_computed(env) && whole && (double)m * (double)n * (double)k >= NARROW_LEAST && !omp_in_parallel();
    if (!X86 && narrow && narrow_fast()) {
        narrow_gemm(env, narrow_best(), ta, tb, m, n, k, a, b, c);
        return;
    }
    if (!X86) {
        tile_gemm(env, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    if (narrow && narrow_product(env, ta, tb, m, n, k, a, b, c))
        return;
    dnnl_limit();
    if (!omp_in_parallel())
        omp_set_num_threads(kenv_threads(env));
    dnnl_checked(dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc), "a matrix product");
}
