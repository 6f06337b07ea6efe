/* data_move: ops that move elements: Transpose, Concat, Split, Tile, Trilu, Repeat. (Slice is in slice.c.)
 *
 * Concat and Split concatenate parts: each part is a factor of its own, and the parts form one group (they split together). */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#define MOST_PARTS 8 /* of a group; if there are more parts, they are never split */

static void mark_moves(struct rule *rule, uint32_t operands)
{
    rule_linear(rule, operands);
    rule->moves = true;
}

/* ---- Transpose ---------------------------------------------------------------------------------------------------------- */

/* The permutation, reversed order by default; fails if it is none. */
static void transpose_perm(const struct graph *g, const struct node *node, int rank, int perm[MAX_RANK])
{
    const int64_t *at = NULL;
    unsigned seen = 0;
    int n = attr_is_set(node, "perm") ? attr_ints(g, node, "perm", &at) : rank;
    if (n != rank)
        fail("%s: perm has %d entries but the operand has %d dimensions", node_where(g, node), n, rank);
    for (int d = 0; d < rank; d++) {
        perm[d] = at ? op_axis(g, node, at[d], rank) : rank - 1 - d;
        seen |= 1u << perm[d];
    }
    if (seen != (1u << rank) - 1u)
        fail("%s: perm is not a permutation of %d dimensions", node_where(g, node), rank);
}

void infer_transpose(struct graph *g, struct node *node)
{
    const struct type *data = op_operand(g, node, 0);
    const struct dim *dim[MAX_RANK];
    int perm[MAX_RANK];
    transpose_perm(g, node, data->rank, perm);
    for (int d = 0; d < data->rank; d++)
        dim[d] = data->dim[perm[d]];
    op_result(g, node, 0, data->dtype, data->rank, dim);
}

/* Entries of a table, transposed. */
void value_transpose(struct graph *g, struct node *node)
{
    const struct dims_value *from = op_entries(g, node->in[0]);
    const struct type *x = &node->in[0]->type;
    int perm[MAX_RANK];
    int64_t rows, columns;
    transpose_perm(g, node, x->rank, perm);
    if (x->rank < 2 || perm[0] == 0) {
        value_identity(g, node);
        return;
    }
    if (!from || !dim_is_int(x->dim[0], &rows) || !dim_is_int(x->dim[1], &columns) || rows * columns != from->n)
        return;
    const struct dim **at = op_set_dims(g, node, from->n);
    for (int64_t i = 0; i < from->n; i++)
        at[i] = from->at[i % rows * columns + i / rows];
}

struct rule *rule_transpose(struct graph *g, const struct node *node)
{
    struct rule *rule = rule_new(g, node);
    int perm[MAX_RANK], rank = rule->out[0].rank;
    transpose_perm(g, node, rank, perm);
    for (int d = 0; d < rank; d++) {
        int f = rule_numbered(g, rule, "d", d, node->out[0]->type.dim[d], 0);
        rule_put(g, &rule->in[0], perm[d], 0, f);
        rule_put(g, &rule->out[0], d, 0, f);
    }
    mark_moves(rule, 1);
    return rule;
}

/* ---- Concat --------------------------------------------------------------------------------------------------------------- */

static void join_dims(struct graph *g, struct node *node, int axis, const struct type *t, struct type *out)
{
    if (t->rank != out->rank || t->dtype != out->dtype)
        fail("%s: cannot join %s with %s", node_where(g, node), type_str(g->arena, out), type_str(g->arena, t));
    for (int d = 0; d < t->rank; d++)
        out->dim[d] = d == axis ? dim_add(g->alg, out->dim[d], t->dim[d])
                                : op_same_dim(g, node, out->dim[d], t->dim[d], "dimensions other than the axis");
}

