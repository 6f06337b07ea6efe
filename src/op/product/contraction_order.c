/* contraction_order: the order in which the operands of an Einsum are multiplied, two at a time. A product costs the product of the sizes
 * of all labels of its two operands. For a few operands every order is tried; for many, the cheapest product is chosen repeatedly. */
#include "op/product/product.h"

#include <math.h>
#include <string.h>

enum {
    MOST_TRIED = 6, /* operands: 2700 orders */
    WINDOW = 32     /* remaining operands that are compared at a time */
};

struct order {
    const double *size;
    uint64_t out;
    int n;             /* initial number of operands */
    int left, *number; /* the remaining ones: numbers of operands, or n + k for the result of step k */
    uint64_t *labels;
    double best;
    struct contraction *step, *found;
};

static double elements(const struct order *o, uint64_t labels)
{
    double n = 1;
    for (int i = 0; labels >> i; i++)
        n *= labels >> i & 1 ? o->size[i] : 1;
    return n;
}

uint64_t contraction_kept(int n, const uint64_t *labels, uint64_t out, int i, int j)
{
    for (int k = 0; k < n; k++)
        out |= k == i || k == j ? 0 : labels[k];
    return out & (labels[i] | labels[j]);
}

/* Infinite if the result has too many dimensions. */
static double cost_of(const struct order *o, int i, int j)
{
    uint64_t kept = contraction_kept(o->left, o->labels, o->out, i, j);
    return __builtin_popcountll(kept) > MAX_RANK ? HUGE_VAL : elements(o, o->labels[i] | o->labels[j]) + elements(o, kept);
}

/* Operands i < j become one, at position i; the last one moves to position j. */
static void join(struct order *o, int i, int j)
{
    int step = o->n - o->left;
    o->step[step] = (struct contraction){o->number[i], o->number[j]};
    o->labels[i] = contraction_kept(o->left, o->labels, o->out, i, j);
    o->number[i] = o->n + step;
    o->left--;
    o->labels[j] = o->labels[o->left];
    o->number[j] = o->number[o->left];
}

static void try_orders(struct order *o, double cost)
{
    if (cost >= o->best)
        return;
    if (o->left == 1) {
        o->best = cost;
        for (int k = 0; k < o->n - 1; k++)
            o->found[k] = o->step[k];
        return;
    }
    for (int j = 1; j < o->left; j++)
        for (int i = 0; i < j; i++) {
            uint64_t labels[MOST_TRIED];
            int number[MOST_TRIED];
            struct order with = *o;
            with.labels = memcpy(labels, o->labels, (size_t)o->left * sizeof *labels);
            with.number = memcpy(number, o->number, (size_t)o->left * sizeof *number);
            join(&with, i, j);
            try_orders(&with, cost + cost_of(o, i, j));
            o->best = with.best;
        }
}

static void take_cheapest(struct order *o)
{
    while (o->left > 1) {
        int at[2] = {-1, -1}, most = o->left < WINDOW ? o->left : WINDOW;
        double least = HUGE_VAL;
        for (int j = 1; j < most; j++)
            for (int i = 0; i < j; i++) {
                double cost = cost_of(o, i, j);
                if (cost < least) {
                    least = cost;
                    at[0] = i;
                    at[1] = j;
                }
            }
        if (at[0] < 0)
            return;
        join(o, at[0], at[1]);
    }
    o->best = 0;
}

bool contraction_order(struct arena *a, int n, const uint64_t *labels, uint64_t out, const double *size, struct contraction *found)
{
    struct order o = {.size = size, .out = out, .n = n, .left = n, .best = HUGE_VAL, .found = found};
    o.labels = NEWN(a, uint64_t, n);
    o.number = NEWN(a, int, n);
    o.step = n > MOST_TRIED ? found : NEWN(a, struct contraction, n);
    for (int i = 0; i < n; i++) {
        o.labels[i] = labels[i];
        o.number[i] = i;
    }
    if (n > MOST_TRIED)
        take_cheapest(&o);
    else
        try_orders(&o, 0);
    return o.best < HUGE_VAL;
}
