/* schedule: the learning rate rises linearly to its full value, then falls along half a cosine. */
#include "train/train.h"

#include <math.h>

double schedule_rate(const struct settings *s, int64_t step)
{
    double rise = s->warmup, done = (double)step;
    if (done < rise)
        return s->lr * (done + 1) / (rise + 1);
    double rest = (double)s->steps - rise, part = rest > 0 ? (done - rise) / rest : 1;
    double cosine = 0.5 * (1 + cos(3.14159265358979323846 * (part < 1 ? part : 1)));
    return s->lr * (s->floor + (1 - s->floor) * cosine);
}
