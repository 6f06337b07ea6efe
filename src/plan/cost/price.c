/* price: seconds of a node on a machine: its work times the prices of schemas/prices.def, on the slowest rank. */
#include "op/op.h"
#include "plan/cost/cost.h"
#include "plan/cost/work.h"
#include "plan/space/space.h"

#include <math.h>

/* The rate of one of this many busy ranks, given its rate alone and the machine's. */
static double rate(const struct machine *m, double alone, double machine, int busy)
{
    return fmin(alone, machine / fmin(busy, m->machine_ranks));
}

static double kernel_speed(const struct machine *m, enum product_kernel kernel)
{
    switch (kernel) {
    case KERNEL_MATRIX: return m->fast ? m->bf16_speed : 1;
    case KERNEL_BF16: return m->bf16_speed;
    case KERNEL_INTEGERS: return m->integer_speed;
    case KERNEL_CONV: return m->conv_speed;
    case KERNEL_DEPTHWISE: return m->depthwise_speed;
    case KERNEL_INTEGER_CONV: return m->integer_conv_speed;
    }
    return 1;
}

static double full_rate(const struct machine *m, int busy)
{
    return rate(m, m->memory_bandwidth, m->machine_memory_bandwidth, busy);
}

/* Bytes per second at which a product streams its weight; narrow types are widened in the kernel. */
static double streaming_rate(const struct machine *m, enum stored stored, int busy)
{
    switch (stored) {
    case STORED_FULL: return m->fast ? 2 * rate(m, m->half_bandwidth, m->machine_half_bandwidth, busy) : full_rate(m, busy);
    case STORED_HALF: return rate(m, m->half_bandwidth, m->machine_half_bandwidth, busy);
    case STORED_BYTE: return rate(m, m->byte_bandwidth, m->machine_byte_bandwidth, busy);
    case STORED_CODE: return rate(m, m->code_bandwidth, m->machine_code_bandwidth, busy);
    }
    return m->memory_bandwidth;
}

/* Bytes per second of an elementwise op that reads and writes this many. */
static double pass_rate(const struct machine *m, double bytes)
{
    const double mib = 1 << 20;
    double share = fmin(fmax(log2(fmax(bytes, 1) / mib) / 2, 0), 1);
    return (1 - share) * m->pass_bandwidth_1m + share * m->pass_bandwidth_4m;
}

double price_of_pass(const struct machine *m, double bytes)
{
    return bytes / pass_rate(m, bytes);
}

static double form_seconds(const struct machine *m, const struct work_form *f)
{
    double moving = f->codes * m->code_seconds + f->turned * m->turn_seconds + price_of_pass(m, f->passed);
    return f->passed > 0 ? moving + m->node_overhead : 0;
}

/* busy: ranks that work at the same time. */
static double seconds_of(const struct machine *m, const struct work *k, int busy)
{
    double computing = k->operations / (rate(m, m->flops, m->machine_flops, busy) * kernel_speed(m, k->kernel)) +
        k->functions * m->function_seconds + k->codes * m->code_seconds + k->spread * m->turn_seconds;
    double rows = k->rows * m->row_seconds + k->turned * m->turn_seconds;
    double weights = k->streamed / streaming_rate(m, k->stored, busy) + k->carried / full_rate(m, busy);
    double passing = k->in_turn ? price_of_pass(m, k->passed) : k->passed / m->memory_bandwidth;
    double moving = weights + passing;
    double own = k->in_turn ? computing + rows + moving : fmax(fmax(computing, rows), moving);
    return own + k->nodes * m->node_overhead + form_seconds(m, &k->form);
}

/* ---- nodes ---------------------------------------------------------------------------------------------------------------- */

static int sooner(const struct work_at *x, const struct split *q, int next)
{
    int change = cost_next_rank(x->s, q, x->workload, x->rank);
    return change < next ? change : next;
}

int price_next_speed(const struct space *s, int rank)
{
    const struct machine *m = &s->options->machine;
    int next = rank + 1;
    while (next < s->ranks && (!m->speeds || m->speed[next] == m->speed[rank]))
        next++;
    return next;
}

