/* dnnl: matrix products and convolutions through oneDNN.
 *
 * Products of two computed operands use sgemm: its code does not depend on the shape, so a growing cache costs nothing. Products with a
 * weight use a matmul primitive for the shape, the weight reordered once to the layout that it asked for. The first layout chosen for a
 * weight's shape is offered to every later number of rows, so that one copy serves prompt and decode. Primitives are kept by shape. */
#include "kern/core/core.h"
#include "kern/gemm/dnnl_layout.h"
#include "kern/gemm/gemm.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define MOST_PRIMITIVES 1024 /* dropped all together beyond that */
#define PANEL_DEPTH 16       /* rows to which BA16a64b fills up */
#define TYPICAL_ROWS 128     /* the prompt whose choice of a layout every later number of rows is offered */

/* ---- state ------------------------------------------------------------------------------------------------------------------ */
enum primitive_operand { SRC, WEIGHTS, BIAS, DST, OPERANDS };
struct primitive_key {
    int kind, bias;
    int64_t m, n, k;
    struct conv_shape conv;
}; /* zeroed before it is filled */
struct primitive {
    struct primitive_key key;
    dnnl_primitive_t run;
    struct md_layout layout[OPERANDS];
    dnnl_memory_t memory[OPERANDS];
    bool missing; /* this machine has none for the key */
    bool panels;  /* a product whose weight is as panel_row.c reads it */
    UT_hash_handle hh;
};
/* The layout first chosen for weights of a shape. */
struct favourite {
    struct primitive_key key;
    struct md_layout layout;
    UT_hash_handle hh;
};
struct dnnl_state {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct primitive *primitives;
    struct favourite *favourites;
};
enum primitive_kind { PRODUCT = 1, CONVOLUTION, NARROW };

static void check_status(dnnl_status_t status, const char *what)
{
    if (status != dnnl_success)
        fail("oneDNN: %s failed with status %d%s", what, (int)status, status == dnnl_out_of_memory ? ": out of memory" : "");
}

/* ---- its instruction set ----
 * TPC_ISA limits it, too. Where AVX2 has no FMA, as in some virtual machines, the library's AVX2 would meet an illegal instruction. */
#if X86
static const dnnl_cpu_isa_t library_isa[ISA_COUNT] = {[ISA_PLAIN] = dnnl_cpu_isa_avx,
                                                      [ISA_AVX2] = dnnl_cpu_isa_avx2,
                                                      [ISA_AVX2_VNNI] = dnnl_cpu_isa_avx2_vnni,
                                                      [ISA_AVX512] = dnnl_cpu_isa_avx512_core,
                                                      [ISA_AVX512_VNNI] = dnnl_cpu_isa_avx512_core_vnni,
                                                      [ISA_AVX512_BF16] = dnnl_cpu_isa_avx512_core_bf16,
                                                      [ISA_AMX] = dnnl_cpu_isa_avx512_core_amx};
static dnnl_status_t limited;

static void limit(void)
{
    limited = isa_limited() ? dnnl_set_max_cpu_isa(library_isa[isa_most()]) : dnnl_success;
}

/* Before any other call of the library: it takes a limit only then. */
static void limit_library(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)isa_runs(ISA_PLAIN); /* a wrong name fails here, not inside of pthread_once */
    pthread_once(&once, limit);
    check_status(limited, "limiting its instruction set");
}

static bool library_has(dnnl_cpu_isa_t isa)
{
    limit_library();
    return ((unsigned)dnnl_get_effective_cpu_isa() & (unsigned)isa) == (unsigned)isa;
}
#else
static void limit_library(void)
{
}

/* Its bits of other processors mean other sets. */
#define library_has(isa) false
#endif

bool dnnl_narrows(void)
{
    return X86 ? library_has(dnnl_cpu_isa_avx512_core_bf16) : narrow_fast();
}

bool dnnl_packs(void)
{
    return library_has(dnnl_cpu_isa_avx512_core);
}

static void primitive_free(struct primitive *p)
{
    for (int i = 0; i < OPERANDS; i++) {
        if (p->memory[i])
            dnnl_memory_destroy(p->memory[i]);
        layout_free(&p->layout[i]);
    }
    if (p->run)
        dnnl_primitive_destroy(p->run);
    free(p);
}

