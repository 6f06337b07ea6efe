/* limits: the memory limit of each rank (--memory), equal or by rank, and shares of a dimension that respect it. */
#include "plan/facts/facts.h"
#include "plan/plan.h"

#include <math.h>

__extension__ typedef __int128 wide;

enum { FINE = 1 << 14 }; /* shares in total, and at least 16 per rank */

int64_t limit_of(const struct options *o, int rank)
{
    return o->memory && o->machine.memories ? o->machine.memory[rank] : o->memory;
}

bool limits_differ(const struct options *o, int ranks)
{
    for (int r = 1; r < ranks; r++)
        if (limit_of(o, r) != limit_of(o, 0))
            return true;
    return false;
}

double limit_weight(const struct options *o, int rank)
{
    return o->memory ? (double)o->memory / (double)limit_of(o, rank) : 1;
}

int64_t limit_weighed(const struct options *o, int rank, int64_t bytes, bool up)
{
    int64_t limit = limit_of(o, rank);
    if (limit == o->memory)
        return bytes;
    require(limit > 0 && bytes >= 0);
    wide weighed = ((wide)bytes * o->memory + (up ? limit - 1 : 0)) / limit;
    return weighed < LIMIT_MOST ? (int64_t)weighed : LIMIT_MOST;
}

/* Parts of a whole in proportion to speeds, capped by each rank's free memory. */
static void fill(int ranks, const double *speed, const double *room, double *part)
{
    double least = INFINITY;
    for (int r = 0; r < ranks; r++)
        part[r] = 0;
    for (bool full = false; !full;) {
        double left = 1, sum = 0;
        full = true;
        for (int r = 0; r < ranks; r++) {
            left -= part[r] >= room[r] ? room[r] : 0;
            sum += part[r] >= room[r] ? 0 : speed[r];
        }
        least = sum > 0 ? left / sum : 0;
        for (int r = 0; r < ranks; r++)
            if (part[r] < room[r]) {
                part[r] = fmin(room[r], least * speed[r]);
                full = full && part[r] < room[r];
            }
    }
}

const int64_t *limit_shares(struct arena *a, const struct options *o, double whole, const double *other)
{
    int n = o->ranks;
    double *room = NEWN(a, double, n), *speed = NEWN(a, double, n), *part = NEWN(a, double, n), all = 0;
    int64_t *share = NEWN(a, int64_t, n), sum = 0;
    for (int r = 0; r < n; r++) {
        room[r] = fmax(0, (double)limit_of(o, r) - other[r]) / fmax(whole, 1);
        speed[r] = o->machine.speeds ? o->machine.speed[r] : 1;
        all += room[r];
    }
    for (int r = 0; r < n && all < 1; r++)
        room[r] = all > 0 ? room[r] / all : 1.0 / n;
    fill(n, speed, room, part);
    for (int r = 0; r < n; r++)
        require(part[r] >= 0 && part[r] <= room[r]);
    for (int r = 0; r < n; r++)
        sum += share[r] = (int64_t)floor(part[r] * fmax(FINE, 16.0 * n));
    return sum > 0 ? share : NULL;
}
