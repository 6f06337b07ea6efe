/* job/timing: the time and bytes of a run: tables, statistics, profiles, traces. */
#ifndef TPC_JOB_TIMING_H
#define TPC_JOB_TIMING_H

#include "job/job.h"

/* bench_table.c: the table of --bench. Every rank may call it; rank 0 prints. */
struct bench_test {
    const char *name;
    int64_t tokens; /* per run; 0: a model without tokens */
    int runs;
    const double *seconds; /* of each run */
};
struct bench_table;
/* NULL: the default form. */
enum bench_form bench_form_of(const char *text);
struct bench_table *bench_table_new(struct arena *, const struct comm *all, const struct job_options *, int threads);
void bench_table_add(struct bench_table *, const struct bench_test *);
void bench_table_end(struct bench_table *);

/* profile.c: prints the time of the runs by operator, module and node. */
void profile_print(struct arena *, struct session *, const json_t *plan);
/* The first key of --trace and --stats files. */
#define TRACE_FIRST "traceEvents"
#define TRACE_KIND "{\"" TRACE_FIRST "\""
#define STATS_FIRST "sizes"
#define STATS_KIND "{\n \"" STATS_FIRST "\": "

/* trace.c: plan.json in the folder; NULL: none, as for a model. */
json_t *trace_plan(struct arena *, const char *folder);
/* Seconds that the plan predicts for a step of these sizes; 0: none. */
double trace_predicted(const json_t *plan, const struct bindings *sizes);
/* Writes the last run of all ranks to path, with the plan's prediction for its sizes, if there is one. Every rank calls it; plan: of rank
 * 0. This and profile_print need a session that times its steps. */
void trace_write(struct arena *, struct comm *all, const struct session *, const json_t *plan, const char *path);

/* stats.c: prints times and bytes, or writes them as JSON to path. Every rank calls it. more: collectives outside the graph. */
void stats_report(struct arena *, const struct replicas *, const struct batch_shard *, struct session *, int nmore,
                  const struct session_collective *more, const char *path);

#endif
