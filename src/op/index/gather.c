/* gather: Gather, GatherND, ScatterND.
 *
 * Gather from a table split along the gathered axis (a vocabulary) is lowered: each rank shifts the indices to its part, looks up what it
 * holds and puts zero elsewhere; the result is the sum over ranks. */
#include "op/index/index.h"
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

/* An indexed dimension: split by a lowering. */
#define POINTED (FACTOR_LOWERED | FACTOR_POSITION)

/* ---- Gather ------------------------------------------------------------------------------------------------------------- */

static int gather_axis(const struct graph *g, const struct node *node)
{
    const char *attr = strcmp(node->op->name, "GatherBlockQuantized") == 0 ? "gather_axis" : "axis";
    return op_axis(g, node, attr_int(node, attr), op_operand(g, node, 0)->rank);
}

static void check_indices(const struct graph *g, const struct node *node, int i)
{
    enum dtype dtype = op_operand(g, node, i)->dtype;
    if (dtype != DT_I64 && dtype != DT_I32)
        fail("%s: the indices '%s' are %s, expected i32 or i64", node_where(g, node), node->in[i]->name, dtype_name(dtype));
}

/* One constant index is in range, so that it is a slice: the first and the last index of a size that is usually not 0
 * (canon_gather_to_slice). */
static void assume_inside(struct graph *g, const struct node *node, const struct dim *n)
{
    const struct value *index = node->in[1];
    if (!index->constant || index->type.rank != 0)
        return;
    int64_t k = constant_int(index->constant, index->name, 0);
    (void)op_assume_ge(g, node, n, dim_int(g->alg, k < 0 ? -k : k + 1), "the index");
}

void infer_gather(struct graph *g, struct node *node)
{
    const struct type *data = op_operand(g, node, 0), *index = op_operand(g, node, 1);
    const struct dim *dim[2 * MAX_RANK];
    int axis = gather_axis(g, node), rank = 0;
    check_indices(g, node, 1);
    assume_inside(g, node, data->dim[axis]);
    for (int d = 0; d < axis; d++)
        dim[rank++] = data->dim[d];
    for (int d = 0; d < index->rank; d++)
        dim[rank++] = index->dim[d];
    for (int d = axis + 1; d < data->rank; d++)
        dim[rank++] = data->dim[d];
    op_result(g, node, 0, data->dtype, rank, dim);
}

void value_gather(struct graph *g, struct node *node)
{
    const struct dims_value *data = op_dims(g, node->in[0]), *index = op_dims(g, node->in[1]);
    int64_t k;
    if (!data || !index || node->in[0]->type.rank != 1)
        return;
    for (int i = 0; i < index->n; i++) {
        if (!dim_is_int(index->at[i], &k))
            return;
        if (k < -data->n || k >= data->n)
            fail("%s: index %lld is out of range for '%s' of %d entries", node_where(g, node), (long long)k, node->in[0]->name, data->n);
    }
    const struct dim **at = op_set_dims(g, node, index->n);
    for (int i = 0; i < index->n; i++)
        at[i] = data->at[index->at[i]->k < 0 ? index->at[i]->k + data->n : index->at[i]->k];
}

int gather_table_factor(struct graph *g, struct rule *rule, const struct node *node)
{
    bool replicated = node->in[0]->type.dtype == DT_BOOL; /* booleans cannot be summed */
    for (int i = 0; i < node->nin; i++)
        replicated |= node->in[i] && dtype_is_small(node->in[i]->type.dtype);
    int f = rule_factor(g, rule, "v", node->in[0]->type.dim[gather_axis(g, node)],
                        replicated ? FACTOR_REPLICATED | FACTOR_DROPPED : POINTED);
    rule->factor[f].red = replicated ? RED_NONE : RED_SUM;
    return f;
}

struct rule *rule_gather(struct graph *g, const struct node *node)
{
    struct rule *rule = rule_new(g, node);
    const struct type *data = &node->in[0]->type, *index = &node->in[1]->type;
    int axis = gather_axis(g, node), out = 0;
    for (int d = 0; d < data->rank; d++) {
        int f = d == axis ? gather_table_factor(g, rule, node) : rule_numbered(g, rule, "d", d, data->dim[d], 0);
        rule_put(g, &rule->in[0], d, 0, f);
        if (d != axis) {
            rule_put(g, &rule->out[0], out++, 0, f);
            continue;
        }
        for (int i = 0; i < index->rank; i++) {
            int k = rule_numbered(g, rule, "i", i, index->dim[i], 0);
            rule_put(g, &rule->in[1], i, 0, k);
            rule_put(g, &rule->out[0], out++, 0, k);
        }
    }
    rule_linear(rule, 1);
    rule->moves = true;
    return rule;
}

