/* work: what a node does on one rank, as counts: operations, numbers, rows and bytes, each of a kind that has a price of its own. What is
 * special about an op is a flag or a column of its row. */
#include "plan/cost/work.h"

#include "kern/product/product.h"
#include "op/op.h"
#include "op/prices.h"
#include "op/rule/rule.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <math.h>

static bool has_windows(const struct rule *rule)
{
    for (int d = 0; rule->nin > 0 && d < rule->in[0].rank; d++)
        if (rule->in[0].dim[d].window)
            return true;
    return false;
}

/* Filter taps per output element: the weight's dimensions without the channels. Where windows slide by parts of an
 * element, as in a transpose, each element meets one place of so many. */
static double kernel_places(struct space *s, const struct rule *rule, int w)
{
    double places = 1;
    if (!has_windows(rule))
        return 1;
    for (int d = 0; d < rule->in[0].rank; d++)
        places /= rule->in[0].dim[d].window ? (double)rule->in[0].dim[d].window->per : 1;
    for (int i = 0; rule->nin > 1 && i < rule->nfactor; i++) {
        int64_t size;
        bool only = rule_has_factor(&rule->in[1], i) && !rule_has_factor(&rule->in[0], i) && !rule_has_factor(&rule->out[0], i);
        if (only && !(rule->factor[i].flags & FACTOR_CONTRACTED) && dim_eval(rule->factor[i].size, &s->plan->workloads.at[w].dims, &size))
            places *= (double)size;
    }
    return places;
}

/* Products that one element of the result sums: the product of what is contracted; in a fused attention the sum, of new and past keys. */
static double contracted_products(struct space *s, const struct node *n, const struct rule *rule, const struct strategy *st, int w, int r)
{
    bool keys = n->op->flags & OP_APPENDS;
    double products = keys ? 0 : kernel_places(s, rule, w);
    for (int i = 0; i < rule->nfactor; i++) {
        int64_t size;
        if (!(rule->factor[i].flags & FACTOR_CONTRACTED) || !dim_eval(rule->factor[i].size, &s->plan->workloads.at[w].dims, &size))
            continue;
        double part = (double)size;
        if (st->assignment.factor && st->assignment.factor[i])
            part *= cost_fraction(s, st->assignment.factor[i], w, r);
        products = keys ? products + part : products * part;
    }
    return products;
}

/* Rows that meet k of this many experts, each as likely as the others. */
struct routing {
    double rows, k, experts;
};

static struct routing routed_rows(struct space *s, const struct node *n, const struct strategy *st, int w, int r)
{
    const int64_t *x = s->sizes.extent[n->in[0]->id * s->plan->workloads.n + w],
                  *weight = s->sizes.extent[n->in[2]->id * s->plan->workloads.n + w];
    double experts = fmax((double)weight[0], 1);
    return (struct routing){cost_local_elements(s, n->in[0], st->in[0], w, r) / fmax((double)x[n->in[0]->type.rank - 1], 1),
                            fmin((double)attr_int(n, "k"), experts), experts};
}

/* The share of experts that some row meets. */
static double share_met(struct space *s, const struct node *n, const struct strategy *st, int w, int r)
{
    struct routing t = routed_rows(s, n, st, w, r);
    return 1 - pow(1 - t.k / t.experts, t.rows);
}

static double routed_flops(struct space *s, const struct node *n, const struct strategy *st, int w, int r)
{
    struct routing t = routed_rows(s, n, st, w, r);
    enum dtype dtype = n->in[2]->type.dtype;
    double numbers = 0, each = dtype_is_float(dtype) ? 1 : 8 / fmax((double)attr_int(n, "expert_weight_bits"), 1);
    for (int i = 2; i < n->nin; i++)
        if (n->in[i] && n->in[i]->type.rank == 3 && n->in[i]->type.dtype == dtype)
            numbers += each * cost_local_elements(s, n->in[i], st->in[i], w, r);
    return 2 * t.rows * t.k / t.experts * numbers;
}