static void drop_primitives(struct dnnl_state *s)
{
    struct primitive *p, *next;
    HASH_ITER(hh, s->primitives, p, next)
    {
        HASH_DEL(s->primitives, p);
        primitive_free(p);
    }
}

static void free_state(void *state)
{
    struct dnnl_state *s = state;
    struct favourite *f, *next;
    drop_primitives(s);
    HASH_ITER(hh, s->favourites, f, next)
    {
        HASH_DEL(s->favourites, f);
        layout_free(&f->layout);
        free(f);
    }
    dnnl_stream_destroy(s->stream);
    dnnl_engine_destroy(s->engine);
    free(s);
}

static void *zeroed(size_t bytes)
{
    void *p = calloc(1, bytes);
    if (!p)
        fail("out of memory: %zu bytes for a oneDNN primitive", bytes);
    return p;
}

static struct dnnl_state *library_state(struct kenv *env)
{
    void **slot = kenv_library(env, free_state);
    omp_set_num_threads(kenv_threads(env));
    if (!*slot) {
        limit_library();
        struct dnnl_state *s = *slot = zeroed(sizeof *s);
        check_status(dnnl_engine_create(&s->engine, dnnl_cpu, 0), "making a CPU engine");
        check_status(dnnl_stream_create(&s->stream, s->engine, dnnl_stream_default_flags), "making a stream");
    }
    return *slot;
}

/* Does the weight of p lie in panels? For one row the library takes a time and a half of that of reading it. */
static bool in_panels(const struct primitive *p)
{
    struct md_layout panels = {.set = false};
    layout_make(&panels, 2, (int64_t[]){p->key.k, p->key.n}, dnnl_f32, dnnl_BA16a64b);
    bool same = dnnl_memory_desc_equal(MD(&p->layout[WEIGHTS]), MD(&panels));
    layout_free(&panels);
    return same;
}

static void finish_primitive(struct dnnl_state *s, struct primitive *p, dnnl_primitive_desc_t pd)
{
    static const dnnl_query_t query[OPERANDS] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_weights_md, dnnl_query_dst_md};
    for (int i = 0; i < OPERANDS; i++)
        if (i != BIAS)
            layout_query(&p->layout[i], pd, query[i]);
    check_status(dnnl_primitive_create(&p->run, pd), "making a primitive");
    for (int i = 0; i < OPERANDS; i++)
        if (p->layout[i].set)
            check_status(dnnl_memory_create(&p->memory[i], MD(&p->layout[i]), s->engine, DNNL_MEMORY_NONE), "making a memory object");
    dnnl_primitive_desc_destroy(pd);
    p->panels = p->key.kind == PRODUCT && in_panels(p);
}

static struct primitive *new_primitive(struct dnnl_state *s, const struct primitive_key *key)
{
    if (HASH_COUNT(s->primitives) >= MOST_PRIMITIVES)
        drop_primitives(s);
    struct primitive *p = zeroed(sizeof *p);
    p->key = *key;
    HASH_ADD(hh, s->primitives, key, sizeof p->key, p);
    return p;
}

/* Makes the layouts of the operands and describes the primitive; false: the library has none for the key. */
typedef bool plan_primitive(struct dnnl_state *, struct primitive *, dnnl_primitive_desc_t *);

static struct primitive *primitive_of(struct dnnl_state *s, const struct primitive_key *key, plan_primitive *plan)
{
    struct primitive *p;
    dnnl_primitive_desc_t pd;
    HASH_FIND(hh, s->primitives, key, sizeof *key, p);
    if (p)
        return p;
    p = new_primitive(s, key);
    p->missing = !plan(s, p, &pd);
    if (!p->missing)
        finish_primitive(s, p, pd);
    return p;
}

