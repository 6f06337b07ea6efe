/* experts: mixtures whose experts are nodes of their own, as exporters write them.
 *
 * An expert is the nodes whose values have its rows, and the weights that only these nodes read. It may be assigned (dealt) to one rank,
 * which then has all of its inner width; the other ranks have none and add zeros. The ranks of a mixture then work in parallel, each on its
 * own experts. */
#include "op/analysis/analysis.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/facts/facts.h"
#include "plan/plan.h"
#include "plan/space/space.h"

/* Expert by the symbol that counts its rows. */
struct row_counts {
    struct name_index index;
    int mixtures;
    int found; /* an expert; -1: none yet */
    bool several;
};

static void add_expert(struct space *s, struct row_counts *counts, const struct node *n, const struct routes *rows, int *mixture)
{
    const struct type *t = &n->out[0]->type;
    if (mixture[rows->choices->id] < 0)
        mixture[rows->choices->id] = counts->mixtures++;
    for (int d = 0; d < t->rank; d++)
        if (t->dim[d]->kind == DIM_SYM && t->dim[d]->data)
            name_index_put(s->arena, &counts->index, t->dim[d]->name, s->experts.list.n);
    VEC_PUSH(s->arena, &s->experts.list, ((struct space_expert){.rows = *rows, .mixture = mixture[rows->choices->id]}));
}

static void count_mates(struct space *s)
{
    int *count = NEWN(s->arena, int, s->experts.list.n + 1);
    for (int i = 0; i < s->experts.list.n; i++)
        count[s->experts.list.at[i].mixture]++;
    for (int i = 0; i < s->experts.list.n; i++)
        s->experts.list.at[i].mates = count[s->experts.list.at[i].mixture];
}

static void note_symbol(void *data, const struct dim *symbol)
{
    struct row_counts *c = data;
    int expert = symbol->data ? name_index_find(&c->index, symbol->name) : -1;
    c->several = c->several || (expert >= 0 && c->found >= 0 && c->found != expert);
    c->found = expert >= 0 ? expert : c->found;
}

static int expert_with_rows(struct row_counts *c, const struct value *v)
{
    c->found = -1;
    c->several = false;
    for (int d = 0; d < v->type.rank; d++)
        dim_each_symbol(v->type.dim[d], note_symbol, c);
    return c->several ? -1 : c->found;
}

static int expert_of_node(const struct space *s, const struct node *n)
{
    return n->nout > 0 && n->out[0] ? s->experts.of[n->out[0]->id] : -1;
}

static bool only_read_by(const struct space *s, const struct value *v, int expert)
{
    EACH (const struct place_use, use, s->uses[v->id].list) {
        if (use->node < 0 || expert_of_node(s, s->g->nodes.at[use->node]) != expert)
            return false;
    }
    return true;
}

static void add_weight(struct space_expert *x, const struct value *weight)
{
    double numbers = 1;
    int64_t size;
    for (int d = 0; d < weight->type.rank; d++)
        numbers *= dim_is_int(weight->type.dim[d], &size) ? (double)size : 1;
    x->numbers += numbers;
    x->bytes += numbers * (double)dtype_size(weight->type.dtype);
}

/* Finds the weights of experts, from the last node to the first, so that what a weight is made from comes after it. */
static void find_weights(struct space *s)
{
    for (int k = s->g->nodes.n - 1; k >= 0; k--) {
        const struct node *n = s->g->nodes.at[k];
        int expert = expert_of_node(s, n);
        for (int i = 0; expert >= 0 && i < n->nin; i++)
            if (n->in[i] && s->weight[n->in[i]->id] && only_read_by(s, n->in[i], expert))
                s->experts.of[n->in[i]->id] = expert;
    }
}

/* Whether the node joins dimensions along the width of the expert, so that it is more than an MLP over rows. */
static bool joins_width(const struct space *s, int i)
{
    const struct node *n = s->g->nodes.at[i];
    const struct rule *r = s->rule[i];
    if (!r || (n->op->flags & OP_PRODUCT && dim_node_reads_weight(s->roles, n)))
        return !r;
    for (int f = 0; f < r->nfactor; f++)
        if (r->factor[f].flags & (FACTOR_CONTRACTED | FACTOR_LOWERED | FACTOR_REPLICATED))
            return true;
    return false;
}

