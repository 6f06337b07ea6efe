/* attach: the nodes of an adapter, next to its product. */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/op.h"
#include "plan/facts/facts.h"
#include "plan/lora/lora.h"

static int place_of(const struct graph *g, const struct node *n)
{
    for (int i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i] == n)
            return i;
    bug("node '%s' is not in the graph", n->name);
}

/* Adds v to the product's result. The product gets a new result, and the sum takes the old name: names of the interface stay. */
static void add_to_result(struct lowering *l, struct node *product, struct value *v)
{
    struct graph *g = l->g;
    struct value *result = product->out[0], *base = graph_value(g, arena_printf(g->arena, "%s/base", l->name), &result->type);
    node_output(g, product, 0, base);
    struct node *sum = graph_node(g, op_find("", "Add"), arena_printf(g->arena, "%s/lora/Add", l->name), 2, (struct value *[]){base, v}, 1);
    node_output(g, sum, 0, result);
    op_infer(g, sum);
    VEC_PUSH(g->arena, &l->nodes, sum);
}

static struct value *times_factor(struct lowering *l, struct value *few, const struct lora_factor *f)
{
    if (!f->table && f->number == 1)
        return few;
    struct value *by;
    if (f->table)
        by = lower_unsqueeze(l, "lora_A/rows", lower_binary(l, "Gather", "lora_A/Gather", f->table, f->row), 1, few->type.rank - 2);
    else
        by = lower_scalar(l, "lora_A/factor", DT_F32, f->number);
    return lower_binary(l, "Mul", "lora_A/Mul", few, by);
}

struct node *lora_attach(struct graph *g, const struct lora_product *p, struct value *a, struct value *b, const struct lora_factor *factor)
{
    struct lowering l = {.g = g, .name = label_node(g->arena, g, p->node)};
    struct value *x = lower_cast(&l, "lora_A/Cast", p->node->in[0], DT_F32), *few = lower_binary(&l, "MatMul", "lora_A/MatMul", x, a);
    struct node *first = few->producer;
    struct value *v = lower_binary(&l, "MatMul", "lora_B/MatMul", times_factor(&l, few, factor), b);
    add_to_result(&l, p->node, lower_cast(&l, "lora_B/Cast", v, p->node->out[0]->type.dtype));
    for (int i = 0, at = place_of(g, p->node) + 1; i < l.nodes.n; i++)
        graph_insert(g, at + i, l.nodes.at[i]);
    return first;
}
