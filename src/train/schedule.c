/* schedule: the learning rate rises linearly to its full value, then stays (constant), decays to the floor along half a cosine or a line,
 * or stays and decays linearly in the last steps (warm-up, stable, decay: Hu et al. 2024). */
#include "train/train.h"

#include <math.h>

/* The remaining part of the decay, from 1 to 0, after `done` of its steps. */
static double left(double done, double steps)
{
    if (done < 0)
        return 1;
    return done < steps ? 1 - done / steps : 0;
}

static double height(const struct settings *s, double done)
{
    double all = (double)s->steps, rest = left(done - s->warmup, all - s->warmup);
    switch (s->schedule) {
    case SCHEDULE_CONSTANT: return 1;
    case SCHEDULE_LINEAR: return rest;
    case SCHEDULE_WSD: return left(done - fmax(all - s->cooldown, s->warmup), fmin(s->cooldown, all - s->warmup));
    case SCHEDULE_COSINE: break;
    }
    return 0.5 * (1 - cos(3.14159265358979323846 * rest));
}

double schedule_rate(const struct settings *s, int64_t step)
{
    double done = (double)step;
    if (done < s->warmup)
        return s->lr * (done + 1) / (s->warmup + 1);
    return s->lr * (s->floor + (1 - s->floor) * height(s, done));
}
