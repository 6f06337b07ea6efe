/* dnnl_product: matrix products through oneDNN.
 *
 * Products of two computed operands use sgemm: its code does not depend on the shape, so a growing cache costs nothing. Products with a
 * weight use a matmul primitive for the shape, the weight reordered once to the layout that it asked for. The first layout chosen for a
 * weight's shape is offered to every later number of rows, so that one copy serves prompt and decode. */
#include "kern/core/core.h"
#include "kern/gemm/dnnl_primitive.h"
#include "kern/gemm/gemm.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define PANEL_DEPTH 16   /* rows to which BA16a64b fills up; BA16a64b2a twice as many */
#define TYPICAL_ROWS 128 /* the prompt whose choice of a layout every later number of rows is offered */

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

/* A weight that is no float32 is one of bf16, or becomes one. */
static const void *pack_product(struct kenv *env, void **cache, const struct primitive *p, const struct tensor *w, bool transposed)
{
    struct md_layout plain = {.set = false};
    dnnl_data_type_t type = w->dtype == DT_F32 ? dnnl_f32 : dnnl_bf16;
    layout_make(&plain, 2, (int64_t[]){p->key.k, p->key.n}, type, transposed ? dnnl_ba : dnnl_ab);
    bool rounds = w->dtype == DT_F16 && !dnnl_packed_for(*cache, p);
    int64_t all = p->key.k * p->key.n;
    const void *at = dnnl_packed(env, cache, p, &plain, rounds ? narrow_rows(env, w, 1, all, all) : w->data, NULL);
    layout_free(&plain);
    return at;
}

bool dnnl_product_packed(struct kenv *env, void **cache, int64_t m, int64_t n, int64_t k, const struct tensor *a, const struct tensor *w,
                         bool transposed, const float *bias, float *c)
{
    struct dnnl_state *s = dnnl_state_of(env);
    bool narrow = dnnl_narrows_weight(env, w->dtype);
    struct primitive_key key = product_key(narrow, m, n, k, bias != NULL);
    struct primitive *p = dnnl_primitive_of(s, &key, plan_product);
    if (p->missing)
        return false;
    const void *data[OPERANDS] = {a->data, pack_product(env, cache, p, w, transposed), bias, c};
    int64_t pairs = (k + 1) / 2, deep = narrow ? 2 * PANEL_DEPTH : PANEL_DEPTH, padded = (k + deep - 1) / deep * deep;
    bool few = p->panels && m <= (narrow ? NARROW_FEW_ROWS : 1);
    if (narrow)
        data[SRC] = narrow_rows(env, a, m, k, few ? 2 * pairs : k);
    if (few && narrow)
        narrow_row_product(env, &(struct narrow_row){m, n, pairs, padded, data[SRC], data[WEIGHTS], bias, c});
    else if (few)
        panel_row_product(env, &(struct panel_row){n, k, padded, data[SRC], data[WEIGHTS], bias, c});
    else
        dnnl_run(s, p, data);
    return true;
}

bool dnnl_pack_weight(struct kenv *env, void **cache, int64_t n, int64_t k, const struct tensor *w, bool transposed)
{
    struct primitive_key key = product_key(dnnl_narrows_weight(env, w->dtype), TYPICAL_ROWS, n, k, false);
    struct primitive *p = dnnl_primitive_of(dnnl_state_of(env), &key, plan_product);
    return !p->missing && pack_product(env, cache, p, w, transposed) != w->data;
}

/* ---- products of operands that are rounded to bf16; sums in float32 ---- */
enum { NARROW_LEAST = 1 << 20 }; /* products of numbers that pay for rounding the operands */

/* A matrix of float32, [rows, columns] when it is transposed, as an operand of p. */
static void *narrowed(struct kenv *env, const struct primitive *p, enum primitive_operand i, bool transposed, const float *x)
{
    struct md_layout plain = {.set = false};
    int64_t rows = i == SRC ? p->key.m : p->key.k, columns = i == SRC ? p->key.k : p->key.n;
    void *at = kenv_room(env, i == SRC ? ROOM_NARROW : ROOM_DNNL, dnnl_memory_desc_get_size(MD(&p->layout[i])));
    layout_make(&plain, 2, (int64_t[]){rows, columns}, dnnl_f32, transposed ? dnnl_ba : dnnl_ab);
    dnnl_convert(dnnl_state_of(env), &plain, x, &p->layout[i], at);
    layout_free(&plain);
    return at;
}

static bool narrow_product(struct kenv *env, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    struct dnnl_state *s = dnnl_state_of(env);
    struct primitive_key key = product_key(true, m, n, k, false);
    struct primitive *p = dnnl_primitive_of(s, &key, plan_product);
    if (p->missing)
        return false;
    const void *data[OPERANDS] = {narrowed(env, p, SRC, ta, a), narrowed(env, p, WEIGHTS, tb, b), NULL, c};
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
    bool narrow = kenv_narrows(env) && whole && (double)m * (double)n * (double)k >= NARROW_LEAST && !omp_in_parallel();
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