void infer_concat(struct graph *g, struct node *node)
{
    struct type out = *op_operand(g, node, 0);
    int axis = op_axis(g, node, attr_int(node, "axis"), out.rank);
    for (int i = 1; i < node->nin; i++)
        join_dims(g, node, axis, op_operand(g, node, i), &out);
    op_result(g, node, 0, out.dtype, out.rank, out.dim);
}

void value_concat(struct graph *g, struct node *node)
{
    const struct type *y = &node->out[0]->type;
    int axis = op_axis(g, node, attr_int(node, "axis"), y->rank), n = 0, k = 0;
    int64_t outer = 1, size;
    if (y->rank > 2)
        return;
    for (int d = 0; d < axis; d++, outer *= size)
        if (!dim_is_int(y->dim[d], &size) || size < 1 || size > MOST_ENTRIES / outer)
            return;
    for (int i = 0; i < node->nin; i++) {
        const struct dims_value *part = op_entries(g, node->in[i]);
        if (!part || part->n > MOST_ENTRIES - n)
            return;
        n += part->n;
    }
    const struct dim **at = op_set_dims(g, node, n);
    for (int o = 0; o < (int)outer; o++)
        for (int i = 0; i < node->nin; i++) {
            const struct dims_value *part = node->in[i]->dims;
            int each = part->n / (int)outer;
            for (int j = 0; j < each; j++)
                at[k++] = part->at[o * each + j];
        }
}

/* Parts split together only if all splits are lists: integers, few enough. */
static bool parts_split(int n, struct value *const *part, int axis)
{
    if (n > MOST_PARTS)
        return false;
    for (int i = 0; i < n; i++)
        if (!dim_is_int(part[i]->type.dim[axis], NULL))
            return false;
    return true;
}

/* The axis of `all` is the concatenated parts; the axis of each entry of `each` is its part. */
static void concatenate_parts(struct graph *g, struct rule *rule, int axis, int n, struct value *const *part, struct rule_operand *all,
                              struct rule_operand *each)
{
    unsigned flags = n == 1 || parts_split(n, part, axis) ? 0 : FACTOR_REPLICATED;
    for (int i = 0; i < n; i++) {
        int f = rule_numbered(g, rule, "part", i, part[i]->type.dim[axis], flags | FACTOR_DROPPED);
        rule_put(g, all, axis, i, f);
        rule_put(g, &each[i], axis, 0, f);
        if (n > 1 && !flags)
            rule->group[rule->ngroup++] = f;
    }
}

struct rule *rule_concat(struct graph *g, const struct node *node)
{
    struct rule *rule = rule_new(g, node);
    const struct type *out = &node->out[0]->type;
    int axis = op_axis(g, node, attr_int(node, "axis"), out->rank);
    concatenate_parts(g, rule, axis, node->nin, node->in, &rule->out[0], rule->in);
    for (int d = 0; d < out->rank; d++) {
        if (d == axis)
            continue;
        int f = rule_numbered(g, rule, "d", d, out->dim[d], 0);
        rule_put(g, &rule->out[0], d, 0, f);
        for (int i = 0; i < node->nin; i++)
            rule_put(g, &rule->in[i], d, 0, f);
    }
    if (node->nin < 32)
        mark_moves(rule, (1u << node->nin) - 1u);
    return rule;
}

/* ---- Split ------------------------------------------------------------------------------------------------------------------- */

/* Equal parts, the last one smaller where they do not divide. */
static void equal_parts(struct graph *g, const struct node *node, const struct dim *n, const struct dim **size)
{
    int count = attr_is_set(node, "num_outputs") ? (int)attr_int(node, "num_outputs") : node->nout;
    if (count < 1 || count != node->nout)
        fail("%s: num_outputs is %d but the node has %d results", node_where(g, node), count, node->nout);
    const struct dim *k = dim_int(g->alg, count), *one = dim_int(g->alg, 1);
    const struct dim *each = dim_div(g->alg, dim_add(g->alg, n, dim_sub(g->alg, k, one)), k);
    const struct dim *last = dim_sub(g->alg, n, dim_mul(g->alg, each, dim_sub(g->alg, k, one)));
    for (int i = 0; i < node->nout; i++)
        size[i] = i == count - 1 ? last : each;
}

