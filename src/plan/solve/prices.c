/* prices: Lagrange multipliers of the points' limits (Everett, "Generalized Lagrange Multiplier Method", 1963).
 *
 * For any nonnegative prices, an assignment within the limits costs no less than with everything it takes charged and the limits refunded.
 * So a bound of the charged problem is a bound of the problem. Subgradients move the prices (Polyak, 1969): the price of a point whose
 * limit is exceeded rises, others fall.
 *
 * A price is a small multiple of a power of two, so that sums of prices are exact; charges are rounded down, refunds up. */
#include "plan/plan.h"
#include "plan/solve/solve.h"

#include <math.h>
#include <string.h>

enum { PATIENCE = 12 }; /* moves without a higher bound, before the step is halved */
#define NEXT_STEP 0.1   /* for prices that are good already */
#define LEAST_STEP 0x1p-10

struct prices {
    const struct problem *p;
    double *price, *sum, *excess;               /* by point; prefix sums; average excess over the limit */
    double unit, most, step, best_bound, *best; /* step: relative to the distance; the highest bound so far, and its prices */
    int since;
    int64_t **charged, refunded; /* by variable and value: the charge in the bound */
};

static void set_price(struct prices *s, int point, double price)
{
    price = price < 0 ? 0 : price > s->most ? s->most : price;
    s->price[point] = floor(price / s->unit) * s->unit;
}

/* Chooses the resolution of prices by the goal. */
static void choose_unit(struct prices *s, double goal)
{
    double limit = 0;
    for (int i = 0; i < s->p->points; i++)
        limit = (double)s->p->limit[i] > limit ? (double)s->p->limit[i] : limit;
    s->unit = exp2(floor(log2((fabs(goal) + 1) / (limit + 1))) - 30);
    s->most = s->unit * 0x1p36;
    require(s->unit > 0 && isfinite(s->most));
}

struct prices *prices_new(const struct problem *p, struct arena *a, const double *first, double goal)
{
    if (!p->points)
        return NULL;
    struct prices *s = NEW(a, struct prices);
    *s = (struct prices){.p = p, .step = first ? NEXT_STEP : 1, .best_bound = -INFINITY};
    s->price = NEWN(a, double, p->points + 1);
    s->sum = NEWN(a, double, p->points + 1);
    s->excess = NEWN(a, double, p->points + 1);
    s->best = NEWN(a, double, p->points + 1);
    s->charged = NEWN(a, int64_t *, p->size.n + 1);
    for (int v = 0; v < p->size.n; v++)
        s->charged[v] = NEWN(a, int64_t, p->size.at[v]);
    if (first)
        choose_unit(s, goal);
    for (int i = 0; first && i < p->points; i++)
        set_price(s, i, first[i]);
    return s;
}

const double *prices_now(const struct prices *s)
{
    return s ? s->price : NULL;
}

static void sum_prices(struct prices *s)
{
    for (int i = 0; i < s->p->points; i++)
        s->sum[i + 1] = s->sum[i] + s->price[i];
}

void prices_charge(struct prices *s, struct bound *b)
{
    struct arena *tmp = arena_new();
    const struct problem *p = s->p;
    int64_t **now = NEWN(tmp, int64_t *, p->size.n + 1);
    double refund = 0;
    sum_prices(s);
    for (int v = 0; v < p->size.n; v++)
        now[v] = NEWN(tmp, int64_t, p->size.at[v]);
    for (int i = 0; i < p->takes.n; i++) {
        const struct take *t = &p->takes.at[i];
        double each = s->sum[t->to] - s->sum[t->from];
        for (int x = 0; each > 0 && x < p->size.at[t->var]; x++)
            now[t->var][x] += (int64_t)floor((double)t->amount[x] * each * (1 - 0x1p-50));
    }
    for (int v = 0; v < p->size.n; v++) {
        for (int x = 0; x < p->size.at[v]; x++) {
            int64_t more = now[v][x] - s->charged[v][x];
            s->charged[v][x] = now[v][x];
            now[v][x] = more;
        }
        bound_charge(b, v, now[v]);
    }
    for (int i = 0; i < p->points; i++)
        refund += s->price[i] * (double)p->limit[i];
    int64_t refunded = (int64_t)ceil(refund * (1 + 1e-11));
    bound_add(b, s->refunded - refunded);
    s->refunded = refunded;
    arena_free(tmp);
}

void prices_release(struct prices *s, struct bound *b)
{
    double *kept = s->price;
    struct arena *tmp = arena_new();
    s->price = NEWN(tmp, double, s->p->points + 1);
    prices_charge(s, b);
    s->price = kept;
    require(s->refunded == 0);
    arena_free(tmp);
}

bool prices_settled(const struct prices *s)
{
    return s->step < LEAST_STEP;
}

void prices_resume(struct prices *s)
{
    s->step = prices_settled(s) ? NEXT_STEP : s->step;
}

/* Returns to the best prices, to continue with shorter steps. */
static void go_back(struct prices *s)
{
    memcpy(s->price, s->best, sizeof *s->price * (size_t)s->p->points);
    memset(s->excess, 0, sizeof *s->excess * (size_t)s->p->points);
    s->step /= 2;
    s->since = 0;
}

static void note_bound(struct prices *s, double bound)
{
    s->since++;
    if (bound <= s->best_bound)
        return;
    s->best_bound = bound;
    s->since = 0;
    memcpy(s->best, s->price, sizeof *s->price * (size_t)s->p->points);
}

void prices_move(struct prices *s, const int *value, double bound, double goal)
{
    struct arena *tmp = arena_new();
    int64_t *taken = NEWN(tmp, int64_t, s->p->points + 1);
    double norm = 0, distance = s->step * (goal - bound);
    if (s->unit <= 0)
        choose_unit(s, goal);
    note_bound(s, bound);
    if (s->since > PATIENCE) {
        go_back(s);
        arena_free(tmp);
        return;
    }
    problem_taken(s->p, value, taken);
    for (int i = 0; i < s->p->points; i++) {
        double over = (double)(taken[i] - s->p->limit[i]);
        s->excess[i] = 0.7 * s->excess[i] + 0.3 * over;
        if (s->price[i] > 0 || s->excess[i] > 0)
            norm += s->excess[i] * s->excess[i];
    }
    for (int i = 0; norm > 0 && i < s->p->points; i++)
        set_price(s, i, s->price[i] + distance / norm * s->excess[i]);
    arena_free(tmp);
}
