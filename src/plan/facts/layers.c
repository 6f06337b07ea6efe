/* layers: the blocks of products with weights that repeat in a graph, found by ops and sizes of weights and never by names. The block that
 * covers most products comes first; the nodes before and after it may have blocks of their own: a decoder after an encoder. */
#include "op/op.h"
#include "plan/facts/facts.h"

#include <string.h>

/* MOST_TRIED: products times periods; ALONE: products of a single layer if nothing repeats. */
enum { MOST_PRODUCTS = 1 << 16, MOST_PERIOD = 2048, MOST_TRIED = 1 << 26, LEAST_PERIOD = 2, ALONE = 8 };

struct finder {
    struct arena *arena;
    const struct graph *g;
    const struct dim_roles *roles;
    VEC(int) product; /* node positions of the products with weights */
    VEC(int) sign;    /* by product: the first product with the same op and weight sizes */
    struct name_index signs;
    struct layers found;
};
/* Counted in products. */
struct block {
    int first, period, repeat;
};

/* Elements; 0: not static. */
static int64_t static_elements(const struct value *v)
{
    int64_t n = 1, k;
    for (int d = 0; d < v->type.rank; d++)
        if (!dim_is_int(v->type.dim[d], &k) || !i64_mul(n, k, &n))
            return 0;
    return n;
}

const struct value *layers_weight(const struct dim_roles *roles, const struct node *n)
{
    const struct value *best = NULL;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && roles->weight[n->in[i]->id] && n->in[i]->type.rank > 1 &&
            static_elements(n->in[i]) > (best ? static_elements(best) : 0))
            best = n->in[i];
    return best;
}

bool layers_is_product(const struct dim_roles *roles, int node)
{
    const struct node *n = roles->g->nodes.at[node];
    return n->op && (n->op->flags & OP_PRODUCT) && weight_is_used(roles->weight, n) && layers_weight(roles, n) &&
        !dim_node_sums_nothing(roles, node);
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
    for (int i = 0; i < f->g->nodes.n && f->product.n < MOST_PRODUCTS; i++) {
        if (!layers_is_product(f->roles, i))
            continue;
        const char *sign = product_signature(f, f->g->nodes.at[i]);
        if (name_index_find(&f->signs, sign) < 0)
            name_index_put(f->arena, &f->signs, sign, f->product.n);
        VEC_PUSH(f->arena, &f->sign, name_index_find(&f->signs, sign));
        VEC_PUSH(f->arena, &f->product, i);
    }
}

/* How many products from i on, up to `end`, are like the product `period` before them. */
static int run_length(const struct finder *f, int i, int end, int period)
{
    int n = 0;
    while (i + n < end && f->sign.at[i + n] == f->sign.at[i + n - period])
        n++;
    return n;
}

/* The block that covers most of the products `from` to `to`; repeat 0: none. */
static struct block find_block(const struct finder *f, int from, int to, int least)
{
    struct block best = {from, 0, 0};
    for (int period = least; period <= MOST_PERIOD && 2 * period <= to - from && (to - from) * period <= MOST_TRIED; period++)
        for (int i = from + period; i < to; i++) {
            int n = run_length(f, i, to, period), repeat = 1 + n / period;
            if (repeat > 1 && repeat * period > best.repeat * best.period)
                best = (struct block){i - period, period, repeat};
            i += n;
        }
    return best;
}

/* ---- where a layer ends ------------------------------------------------------------------------------------------------------ */

static bool is_collective(const struct node *n)
{
    return n->op && (n->op->flags & OP_COLLECTIVE);
}

/* Whether two activations meet: a residual connection. */
static bool joins(const struct finder *f, const struct node *n)
{
    int activations = 0;
    for (int i = 0; i < n->nin; i++)
        activations += n->in[i] && !f->roles->weight[n->in[i]->id] && n->in[i]->type.rank > 0;
    return n->op && (n->op->flags & OP_ELEMENTWISE) && activations > 1 && dtype_is_float(n->out[0]->type.dtype);
}

/* The end of a layer, between its last product and the next layer's first: after the last residual connection, and after the collectives of
 * its result. */
static int layer_end(const struct finder *f, int from, int to)
{
    struct node *const *at = f->g->nodes.at;
    int end = from;
    for (int i = from; i < to; i++)
        if (joins(f, at[i]))
            end = i + 1;
    while (end > from && end < to && is_collective(at[end]) && at[end]->in[0] == at[end - 1]->out[0])
        end++;
    while (end == from && end < to && is_collective(at[end]))
        from = ++end;
    return end;
}

/* The end of the layer whose last product is k - 1. */
static int end_behind(const struct finder *f, int k)
{
    int from = k > 0 ? f->product.at[k - 1] + 1 : 0;
    return layer_end(f, from, k < f->product.n ? f->product.at[k] : f->g->nodes.n);
}

/* ---- all layers --------------------------------------------------------------------------------------------------------------- */

/* The first node of the first layer. If no residual connection precedes the layer, it begins as far before its first product as the second
 * layer does. */
static int first_begin(const struct finder *f, struct block b)
{
    int second = b.first + b.period, begin = end_behind(f, b.first);
    if (b.repeat < 2)
        return begin;
    int alike = f->product.at[b.first] - (f->product.at[second] - end_behind(f, second));
    return alike > begin ? alike : begin;
}

static void add_layers(struct finder *f, struct block b)
{
    for (int k = 0; k < b.repeat; k++) {
        int first = b.first + k * b.period, begin = k ? end_behind(f, first) : first_begin(f, b);
        int end = end_behind(f, first + b.period);
        require(begin <= end && end <= f->g->nodes.n);
        require(k == 0 || f->found.list.at[f->found.list.n - 1].end <= begin); /* layers do not overlap */
        VEC_PUSH(f->arena, &f->found.list, ((struct layer_span){begin, end, f->found.blocks, k + 1, b.repeat}));
    }
    f->found.blocks += b.repeat > 0;
}

/* The blocks of products `from` to `to`. */
static void find_blocks(struct finder *f, int from, int to, int depth)
{
    enum { MOST_BLOCKS = 16 };
    struct block b = find_block(f, from, to, depth ? LEAST_PERIOD : 1);
    if (b.repeat == 0 || f->found.blocks == MOST_BLOCKS)
        return;
    add_layers(f, b);
    find_blocks(f, from, b.first, depth + 1);
    find_blocks(f, b.first + b.period * b.repeat, to, depth + 1);
}

struct layers layers_find(struct arena *a, const struct graph *g, const struct dim_roles *roles)
{
    struct finder f = {.arena = a, .g = g, .roles = roles};
    find_products(&f);
    find_blocks(&f, 0, f.product.n, 0);
    if (f.found.blocks == 0 && f.product.n > 0)
        add_layers(&f, (struct block){0, f.product.n < ALONE ? f.product.n : ALONE, 1});
    return f.found;
}