/* The next rank whose work or speed differs; the number of ranks: none. */
static int next_rank(const struct work_at *x)
{
    const struct node *n = x->node;
    int next = price_next_speed(x->s, x->rank);
    for (int i = 0; i < n->nin; i++)
        next = x->st->in[i].kind == PLACE_S ? sooner(x, x->st->in[i].split, next) : next;
    for (int i = 0; i < n->nout; i++)
        next = x->st->out[i].kind == PLACE_S ? sooner(x, x->st->out[i].split, next) : next;
    for (int f = 0; x->rule && x->st->assignment.factor && f < x->rule->nfactor; f++)
        if (x->st->assignment.factor[f] && (x->rule->factor[f].flags & FACTOR_CONTRACTED))
            next = sooner(x, x->st->assignment.factor[f], next);
    return next;
}

/* Nodes computed at load cost next to nothing, but more than zero: equal plans must not differ by chance. */
#define RUNS_OF_A_LOAD 1000

/* The extreme speed among the first `ranks` ranks. */
static double extreme_speed(const struct machine *m, int ranks, bool fastest)
{
    double speed = m->speeds ? m->speed[0] : 1;
    for (int r = 1; r < ranks && m->speeds; r++)
        speed = fastest ? fmax(speed, m->speed[r]) : fmin(speed, m->speed[r]);
    return speed;
}

double price_speed(const struct space *s, int rank, int busy)
{
    const struct machine *m = &s->options->machine;
    require(!m->speeds || busy <= m->speeds);
    if (busy > 1 && s->ranks > 1)
        return m->speeds ? m->speed[rank] : 1;
    return extreme_speed(m, busy == 1 ? s->options->ranks : busy, busy == 1);
}

/* Seconds of the slowest rank. */
static double slowest_seconds(const struct work_at *x, int busy)
{
    struct work_at each = *x;
    double worst = 0;
    for (each.rank = 0; each.rank < x->s->ranks; each.rank = next_rank(&each)) {
        struct work k = work_of(&each);
        worst = fmax(worst, seconds_of(&x->s->options->machine, &k, busy) / price_speed(x->s, each.rank, busy));
    }
    return worst;
}

static bool is_folded(const struct space *s, const struct node *n)
{
    return fused_part(s, n) && fused_part(s, n)->folded;
}

void price_each_rank(const struct work_at *x, double times, double *seconds)
{
    const struct machine *m = &x->s->options->machine;
    struct work_at each = *x;
    bool control = x->node->op && x->node->op->flags & OP_CONTROL;
    double whole = control ? control_flow_seconds(x->s, x->node, x->workload, x->s->ranks) * extreme_speed(m, x->s->ranks, false) : 0;
    times *= is_folded(x->s, x->node) ? 1.0 / RUNS_OF_A_LOAD : routing_chance(x->s, x->node, x->workload);
    for (int next; each.rank < x->s->ranks; each.rank = next) {
        struct work k = control ? (struct work){0} : work_of(&each);
        double own = (control ? whole : seconds_of(m, &k, x->s->ranks)) / price_speed(x->s, each.rank, x->s->ranks);
        next = next_rank(&each);
        for (int r = each.rank; r < next; r++)
            seconds[r] += times * own;
    }
}

double cost_node_seconds(struct space *s, const struct node *n, const struct rule *rule, const struct strategy *st, int w, int busy)
{
    const struct work_at x = {s, n, rule, st, w, 0};
    require(busy >= 1); /* in a subgraph, of the whole job: s->ranks may be fewer */
    if (n->op && n->op->flags & OP_CONTROL)
        return control_flow_seconds(s, n, w, busy);
    double chance = routing_chance(s, n, w), idle = (1 - chance) * s->options->machine.node_overhead;
    double seconds = chance * slowest_seconds(&x, busy) + idle;
    if (st->body)
        return seconds + chance * explicit_seconds(st->body, w, busy);
    if (n->op && n->op->flags & OP_RECURS)
        seconds += cost_collective_seconds(&s->options->machine, s->g, n, &s->plan->workloads.at[w].dims, s->ranks);
    return is_folded(s, n) ? seconds / RUNS_OF_A_LOAD : seconds;
}