static void execute(struct dnnl_state *s, struct primitive *p, const void *const *data)
{
    static const int name[OPERANDS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    dnnl_exec_arg_t arg[OPERANDS];
    int n = 0;
    for (int i = 0; i < OPERANDS; i++) {
        if (!p->memory[i])
            continue;
        check_status(dnnl_memory_set_data_handle(p->memory[i], (void *)(uintptr_t)data[i]), "setting a memory object");
        arg[n++] = (dnnl_exec_arg_t){name[i], p->memory[i]};
    }
    check_status(dnnl_primitive_execute(p->run, s->stream, n, arg), "running a primitive");
    check_status(dnnl_stream_wait(s->stream), "waiting");
}

static void reorder(struct dnnl_state *s, const struct md_layout *from, const void *src, const struct md_layout *to, void *dst)
{
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t run;
    dnnl_memory_t in, out;
    check_status(dnnl_reorder_primitive_desc_create(&pd, MD(from), s->engine, MD(to), s->engine, NULL), "planning a reorder");
    check_status(dnnl_primitive_create(&run, pd), "making a reorder");
    check_status(dnnl_memory_create(&in, MD(from), s->engine, (void *)(uintptr_t)src), "making a memory object");
    check_status(dnnl_memory_create(&out, MD(to), s->engine, dst), "making a memory object");
    dnnl_exec_arg_t arg[2] = {{DNNL_ARG_FROM, in}, {DNNL_ARG_TO, out}};
    check_status(dnnl_primitive_execute(run, s->stream, 2, arg), "reordering");
    check_status(dnnl_stream_wait(s->stream), "waiting");
    dnnl_memory_destroy(in);
    dnnl_memory_destroy(out);
    dnnl_primitive_destroy(run);
    dnnl_primitive_desc_destroy(pd);
}

/* ---- packed weights ------------------------------------------------------------------------------------------------------------ */
struct reordered_weight {
    struct md_layout layout;
    void *at;
    size_t bytes;
};

/* Output channels of a weight, each `n` numbers, times their factors. */
static const float *scaled_channels(struct kenv *env, const struct conv_shape *c, size_t bytes, const float *w, const float *factor)
{
    float *to = kenv_room(env, ROOM_TURN_Q, bytes);
    int64_t n = (int64_t)(bytes / sizeof *w) / c->out;
    for (int64_t m = 0; m < c->out; m++)
        for (int64_t i = 0; i < n; i++)
            to[m * n + i] = w[m * n + i] * factor[m];
    return to;
}

/* src in the layout that p wants: kept in *cache, or made in a room when the weight may change. factor: see dnnl_convolve. */
static const void *pack(struct kenv *env, void **cache, const struct primitive *p, const struct md_layout *plain, const void *src,
                        const float *factor)
{
    struct dnnl_state *s = library_state(env);
    const struct md_layout *wanted = &p->layout[WEIGHTS];
    struct reordered_weight *packed = cache ? *cache : NULL;
    size_t bytes = dnnl_memory_desc_get_size(MD(wanted));
    if (!factor && dnnl_memory_desc_equal(MD(plain), MD(wanted)))
        return src;
    if (packed && dnnl_memory_desc_equal(MD(&packed->layout), MD(wanted)))
        return packed->at;
    if (!packed && cache)
        packed = *cache = kenv_keep(env, sizeof *packed);
    if (packed && packed->bytes < bytes) {
        packed->at = kenv_weights(env, bytes);
        packed->bytes = bytes;
    }
    void *at = packed ? packed->at : kenv_room(env, ROOM_DNNL, bytes);
    if (factor)
        src = scaled_channels(env, &p->key.conv, dnnl_memory_desc_get_size(MD(plain)), src, factor);
    reorder(s, plain, src, wanted, at);
    if (packed)
        layout_assign(&packed->layout, wanted);
    return at;
}

/* ---- products ------------------------------------------------------------------------------------------------------------------ */
static bool is_reference(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;
    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success && name && strncmp(name, "ref", 3) == 0;
}

static struct favourite *favourite_of(struct dnnl_state *s, const struct primitive_key *key)
{
    struct favourite *f;
    struct primitive_key shape = *key;
    shape.m = 0;
    shape.bias = 0;
    HASH_FIND(hh, s->favourites, &shape, sizeof shape, f);
    if (!f) {
        f = zeroed(sizeof *f);
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
    layout_make(&p->layout[SRC], 2, (int64_t[]){key->m, key->k}, dnnl_f32, dnnl_ab);
    if (key->bias)
        layout_make(&p->layout[BIAS], 2, (int64_t[]){1, key->n}, dnnl_f32, dnnl_ab);
    layout_make(&p->layout[DST], 2, (int64_t[]){key->m, key->n}, dnnl_f32, dnnl_ab);
    if (f->layout.set) {
        layout_assign(&p->layout[WEIGHTS], &f->layout);
        if (product_desc(pd, s->engine, p->layout, key->bias) == dnnl_success) {
            if (!is_reference(*pd))
                return true;
            dnnl_primitive_desc_destroy(*pd);
        }
        layout_free(&p->layout[WEIGHTS]);
    }
    layout_make(&p->layout[WEIGHTS], 2, (int64_t[]){key->k, key->n}, dnnl_f32, dnnl_format_tag_any);
    if (product_desc(pd, s->engine, p->layout, key->bias) != dnnl_success)
        return false;
    if (!f->layout.set)
        layout_query(&f->layout, *pd, dnnl_query_weights_md);
    return true;
}

static struct primitive_key product_key(int64_t m, int64_t n, int64_t k, bool bias)
{
    struct primitive_key key;
    memset(&key, 0, sizeof key);
    key.kind = PRODUCT;
    key.bias = bias;
    key.m = m;
    key.n = n;
    key.k = k;
    return key;
}

static const void *pack_product(struct kenv *env, void **cache, const struct primitive *p, const void *w, bool transposed)
{
    struct md_layout plain = {.set = false};
    layout_make(&plain, 2, (int64_t[]){p->key.k, p->key.n}, dnnl_f32, transposed ? dnnl_ba : dnnl_ab);
    const void *at = pack(env, cache, p, &plain, w, NULL);
    layout_free(&plain);
    return at;
}

bool dnnl_product_packed(struct kenv *env, void **cache, int64_t m, int64_t n, int64_t k, const float *a, const float *w, bool transposed,
                         const float *bias, float *c)
{
    struct dnnl_state *s = library_state(env);
    struct primitive_key key = product_key(m, n, k, bias != NULL);
    struct primitive *p = primitive_of(s, &key, plan_product);
    if (p->missing)
        return false;
    const void *data[OPERANDS] = {a, pack_product(env, cache, p, w, transposed), bias, c};
    if (m == 1 && p->panels)
        panel_row_product(env, &(struct panel_row){n, k, (k + PANEL_DEPTH - 1) / PANEL_DEPTH * PANEL_DEPTH, a, data[WEIGHTS], bias, c});
    else
        execute(s, p, data);
    return true;
}

bool dnnl_pack_weight(struct kenv *env, void **cache, int64_t n, int64_t k, const float *w, bool transposed)
{
    struct primitive_key key = product_key(TYPICAL_ROWS, n, k, false);
    struct primitive *p = primitive_of(library_state(env), &key, plan_product);
    return !p->missing && pack_product(env, cache, p, w, transposed) != w;
}

/* ---- products of operands that are rounded to bf16; sums in float32 ---- */
enum { NARROW_LEAST = 1 << 20 }; /* products of numbers that pay for rounding the operands */

static bool plan_narrow(struct dnnl_state *s, struct primitive *p, dnnl_primitive_desc_t *pd)
{
    const struct primitive_key *key = &p->key;
    layout_make(&p->layout[SRC], 2, (int64_t[]){key->m, key->k}, dnnl_bf16, dnnl_ab);
    layout_make(&p->layout[WEIGHTS], 2, (int64_t[]){key->k, key->n}, dnnl_bf16, dnnl_format_tag_any);
    layout_make(&p->layout[DST], 2, (int64_t[]){key->m, key->n}, dnnl_f32, dnnl_ab);
    return product_desc(pd, s->engine, p->layout, false) == dnnl_success;
}

/* A matrix of float32, [rows, columns] when it is transposed, as an operand of p. */
static void *narrowed(struct kenv *env, const struct primitive *p, enum primitive_operand i, bool transposed, const float *x)
{
    struct md_layout plain = {.set = false};
    int64_t rows = i == SRC ? p->key.m : p->key.k, columns = i == SRC ? p->key.k : p->key.n;
    void *at = kenv_room(env, i == SRC ? ROOM_NARROW : ROOM_DNNL, dnnl_memory_desc_get_size(MD(&p->layout[i])));
    layout_make(&plain, 2, (int64_t[]){rows, columns}, dnnl_f32, transposed ? dnnl_ba : dnnl_ab);
    reorder(library_state(env), &plain, x, &p->layout[i], at);
    layout_free(&plain);
    return at;
}

static bool narrow_product(struct kenv *env, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    struct dnnl_state *s = library_state(env);
    struct primitive_key key = product_key(m, n, k, false);
    key.kind = NARROW;
    struct primitive *p = primitive_of(s, &key, plan_narrow);
    if (p->missing)
        return false;
    const void *data[OPERANDS] = {narrowed(env, p, SRC, ta, a), narrowed(env, p, WEIGHTS, tb, b), NULL, c};
    execute(s, p, data);
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
    limit_library();
    if (!omp_in_parallel())
        omp_set_num_threads(kenv_threads(env));
    check_status(dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc), "a matrix product");
}

/* ---- convolution ------------------------------------------------------------------------------------------------------------------- */
static const dnnl_format_tag_t plain_tag[] = {0, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};
static const dnnl_format_tag_t last_tag[] = {0, 0, 0, dnnl_acb, dnnl_acdb, dnnl_acdeb}; /* channels last */

static int weight_dims(const struct conv_shape *c, int64_t *dim)
{
    int n = 0;
    if (c->groups > 1)
        dim[n++] = c->groups;
    dim[n++] = c->out / c->groups;
    dim[n++] = c->in / c->groups;
    for (int d = 0; d < c->spatial; d++)
        dim[n++] = c->kernel[d];
    return n;
}

static int image_dims(const struct conv_shape *c, bool result, int64_t *dim)
{
    int n = 0;
    dim[n++] = c->batch;
    dim[n++] = result ? c->out : c->in;
    for (int d = 0; d < c->spatial; d++)
        dim[n++] = result ? c->result[d] : c->size[d];
    return n;
}

/* The layouts of a convolution: as the tensors are, or free for the library to choose: the weight's, then those of x and y. */
enum conv_freedom { AS_GIVEN, ANY_WEIGHT, ANY_LAYOUT };

static void conv_layouts(const struct primitive_key *key, struct md_layout *l, enum conv_freedom free)
{
    int64_t dim[6];
    int n = image_dims(&key->conv, false, dim);
    dnnl_format_tag_t image = free == ANY_LAYOUT ? dnnl_format_tag_any : key->conv.last ? last_tag[n] : plain_tag[n];
    layout_make(&l[SRC], n, dim, dnnl_f32, image);
    n = weight_dims(&key->conv, dim);
    layout_make(&l[WEIGHTS], n, dim, dnnl_f32, free == AS_GIVEN ? plain_tag[n] : dnnl_format_tag_any);
    n = image_dims(&key->conv, true, dim);
    layout_make(&l[DST], n, dim, dnnl_f32, image);
    if (key->bias)
        layout_make(&l[BIAS], 1, &key->conv.out, dnnl_f32, dnnl_a);
}

#define KIND(name) dnnl_eltwise_##name
/* HARD_SIGMOID is bounded before its line: the library confuses two lines. */
static void append_activation(dnnl_post_ops_t ops, const struct conv_shape *c)
{
    static const dnnl_alg_kind_t kind[] = {0,           KIND(relu),      KIND(clip), KIND(logistic), KIND(tanh),
                                           KIND(swish), KIND(hardswish), KIND(clip), KIND(gelu_erf)};
    bool hard = c->activation == CONV_HARD_SIGMOID;
    float a = hard ? -c->beta / c->alpha : c->alpha, b = hard ? (1 - c->beta) / c->alpha : c->beta;
    float scale = hard ? c->alpha * c->scale : c->scale, shift = hard ? c->beta * c->scale + c->shift : c->shift;
    if (c->activation != CONV_LINEAR)
        check_status(APPEND_ELTWISE(ops, kind[c->activation], a, b), "adding an activation");
    if (c->activation != CONV_LINEAR && (scale < 1 || scale > 1 || shift < 0 || shift > 0))
        check_status(APPEND_ELTWISE(ops, dnnl_eltwise_linear, scale, shift), "adding a scale");
}

static dnnl_primitive_attr_t conv_attr(const struct conv_shape *c)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;
    check_status(dnnl_primitive_attr_create(&attr) | dnnl_post_ops_create(&ops), "making attributes");
    if (!c->activates_last)
        append_activation(ops, c);
    if (c->adds)
        check_status(APPEND_SUM(ops), "adding a sum");
    if (c->activates_last)
        append_activation(ops, c);
    check_status(dnnl_primitive_attr_set_post_ops(attr, ops), "making attributes");
    dnnl_post_ops_destroy(ops);
    return attr;
}

