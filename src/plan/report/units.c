/* units: bytes and seconds as a person reads them. */
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
