/* shard.h: the parts of tpc-shard. */
#ifndef TPC_SHARD_H
#define TPC_SHARD_H

#include "passes/pass.h"
#include "plan/plan.h"

/* find_model.c: the ONNX file in a folder that tpc-shard did not write; none or several are a failure. */
const char *find_model_in(struct arena *, const char *dir);

/* shard_report.c. The texts of --report KIND[=FILE]. An unknown kind, an empty FILE or two reports for stdout: wrong usage. */
void shard_report_check(const struct text_list *);
bool shard_report_has(const struct text_list *, const char *kind);
/* Writes one report, of a text that was checked. */
void shard_report_write(const struct compile *, const char *text);

#endif
