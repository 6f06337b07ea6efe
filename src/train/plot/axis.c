/* axis: the ends of an axis, and its ticks, at round numbers. */
#include "train/plot/chart.h"

#include <math.h>

enum { LOG_DECADES = 3, LOG_TICKS = 12 }; /* ticks at 1, 2 and 5 up to this many decades; limit of ticks at whole decades */

/* 1, 2 or 5 times a power of ten, at least x. */
static double round_up(double x)
{
    double power = pow(10, floor(log10(x) + 1e-9)), part = x / power;
    return power * (part <= 1 + 1e-9 ? 1 : part <= 2 + 1e-9 ? 2 : part <= 5 + 1e-9 ? 5 : 10);
}

static double round_down(double x)
{
    double power = pow(10, floor(log10(x) + 1e-9)), part = x / power;
    return power * (part >= 5 - 1e-9 ? 5 : part >= 2 - 1e-9 ? 2 : 1);
}

static void add_tick(struct axis *a, double x)
{
    double slack = 1e-9 * (a->logarithmic ? x : a->to - a->from);
    if (a->ticks < AXIS_TICKS && x >= a->from - slack && x <= a->to + slack)
        a->tick[a->ticks++] = x;
}

static void add_multiples(struct axis *a, double step)
{
    for (double k = ceil(a->from / step - 1e-9); k * step <= a->to + 1e-9 * step && a->ticks < AXIS_TICKS; k++)
        add_tick(a, k * step + 0.0); /* 0, not -0 */
}

struct axis axis_of_steps(double first, double last, int ticks)
{
    double room = first < last ? 0 : 0.5;
    struct axis a = {.from = first - room, .to = last + room};
    add_multiples(&a, fmax(1, round_up((last - first) / ticks)));
    return a;
}

struct axis axis_linear(double least, double most, int ticks)
{
    if (!(most - least > 1e-12 * fmax(fabs(least), fabs(most)))) { /* a single number is in the middle */
        double room = least == 0 ? 1 : fabs(least) / 10;
        least -= room;
        most += room;
    }
    double step = round_up((most - least) / ticks);
    struct axis a = {.from = step * floor(least / step + 1e-9), .to = step * ceil(most / step - 1e-9)};
    add_multiples(&a, step);
    return a;
}

struct axis axis_logarithmic(double least, double most)
{
    struct axis a = {.from = round_down(least), .to = round_up(most), .logarithmic = true};
    if (!(a.from < a.to))
        a.to = round_up(a.from * 1.5);
    double first = floor(log10(a.from) + 1e-9), last = ceil(log10(a.to) - 1e-9);
    double apart = ceil((last - first) / LOG_TICKS);
    for (double k = first; k <= last; k += apart) {
        add_tick(&a, pow(10, k));
        for (int i = 2; i <= 5 && last - first <= LOG_DECADES; i += 3)
            add_tick(&a, i * pow(10, k));
    }
    return a;
}

double axis_place(const struct axis *a, double x)
{
    return a->logarithmic ? log(x / a->from) / log(a->to / a->from) : (x - a->from) / (a->to - a->from);
}
