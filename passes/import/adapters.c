/* adapters: adds low-rank adapters to products; only these are trained (--lora). They are ordinary nodes of the canonical graph, as if the
 * model had them: the gradient, the plan and all later passes treat them so. */
#include "ir/rank_meta.h"
#include "passes/pass.h"
#include "plan/facts/facts.h"
#include "plan/lora/lora.h"

static struct value *new_weight(struct graph *g, const char *name, int64_t rows, int64_t columns, const float *data)
{
    struct value *v = graph_constant(g, name, DT_F32, 2, (const int64_t[]){rows, columns}, data);
    v->constant->origin = v->name; /* it is a weight, so it is not folded away */
    v->constant->trained = true;
    return v;
}

struct adapter {
    const char *module;
    struct value *a, *b;
};

static struct adapter new_adapter(struct compile *c, const struct lora_product *p)
{
    struct graph *g = c->graph;
    int64_t rank = c->options->lora.rank;
    const char *a = arena_printf(g->arena, "%s" LORA_A, p->module), *b = arena_printf(g->arena, "%s" LORA_B, p->module);
    struct arena *tmp = arena_new();
    float *data = arena_array(tmp, (size_t)(rank * p->rows), sizeof(float)), *zeros = NEWN(tmp, float, rank * p->columns);
    if (graph_find(g, a) || graph_find(g, b))
        fail("%s: --lora: there is '%s' or '%s' already", graph_file(g), a, b);
    lora_initial(a, 0, p->rows, rank, data);
    struct adapter made = {p->module, new_weight(g, a, p->rows, rank, data), new_weight(g, b, rank, p->columns, zeros)};
    arena_free(tmp);
    c->plan->trainable = trained_plus(trained_plus(c->plan->trainable, made.a), made.b);
    return made;
}

void pass_adapters(struct compile *c)
{
    struct graph *g = c->graph;
    const struct options *o = c->options;
    struct name_index at = {0};
    VEC(struct adapter) made = {NULL, 0, 0};
    if (!o || !o->lora.rank)
        return;
    struct lora_products all = lora_products_find(g), on = lora_products_named(g, &all, o->lora.on);
    if (!on.list.n)
        fail("%s: --lora: no product of the model has a weight by which an adapter may lie", graph_file(g));
    EACH (const struct lora_product, p, on.list) {
        int k = name_index_find(&at, p->module); /* a module that is used twice has one adapter */
        if (k < 0) {
            k = made.n;
            name_index_put(g->arena, &at, p->module, k);
            VEC_PUSH(g->arena, &made, new_adapter(c, p));
        }
        (void)lora_attach(g, p, made.at[k].a, made.at[k].b, &(struct lora_factor){.number = o->lora.alpha / (double)o->lora.rank});
    }
    rank_meta_set_adapters(g, o->lora.alpha);
}
