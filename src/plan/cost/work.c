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

/* Places of a kernel that meet an element of the result: those of the weight that are no channels. Where windows slide by parts of an
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

/* Rows that meet k of so many experts, each as likely as the others. */
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

static bool is_convolution(const struct node *n)
{
    return n->op && n->op->flags & OP_CONVOLVES;
}

/* Channels of a convolution's result are computed a vector at a time: the work is that of whole vectors, as a multiple. */
static double vector_filling(struct space *s, const struct node *n, const struct strategy *st, int w, int r)
{
    struct placement p = st->out[0];
    if (!is_convolution(n))
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
    bool integers = cost_multiplies_integers(s, n);
    if (is_convolution(n))
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
static void add_numbers(struct space *s, const struct node *n, const struct strategy *st, bool taken, struct work_place at, struct work *k)
{
    if (!n->op || n->nout == 0 || !n->out[0])
        return;
    double all = cost_local_elements(s, n->out[0], st->out[0], at.workload, at.rank), codes = n->op->codes;
    if (taken && n->op->flags & OP_ELEMENTWISE)
        codes = 0;
    if (k->kernel == KERNEL_INTEGER_CONV)
        codes = PRICE_CONV_CODES * vector_filling(s, n, st, at.workload, at.rank);
    k->functions = n->op->flags & OP_FUNCTION ? all : 0;
    k->codes = codes * all;
}

/* ---- bytes ---------------------------------------------------------------------------------------------------------------- */

/* A product reads a weight as it is stored, and one of integers its other operand, too. */
static const struct value *stored_value(const struct space *s, const struct value *v)
{
    const struct node *p = v->producer;
    bool decoded = p && p->op && (p->op->flags & OP_DECODES) && (s->weight[v->id] || cost_is_merged(s, p));
    return decoded ? p->in[0] : v;
}

static double *bytes_of(const struct space *s, const struct value *v, struct work *k)
{
    return s->weight[v->id] ? &k->streamed : v->state ? &k->carried : &k->passed;
}

static double moved_width(const struct space *s, const struct value *v)
{
    return cost_is_coded(s, v) ? 1 : value_width(stored_value(s, v));
}

/* taken: the operand that is in registers, as the result then is; -1: none. */
static void add_bytes(struct space *s, const struct node *n, const struct strategy *st, int taken, struct work_place at, struct work *k)
{
    int w = at.workload, r = at.rank;
    bool lookup = n->op && (n->op->flags & OP_SEEDS) && !(n->op->flags & OP_PRODUCT); /* reads rows, not the table */
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && !(lookup && i != 1) && i != taken && !cost_is_inside(s, n->in[i]))
            *bytes_of(s, n->in[i], k) += cost_local_elements(s, n->in[i], st->in[i], w, r) * moved_width(s, n->in[i]);
    for (int i = 0; i < n->nout && taken < 0; i++)
        if (n->out[i] && !cost_is_inside(s, n->out[i]))
            *bytes_of(s, n->out[i], k) += cost_local_elements(s, n->out[i], st->out[i], w, r) * value_width(n->out[i]) * (lookup ? 2 : 1);
    if (n->op && (n->op->flags & OP_ROUTES))
        k->streamed *= share_met(s, n, st, w, r);
}

/* Bits of a number of the weight, where it is of integers: several may lie in a byte. */
static int code_bits(const struct node *n, enum dtype stored)
{
    return n->op->flags & OP_NARROW ? (int)attr_int(n, "bits") : dtype_bits(stored);
}

static enum stored weight_stored(const struct space *s, const struct node *n)
{
    bool product = n->op && n->op->flags & OP_PRODUCT && n->nin > 1 && n->in[1] && s->weight[n->in[1]->id];
    enum dtype dtype = product ? value_storage(stored_value(s, n->in[1])) : DT_F32;
    if (dtype == DT_F16 || dtype == DT_BF16)
        return STORED_HALF;
    return !dtype_is_integer(dtype) ? STORED_FULL : code_bits(n, dtype) == 8 ? STORED_BYTE : STORED_CODE;
}

/* What a convolution leaves partial goes to other ranks before the ops that it would have taken in: they need a pass of their own. A value
 * that convolutions read, and that nothing with the channels last makes, is turned for the first of them. */
static void add_beside(struct space *s, const struct node *n, const struct strategy *st, struct work_place at, struct work *k)
{
    if (cost_takes_in(s, n) && st->out[0].kind == PLACE_P) {
        k->left = 2 * cost_local_elements(s, n->out[0], st->out[0], at.workload, at.rank) * value_width(n->out[0]) / s->ranks;
        k->nodes++;
    }
    if (cost_turns_operand(s, n))
        k->relaid = cost_local_elements(s, n->in[0], st->in[0], at.workload, at.rank);
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------ */

bool work_is_none(const struct space *s, const struct node *n)
{
    unsigned flags = n->op ? n->op->flags : 0;
    return (flags & (OP_VIEW | OP_IN_PLACE)) || cost_coding(s, n) == CODING_FREE || cost_is_merged(s, n) ||
        ((flags & (OP_DECODES | OP_MOVES)) && s->weight[n->out[0]->id]);
}

/* The operand in which a convolution takes the node in; -1: none. What several ranks have in full they had to gather or to sum first. */
static int taken_operand(const struct space *s, const struct node *n, const struct strategy *st, bool among)
{
    int taken = cost_taken_operand(s, n);
    return taken >= 0 && among && st->in[taken].kind == PLACE_R ? -1 : taken;
}

static double node_overheads(const struct node *n)
{
    const double chain = 3, conv = 5; /* elementwise ops that run as one; the weights of a convolution are in no near cache */
    return is_convolution(n) ? conv : n->op && n->op->flags & OP_ELEMENTWISE ? 1 / chain : 1;
}

struct work work_of(struct space *s, const struct node *n, const struct rule *rule, const struct strategy *st, struct work_place at)
{
    bool inside = n->nout > 0 && cost_is_inside(s, n->out[0]), elementwise = n->op && n->op->flags & OP_ELEMENTWISE;
    int taken = taken_operand(s, n, st, at.among);
    struct work k = {.chained = elementwise && !inside, .stored = weight_stored(s, n)};
    k.in_turn = is_convolution(n) || k.chained || (rule && rule->moves);
    add_operations(s, n, rule, st, at, &k);
    add_numbers(s, n, st, taken >= 0, at, &k);
    if (cost_coding(s, n) == CODING_NONE)
        add_bytes(s, n, st, taken, at, &k);
    if (!inside && taken < 0) {
        copied_rows_add(s, n, rule, st, at, &k);
        k.nodes = node_overheads(n);
    }
    add_beside(s, n, st, at, &k);
    return k;
}