/* Rows of a recurrent net go through the weights of each direction. */
static double recurrent_flops(struct space *s, const struct node *n, const struct strategy *st, int w, int r)
{
    const int64_t *x = s->sizes.extent[n->in[0]->id * s->plan->workloads.n + w];
    double rows = cost_local_elements(s, n->in[0], st->in[0], w, r) / fmax((double)x[2], 1);
    double numbers = cost_local_elements(s, n->in[1], st->in[1], w, r) + cost_local_elements(s, n->in[2], st->in[2], w, r);
    return 2 * rows * numbers;
}

bool work_is_convolution(const struct node *n)
{
    return n->op && n->op->flags & OP_CONVOLVES;
}

/* Channels of a convolution's result are computed a vector at a time: the work counts whole vectors, as a multiple. */
static double vector_filling(struct space *s, const struct node *n, const struct strategy *st, int w, int r)
{
    struct placement p = st->out[0];
    if (!work_is_convolution(n))
        return 1;
    double lanes = s->options->machine.vector_lanes, channels = (double)s->sizes.extent[n->out[0]->id * s->plan->workloads.n + w][1];
    channels *= p.kind == PLACE_S && p.dim == 1 ? cost_fraction(s, p.split, w, r) : 1;
    return channels > 0 ? ceil(channels / lanes) * lanes / channels : 1;
}

/* Every channel has a filter of its own. */
static bool is_depthwise(const struct space *s, const struct node *n, int w)
{
    return attr_int(n, "group") > 1 && n->in[1] && s->sizes.extent[n->in[1]->id * s->plan->workloads.n + w][1] == 1;
}

/* Those that one of integers reads lie in words of four, of all places of a filter that are neighbours. */
static double word_filling(const struct space *s, const struct node *n, int w)
{
    enum { WORD = 4 };
    const int64_t *filter = s->sizes.extent[n->in[1]->id * s->plan->workloads.n + w];
    double run = (double)filter[1] * (double)(attr_int(n, "group") == 1 ? filter[n->in[1]->type.rank - 1] : 1);
    return run > 0 ? ceil(run / WORD) * WORD / run : 1;
}

static enum product_kernel kernel_of(const struct space *s, const struct node *n, int w)
{
    bool integers = fused_part(s, n)->integers;
    if (work_is_convolution(n))
        return integers ? KERNEL_INTEGER_CONV : is_depthwise(s, n, w) ? KERNEL_DEPTHWISE : KERNEL_CONV;
    return integers ? KERNEL_INTEGERS : KERNEL_MATRIX;
}

/* How often the kernel makes each product: one with a weight in codes is of 8-bit integers, once for each 8 bits that the other operand is
 * rounded to. */
static double repeats(struct space *s, const struct node *n, const struct strategy *st, enum product_kernel kernel, struct work_place at)
{
    bool rounds = kernel == KERNEL_INTEGERS && dtype_is_integer(n->in[1]->type.dtype) && !dtype_is_integer(n->in[0]->type.dtype);
    if (kernel == KERNEL_INTEGER_CONV)
        return vector_filling(s, n, st, at.workload, at.rank) * word_filling(s, n, at.workload);
    return rounds ? nbits_level_digits(attr_int(n, "accuracy_level")) : vector_filling(s, n, st, at.workload, at.rank);
}

static void add_operations(struct space *s, const struct node *n, const struct rule *rule, const struct strategy *st, struct work_place at,
                           struct work *k)
{
    int w = at.workload, r = at.rank;
    unsigned flags = n->op ? n->op->flags : 0;
    double channels = 1, each = flags & OP_APPENDS ? 4 : 2; /* attention: both of its products */
    if (flags & OP_RECURS)
        k->operations = recurrent_flops(s, n, st, w, r);
    if ((flags & OP_RECURS) || !rule || !(flags & OP_PRODUCT) || !n->out[0])
        return;
    if (flags & OP_ROUTES) {
        k->operations = routed_flops(s, n, st, w, r);
        return;
    }
    k->kernel = kernel_of(s, n, w);
    each *= repeats(s, n, st, k->kernel, at);
    k->operations = each * cost_local_elements(s, n->out[0], st->out[0], w, r) * contracted_products(s, n, rule, st, w, r);
    if (flags & OP_SPREADS) /* the products of every place with all filters */
        channels = (double)s->sizes.extent[n->in[0]->id * s->plan->workloads.n + w][1] / fmax((double)attr_int(n, "group"), 1);
    k->spread = flags & OP_SPREADS ? k->operations / fmax(channels, 1) : 0;
}

