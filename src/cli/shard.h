/* shard.h: the parts of tpc-shard. */
#ifndef TPC_SHARD_H
#define TPC_SHARD_H

#include "passes/pass.h"
#include "plan/plan.h"

/* tpc-shard.c: does what a command line of tpc-shard asks for. */
void shard_command(int argc, char **argv);

/* what_if.c: prints what numbers of ranks come to, and which is enough. given: the model as the command line has it, NULL: no word on which
 * is enough; limit: bytes that a rank may hold, 0: any number. */
void what_if_print(struct compile *, const char *given, int64_t limit);

/* shard_report.c. The texts of --report KIND[=FILE]. An unknown kind, an empty FILE or two reports for stdout: wrong usage. */
void shard_report_check(const struct text_list *);
bool shard_report_has(const struct text_list *, const char *kind);
/* True if the text report goes to stdout. */
bool shard_report_shows_text(const struct text_list *);
/* Writes one report, of a text that was checked. */
void shard_report_write(const struct compile *, const char *text);

#endif
