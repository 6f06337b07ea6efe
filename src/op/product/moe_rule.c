/* moe_rule: the splits of mixtures of experts.
 *
 * The inner width splits: columns of fc1 and fc3, rows of fc2, and the result is a sum. In QMoE it is i groups of u, so that no byte or
 * block is cut. The experts split if every row goes through all of them, with given weights (tpc::Experts is MoE with QMoE's operand for
 * these); the lowering makes such nodes from others: experts that a row did not choose have weight 0, and kernels skip them. */
#include "ir/constant/constant.h"
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/op.h"
#include "op/product/product.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

bool moe_takes_all(const struct node *node, const struct moe_sizes *m)
{
    int64_t experts;
    return node_operand(node, moe_mix_at(m)) && !attr_int(node, "normalize_routing_weights") && dim_is_int(m->experts, &experts) &&
        attr_int(node, "k") >= experts;
}

/* The producer of the numbers, before they are converted and sent to ranks. */
static const struct node *maker_of(const struct value *v)
{
    const struct node *n = (v->outside ? v->outside : v)->producer;
    bool same = n && n->op && n->nin == 1 && (n->op->flags & (OP_CONVERTS | OP_COLLECTIVE) || op_is_tpc(n, "Shard"));
    return same ? maker_of(n->in[0]) : n;
}

/* One zero in many places, as exporters write it in two ways. */
static bool makes_zeros(const struct node *n)
{
    double number;
    if (n && n->op == op_find("", "Expand"))
        return op_constant_real(n->in[0], &number) && number == 0;
    struct attr *value = n && n->op == op_find("", "ConstantOfShape") ? node_attr(n, "value") : NULL;
    return value && (!value->set || (constant_present(value->tensor) && constant_float(value->tensor, n->name, 0) == 0));
}

int64_t moe_most_nonzero(const struct value *weights)
{
    const struct node *n = maker_of(weights);
    int64_t most;
    if (!n || n->op != op_find("", "ScatterElements") || attr_int(n, "axis") != 1 || n->in[1]->type.rank != 2)
        return -1;
    return makes_zeros(maker_of(n->in[0])) && dim_is_int(n->in[1]->type.dim[1], &most) ? most : -1;
}

int64_t moe_chosen(const struct node *node)
{
    const struct moe_sizes m = {.quantized = strcmp(node->op->name, "QMoE") == 0};
    int64_t k = attr_int(node, "k"), most = node_operand(node, moe_mix_at(&m)) ? moe_most_nonzero(node->in[moe_mix_at(&m)]) : -1;
    return most >= 0 && most < k ? most : k;
}

/* ---- the rule ------------------------------------------------------------------------------------------------------------------------ */

struct factors {
    struct graph *g;
    struct rule *r;
    const struct node *node;
    const struct moe_sizes *m;
    int64_t unit;
    int rows, row[2], e, n, c, u, gate;
};

static int replicated_factor(struct factors *f, const char *name, const struct dim *size)
{
    return rule_factor(f->g, f->r, name, size, FACTOR_REPLICATED | FACTOR_DROPPED);
}

static void put_moe_factor(struct factors *f, int operand, int d, int factor)
{
    if (factor >= 0)
        rule_put(f->g, &f->r->in[operand], d, 0, factor);
}

/* Elements of the inner width that split together: enough to fill bytes, blocks, and bytes of zero points; 0: the width is never split. */
static int64_t inner_unit(const struct node *node, const struct moe_sizes *m)
{
    int64_t unit = 1, inner, packs = m->block * (node_operand(node, moe_zeros_at(FC2)) ? 8 / m->bits[FC2] : 1);
    for (int j = 0; m->quantized && j < MATRICES; j++)
        unit = unit < 8 / m->bits[j] ? 8 / m->bits[j] : unit;
    unit = unit < packs ? packs : unit;
    return dim_is_int(m->inner, &inner) && inner % unit == 0 ? unit : 0;
}

static void inner_factors(struct factors *f)
{
    struct graph *g = f->g;
    int64_t unit = f->unit ? f->unit : 1;
    f->c = rule_factor(g, f->r, "i", dim_div(g->alg, f->m->inner, dim_int(g->alg, unit)),
                       FACTOR_CONTRACTED | (f->unit ? 0 : FACTOR_REPLICATED));
    f->r->factor[f->c].red = RED_SUM;
    f->u = unit > 1 ? replicated_factor(f, "u", dim_int(g->alg, unit)) : -1;
    f->gate = f->m->gates > 1 ? replicated_factor(f, "gate", dim_int(g->alg, 2)) : -1;
}

