/* work: what a node does on one rank, as counts: operations, numbers, rows and bytes, each of a kind that has a price of its own. What is
 * special about an op is a flag or a column of its row. */
#include "plan/cost/work.h"

#include "kern/gemm/gemm.h"
#include "op/op.h"
#include "op/prices.h"
#include "op/product/product.h"
#include "op/rule/rule.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <math.h>

/* A value with its placement on the rank. */
struct held {
    const struct value *v;
    struct placement place;
};

static struct held operand(const struct work_at *x, int i)
{
    return (struct held){x->node->in[i], x->st->in[i]};
}

static struct held result(const struct work_at *x, int i)
{
    return (struct held){x->node->out[i], x->st->out[i]};
}

static double elements(const struct work_at *x, struct held h)
{
    return cost_local_elements(x->s, h.v, h.place, x->workload, x->rank);
}

static double size_of(const struct work_at *x, struct held h, int d)
{
    return cost_local_size(x->s, h.v, h.place, d, x->workload, x->rank);
}

/* The sizes of the whole value. */
static const int64_t *sizes(const struct work_at *x, const struct value *v)
{
    return x->s->sizes.extent[v->id * x->s->plan->workloads.n + x->workload];
}

/* ---- operations ----------------------------------------------------------------------------------------------------------- */

static bool has_windows(const struct rule *rule)
{
    for (int d = 0; rule->nin > 0 && d < rule->in[0].rank; d++)
        if (rule->in[0].dim[d].window)
            return true;
    return false;
}

static bool factor_size(const struct work_at *x, int i, int64_t *size)
{
    return dim_eval(x->rule->factor[i].size, &x->s->plan->workloads.at[x->workload].dims, size);
}

/* Filter taps per output element: the weight's dimensions without the channels. Where windows slide by parts of an element, as in a
 * transposed convolution, each element meets one tap in each stride. */
static double kernel_places(const struct work_at *x)
{
    const struct rule *rule = x->rule;
    double places = 1;
    if (!has_windows(rule))
        return 1;
    for (int d = 0; d < rule->in[0].rank; d++)
        places /= rule->in[0].dim[d].window ? (double)rule->in[0].dim[d].window->per : 1;
    for (int i = 0; rule->nin > 1 && i < rule->nfactor; i++) {
        int64_t size;
        bool only = rule_has_factor(&rule->in[1], i) && !rule_has_factor(&rule->in[0], i) && !rule_has_factor(&rule->out[0], i);
        if (only && !(rule->factor[i].flags & FACTOR_CONTRACTED) && factor_size(x, i, &size))
            places *= (double)size;
    }
    return places;
}

/* The contracted size of a result element: the product of the contracted dimensions; for a fused attention the sum of new and past keys. */
static double contracted_products(const struct work_at *x)
{
    const struct split *const *split = x->st->assignment.factor;
    bool keys = x->node->op->flags & OP_APPENDS;
    double products = keys ? 0 : kernel_places(x);
    for (int i = 0; i < x->rule->nfactor; i++) {
        int64_t size;
        if (!(x->rule->factor[i].flags & FACTOR_CONTRACTED) || !factor_size(x, i, &size))
            continue;
        double part = (double)size * (split && split[i] ? cost_part(x->s, x->node->out[0], split[i], x->workload, x->rank) : 1);
        products = keys ? products + part : products * part;
    }
    return products;
}

/* Elements of the expert matrices that a rank holds. */
static double expert_numbers(const struct work_at *x)
{
    const struct node *n = x->node;
    enum dtype dtype = n->in[FIRST_WEIGHT]->type.dtype;
    double numbers = 0, each = dtype_is_float(dtype) ? 1 : 8 / fmax((double)attr_int(n, "expert_weight_bits"), 1);
    for (int i = FIRST_WEIGHT; i < n->nin; i++)
        if (n->in[i] && n->in[i]->type.rank == 3 && n->in[i]->type.dtype == dtype)
            numbers += each * elements(x, operand(x, i));
    return numbers;
}

/* Adds the work of experts. Codes are decoded once per one or two rows of an expert, or once per panel of rows. Matrices of floats are
 * packed once if an expert has more than a few rows. */
static void add_experts(const struct work_at *x, struct work *k)
{
    struct routing t = routing_of(x);
    double numbers = t.held > 0 ? expert_numbers(x) / t.held : 0;
    bool codes = dtype_is_integer(x->node->in[FIRST_WEIGHT]->type.dtype), few = t.rows <= COLUMN_FEW_ROWS * t.met;
    double decoded = codes ? fmin(t.rows, PRICE_EXPERT_TIMES * t.met) : 0;
    k->operations = (2 * t.rows + PRICE_EXPERT_DECODED * decoded) * numbers;
    k->spread = codes || few ? 0 : t.met * numbers;
}

