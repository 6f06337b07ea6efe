/* price: what the work of a node takes on a machine. The prices are rows of schemas/prices.def. */
#include "plan/cost/work.h"

#include <math.h>

/* What one of this many busy ranks gets of what it would have alone. */
static double rate(const struct machine *m, double alone, double machine, int busy)
{
    return fmin(alone, machine / fmin(busy, m->machine_ranks));
}

static double kernel_speed(const struct machine *m, enum product_kernel kernel)
{
    switch (kernel) {
    case KERNEL_MATRIX: return 1;
    case KERNEL_INTEGERS: return m->integer_speed;
    case KERNEL_CONV: return m->conv_speed;
    case KERNEL_DEPTHWISE: return m->depthwise_speed;
    case KERNEL_INTEGER_CONV: return m->integer_conv_speed;
    }
    return 1;
}

/* Bytes per second that a product streams of its weight: narrow ones are widened on the way. */
static double streaming_rate(const struct machine *m, enum stored stored, int busy)
{
    switch (stored) {
    case STORED_FULL: return rate(m, m->memory_bandwidth, m->machine_memory_bandwidth, busy);
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
    return price_seconds(m, &(struct work){.passed = bytes, .in_turn = true}, 1);
}

double price_seconds(const struct machine *m, const struct work *k, int busy)
{
    double computing = k->operations / (rate(m, m->flops, m->machine_flops, busy) * kernel_speed(m, k->kernel)) +
        k->functions * m->function_seconds + k->codes * m->code_seconds + k->spread * m->turn_seconds;
    double rows = k->rows * m->row_seconds + k->turned * m->turn_seconds;
    double weights = k->streamed / streaming_rate(m, k->stored, busy) + k->carried / streaming_rate(m, STORED_FULL, busy);
    double passing = k->passed / (k->in_turn ? pass_rate(m, k->passed) : m->memory_bandwidth);
    double moving = weights + passing;
    double own = k->in_turn ? computing + rows + moving : fmax(fmax(computing, rows), moving);
    return own + k->nodes * m->node_overhead;
}