/* The inner width, or its packed form: `each` per unit, in both gates. */
static void put_inner(struct factors *f, int operand, int d, int j, int64_t each)
{
    int gate = j == FC1 ? f->gate : -1,
        u = each == f->unit || !f->unit ? f->u
        : each > 1                      ? replicated_factor(f, "p", dim_int(f->g->alg, each))
                                        : -1;
    put_moe_factor(f, operand, d, f->m->interleaved ? -1 : gate);
    put_moe_factor(f, operand, d, f->c);
    put_moe_factor(f, operand, d, u);
    put_moe_factor(f, operand, d, f->m->interleaved ? gate : -1);
}

static void put_moe_rows(struct factors *f, int operand, int d, int j)
{
    if (j == FC2)
        put_moe_factor(f, operand, d, f->n);
    else
        put_inner(f, operand, d, j, f->unit);
}

/* A dimension that no other operand has. */
static void put_own(struct factors *f, int operand, int d)
{
    put_moe_factor(f, operand, d, replicated_factor(f, "q", f->node->in[operand]->type.dim[d]));
}

/* Along the columns of fc2, a unit takes `each` elements of a dimension; other operands' are never split. */
static void put_moe_columns(struct factors *f, int operand, int d, int j, int64_t each)
{
    if (j == FC2 && f->unit)
        put_inner(f, operand, d, j, each);
    else
        put_own(f, operand, d);
}

static void put_scales(struct factors *f, int j)
{
    const struct moe_sizes *m = f->m;
    int scales = moe_scales_at(m, j), zeros = moe_zeros_at(j);
    put_moe_factor(f, scales, 0, f->e);
    put_moe_rows(f, scales, 1, j);
    if (m->block)
        put_moe_columns(f, scales, 2, j, f->unit / m->block);
    if (!node_operand(f->node, zeros))
        return;
    put_moe_factor(f, zeros, 0, f->e);
    if (m->block) {
        put_moe_rows(f, zeros, 1, j);
        put_moe_columns(f, zeros, 2, j, f->unit / m->block * m->bits[j] / 8);
    } else if (j == FC2 || !f->unit) {
        put_own(f, zeros, 1);
    } else {
        put_inner(f, zeros, 1, j, f->unit * m->bits[j] / 8);
    }
}

static void put_matrix(struct factors *f, int j)
{
    const struct moe_sizes *m = f->m;
    int w = moe_weight_at(m, j), bias = moe_bias_at(m, j);
    if (!node_operand(f->node, w))
        return;
    put_moe_factor(f, w, 0, f->e);
    put_moe_rows(f, w, m->transposed ? 2 : 1, j);
    put_moe_columns(f, w, m->transposed ? 1 : 2, j, f->unit * m->bits[j] / 8);
    if (m->quantized)
        put_scales(f, j);
    if (!node_operand(f->node, bias))
        return;
    put_moe_factor(f, bias, 0, f->e);
    put_moe_rows(f, bias, 1, j);
    f->r->in[bias].addend = j == FC2;
}

/* A number per row and expert. A choice not made yet needs the numbers of all experts. */
static void put_choice(struct factors *f, int operand)
{
    for (int d = 0; d < f->rows; d++)
        put_moe_factor(f, operand, 0, f->row[d]);
    if (moe_takes_all(f->node, f->m))
        put_moe_factor(f, operand, 1, f->e);
    else
        put_own(f, operand, 1);
}

/* Rows of fc2's result are independent, too, unless their zero points share bytes. */
static unsigned result_flags(const struct node *node, const struct moe_sizes *m)
{
    return m->quantized && !m->block && node_operand(node, moe_zeros_at(FC2)) ? FACTOR_REPLICATED : 0;
}

