/* dnnl: oneDNN's instruction set, its primitives, cached by shape, and weights in their layouts. */
#include "kern/core/core.h"
#include "kern/gemm/dnnl_primitive.h"
#include "kern/gemm/gemm.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define MOST_PRIMITIVES 1024 /* above that, all are dropped */

/* ---- state ------------------------------------------------------------------------------------------------------------------ */
void dnnl_checked(dnnl_status_t status, const char *what)
{
    if (status != dnnl_success)
        fail("oneDNN: %s failed with status %d%s", what, (int)status, status == dnnl_out_of_memory ? ": out of memory" : "");
}

/* ---- its instruction set ----------------------------------------------------------------------------------------------------- */
/* TPC_ISA limits oneDNN, too. On AVX2 without FMA, as in some virtual machines, its AVX2 code would execute illegal instructions. */
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

void dnnl_limit(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)isa_runs(ISA_PLAIN); /* a wrong name fails here, not inside of pthread_once */
    pthread_once(&once, limit);
    dnnl_checked(limited, "limiting its instruction set");
}

static bool library_has(dnnl_cpu_isa_t isa)
{
    dnnl_limit();
    return ((unsigned)dnnl_get_effective_cpu_isa() & (unsigned)isa) == (unsigned)isa;
}
#else
void dnnl_limit(void)
{
}

/* Its bits mean other sets on other processors. */
#define library_has(isa) false
#endif

bool dnnl_narrows(void)
{
    return X86 ? library_has(dnnl_cpu_isa_avx512_core_bf16) : narrow_fast();
}

bool dnnl_narrows_weight(const struct kenv *env, enum dtype w)
{
    return X86 && ((w == DT_BF16 && dnnl_narrows()) || kenv_narrows(env));
}

