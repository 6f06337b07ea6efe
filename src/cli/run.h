/* run.h: the parts of tpc-run. */
#ifndef TPC_CLI_RUN_H
#define TPC_CLI_RUN_H

#include "cli/options/args.h"
#include "decode/decode.h"
#include "train/train.h"

/* The options as texts. job has those that need no parsing. */
struct run_options {
    struct job_options job;
    struct train_options train;
    struct serve_options serve;
    struct text_list dim, bind, external_root, eos, plugin;
    struct text_maybe random, stats, bench, lookup, restart;
    const char *start, *check, *groups, *speed, *cache, *top_k, *seed, *port, *slots, *prefix_cache, *wire, *timeout, *dump_after, *launch,
        *hosts, *restart_limit, *supervised;
    bool verbose;
    struct text_list settings; /* settings that must be equal on all ranks */
    struct text_list words;    /* the command line of a supervised job, without its models */
};

/* run_options.c: reads the command line. */
void run_options_read(struct arena *, struct run_options *, int argc, char **argv);
/* restart.c: the supervisor of a job (--restart), which must be of the same build. Returns the exit status. */
int restart_run(struct arena *, const struct run_options *, const char *build);
/* run_checks.c: options that contradict each other are wrong usage. Some defaults follow from others. */
void run_options_check(const struct args *, struct run_options *);

#endif