/* Finds experts that are more than an MLP: a product by columns, elementwise ops, a product by rows. */
static void find_deep(struct space *s)
{
    enum { MLP = 2 };
    int *products = NEWN(s->arena, int, s->g->values.n + 1); /* by value: successive products in its expert */
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        int expert = expert_of_node(s, n), most = 0;
        if (expert < 0 || n->nin == 0 || !n->in[0] || s->experts.of[n->in[0]->id] != expert || !dtype_is_float(n->in[0]->type.dtype))
            continue;
        for (int k = 0; k < n->nin; k++)
            most = n->in[k] && products[n->in[k]->id] > most ? products[n->in[k]->id] : most;
        most += n->op && (n->op->flags & OP_PRODUCT) != 0;
        products[n->out[0]->id] = most;
        s->experts.list.at[expert].deep |= joins_width(s, i) || most > MLP;
    }
}

void experts_find(struct space *s)
{
    struct row_counts counts = {.found = -1};
    struct routes rows;
    int *mixture = NEWN(s->arena, int, s->g->values.n + 1);
    s->experts.of = NEWN(s->arena, int, s->g->values.n + 1);
    for (int i = 0; i < s->g->values.n; i++)
        s->experts.of[i] = mixture[i] = -1;
    for (int i = 0; i < s->g->nodes.n; i++)
        if (op_routes_rows(s->g, s->g->nodes.at[i], &rows))
            add_expert(s, &counts, s->g->nodes.at[i], &rows, mixture);
    if (s->experts.list.n == 0)
        return;
    count_mates(s);
    for (int i = 0; i < s->g->values.n; i++)
        s->experts.of[i] = expert_with_rows(&counts, s->g->values.at[i]);
    find_weights(s);
    find_deep(s);
    for (int i = 0; i < s->g->values.n; i++)
        if (s->experts.of[i] >= 0 && s->g->values.at[i]->constant)
            add_weight(&s->experts.list.at[s->experts.of[i]], s->g->values.at[i]);
}

/* Whether one rank has all of the dimension. */
static bool has_one_rank(struct space *s, const struct split *q)
{
    int holders = 0;
    for (int r = 0; r < s->ranks && holders < 2; r++)
        holders += !dim_equals(split_extent(s->g->alg, q, r), 0);
    return holders == 1;
}

static bool node_has_expert(const struct space *s, const struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && s->experts.of[n->in[i]->id] >= 0)
            return true;
    return expert_of_node(s, n) >= 0;
}

bool experts_end_at(struct space *s, const struct node *n, const struct value *v, const struct split *q)
{
    return s->experts.list.n > 0 && s->ranks > 1 && s->experts.of[v->id] < 0 && node_has_expert(s, n) && has_one_rank(s, q);
}

double experts_dealt_share(const struct space *s, int expert)
{
    int mates = s->experts.list.at[expert].mates, each = (mates + s->ranks - 1) / s->ranks;
    require(mates > 0 && each <= mates);
    return (double)each / mates;
}

/* Whether the even split gives no rank more than dealing does on average of the experts, for an MLP, which needs one sum however it is
 * split. */
static bool splits_as_well(struct space *s, int expert, const struct split *even, int64_t size)
{
    double share = experts_dealt_share(s, expert);
    bool well = !s->experts.list.at[expert].deep;
    for (int r = 0; r < s->ranks && well; r++) {
        int64_t own;
        well = dim_is_int(split_extent(s->g->alg, even, r), &own) && (double)own <= share * (double)size;
    }
    return well;
}

const struct split *experts_dealt_split(struct space *s, const struct value *v, int d, const struct split *even)
{
    int expert = s->experts.of[v->id];
    int64_t size;
    if (expert < 0 || !dim_is_int(v->type.dim[d], &size) || splits_as_well(s, expert, even, size))
        return NULL;
    int *count = NEWN(s->arena, int, s->ranks);
    const struct interval **list = NEWN(s->arena, const struct interval *, s->ranks), all = {0, size};
    count[expert % s->ranks] = 1;
    list[expert % s->ranks] = &all;
    const struct split *dealt = split_list(s->g->alg, s->ranks, size, count, list);
    require(dealt->partition && has_one_rank(s, dealt));
    return dealt;
}