bool dnnl_packs(const struct kenv *env, enum dtype w)
{
    return dnnl_narrows_weight(env, w) || (w == DT_F32 && library_has(dnnl_cpu_isa_avx512_core));
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

void *dnnl_zeroed(size_t bytes)
{
    void *p = calloc(1, bytes);
    if (!p)
        fail("out of memory: %zu bytes for a oneDNN primitive", bytes);
    return p;
}

struct dnnl_state *dnnl_state_of(struct kenv *env)
{
    void **slot = kenv_library(env, free_state);
    omp_set_num_threads(kenv_threads(env));
    if (!*slot) {
        dnnl_limit();
        struct dnnl_state *s = *slot = dnnl_zeroed(sizeof *s);
        dnnl_checked(dnnl_engine_create(&s->engine, dnnl_cpu, 0), "making a CPU engine");
        dnnl_checked(dnnl_stream_create(&s->stream, s->engine, dnnl_stream_default_flags), "making a stream");
    }
    return *slot;
}

dnnl_data_type_t dnnl_operand_type(const struct primitive_key *key)
{
    return key->narrow ? dnnl_bf16 : dnnl_f32;
}

/* Whether the weight of p is stored in panels. For one row, the library takes 1.5 times as long as reading the weight. */
static bool in_panels(const struct primitive *p)
{
    struct md_layout panels = {.set = false};
    layout_make(&panels, 2, (int64_t[]){p->key.k, p->key.n}, dnnl_operand_type(&p->key), p->key.narrow ? dnnl_BA16a64b2a : dnnl_BA16a64b);
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
    dnnl_checked(dnnl_primitive_create(&p->run, pd), "making a primitive");
    for (int i = 0; i < OPERANDS; i++)
        if (p->layout[i].set)
            dnnl_checked(dnnl_memory_create(&p->memory[i], MD(&p->layout[i]), s->engine, DNNL_MEMORY_NONE), "making a memory object");
    dnnl_primitive_desc_destroy(pd);
    p->panels = p->key.kind == PRODUCT && in_panels(p);
}

static struct primitive *new_primitive(struct dnnl_state *s, const struct primitive_key *key)
{
    if (HASH_COUNT(s->primitives) >= MOST_PRIMITIVES)
        drop_primitives(s);
    struct primitive *p = dnnl_zeroed(sizeof *p);
    p->key = *key;
    HASH_ADD(hh, s->primitives, key, sizeof p->key, p);
    return p;
}

struct primitive *dnnl_primitive_of(struct dnnl_state *s, const struct primitive_key *key, plan_primitive *plan)
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

void dnnl_run(struct dnnl_state *s, struct primitive *p, const void *const *data)
{
    static const int name[OPERANDS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    dnnl_exec_arg_t arg[OPERANDS];
    int n = 0;
    for (int i = 0; i < OPERANDS; i++) {
        if (!p->memory[i])
            continue;
        dnnl_checked(dnnl_memory_set_data_handle(p->memory[i], (void *)(uintptr_t)data[i]), "setting a memory object");
        arg[n++] = (dnnl_exec_arg_t){name[i], p->memory[i]};
    }
    dnnl_checked(dnnl_primitive_execute(p->run, s->stream, n, arg), "running a primitive");
    dnnl_checked(dnnl_stream_wait(s->stream), "waiting");
}

void dnnl_convert(struct dnnl_state *s, const struct md_layout *from, const void *src, const struct md_layout *to, void *dst)
{
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t run;
    dnnl_memory_t in, out;
    dnnl_checked(dnnl_reorder_primitive_desc_create(&pd, MD(from), s->engine, MD(to), s->engine, NULL), "planning a reorder");
    dnnl_checked(dnnl_primitive_create(&run, pd), "making a reorder");
    dnnl_checked(dnnl_memory_create(&in, MD(from), s->engine, (void *)(uintptr_t)src), "making a memory object");
    dnnl_checked(dnnl_memory_create(&out, MD(to), s->engine, dst), "making a memory object");
    dnnl_exec_arg_t arg[2] = {{DNNL_ARG_FROM, in}, {DNNL_ARG_TO, out}};
    dnnl_checked(dnnl_primitive_execute(run, s->stream, 2, arg), "reordering");
    dnnl_checked(dnnl_stream_wait(s->stream), "waiting");
    dnnl_memory_destroy(in);
    dnnl_memory_destroy(out);
    dnnl_primitive_destroy(run);
    dnnl_primitive_desc_destroy(pd);
}

/* ---- packed weights ------------------------------------------------------------------------------------------------------------ */
/* A weight with the `n` numbers of each output channel multiplied by its factor. */
static const float *scaled_channels(struct kenv *env, const struct conv_shape *c, size_t bytes, const float *w, const float *factor)
{
    float *to = kenv_room(env, ROOM_TURN_Q, bytes);
    int64_t n = (int64_t)(bytes / sizeof *w) / c->out;
    for (int64_t m = 0; m < c->out; m++)
        for (int64_t i = 0; i < n; i++)
            to[m * n + i] = w[m * n + i] * factor[m];
    return to;
}

/* A weight in a primitive's layout. */
struct reordered_weight {
    struct md_layout layout;
    void *at;
    size_t bytes;
};

void *dnnl_packed_room(struct kenv *env, void **cache, const struct primitive *p, bool *full)
{
    const struct md_layout *wanted = &p->layout[WEIGHTS];
    size_t bytes = dnnl_memory_desc_get_size(MD(wanted));
    struct reordered_weight *packed = cache ? *cache : NULL;
    *full = packed && dnnl_memory_desc_equal(MD(&packed->layout), MD(wanted));
    if (!cache)
        return kenv_room(env, ROOM_DNNL, bytes);
    if (!packed)
        packed = *cache = kenv_keep(env, sizeof *packed);
    if (packed->bytes < bytes) {
        packed->at = kenv_weights(env, bytes);
        packed->bytes = bytes;
    }
    if (!*full)
        layout_assign(&packed->layout, wanted);
    return packed->at;
}

const void *dnnl_packed(struct kenv *env, void **cache, const struct primitive *p, const struct md_layout *plain, const struct tensor *w,
                        const float *factor)
{
    bool full;
    if (!factor && dnnl_memory_desc_equal(MD(plain), MD(&p->layout[WEIGHTS])))
        return tensor_f32(env, w, ROOM_B);
    void *at = dnnl_packed_room(env, cache, p, &full);
    if (full)
        return at;
    const float *src = tensor_f32(env, w, ROOM_B);
    if (factor)
        src = scaled_channels(env, &p->key.conv, dnnl_memory_desc_get_size(MD(plain)), src, factor);
    dnnl_convert(dnnl_state_of(env), plain, src, &p->layout[WEIGHTS], at);
    return at;
}

bool dnnl_is_reference(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;
    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success && name && strncmp(name, "ref", 3) == 0;
}
