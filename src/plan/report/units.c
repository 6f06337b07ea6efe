/* units: bytes and seconds in readable units. */
#include "plan/report/report.h"

const char *units_bytes(struct arena *a, double bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    require(bytes >= 0);
    while (bytes >= 1024 && u < 4) {
        bytes /= 1024;
        u++;
    }
    return arena_printf(a, u ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
}

const char *units_seconds(struct arena *a, double s)
{
    return s < 1e-3 ? arena_printf(a, "%.1f us", s * 1e6) : s < 1 ? arena_printf(a, "%.2f ms", s * 1e3) : arena_printf(a, "%.2f s", s);
}

const char *units_rate(struct arena *a, double rate)
{
    return rate < 1e6 ? arena_printf(a, "%.3g B/s", rate)
        : rate < 1e9  ? arena_printf(a, "%.3g MB/s", rate * 1e-6)
                      : arena_printf(a, "%.3g GB/s", rate * 1e-9);
}

const char *units_delay(struct arena *a, double s)
{
    return s < 1e-3 ? arena_printf(a, "%.3g us", s * 1e6) : s < 1 ? arena_printf(a, "%.3g ms", s * 1e3) : arena_printf(a, "%.3g s", s);
}

const char *units_largest(struct arena *a, const struct rank_use *use, const char *weight, const char *value)
{
    if (use->weights >= use->state && use->weights >= use->peak)
        return arena_printf(a, "weights of %s, the largest of them '%s'", units_bytes(a, (double)use->weights), weight);
    if (use->state >= use->peak)
        return arena_printf(a, "state of %s", units_bytes(a, (double)use->state));
    const char *peak = units_bytes(a, (double)use->peak);
    return *value ? arena_printf(a, "activations of %s, the largest of them '%s'", peak, value)
                  : arena_printf(a, "activations of %s", peak);
}
