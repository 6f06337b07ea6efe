/* layer: one layer of the planned graph, as rows of a picture. A layer is the block of products with weights that repeats most, found by
 * ops and sizes of weights and never by names; of its repetitions the picture shows one that is split as most are. */
#include "op/op.h"
#include "plan/report/report.h"

#include <string.h>

enum { MOST_PRODUCTS = 4096, MOST_PERIOD = 64, ALONE = 8 }; /* ALONE: products that are drawn of a graph in which nothing repeats */

struct finder {
    struct arena *arena;
    const struct graph *g;
    const struct dim_roles *roles;
    VEC(int) product;          /* node positions of the products with weights */
    VEC(const char *) sign;    /* of each, its op and the sizes of its weights */
    int first, period, repeat; /* the block, in products */
};

static const struct node *finder_node(const struct finder *f, int i)
{
    require(i >= 0 && i < f->g->nodes.n);
    return f->g->nodes.at[i];
}

static bool is_collective(const struct node *n)
{
    return n->op && (n->op->flags & OP_COLLECTIVE);
}

/* 0: not static. */
static int64_t static_elements(const struct value *v)
{
    int64_t n = 1, k;
    for (int d = 0; d < v->type.rank; d++)
        if (!dim_is_int(v->type.dim[d], &k) || !i64_mul(n, k, &n))
            return 0;
    return n;
}

const struct value *layer_weight(const struct dim_roles *roles, const struct node *n)
{
    const struct value *best = NULL;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && roles->weight[n->in[i]->id] && n->in[i]->type.rank > 1 &&
            static_elements(n->in[i]) > (best ? static_elements(best) : 0))
            best = n->in[i];
    return best;
}

static bool is_weight_product(const struct finder *f, int i)
{
    const struct node *n = finder_node(f, i);
    return n->op && (n->op->flags & OP_PRODUCT) && weight_is_used(f->roles->weight, n) && layer_weight(f->roles, n) &&
        !dim_node_sums_nothing(f->roles, i);
}

static bool is_attention(const struct finder *f, const struct node *n)
{
    return n->op && dim_node_multiplies_activations(f->roles, n) && !weight_is_used(f->roles->weight, n);
}

/* ---- the block that repeats ------------------------------------------------------------------------------------------------- */

static const char *product_signature(const struct finder *f, const struct node *n)
{
    const char *text = n->optype;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && f->roles->weight[n->in[i]->id])
            text = arena_printf(f->arena, "%s %s", text, type_str(f->arena, &n->in[i]->type));
    return text;
}

static void find_products(struct finder *f)
{
    for (int i = 0; i < f->g->nodes.n && f->product.n < MOST_PRODUCTS; i++)
        if (is_weight_product(f, i)) {
            VEC_PUSH(f->arena, &f->product, i);
            VEC_PUSH(f->arena, &f->sign, product_signature(f, finder_node(f, i)));
        }
}

/* How many products from number i on are each like the one `period` before them. */
static int run_length(const struct finder *f, int i, int period)
{
    int n = 0;
    while (i + n < f->product.n && strcmp(f->sign.at[i + n], f->sign.at[i + n - period]) == 0)
        n++;
    return n;
}

static void find_block(struct finder *f)
{
    int best = 0;
    for (int period = 1; period <= MOST_PERIOD && 2 * period <= f->product.n; period++)
        for (int i = period; i < f->product.n; i++) {
            int n = run_length(f, i, period), repeat = 1 + n / period;
            if (repeat > 1 && repeat * period > best) {
                best = repeat * period;
                f->first = i - period;
                f->period = period;
                f->repeat = repeat;
            }
            i += n;
        }
    if (!best) {
        f->period = f->product.n < ALONE ? f->product.n : ALONE;
        f->repeat = 1;
    }
}

/* ---- where a layer ends ------------------------------------------------------------------------------------------------------ */

/* Two activations come together: a residual connection. */
static bool joins(const struct finder *f, const struct node *n)
{
    int activations = 0;
    for (int i = 0; i < n->nin; i++)
        activations += n->in[i] && !f->roles->weight[n->in[i]->id] && n->in[i]->type.rank > 0;
    return n->op && (n->op->flags & OP_ELEMENTWISE) && activations > 1 && dtype_is_float(n->out[0]->type.dtype);
}

/* Between the last product of a layer and the next one: behind the last residual connection there, and what communicates its result. */
static int layer_end(const struct finder *f, int from, int to)
{
    int end = from;
    for (int i = from; i < to; i++)
        if (joins(f, finder_node(f, i)))
            end = i + 1;
    while (end > from && end < to && is_collective(finder_node(f, end)) && finder_node(f, end)->in[0] == finder_node(f, end - 1)->out[0])
        end++;
    while (end == from && end < to && is_collective(finder_node(f, end)))
        from = ++end;
    return end;
}

