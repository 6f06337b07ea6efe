/* cli/shard.h: the parts of tpc-shard. */
#ifndef TPC_SHARD_H
#define TPC_SHARD_H

#include "passes/pass.h"
#include "plan/plan.h"

/* shard_report.c. --report KIND[=FILE]: an unknown kind is wrong usage that lists the known ones. */
void shard_report_check(const char *text);
bool shard_report_is(const char *text, const char *kind);
void shard_report_write(const struct compile *, const char *text);

#endif