/* Each row of a recurrent net is multiplied by the weights of each direction. */
static double recurrent_flops(const struct work_at *x)
{
    double rows = elements(x, operand(x, 0)) / fmax((double)sizes(x, x->node->in[0])[2], 1);
    return 2 * rows * (elements(x, operand(x, 1)) + elements(x, operand(x, 2)));
}

bool work_is_convolution(const struct node *n)
{
    return n->op && n->op->flags & OP_CONVOLVES;
}

/* The kernel computes output channels in whole vectors: the ratio of whole vectors to channels. */
static double vector_filling(const struct work_at *x)
{
    double lanes = x->s->options->machine.vector_lanes, channels;
    if (!work_is_convolution(x->node))
        return 1;
    channels = size_of(x, result(x, 0), 1);
    return channels > 0 ? ceil(channels / lanes) * lanes / channels : 1;
}

/* Whether every channel has a filter of its own. */
static bool is_depthwise(const struct work_at *x)
{
    return attr_int(x->node, "group") > 1 && x->node->in[1] && sizes(x, x->node->in[1])[1] == 1;
}

/* The integer kernel pads neighbouring taps to words of four: the ratio of padded to real taps. */
static double word_filling(const struct work_at *x)
{
    enum { WORD = 4 };
    const struct value *v = x->node->in[1];
    const int64_t *filter = sizes(x, v);
    double run = (double)filter[1] * (double)(attr_int(x->node, "group") == 1 ? filter[v->type.rank - 1] : 1);
    return run > 0 ? ceil(run / WORD) * WORD / run : 1;
}

static enum product_kernel kernel_of(const struct work_at *x)
{
    bool integers = fused_part(x->s, x->node)->integers;
    if (work_is_convolution(x->node))
        return integers ? KERNEL_INTEGER_CONV : is_depthwise(x) ? KERNEL_DEPTHWISE : KERNEL_CONV;
    return integers ? KERNEL_INTEGERS : fused_part(x->s, x->node)->weight == DT_BF16 ? KERNEL_BF16 : KERNEL_MATRIX;
}

/* How often the kernel makes each product. */
static double repeats(const struct work_at *x, enum product_kernel kernel)
{
    return fused_part(x->s, x->node)->digits * vector_filling(x) * (kernel == KERNEL_INTEGER_CONV ? word_filling(x) : 1);
}

static void add_products(const struct work_at *x, struct work *k)
{
    const struct node *n = x->node;
    double channels = 1, each = n->op->flags & OP_APPENDS ? 4 : 2; /* attention: both of its products */
    k->kernel = kernel_of(x);
    k->operations = each * repeats(x, k->kernel) * elements(x, result(x, 0)) * contracted_products(x);
    if (n->op->flags & OP_SPREADS) /* every tap times all filters */
        channels = (double)sizes(x, n->in[0])[1] / fmax((double)attr_int(n, "group"), 1);
    k->spread = n->op->flags & OP_SPREADS ? k->operations / fmax(channels, 1) : 0;
}

static void add_operations(const struct work_at *x, struct work *k)
{
    unsigned flags = x->node->op ? x->node->op->flags : 0;
    if (flags & OP_RECURS)
        k->operations = recurrent_flops(x);
    else if (x->rule && flags & OP_PRODUCT && x->node->out[0])
        (flags & OP_ROUTES ? add_experts : add_products)(x, k);
}

/* Counts exponentials of the result's elements, and elements rounded to or decoded from codes. */
static void add_numbers(const struct work_at *x, struct work *k)
{
    const struct node *n = x->node;
    const struct fused_part *part = fused_part(x->s, n);
    double all = n->out[0] ? elements(x, result(x, 0)) : 0;
    double codes = !n->op || !part->codes ? 0 : n->op->codes;
    if (k->kernel == KERNEL_INTEGER_CONV)
        codes = PRICE_CONV_CODES * vector_filling(x);
    k->functions = n->op && n->op->flags & OP_FUNCTION && part->functions ? all : 0;
    k->codes += codes * all;
}

/* ---- bytes ---------------------------------------------------------------------------------------------------------------- */

static double *bytes_of(const struct space *s, const struct value *v, struct work *k)
{
    return s->weight[v->id] ? &k->streamed : v->state ? &k->carried : &k->passed;
}