struct rule *rule_moe(struct graph *g, const struct node *node)
{
    struct moe_sizes m = moe_read(g, node);
    struct rule *r = rule_new(g, node);
    struct factors f = {.g = g, .r = r, .node = node, .m = &m, .unit = inner_unit(node, &m), .rows = node->in[INPUT]->type.rank - 1};
    for (int d = 0; d < f.rows; d++) {
        f.row[d] = rule_factor(g, r, f.rows == 1 ? "t" : d ? "s" : "b", node->in[INPUT]->type.dim[d], 0);
        put_moe_factor(&f, INPUT, d, f.row[d]);
        rule_put(g, &r->out[0], d, 0, f.row[d]);
    }
    put_moe_factor(&f, INPUT, f.rows, rule_factor(g, r, "h", m.hidden, FACTOR_REPLICATED | FACTOR_CONTRACTED));
    f.e = rule_factor(g, r, "e", m.experts, FACTOR_TRAVELS | (moe_takes_all(node, &m) ? 0 : FACTOR_LOWERED));
    r->factor[f.e].red = RED_SUM;
    put_choice(&f, ROUTER);
    f.n = rule_factor(g, r, "n", m.result, result_flags(node, &m));
    inner_factors(&f);
    for (int j = 0; j < MATRICES; j++)
        put_matrix(&f, j);
    if (node_operand(node, moe_mix_at(&m)))
        put_choice(&f, moe_mix_at(&m));
    if (moe_takes_all(node, &m))
        r->size[r->nsize++] = (struct rule_size){"k", {.n = 1, .factor = {f.e}}};
    rule_put(g, &r->out[0], f.rows, 0, f.n);
    if (!m.quantized)
        rule_linear(r, 1u << moe_weight_at(&m, FC2) | (node_operand(node, moe_bias_at(&m, FC2)) ? 1u << moe_bias_at(&m, FC2) : 0));
    return r;
}

/* ---- split by experts -------------------------------------------------------------------------------------------------------- */

/* The values of the k largest, and 0 for the others. */
static struct value *chosen(struct lowering *l, struct value *by, struct value *values)
{
    struct graph *g = l->g;
    struct node *top = graph_node(g, op_find("", "TopK"), arena_printf(g->arena, "%s/top", l->name), 1, &by, 2);
    const struct dim *k = dim_int(g->alg, attr_int(l->node, "k"));
    node_output(g, top, 0, graph_value(g, arena_printf(g->arena, "%s/top", l->name), NULL));
    node_output(g, top, 1, graph_value(g, arena_printf(g->arena, "%s/chosen", l->name), NULL));
    attr_set_int(top, "axis", 1);
    attr_set_dims(g, top, "k", 1, &k);
    op_infer(g, top);
    VEC_PUSH(g->arena, &l->nodes, top);
    struct node *take = lower_node(l, "", "GatherElements", "values", 2, (struct value *[]){values, top->out[1]});
    attr_set_int(take, "axis", 1);
    op_infer(g, take);
    struct value *weights = take->out[0];
    if (attr_int(l->node, "normalize_routing_weights"))
        weights = lower_binary(l, "Div", "normal", weights, lower_reduce(l, "ReduceSum", "total", weights, 1, 2));
    struct value *zero = lower_scalar(l, "zero", values->type.dtype, 0);
    struct node *zeros = lower_node(l, "", "Expand", "zeros", 1, &zero);
    zeros->out[0]->type = values->type;
    op_infer(g, zeros);
    struct node *put = lower_node(l, "", "ScatterElements", "weights", 3, (struct value *[]){zeros->out[0], top->out[1], weights});
    attr_set_int(put, "axis", 1);
    op_infer(g, put);
    return put->out[0];
}

/* All the same experts, with these weights. */
static struct value *with_weights(struct lowering *l, const struct moe_sizes *m, struct value *rows, struct value *weights)
{
    const struct node *node = l->node;
    struct graph *g = l->g;
    int mix = moe_mix_at(m);
    struct value **in = NEWN(g->arena, struct value *, mix + 1);
    int64_t experts;
    for (int i = 0; i < node->nin; i++)
        in[i] = node->in[i];
    in[INPUT] = rows;
    in[ROUTER] = in[mix] = weights;
    const char *name = arena_printf(g->arena, "%s/experts", l->name);
    const struct op *op = m->quantized ? node->op : op_find("tpc", "Experts");
    struct node *all = graph_node(g, op, name, mix + 1, in, 1);
    node_output(g, all, 0, graph_value(g, name, &node->out[0]->type));
    VEC_PUSH(g->arena, &l->nodes, all);
    attr_copy(all, node);
    require(dim_is_int(m->experts, &experts));
    attr_set_int(all, "k", experts);
    attr_set_int(all, "normalize_routing_weights", 0);
    op_infer(g, all);
    return all->out[0];
}

