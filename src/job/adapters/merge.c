/* merge: merges adapters into weights: W + factor A B. */
#include "job/adapters/adapters.h"
#include "kern/core/core.h"

#include <string.h>

#define NOT_MERGED "adapters can't be merged into it, but tpc-run --lora applies them"

/* Adds element k of row r of A times column c of B to W. turned: W is stored transposed. */
static void add_product(float *w, bool turned, const float *a, const float *b, int64_t rows, int64_t rank, int64_t columns, double factor)
{
    struct arena *tmp = arena_new();
    double *line = NEWN(tmp, double, columns);
    for (int64_t r = 0; r < rows; r++) {
        memset(line, 0, (size_t)columns * sizeof *line);
        for (int64_t k = 0; k < rank; k++)
            for (int64_t c = 0; c < columns; c++)
                line[c] += (double)a[r * rank + k] * (double)b[k * columns + c];
        for (int64_t c = 0; c < columns; c++) {
            float *to = turned ? w + c * rows + r : w + r * columns + c;
            *to = (float)((double)*to + factor * line[c]);
        }
    }
    arena_free(tmp);
}

static bool is_merged(enum dtype t)
{
    return t == DT_F32 || t == DT_F16 || t == DT_BF16;
}

/* The weight may change only if its single reader is the product, maybe through a Transpose. */
static void check_weight(const struct graph *g, const struct lora_product *p)
{
    const struct value *v = p->weight;
    if (!p->plain || !is_merged(v->constant->dtype) || v->constant->rank != 2 || !v->constant->origin)
        fail("%s: weight '%s' is not f32, f16 or bf16 as the product reads it: " NOT_MERGED, node_where(g, p->node), v->name);
    const struct uses *uses = graph_uses(g, g->arena);
    for (int depth = 0; v != p->node->in[1]; v = uses[v->id].at[0].node->out[0])
        if (uses[v->id].n != 1 || depth++ > MAX_RANK)
            break;
    if (v != p->node->in[1] || uses[v->id].n != 1)
        fail("%s: weight '%s' has other readers: " NOT_MERGED, node_where(g, p->node), p->weight->name);
}

static void merge_one(const struct adapters *s, const struct adapter *p, const struct lora_product *product,
                      void (*take)(void *, const char *, const struct tensor *), void *data)
{
    struct arena *tmp = arena_new();
    struct constant *c = product->weight->constant;
    int64_t n = constant_elements(c);
    struct tensor t = {.dtype = c->dtype, .rank = 2, .dim = {c->dim[0], c->dim[1]}, .data = arena_alloc(tmp, (size_t)c->bytes + 1)};
    float *w = NEWN(tmp, float, n);
    memcpy(t.data, constant_data(c, product->weight->name), (size_t)c->bytes); /* files have them unaligned */
    constant_release(c);
    convert_to_f32(c->dtype, t.data, n, w);
    add_product(w, product->turned, adapter_turned(tmp, p, 0), adapter_turned(tmp, p, 1), product->rows, adapter_rank(p), product->columns,
                adapter_factor(s, p));
    convert_from_f32(c->dtype, w, n, t.data);
    take(data, c->origin, &t);
    arena_free(tmp);
}

void adapters_merge(struct graph *g, const struct adapters *s, void (*take)(void *, const char *weight, const struct tensor *), void *data)
{
    struct lora_products products = lora_products_find(g);
    const struct adapter **of = adapters_match(g->arena, s, graph_file(g), &products, NULL);
    for (int i = 0; i < products.list.n; i++)
        if (of[i]) {
            adapter_check(s, of[i], graph_file(g), products.list.at[i].rows, products.list.at[i].columns);
            check_weight(g, &products.list.at[i]);
        }
    for (int i = 0; i < products.list.n; i++)
        if (of[i])
            merge_one(s, of[i], &products.list.at[i], take, data);
}