/* The end of the layer that has product number k - 1 as its last. */
static int end_behind(const struct finder *f, int k)
{
    int from = k > 0 ? f->product.at[k - 1] + 1 : 0;
    return layer_end(f, from, k < f->product.n ? f->product.at[k] : f->g->nodes.n);
}

/* ---- rows --------------------------------------------------------------------------------------------------------------------- */

/* What people look for: computing with floats, and not only moving them. */
static bool is_shown(const struct finder *f, int i)
{
    const struct node *n = finder_node(f, i);
    bool moves = f->roles->rule[i] && f->roles->rule[i]->moves && n->op && !(n->op->flags & OP_APPENDS);
    return n->op && !moves && n->nout > 0 && n->out[0] && dtype_is_float(n->out[0]->type.dtype) && n->nin > 0 && !(n->op->flags & OP_VIEW);
}

static void add_layer_row(struct finder *f, struct layer *l, enum layer_row_kind kind, const struct node *n)
{
    VEC_PUSH(f->arena, &l->rows, ((struct layer_row){.kind = kind}));
    VEC_PUSH(f->arena, &l->rows.at[l->rows.n - 1].nodes, n);
}

static struct layer_row *last_row(struct layer *l)
{
    return l->rows.n ? &l->rows.at[l->rows.n - 1] : NULL;
}

/* Products of one operand stand side by side. */
static bool joins_row(const struct layer *l, int at, const struct node *n)
{
    return at >= 0 && l->rows.at[at].nodes.at[0]->in[0] == n->in[0];
}

static void add_other(struct finder *f, struct layer *l, const struct node *n)
{
    struct layer_row *last = last_row(l);
    enum layer_row_kind kind = is_attention(f, n) ? ROW_ATTENTION : ROW_OTHER;
    if (last && (last->kind == ROW_OTHER || last->kind == ROW_ATTENTION)) {
        last->kind = kind == ROW_ATTENTION ? kind : last->kind;
        VEC_PUSH(f->arena, &last->nodes, n);
    } else {
        add_layer_row(f, l, kind, n);
    }
}

static struct layer rows_between(struct finder *f, int from, int to)
{
    struct layer l = {.repeat = f->repeat};
    int products = -1; /* the row of the last product */
    for (int i = from; i < to; i++) {
        const struct node *n = finder_node(f, i);
        if (is_collective(n)) {
            add_layer_row(f, &l, ROW_COLLECTIVE, n);
        } else if (is_weight_product(f, i) && joins_row(&l, products, n)) {
            VEC_PUSH(f->arena, &l.rows.at[products].nodes, n);
        } else if (is_weight_product(f, i)) {
            add_layer_row(f, &l, ROW_PRODUCTS, n);
            products = l.rows.n - 1;
        } else if (is_shown(f, i) && !f->roles->weight[n->out[0]->id]) {
            add_other(f, &l, n);
        }
    }
    return l;
}

/* ---- which repetition --------------------------------------------------------------------------------------------------------- */

static const char *place_letter(struct arena *a, struct placement p)
{
    return p.kind == PLACE_S ? arena_printf(a, "S%d", p.dim) : p.kind == PLACE_P ? "P" : "R";
}

/* How products, attention and collectives are split, as text. */
static const char *layer_text(struct finder *f, const struct layer *l)
{
    const char *text = "";
    for (int i = 0; i < l->rows.n; i++) {
        const struct layer_row *r = &l->rows.at[i];
        for (int k = 0; r->kind != ROW_OTHER && k < r->nodes.n; k++)
            if (r->nodes.at[k]->op->flags & (OP_PRODUCT | OP_COLLECTIVE))
                text = arena_printf(f->arena, "%s %s:%s", text, r->nodes.at[k]->optype,
                                    place_letter(f->arena, r->nodes.at[k]->out[0]->place));
    }
    return text;
}

/* The last one of the most frequent kind: the first layers of a model may read its inputs another way. */
static struct layer most_frequent(struct finder *f)
{
    struct layer best = {.alike = 0}, *all = NEWN(f->arena, struct layer, f->repeat);
    const char **text = NEWN(f->arena, const char *, f->repeat);
    for (int k = 0; k < f->repeat; k++) {
        int first = f->first + k * f->period;
        all[k] = rows_between(f, end_behind(f, first), end_behind(f, first + f->period));
        all[k].number = k + 1;
        text[k] = layer_text(f, &all[k]);
    }
    for (int k = 0; k < f->repeat; k++) {
        for (int j = 0; j < f->repeat; j++)
            all[k].alike += strcmp(text[k], text[j]) == 0;
        if (all[k].alike >= best.alike)
            best = all[k];
    }
    return best;
}

struct layer layer_find(struct arena *a, const struct graph *g, const struct dim_roles *roles)
{
    struct finder f = {.arena = a, .g = g, .roles = roles};
    find_products(&f);
    find_block(&f);
    require(f.first + f.period * f.repeat <= f.product.n);
    return f.period > 0 ? most_frequent(&f) : rows_between(&f, 0, 0);
}