/* ---- rows that travel ------------------------------------------------------------------------------------------------------------ */

/* A strategy by the node's rule that splits only the experts. */
static void split_experts(struct lowering *l, struct node *n, const struct split *experts)
{
    const struct rule *r = rule_of(l->g, n);
    struct strategy *st = NEW(l->g->arena, struct strategy);
    const char *why;
    require(r);
    st->in = NEWN(l->g->arena, struct placement, n->nin + 1);
    st->out = NEWN(l->g->arena, struct placement, n->nout + 1);
    st->assignment.factor = NEWN(l->g->arena, const struct split *, r->nfactor + 1);
    for (int f = 0; f < r->nfactor; f++)
        if (r->factor[f].flags & FACTOR_TRAVELS)
            st->assignment.factor[f] = experts;
    if (!rule_project(l->g, r, l->g->ranks, &st->assignment, st->in, st->out, &why))
        bug("%s: experts are not split as rows travel to them: %s", node_where(l->g, n), why);
    n->strategy = st;
}

/* Dispatch or Combine of x: its rows, or the results of each rank's experts. Each rank reads the weights of its rows, and those for its
 * experts. */
static struct value *travel_step(struct lowering *l, const char *op, struct value *x, struct value *weights,
                                 const struct placement place[4], const struct split *experts)
{
    const struct placement rows = l->node->in[INPUT]->place;
    struct node *n = graph_node(l->g, op_find("tpc", op), arena_printf(l->g->arena, "%s/%s", l->name, op), 3,
                                (struct value *[]){x, weights, weights}, 1);
    node_output(l->g, n, 0, graph_value(l->g, n->name, &x->type));
    attr_set_int(n, "axis", rows.dim);
    attr_set_string(n, place[0].kind == PLACE_S ? "from" : "to", split_str(l->g->arena, rows.split));
    attr_set_string(n, "experts", split_str(l->g->arena, experts));
    attr_set_dims(l->g, n, "extent", 1, &x->type.dim[rows.dim]);
    VEC_PUSH(l->g->arena, &l->nodes, n);
    lower_on_ranks(l, n, place, &place[3]);
    return n->out[0];
}

/* Every rank has some rows, and some experts. Between the two steps, a rank holds the rows that its experts need, and zeros for the others,
 * which are not read. */
static struct value *travelling(struct lowering *l, const struct moe_sizes *m, struct value *weights)
{
    const struct placement rows = l->node->in[INPUT]->place, of_rows = l->node->in[ROUTER]->place;
    const struct split *experts = l->node->in[moe_weight_at(m, FC1)]->place.split;
    const struct placement of_experts = placement_split(1, experts), sum = placement_partial(RED_SUM);
    struct value *x = travel_step(l, "Dispatch", l->node->in[INPUT], weights,
                                  (struct placement[]){rows, of_rows, of_experts, placement_replicated}, experts);
    struct value *y = with_weights(l, m, x, weights);
    split_experts(l, y->producer, experts);
    return travel_step(l, "Combine", y, weights, (struct placement[]){sum, of_rows, of_experts, rows}, experts);
}

void lower_moe(struct lowering *l)
{
    struct moe_sizes m = moe_read(l->g, l->node);
    struct value *router = l->node->in[ROUTER], *values;
    bool travel = l->node->in[INPUT]->place.kind == PLACE_S;
    if (moe_takes_all(l->node, &m)) {
        lower_result(l, 0, travelling(l, &m, l->node->in[moe_mix_at(&m)]));
        return;
    }
    if (node_operand(l->node, moe_mix_at(&m))) {
        values = l->node->in[moe_mix_at(&m)];
    } else {
        struct node *softmax = lower_node(l, "", "Softmax", "softmax", 1, (struct value *[]){lower_float(l, "router", router)});
        attr_set_int(softmax, "axis", 1);
        op_infer(l->g, softmax);
        values = softmax->out[0];
    }
    struct value *weights = lower_cast(l, "narrow", chosen(l, router, values), l->node->in[INPUT]->type.dtype);
    lower_result(l, 0, travel ? travelling(l, &m, weights) : with_weights(l, &m, l->node->in[INPUT], weights));
}