/* Sizes of the parts; false if the operand that gives them is unknown. */
static bool part_sizes(struct graph *g, const struct node *node, const struct dim *n, const struct dim **size)
{
    const struct dim *const *at, *sum = dim_int(g->alg, 0);
    int count = op_size_operand(g, node, 1, "split", &at);
    if (count == -1)
        return false;
    if (count == -2) {
        equal_parts(g, node, n, size);
        return true;
    }
    if (count != node->nout)
        fail("%s: %d sizes are given for %d results", node_where(g, node), count, node->nout);
    for (int i = 0; i < count; i++)
        sum = dim_add(g->alg, sum, at[i]);
    op_same_dim(g, node, sum, n, "the sum of the parts and the split dimension");
    for (int i = 0; i < node->nout; i++)
        size[i] = at[i];
    return true;
}

void infer_split(struct graph *g, struct node *node)
{
    struct type data = *op_operand(g, node, 0);
    int axis = op_axis(g, node, attr_int(node, "axis"), data.rank);
    const struct dim **size = NEWN(g->arena, const struct dim *, node->nout);
    bool known = part_sizes(g, node, data.dim[axis], size);
    for (int i = 0; i < node->nout; i++) {
        if (!node->out[i])
            continue;
        data.dim[axis] = known ? size[i] : op_unknown_dim(g, node, i, axis);
        op_result(g, node, i, data.dtype, data.rank, data.dim);
    }
}

/* Result i of a split vector: entries [first, first + n). */
static void value_part(struct graph *g, struct value *out, const struct dims_value *from, int first, int n)
{
    struct dims_value *dims = NEW(g->arena, struct dims_value);
    dims->n = n;
    dims->at = NEWN(g->arena, const struct dim *, n);
    for (int i = 0; i < n; i++)
        dims->at[i] = from->at[first + i];
    out->dims = dims;
}

void value_split(struct graph *g, struct node *node)
{
    const struct dims_value *from = op_dims(g, node->in[0]);
    int64_t n;
    int first = 0;
    if (!from || node->in[0]->type.rank != 1)
        return;
    for (int i = 0; i < node->nout; i++) {
        if (!node->out[i] || !dim_is_int(node->out[i]->type.dim[0], &n) || n > from->n - first)
            return;
        value_part(g, node->out[i], from, first, (int)n);
        first += (int)n;
    }
}

/* Whether all results are present and cover the dimension. */
static bool split_is_complete(struct graph *g, const struct node *node, int axis)
{
    const struct dim *sum = dim_int(g->alg, 0);
    for (int i = 0; i < node->nout; i++) {
        if (!node->out[i])
            return false;
        sum = dim_add(g->alg, sum, node->out[i]->type.dim[axis]);
    }
    return sum == node->in[0]->type.dim[axis];
}

struct rule *rule_split(struct graph *g, const struct node *node)
{
    const struct type *data = &node->in[0]->type;
    int axis = op_axis(g, node, attr_int(node, "axis"), data->rank);
    if (!split_is_complete(g, node, axis))
        return NULL;
    struct rule *rule = rule_new(g, node);
    concatenate_parts(g, rule, axis, node->nout, node->out, &rule->in[0], rule->out);
    for (int d = 0; d < data->rank; d++) {
        if (d == axis)
            continue;
        int f = rule_numbered(g, rule, "d", d, data->dim[d], 0);
        rule_put(g, &rule->in[0], d, 0, f);
        for (int i = 0; i < node->nout; i++)
            rule_put(g, &rule->out[i], d, 0, f);
    }
    mark_moves(rule, 1);
    return rule;
}

/* ---- Tile -------------------------------------------------------------------------------------------------------------------- */