/* Exponential functions of the result's elements, and those that are rounded to codes, or read from them. */
static void add_numbers(struct space *s, const struct node *n, const struct strategy *st, struct work_place at, struct work *k)
{
    const struct fused_part *part = fused_part(s, n);
    double all = n->out[0] ? cost_local_elements(s, n->out[0], st->out[0], at.workload, at.rank) : 0;
    double codes = !n->op || !part->codes ? 0 : n->op->codes;
    if (k->kernel == KERNEL_INTEGER_CONV)
        codes = PRICE_CONV_CODES * vector_filling(s, n, st, at.workload, at.rank);
    k->functions = n->op && n->op->flags & OP_FUNCTION && part->functions ? all : 0;
    k->codes = codes * all;
}

/* ---- bytes ---------------------------------------------------------------------------------------------------------------- */

static double *bytes_of(const struct space *s, const struct value *v, struct work *k)
{
    return s->weight[v->id] ? &k->streamed : v->state ? &k->carried : &k->passed;
}

static void add_bytes(struct space *s, const struct node *n, const struct strategy *st, struct work_place at, struct work *k)
{
    int w = at.workload, r = at.rank;
    const struct fused_part *part = fused_part(s, n);
    bool lookup = n->op && (n->op->flags & OP_SEEDS) && !(n->op->flags & OP_PRODUCT); /* reads rows, not the table */
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && part->read[i] > 0 && !(lookup && i != 1))
            *bytes_of(s, n->in[i], k) += cost_local_elements(s, n->in[i], st->in[i], w, r) * part->read[i];
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && part->write[i] > 0)
            *(n->out[i]->state ? &k->carried : &k->passed) += cost_local_elements(s, n->out[i], st->out[i], w, r) * part->write[i] *
                (lookup ? 2 : 1);
    if (n->op && (n->op->flags & OP_ROUTES))
        k->streamed *= share_met(s, n, st, w, r);
}

/* Bits of a number of the weight, where it is of integers: several may lie in a byte. */
static int code_bits(const struct node *n, enum dtype stored)
{
    return n->op->flags & OP_NARROW ? (int)attr_int(n, "bits") : dtype_bits(stored);
}

static enum stored weight_stored(const struct node *n, enum dtype dtype)
{
    bool product = n->op && n->op->flags & OP_PRODUCT && dtype != DT_NONE;
    if (!product || dtype == DT_F16 || dtype == DT_BF16)
        return product ? STORED_HALF : STORED_FULL;
    return !dtype_is_integer(dtype) ? STORED_FULL : code_bits(n, dtype) == 8 ? STORED_BYTE : STORED_CODE;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------ */

struct work work_of(struct space *s, const struct node *n, const struct rule *rule, const struct strategy *st, struct work_place at)
{
    const struct fused_part *part = fused_part(s, n);
    struct work k = {.nodes = part ? part->overheads : 0};
    if (!part || !part->into)
        return k;
    k.stored = weight_stored(n, part->weight);
    k.in_turn = part->in_turn;
    if (part->computed)
        add_operations(s, n, rule, st, at, &k);
    add_numbers(s, n, st, at, &k);
    add_bytes(s, n, st, at, &k);
    if (part->rows)
        copied_rows_add(s, n, rule, st, at, &k);
    return k;
}

struct work work_of_change(struct space *s, const struct node *n, const struct strategy *st, struct work_place at)
{
    const struct fused_part *part = fused_part(s, n);
    for (int i = 0; part && part->changed && i < n->nin + n->nout; i++) {
        const struct value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
        if (v != part->changed)
            continue;
        double all = cost_local_elements(s, v, i < n->nin ? st->in[i] : st->out[i - n->nin], at.workload, at.rank);
        return (struct work){.codes = part->recoded ? all : 0,
                             .turned = part->recoded ? 0 : all,
                             .passed = all * (value_width(v) + (part->recoded ? 1 : value_width(v))),
                             .in_turn = true,
                             .nodes = 1};
    }
    return (struct work){.in_turn = true};
}