static void add_bytes(const struct work_at *x, struct work *k)
{
    const struct node *n = x->node;
    const struct fused_part *part = fused_part(x->s, n);
    bool lookup = n->op && (n->op->flags & OP_SEEDS) && !(n->op->flags & OP_PRODUCT); /* a lookup reads the rows of its table from memory
                                                                                       * once */
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && part->read[i] > 0 && !(lookup && i != 1))
            *bytes_of(x->s, n->in[i], k) += elements(x, operand(x, i)) * part->read[i];
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && part->write[i] > 0)
            *(n->out[i]->state ? &k->carried : &k->passed) += elements(x, result(x, i)) * part->write[i];
    if (lookup && n->in[0] && n->out[0]) {
        double read = elements(x, result(x, 0)) * part->write[0], table = elements(x, operand(x, 0)) * value_width(n->in[0]);
        *bytes_of(x->s, n->in[0], k) += fmin(read, table);
        k->passed += fmax(read - table, 0);
    }
    if (n->op && (n->op->flags & OP_ROUTES))
        k->streamed *= routing_met(routing_of(x));
}

/* Bits per element of an integer weight; several elements may share a byte. */
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

/* ---- rows of neighbours that a node goes through one by one --------------------------------------------------------------- */

/* The dimension at position k of the memory layout. */
static int dim_at(const struct space *s, const struct value *v, int k)
{
    if (!s->fused.last[v->id] || k == 0)
        return k;
    return k == v->type.rank - 1 ? 1 : k + 1;
}

/* The length of contiguous runs common to both layouts, where one value is a part of the other. */
static double common_run(const struct work_at *x, struct held a, struct held b)
{
    double run = 1;
    for (int k = a.v->type.rank - 1; k >= 0; k--) {
        int d = dim_at(x->s, a.v, k);
        double own = size_of(x, a, d), other = size_of(x, b, d);
        run *= fmin(own, other);
        if (own < other || other < own)
            break;
    }
    return run;
}

static double turned_run(const struct work_at *x, struct held y)
{
    const int64_t *perm;
    int rank = y.v->type.rank, d = rank - 1;
    double run = 1;
    if (attr_ints(x->s->g, x->node, "perm", &perm) != rank)
        return 1;
    for (; d >= 0 && perm[d] == d; d--)
        run *= size_of(x, y, d);
    return run;
}

/* Counts the copy from an operand to a result, by the one that is copied whole. */
static void add_copied(const struct work_at *x, struct held from, struct held to, struct work *k)
{
    if (!from.v || !to.v || from.v->type.rank != to.v->type.rank || from.v->type.rank == 0)
        return;
    double run = x->node->op->flags & OP_PERMUTES ? turned_run(x, to) : common_run(x, from, to);
    double all = elements(x, x->node->nin > 1 ? from : to);
    if (run > 1)
        k->rows += all / run;
    else if (run > 0)
        k->turned += all;
}

/* Rows that an elementwise op reads one by one, because an operand is broadcast between rows. */
static double repeated_rows(const struct work_at *x)
{
    struct held y = result(x, 0);
    double rows = 0, all = elements(x, y);
    for (int i = 0; i < x->node->nin; i++) {
        const struct value *v = x->node->in[i];
        if (!v || v->type.rank != y.v->type.rank || type_eq(&v->type, &y.v->type))
            continue;
        double run = common_run(x, operand(x, i), y);
        rows = fmax(rows, run > 1 && run < all ? all / run : 0);
    }
    return rows;
}

static void add_rows(const struct work_at *x, struct work *k)
{
    const struct node *n = x->node;
    if (x->rule && n->op->flags & OP_ELEMENTWISE && n->nin > 1 && n->out[0])
        k->rows = repeated_rows(x);
    else if (x->rule && x->rule->moves && !(n->op->flags & (OP_SEEDS | OP_ELEMENTWISE)))
        for (int i = 0; i < n->nin; i++)
            for (int o = 0; o < n->nout; o++)
                add_copied(x, operand(x, i), result(x, o), k);
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------ */

static void add_form(const struct work_at *x, const struct fused_part *part, struct work *k)
{
    const struct node *n = x->node;
    for (int i = 0; i < n->nin + n->nout; i++) {
        struct held h = i < n->nin ? operand(x, i) : result(x, i - n->nin);
        if (h.v != part->changed)
            continue;
        double all = elements(x, h), width = value_width(h.v);
        k->form = (struct work_form){part->recoded ? all : 0, part->recoded ? 0 : all, all * (width + (part->recoded ? 1 : width))};
        return;
    }
}

struct work work_of(const struct work_at *x)
{
    const struct fused_part *part = fused_part(x->s, x->node);
    struct work k = {.nodes = part && !x->st->body ? part->overheads : 0};
    if (part && part->changed)
        add_form(x, part, &k);
    if (!part || !part->into || x->st->body)
        return k;
    k.stored = weight_stored(x->node, part->weight);
    k.in_turn = part->in_turn;
    if (part->computed)
        add_operations(x, &k);
    add_numbers(x, &k);
    add_bytes(x, &k);
    if (part->rows)
        add_rows(x, &k);
    return k;
}