/* With the layouts of the tensors where they are what the library is made for; else with those that it likes. */
static bool plan_convolution(struct dnnl_state *s, struct primitive *p, dnnl_primitive_desc_t *pd)
{
    struct conv_dims dims = conv_dims_of(&p->key.conv);
    dnnl_primitive_attr_t attr = conv_attr(&p->key.conv);
    bool found = false;
    for (int free = p->key.conv.last ? ANY_WEIGHT : ANY_LAYOUT; !found && free <= ANY_LAYOUT; free++) {
        conv_layouts(&p->key, p->layout, (enum conv_freedom)free);
        found = conv_desc(pd, s->engine, p->layout, p->key.bias, &dims, attr) == dnnl_success;
        if (found && free == ANY_WEIGHT && is_reference(*pd)) {
            dnnl_primitive_desc_destroy(*pd);
            found = false;
        }
        for (int i = 0; !found && i < OPERANDS; i++)
            layout_free(&p->layout[i]);
    }
    dnnl_primitive_attr_destroy(attr);
    return found;
}

/* Runs p on the tensors as they are: what the library wants otherwise is reordered before and after. */
static void convolve(struct kenv *env, void **cache, struct primitive *p, struct md_layout *given, const void *x, const void *w,
                     const float *factor, const void *bias, void *y)
{
    struct dnnl_state *s = library_state(env);
    bool same_x = dnnl_memory_desc_equal(MD(&given[SRC]), MD(&p->layout[SRC]));
    bool same_y = dnnl_memory_desc_equal(MD(&given[DST]), MD(&p->layout[DST]));
    void *in = same_x ? NULL : kenv_room(env, ROOM_THREADS, dnnl_memory_desc_get_size(MD(&p->layout[SRC])));
    void *out = same_y ? y : kenv_room(env, ROOM_KERNEL, dnnl_memory_desc_get_size(MD(&p->layout[DST])));
    if (!same_x)
        reorder(s, &given[SRC], x, &p->layout[SRC], in);
    if (!same_y && p->key.conv.adds)
        reorder(s, &given[DST], y, &p->layout[DST], out);
    const void *data[OPERANDS] = {same_x ? x : in, pack(env, cache, p, &given[WEIGHTS], w, factor), bias, out};
    execute(s, p, data);
    if (!same_y)
        reorder(s, &p->layout[DST], out, &given[DST], y);
}

bool dnnl_convolve(struct kenv *env, void **cache, const struct conv_shape *shape, const float *x, const float *w, const float *factor,
                   const float *bias, float *y)
{
    struct dnnl_state *s = library_state(env);
    struct primitive_key key;
    struct md_layout given[OPERANDS] = {{.set = false}};
    memset(&key, 0, sizeof key);
    key.kind = CONVOLUTION;
    key.bias = bias != NULL;
    key.conv = *shape;
    struct primitive *p = primitive_of(s, &key, plan_convolution);
    if (p->missing)
        return false;
    conv_layouts(&key, given, AS_GIVEN);
    convolve(env, cache, p, given, x, w, factor, bias, y);
    for (int i = 0; i < OPERANDS; i++)
        layout_free(&given[i]);
    return true;
}
