/* products: finds the products that can have adapters, and their modules in the source. */
#include "op/op.h"
#include "plan/facts/facts.h"
#include "plan/lora/lora.h"

#include <string.h>

enum { DEEPEST = 8 }; /* nodes between a weight and its product */

/* Whether the value is made from constants by moves, decoding and conversion. */
static bool is_of_constants(const struct value *v, int depth)
{
    const struct node *n = v->producer;
    if (v->constant)
        return true;
    if (!n || !n->op || !(n->op->flags & (OP_MOVES | OP_DECODES | OP_CONVERTS)) || depth == DEEPEST || !n->nin)
        return false;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && !is_of_constants(n->in[k], depth + 1))
            return false;
    return true;
}

static bool is_product(const struct node *n)
{
    bool gemm = op_is_onnx(n, "Gemm") && !attr_int(n, "transA");
    bool few_bits = n->op && strcmp(n->op->domain, "com.microsoft") == 0 && strcmp(n->op->name, "MatMulNBits") == 0;
    return gemm || few_bits || op_is_onnx(n, "MatMul");
}

/* Finds the weight from which operand 1 is made. */
static void find_weight(const struct node *n, struct lora_product *p)
{
    struct value *v = n->in[1];
    p->plain = op_is_onnx(n, "MatMul") || (op_is_onnx(n, "Gemm") && attr_float(n, "alpha") == 1);
    p->turned = op_is_onnx(n, "Gemm") && attr_int(n, "transB");
    for (; !v->constant; v = v->producer->in[0]) {
        bool turns = op_is_onnx(v->producer, "Transpose") && v->type.rank == 2;
        p->plain = p->plain && (turns || op_is_onnx(v->producer, "Identity"));
        p->turned ^= turns;
    }
    p->weight = v;
}

/* The size of the last dimension; false if unknown. */
static bool last_size(const struct type *t, int64_t *size)
{
    return t->rank > 0 && dim_is_int(t->dim[t->rank - 1], size) && *size > 0;
}

static bool read_product(struct node *n, struct lora_product *p)
{
    *p = (struct lora_product){.node = n};
    if (!is_product(n) || n->nout != 1 || !n->in[0] || !n->in[1] || is_of_constants(n->in[0], 0) || !is_of_constants(n->in[1], 0))
        return false;
    if (!dtype_is_float(n->in[0]->type.dtype) || (op_is_onnx(n, "MatMul") && n->in[1]->type.rank != 2) ||
        !last_size(&n->in[0]->type, &p->rows) || !last_size(&n->out[0]->type, &p->columns))
        return false;
    find_weight(n, p);
    return true;
}

/* ---- names ---- */

/* The module: NAME for a weight "NAME.weight"; else from the node's path. */
static const char *module_of(const struct graph *g, const struct uses *uses, const struct lora_product *p)
{
    static const char end[] = ".weight";
    const char *weight = label_weight(g->arena, g, uses, p->weight);
    size_t n = strlen(weight);
    if (n > strlen(end) && path_ends(weight, end))
        return arena_strndup(g->arena, weight, n - strlen(end));
    char *path = arena_strdup(g->arena, label_node(g->arena, g, p->node));
    for (char *slash; (slash = strchr(path, '/'));)
        *slash = '.';
    return path;
}

/* A product of that module with another weight; NULL: none. */
static const struct lora_product *other_of(const struct lora_products *all, const struct name_index *at, const char *module,
                                           const struct value *weight)
{
    int i = name_index_find(at, module);
    return i >= 0 && all->list.at[i].weight != weight ? &all->list.at[i] : NULL;
}

static void add_product(struct graph *g, struct lora_products *all, struct name_index *at, struct lora_product p)
{
    const char *first = p.module;
    for (int i = 2; other_of(all, at, p.module, p.weight); i++)
        p.module = arena_printf(g->arena, "%s.%d", first, i);
    if (name_index_find(at, p.module) < 0)
        name_index_put(g->arena, at, p.module, all->list.n);
    VEC_PUSH(g->arena, &all->list, p);
}

struct lora_products lora_products_find(struct graph *g)
{
    struct lora_products all = {{NULL, 0, 0}};
    struct name_index at = {0};
    const struct uses *uses = graph_uses(g, g->arena);
    for (int i = 0; i < g->nodes.n; i++) {
        struct lora_product p;
        if (!read_product(g->nodes.at[i], &p))
            continue;
        p.module = module_of(g, uses, &p);
        add_product(g, &all, &at, p);
    }
    return all;
}

/* ---- which of them ---- */

/* Whether the result is an output, or becomes one, for example after a bias. */
static bool ends_in_output(const struct graph *g, const struct uses *uses, const struct value *v, int depth)
{
    const struct uses *u = &uses[v->id];
    if (graph_output_number(g, v) >= 0)
        return true;
    for (int i = 0; i < u->n; i++) {
        const struct node *n = u->at[i].node;
        bool passes = n && n->op && n->op->flags & (OP_ELEMENTWISE | OP_VIEW | OP_CONVERTS) && n->nout == 1;
        if (!passes || depth == DEEPEST || !ends_in_output(g, uses, n->out[0], depth + 1))
            return false;
    }
    return u->n > 0;
}

struct lora_products lora_products_named(struct graph *g, const struct lora_products *all, const char *globs)
{
    struct lora_products found = {{NULL, 0, 0}};
    const struct uses *uses = graph_uses(g, g->arena);
    bool *among = NEWN(g->arena, bool, g->nodes.n + 1), *named = NEWN(g->arena, bool, g->nodes.n + 1);
    const struct value **weight = NEWN(g->arena, const struct value *, g->nodes.n + 1);
    for (int i = 0, k = 0; i < g->nodes.n && k < all->list.n; i++)
        if (g->nodes.at[i] == all->list.at[k].node) {
            among[i] = true;
            weight[i] = all->list.at[k++].weight;
            named[i] = !globs && !ends_in_output(g, uses, g->nodes.at[i]->out[0], 0);
        }
    if (globs) {
        const struct name_search s = {
            arena_printf(g->arena, "%s: --on", graph_file(g)), "product with a weight", NAMED_NODES, among, weight, false};
        struct name_matches at = names_find(names_new(g->arena, g), &s, globs);
        for (int i = 0; i < at.at.n; i++)
            named[at.at.at[i]] = true;
    }
    for (int i = 0, k = 0; i < g->nodes.n; i++)
        if (among[i] && k++ >= 0 && named[i])
            VEC_PUSH(g->arena, &found.list, all->list.at[k - 1]);
    return found;
}