/* ---- Gather from a split table ----------------------------------------------------------------------------------------------- */

/* Where(inside, Gather(table, local), 0): every rank looks up in its shard, so results are partial. Operand 0 is placed as S(axis; split),
 * and so are scales and zero points. */
void lower_gather(struct lowering *l)
{
    const struct node *node = l->node;
    int axis = gather_axis(l->g, node);
    struct value *inside, **in = NEWN(l->g->arena, struct value *, node->nin + 1);
    for (int i = 0; i < node->nin; i++)
        in[i] = i == 1    ? lower_local_index(l, INDICES_GIVEN, node->in[1], false, &inside)
            : node->in[i] ? lower_with_spare(l, node->in[i], axis, false)
                          : NULL;
    struct value *found = lower_again(l, "found", in);
    lower_addends(l, lower_unsqueeze(l, "mask", inside, inside->type.rank, node->in[0]->type.rank - 1 - axis), found);
}

/* ---- GatherND, ScatterND -------------------------------------------------------------------------------------------------------- */

/* Length of the index tuples: the last dimension of the indices. */
static int tuple_length(const struct graph *g, const struct node *node, const struct type *index, int most)
{
    int64_t n;
    if (index->rank < 1 || !dim_is_int(index->dim[index->rank - 1], &n) || n < 1 || n > most)
        fail("%s: the last dimension of '%s' %s must be 1 to %d", node_where(g, node), node->in[1]->name, type_str(g->arena, index), most);
    return (int)n;
}

void infer_gathernd(struct graph *g, struct node *node)
{
    const struct type *data = op_operand(g, node, 0), *index = op_operand(g, node, 1);
    const struct dim *dim[2 * MAX_RANK];
    int64_t batch = attr_int(node, "batch_dims");
    int rank = 0;
    check_indices(g, node, 1);
    if (batch < 0 || batch >= data->rank || batch >= index->rank)
        fail("%s: batch_dims is %lld for operands of %d and %d dimensions", node_where(g, node), (long long)batch, data->rank, index->rank);
    int n = tuple_length(g, node, index, data->rank - (int)batch);
    for (int d = 0; d < index->rank - 1; d++)
        dim[rank++] = d < batch ? op_same_dim(g, node, data->dim[d], index->dim[d], "batch dimensions") : index->dim[d];
    for (int d = (int)batch + n; d < data->rank; d++)
        dim[rank++] = data->dim[d];
    op_result(g, node, 0, data->dtype, rank, dim);
}

/* updates: the indices without their last dimension, then the remaining dimensions of data. */
void infer_scatternd(struct graph *g, struct node *node)
{
    const struct type *data = op_operand(g, node, 0), *index = op_operand(g, node, 1), *update = op_operand(g, node, 2);
    check_indices(g, node, 1);
    int n = tuple_length(g, node, index, data->rank), lead = index->rank - 1;
    if (update->rank != lead + data->rank - n || update->dtype != data->dtype)
        fail("%s: updates '%s' are %s, expected %d dimensions of %s", node_where(g, node), node->in[2]->name, type_str(g->arena, update),
             lead + data->rank - n, dtype_name(data->dtype));
    for (int d = 0; d < update->rank; d++)
        op_same_dim(g, node, update->dim[d], d < lead ? index->dim[d] : data->dim[d - lead + n], "dimensions of the updates");
    op_result(g, node, 0, data->dtype, data->rank, data->dim);
}

