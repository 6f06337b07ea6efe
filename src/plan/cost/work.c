/* work: the operations of a node on one rank, and how long they take there. Rates are measured by tpc-run --calibrate, for kinds of
 * products that have kernels of their own. */
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

double cost_share_met(struct space *s, const struct node *n, const struct strategy *st, int w, int r)
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

/* Channels of a convolution's result are computed a vector at a time: the work is that of whole vectors, as a multiple. */
static double vector_filling(struct space *s, const struct node *n, const struct strategy *st, int w, int r)
{
    struct placement p = st->out[0];
    if (!op_is_onnx(n, "Conv"))
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

/* How many times as fast as `flops` the kernel of the product is. One with a weight in codes is of 8-bit integers, for each 8 bits that the
 * other operand is rounded to. */
static double product_speed(const struct space *s, const struct node *n, int w)
{
    const struct machine *m = &s->options->machine;
    bool integers = cost_multiplies_integers(s, n);
    if (op_is_onnx(n, "Conv"))
        return integers ? m->integer_conv_speed / word_filling(s, n, w) : is_depthwise(s, n, w) ? m->depthwise_speed : m->conv_speed;
    if (!integers)
        return 1;
    int digits = dtype_is_integer(n->in[1]->type.dtype) && !dtype_is_integer(n->in[0]->type.dtype)
        ? nbits_level_digits(attr_int(n, "accuracy_level"))
        : 1;
    return m->integer_speed / digits;
}

static double operations(struct space *s, const struct node *n, const struct rule *rule, const struct strategy *st, int w, int r)
{
    if (n->op && (n->op->flags & OP_RECURS))
        return recurrent_flops(s, n, st, w, r);
    if (!rule || !(n->op->flags & OP_PRODUCT) || !n->out[0])
        return 0;
    if (n->op->flags & OP_ROUTES)
        return routed_flops(s, n, st, w, r);
    double each = n->op->flags & OP_APPENDS ? 4 : 2; /* attention: both of its products */
    each *= vector_filling(s, n, st, w, r) / product_speed(s, n, w);
    return each * cost_local_elements(s, n->out[0], st->out[0], w, r) * contracted_products(s, n, rule, st, w, r);
}

/* Exponential functions of the result's elements. */
static double function_seconds(struct space *s, const struct node *n, const struct strategy *st, int w, int r)
{
    if (!n->op || !(n->op->flags & OP_FUNCTION))
        return 0;
    return s->options->machine.function_seconds * cost_local_elements(s, n->out[0], st->out[0], w, r);
}

/* Elements that are rounded to codes, or read from them. Where their range is found first, that takes as long again. */
static double code_seconds(struct space *s, const struct node *n, const struct strategy *st, int taken, int w, int r)
{
    bool codes = op_is_onnx(n, "QuantizeLinear") || op_is_onnx(n, "DequantizeLinear");
    double each = op_is_onnx(n, "Conv") && cost_multiplies_integers(s, n) ? PRICE_CONV_CODES
        : codes && taken < 0                                              ? 1
        : op_is_onnx(n, "DynamicQuantizeLinear")                          ? 2
                                                                          : 0;
    each *= s->options->machine.code_seconds;
    return each > 0 ? each * vector_filling(s, n, st, w, r) * cost_local_elements(s, n->out[0], st->out[0], w, r) : 0;
}

/* A transpose of a convolution makes the products of every place with all filters, and adds them up one by one where they belong. */
static double spread_seconds(struct space *s, const struct node *n, const struct rule *rule, const struct strategy *st, int w, int r)
{
    if (!op_is_onnx(n, "ConvTranspose"))
        return 0;
    double channels = (double)s->sizes.extent[n->in[0]->id * s->plan->workloads.n + w][1] / fmax((double)attr_int(n, "group"), 1);
    return operations(s, n, rule, st, w, r) / 2 / fmax(channels, 1) * 2 * s->options->machine.turn_seconds;
}

double cost_work_seconds(struct space *s, const struct node *n, const struct rule *rule, const struct strategy *st, int taken, int w, int r,
                         double flops)
{
    return operations(s, n, rule, st, w, r) / flops + function_seconds(s, n, st, w, r) + code_seconds(s, n, st, taken, w, r) +
        spread_seconds(s, n, rule, st, w, r);
}
