/* cli/shard.h: the parts of tpc-shard. */
#ifndef TPC_SHARD_H
#define TPC_SHARD_H

#include "passes/pass.h"
#include "plan/plan.h"

/* shard_report.c. --report KIND[=FILE]: an unknown kind is wrong usage that lists the known ones. */
void report_check(const char *text);
bool report_is(const char *text, const char *kind);
void report_write(const struct compile *, const char *text);

/* memory_limit.c: sets the plan's price of a byte so that every rank holds at most options->memory bytes. After canon, with source and
 * workloads known. Where no plan fits: a failure that tells how far off it is and how many ranks fit. */
void shard_fit(const struct compile *);

/* compare_plans.c: plans the graph again as each of n texts says: "first", "none", or a plan file. After canon, with source and workloads
 * known. A plan that cannot be made is a failure, as with --plan. */
struct compared_list shard_compare(const struct compile *, int n, const char *const *what);

#endif