/* Tuples select slices: (b.. @t.. s..)(b.. i.. !n) -> (b.. i.. s..). */
struct rule *rule_gathernd(struct graph *g, const struct node *node)
{
    struct rule *rule = rule_new(g, node);
    const struct type *data = &node->in[0]->type, *index = &node->in[1]->type;
    int batch = (int)attr_int(node, "batch_dims"), n = tuple_length(g, node, index, data->rank - batch);
    for (int d = 0; d < index->rank - 1; d++) {
        int f = rule_numbered(g, rule, d < batch ? "b" : "i", d, node->out[0]->type.dim[d], 0);
        if (d < batch)
            rule_put(g, &rule->in[0], d, 0, f);
        rule_put(g, &rule->in[1], d, 0, f);
        rule_put(g, &rule->out[0], d, 0, f);
    }
    rule_put(g, &rule->in[1], index->rank - 1, 0, rule_factor(g, rule, "n", dim_int(g->alg, n), FACTOR_REPLICATED | FACTOR_DROPPED));
    for (int d = batch; d < data->rank; d++) {
        bool chosen = d < batch + n, summed = data->dtype != DT_BOOL;
        int f = rule_numbered(g, rule, chosen ? "t" : "s", d, data->dim[d],
                              !chosen      ? 0
                                  : summed ? POINTED
                                           : FACTOR_REPLICATED | FACTOR_DROPPED);
        rule_put(g, &rule->in[0], d, 0, f);
        if (chosen)
            rule->factor[f].red = summed ? RED_SUM : RED_NONE;
        else
            rule_put(g, &rule->out[0], index->rank - 1 + d - batch - n, 0, f);
    }
    rule_linear(rule, 1);
    rule->moves = true;
    return rule;
}

/* (@t.. s..)(!i.. !n)(!i.. s..) -> (@t.. s..): replaced or added slices are linear in data and updates together. */
struct rule *rule_scatternd(struct graph *g, const struct node *node)
{
    struct rule *rule = rule_new(g, node);
    const struct type *data = &node->in[0]->type, *index = &node->in[1]->type;
    int lead = index->rank - 1, n = tuple_length(g, node, index, data->rank);
    for (int d = 0; d < lead; d++) {
        int f = rule_numbered(g, rule, "i", d, index->dim[d], FACTOR_REPLICATED | FACTOR_DROPPED);
        rule_put(g, &rule->in[1], d, 0, f);
        rule_put(g, &rule->in[2], d, 0, f);
    }
    rule_put(g, &rule->in[1], lead, 0, rule_factor(g, rule, "n", dim_int(g->alg, n), FACTOR_REPLICATED | FACTOR_DROPPED));
    for (int d = 0; d < data->rank; d++) {
        int f = rule_numbered(g, rule, d < n ? "t" : "s", d, data->dim[d], d < n ? POINTED : 0);
        rule_put(g, &rule->in[0], d, 0, f);
        rule_put(g, &rule->out[0], d, 0, f);
        if (d >= n)
            rule_put(g, &rule->in[2], lead + d - n, 0, f);
    }
    rule_scatter(rule, node);
    return rule;
}

/* ---- a split indexed dimension ------------------------------------------------------------------------------------------ */

/* The tuples, with the entry for the split dimension as a local index. inside: whether each tuple is on this rank. */
static struct value *local_tuples(struct lowering *l, int entry, bool always, struct value **inside)
{
    const struct node *node = l->node;
    int64_t n;
    int last = node->in[1]->type.rank - 1;
    require(dim_is_int(node->in[1]->type.dim[last], &n));
    struct node *columns = lower_apart(l, "entries", node->in[1], last, (int)n);
    struct value **column = NEWN(l->g->arena, struct value *, n);
    memcpy(column, columns->out, (size_t)n * sizeof *column);
    column[entry] = lower_local_index(l, INDICES_GIVEN, column[entry], always, inside);
    struct value *tuples = lower_concat(l, "tuples", (int)n, column, last);
    *inside = lower_squeeze(l, "held", *inside, last);
    return tuples;
}

void lower_gathernd(struct lowering *l)
{
    struct value *x = l->node->in[0], *inside, *in[2] = {lower_with_spare(l, x, x->place.dim, false), NULL};
    in[1] = local_tuples(l, x->place.dim - (int)attr_int(l->node, "batch_dims"), false, &inside);
    int behind = l->node->out[0]->type.rank - inside->type.rank;
    lower_addends(l, lower_unsqueeze(l, "mask", inside, inside->type.rank, behind), lower_again(l, "found", in));
}

void lower_scatternd(struct lowering *l)
{
    struct value *inside, *updates = l->node->in[2];
    if (strcmp(attr_string(l->node, "reduction"), "add") == 0 && dtype_is_float(updates->type.dtype)) {
        struct value *index = local_tuples(l, l->node->in[0]->place.dim, false, &inside);
        lower_added(l, index, lower_unsqueeze(l, "mask", inside, inside->type.rank, updates->type.rank - inside->type.rank));
        return;
    }
    lower_scattered(l, local_tuples(l, l->node->in[0]->place.dim, true, &inside));
}