void infer_tile(struct graph *g, struct node *node)
{
    struct type out = *op_operand(g, node, 0);
    const struct dim *const *times;
    int n = op_size_operand(g, node, 1, "repeats", &times);
    if (n >= 0 && n != out.rank)
        fail("%s: %d repeats are given for %d dimensions", node_where(g, node), n, out.rank);
    for (int d = 0; d < out.rank; d++)
        out.dim[d] = n < 0 ? op_unknown_dim(g, node, 0, d) : dim_mul(g->alg, out.dim[d], times[d]);
    op_result(g, node, 0, out.dtype, out.rank, out.dim);
}

struct rule *rule_tile(struct graph *g, const struct node *node)
{
    const struct dim **times;
    struct rule *rule = rule_new(g, node);
    attr_dims(node, "repeats", &times);
    for (int d = 0; d < rule->in[0].rank; d++) {
        if (!dim_equals(times[d], 1))
            rule_put(g, &rule->out[0], d, 0, rule_numbered(g, rule, "copy", d, times[d], FACTOR_REPLICATED));
        rule_same_dim(g, rule, "d", d, node->in[0]->type.dim[d], 0);
    }
    mark_moves(rule, 1);
    return rule;
}

/* ---- Trilu ------------------------------------------------------------------------------------------------------------------- */

/* The positions of the last two indices are compared. */

/* Positions of rows, or of columns (of the last two dimensions). */
static struct value *line_positions(struct lowering *l, const char *part, int d)
{
    const struct value *x = l->node->in[0];
    return lower_positions_along(l, part, &x->type, d, x->place.dim == d ? x->place.split : NULL);
}

/* Keeps elements whose column is at least (upper), or at most, k after the row. */
void lower_trilu(struct lowering *l)
{
    const struct node *node = l->node;
    struct value *x = node->in[0];
    const struct dim **k;
    struct value *row = line_positions(l, "row", x->type.rank - 2), *column = line_positions(l, "column", x->type.rank - 1);
    if (attr_is_set(node, "k") && attr_dims(node, "k", &k) == 1)
        row = lower_binary(l, "Add", "diagonal", row, lower_size(l, "k", k[0], DT_I64));
    struct value *kept = lower_binary(l, attr_int(node, "upper") ? "GreaterOrEqual" : "LessOrEqual", "kept", column, row);
    lower_result(l, 0, lower_where(l, "triangle", kept, x, lower_scalar(l, "zero", x->type.dtype, 0)));
}

/* ---- Repeat: each slice along an axis several times in a row (key and value heads of grouped queries) --------------------- */

void infer_repeat(struct graph *g, struct node *node)
{
    struct type out = *op_operand(g, node, 0);
    int axis = op_axis(g, node, attr_int(node, "axis"), out.rank);
    const struct dim **index;
    if (attr_is_set(node, "index"))
        out.dim[axis] = dim_int(g->alg, attr_dims(node, "index", &index));
    else
        out.dim[axis] = dim_mul(g->alg, out.dim[axis], dim_int(g->alg, attr_int(node, "repeats")));
    op_result(g, node, 0, out.dtype, out.rank, out.dim);
}

struct rule *rule_repeat(struct graph *g, const struct node *node)
{
    if (attr_is_set(node, "index"))
        return NULL;
    struct rule *rule = rule_new(g, node);
    const struct type *data = &node->in[0]->type;
    int axis = op_axis(g, node, attr_int(node, "axis"), data->rank);
    for (int d = 0; d < data->rank; d++)
        rule_same_dim(g, rule, "d", d, data->dim[d], d == axis ? FACTOR_HEADS : 0);
    unsigned heads = dim_equals(data->dim[axis], 1) ? FACTOR_HEADS : 0; /* one KV head: its copies are the heads */
    int copies = rule_factor(g, rule, "g", dim_int(g->alg, attr_int(node, "repeats")), heads);
    rule_put(g, &rule->out[0], axis, 0, copies);
    mark_moves(rule, 1);
    return rule;
}
