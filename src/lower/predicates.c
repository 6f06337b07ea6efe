/* predicates: the conditions of rows of patterns.def on found values. */
#include "lower/predicates.h"

#include "lower/matcher.h"
#include "op/op.h"

#include <math.h>

bool lower_same_type(struct match *m)
{
    return type_eq(&match_value(m, "x")->type, &match_result(m)->type);
}

/* ---- norms ----------------------------------------------------------------------------------------------------------------- */

/* Whether it has one number per element of x's last dimension, of x's type. */
static bool is_row(const struct value *v, const struct value *x)
{
    return x->type.rank > 0 && v->type.rank == 1 && v->type.dim[0] == x->type.dim[x->type.rank - 1] && v->type.dtype == x->type.dtype;
}

static bool has_eps(struct match *m)
{
    double eps;
    return op_constant_real(match_value(m, "eps"), &eps) && isfinite(eps);
}

bool lower_scales_rows(struct match *m)
{
    return has_eps(m) && is_row(match_value(m, "scale"), match_value(m, "x"));
}

bool lower_scales_casts(struct match *m)
{
    return has_eps(m) && is_row(match_value(m, "scale"), match_value(m, "h"));
}

bool lower_biases_rows(struct match *m)
{
    return is_row(match_value(m, "bias"), match_value(m, "x"));
}

/* Repeats one number per group for each channel of the group; NULL: it is no such constant. */
static struct value *per_channel(struct graph *g, const struct value *v, int64_t groups, int64_t channels)
{
    struct constant *c = v->constant;
    if (!c || c->rank != 1 || c->dim[0] != groups || !constant_present(c))
        return NULL;
    float *to = NEWN(g->arena, float, channels);
    for (int64_t k = 0; k < channels; k++)
        to[k] = (float)constant_float(c, v->name, k / (channels / groups));
    return graph_constant(g, arena_printf(g->arena, "%s/channels", v->name), DT_F32, 1, &channels, to);
}

bool lower_scales_groups(struct match *m)
{
    const struct type *x = &match_value(m, "x")->type, *grouped = &match_value(m, "g")->type;
    int64_t groups, channels;
    if (x->rank < 3 || grouped->rank < 3 || !type_eq(x, &match_result(m)->type) || x->dim[0] != grouped->dim[0] ||
        !dim_is_int(x->dim[1], &channels) || !dim_is_int(grouped->dim[1], &groups) || groups < 1 || channels % groups != 0)
        return false;
    struct graph *g = match_graph(m);
    struct value *scales = per_channel(g, match_value(m, "scale"), groups, channels);
    struct value *biases = per_channel(g, match_value(m, "bias"), groups, channels);
    if (!scales || !biases)
        return false;
    match_bind(m, "scales", scales);
    match_bind(m, "biases", biases);
    match_bind_number(m, "groups", (double)groups);
    return true;
}

/* ---- mixtures of experts --------------------------------------------------------------------------------------------------- */

/* [experts, rows.., last]: of rows, in their order, in as many dimensions as y has. */
static bool is_by_expert(const struct value *v, const struct dim *experts, const struct type *y, const struct dim *last)
{
    const struct type *t = &v->type;
    bool same = t->rank == y->rank + 1 && t->dim[0] == experts && t->dim[t->rank - 1] == last;
    for (int d = 0; same && d + 1 < y->rank; d++)
        same = t->dim[d + 1] == y->dim[d];
    return same;
}

static bool has_sizes(const struct value *v, const struct dim *a, const struct dim *b, const struct dim *c)
{
    return v->type.rank == 3 && v->type.dim[0] == a && v->type.dim[1] == b && v->type.dim[2] == c;
}

/* The operand of the Tile, as often as there are experts. */
static bool is_copied(struct match *m, const struct value *x, const struct dim *experts)
{
    struct graph *g = match_graph(m);
    const struct type *copies = &match_value(m, "copies")->type;
    return x->type.rank == 2 && match_value(m, "each")->type.dim[0] == dim_mul(g->alg, experts, x->type.dim[0]) &&
        match_value(m, "each")->type.dim[1] == x->type.dim[1] && copies->rank == 3 && copies->dim[0] == experts &&
        copies->dim[1] == x->type.dim[0] && copies->dim[2] == x->type.dim[1];
}

