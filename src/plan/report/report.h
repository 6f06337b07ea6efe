/* report: what the forms of the report share. Internal to src/plan. */
#ifndef TPC_REPORT_H
#define TPC_REPORT_H

#include "plan/plan.h"

/* report.c: "1.2 MiB", "313.4 us". */
const char *bytes_text(struct arena *, double bytes);
const char *seconds_text(struct arena *, double seconds);
/* compare.c: a table of the plan and those it is compared with; nothing where there are none. */
void compared_text(FILE *, const struct graph *, const struct plan *);
/* dot.c: of a kind of collective, "#rrggbb". */
const char *collective_colour(const char *op);

#endif
