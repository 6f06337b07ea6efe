/* calibrate: the constants of the cost model of collectives and of their overlap with computation, fitted to measured times.
 *
 * A time is a sum of nonnegative constants, each times a count: overhead, latency, time per byte sent in messages of each size, and per
 * byte summed. Every difference is divided by the measured time, so that short messages count as much as long ones. Non-negative least
 * squares by cyclic coordinate descent (Franc, Hlavac, Navara 2005). The fit is repeated, because the constants decide which algorithm an
 * AllReduce uses. */
#include "plan/cost/cost.h"
#include "plan/plan.h"

#include <math.h>

enum { OVERHEAD, LATENCY, SUMMED, SENT, UNKNOWNS = SENT + LINK_SIZES + 1 };
struct normal_equations {
    double matrix[UNKNOWNS][UNKNOWNS], right[UNKNOWNS];
};

static void count(const struct link *link, int units, const struct timed_transfer *at, double *times)
{
    struct transfer x = at->kind ? cost_link_transfer(link, at->kind, (struct coding){0}, units, at->bytes)
                                 : (struct transfer){1, at->bytes, 0, 0};
    times[OVERHEAD] = at->kind != COLL_NONE;
    times[LATENCY] = x.hops;
    times[SUMMED] = x.summed;
    cost_link_size_shares(x, times + SENT);
    for (int k = SENT; k < UNKNOWNS; k++)
        times[k] *= x.bytes;
}

static void add_equation(struct normal_equations *sums, const double *times, double seconds)
{
    require(seconds > 0);
    for (int i = 0; i < UNKNOWNS; i++) {
        for (int k = 0; k < UNKNOWNS; k++)
            sums->matrix[i][k] += times[i] / seconds * times[k] / seconds;
        sums->right[i] += times[i] / seconds;
    }
}

static void solve_equations(const struct normal_equations *sums, double *x)
{
    enum { SWEEPS = 2000 };
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int i = 0; i < UNKNOWNS; i++) {
            double rest = sums->right[i];
            for (int k = 0; k < UNKNOWNS; k++)
                rest -= k == i ? 0 : sums->matrix[i][k] * x[k];
            x[i] = sums->matrix[i][i] > 0 ? fmax(0, rest / sums->matrix[i][i]) : 0;
        }
}

static double error_of(const struct link *link, int units, int n, const struct timed_transfer *at, const double *x)
{
    double sum = 0, times[UNKNOWNS];
    for (int i = 0; i < n; i++) {
        double seconds = 0;
        count(link, units, &at[i], times);
        for (int k = 0; k < UNKNOWNS; k++)
            seconds += times[k] * x[k];
        sum += (seconds / at[i].seconds - 1) * (seconds / at[i].seconds - 1);
    }
    return sqrt(sum / n);
}

double calibrate_fit(struct link *link, int units, int n, const struct timed_transfer *at)
{
    enum { TIMES = 4 };
    double x[UNKNOWNS] = {0}, times[UNKNOWNS];
    for (int t = 0; n > 0 && t < TIMES; t++) {
        struct normal_equations sums = {0};
        for (int i = 0; i < n; i++) {
            count(link, units, &at[i], times);
            add_equation(&sums, times, at[i].seconds);
        }
        solve_equations(&sums, x);
        for (int i = 0; i < UNKNOWNS; i++)
            require(x[i] >= 0);
        link->overhead = x[OVERHEAD];
        link->latency = x[LATENCY];
        link->bandwidth = 1 / fmax(x[SENT + LINK_SIZES], 1e-15);
        for (int k = 0; k < LINK_SIZES; k++)
            link->slowdown[k] = x[SENT + k] * link->bandwidth;
        link->reduce_seconds = x[SUMMED];
    }
    return n > 0 ? error_of(link, units, n, at, x) : 0;
}

void calibrate_overlap(struct machine *m, int n, const struct timed_overlap *at)
{
    const double least = 1e-4; /* work that larger nodes lose to shared caches and cores, which the measurement does not see */
    struct normal_equations sums = {0};
    double x[UNKNOWNS] = {0}, ratios = 0;
    for (int i = 0; i < n; i++) {
        add_equation(&sums, (const double[UNKNOWNS]){[OVERHEAD] = 1, [SENT] = at[i].sum}, at[i].taken);
        ratios += at[i].meanwhile / at[i].sum;
    }
    solve_equations(&sums, x);
    m->overlap_overhead = n > 0 ? fmax(x[OVERHEAD], least) : 0;
    m->overlap_share = x[SENT];
    m->overlap_slowdown = n > 0 ? fmax(1, ratios / n) : 1;
}