static bool has_matrices(struct match *m, const struct dim *experts, const struct dim *hidden)
{
    struct alg *alg = match_graph(m)->alg;
    const struct type *inner = &match_value(m, "inner")->type;
    const struct dim *one = dim_int(alg, 1), *width = inner->dim[2], *both = dim_mul(alg, width, dim_int(alg, 2));
    return has_sizes(match_value(m, "up"), experts, hidden, both) && has_sizes(match_value(m, "up_bias"), experts, one, both) &&
        has_sizes(match_value(m, "down"), experts, width, hidden) && has_sizes(match_value(m, "down_bias"), experts, one, hidden);
}

bool lower_weights_experts(struct match *m)
{
    struct value *x = match_value(m, "x"), *weights = match_value(m, "weights");
    const struct type *y = &match_result(m)->type;
    struct value *of = type_eq(&x->type, y) ? x : x->producer && x->producer->op == op_find("", "Reshape") ? x->producer->in[0] : NULL;
    int64_t experts;
    double limit, least;
    if (!of || !type_eq(&of->type, y) || weights->type.rank != 2 || weights->type.dim[0] != x->type.dim[0] ||
        !dim_is_int(weights->type.dim[1], &experts) || experts < 1 || x->type.dtype != DT_F32)
        return false;
    const struct dim *number = weights->type.dim[1], *hidden = y->dim[y->rank - 1];
    if (!is_copied(m, x, number) || !has_matrices(m, number, hidden) || !is_by_expert(match_value(m, "rows"), number, y, hidden) ||
        !is_by_expert(match_value(m, "column"), number, y, dim_int(match_graph(m)->alg, 1)) ||
        !op_constant_real(match_value(m, "limit"), &limit) || !op_constant_real(match_value(m, "least"), &least) || least != -limit)
        return false;
    match_bind(m, "of", of);
    match_bind_number(m, "experts", (double)experts);
    return true;
}

/* ---- quantised products -------------------------------------------------------------------------------------------------- */

static bool is_decoded_matrix(struct match *m)
{
    const struct type *d = &match_value(m, "d")->type;
    return d->rank == 2 && d->dtype == match_value(m, "scale")->type.dtype;
}

bool lower_decodes_matrix(struct match *m)
{
    return is_decoded_matrix(m) && match_value(m, "a")->type.rank >= 2;
}

bool lower_decodes_table(struct match *m)
{
    match_bind_text(m, "lookup", node_lookup(match_graph(m), match_result(m)->producer, 1));
    return is_decoded_matrix(m);
}

/* Whether it is one number, or one per column of n. */
static bool scales_columns(const struct value *v, const struct dim *n, int rank)
{
    const struct type *t = &v->type;
    for (int d = 0; d + 1 < t->rank; d++)
        if (!dim_equals(t->dim[d], 1))
            return false;
    return t->rank <= rank && (t->rank == 0 || dim_equals(t->dim[t->rank - 1], 1) || t->dim[t->rank - 1] == n);
}

bool lower_scales_columns(struct match *m)
{
    const struct type *p = &match_value(m, "p")->type;
    return scales_columns(match_value(m, "scale"), p->dim[p->rank - 1], p->rank);
}

bool lower_scales_rows_and_columns(struct match *m)
{
    const struct node *product = match_result(m)->producer;
    int64_t axis = attr_int(product, "axis");
    bool along_n = (axis < 0 ? axis + 2 : axis) != attr_int(product, "transposed");
    const struct type *scale = &match_value(m, "b_scale")->type;
    enum dtype b = match_value(m, "b")->type.dtype;
    bool small = dtype_is_byte(b) || b == DT_U4 || b == DT_I4 || b == DT_U2 || b == DT_I2;
    bool one = scale->rank == 0 || (scale->rank == 1 && dim_equals(scale->dim[0], 1));
    return small && scale->rank < 2 && (one || along_n) && dtype_is_byte(match_value(m, "a")->type.dtype) &&
        scales_columns(match_value(m, "a_scale"), NULL, 1);
}
