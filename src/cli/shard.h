/* shard.h: the parts of tpc-shard. */
#ifndef TPC_SHARD_H
#define TPC_SHARD_H

#include "cli/options/args.h"
#include "passes/pass.h"
#include "plan/plan.h"

struct shard_options {
    struct options plan;
    int64_t tp, pp, ranks, random_seed; /* pp, ranks 0: not given */
    struct text_maybe sp, strict, train;
    struct text_list dim, bind, workload, external_root, compare, report, plugin;
    const char *speed; /* of the ranks */
    const char *out, *state_from, *machine, *solver, *memory, *weights, *dump_after, *print, *print_rule, *merge, *plan_file, *explain,
        *configuration, *annotate, *loss, *freeze, *lora, *on, *trace, *recompute, *wire;
    struct text_list repeated; /* the options that another command for the same plan repeats, as args_given returns them */
    bool dry_run, list_passes, list_ops, force, quiet, verbose, random_split_only;
};

/* tpc-shard.c: runs a command line of tpc-shard. */
void shard_command(int argc, char **argv);

/* shard_options.c: reads the command line; returns the positional arguments. */
struct text_list shard_options_parse(struct arena *, struct shard_options *, int argc, char **argv);
/* Fills o->plan for this model. Options that contradict each other are wrong usage. */
void shard_options_plan(struct arena *, struct shard_options *, const char *model);
/* The default output folder of a model or folder; a training step's differs. */
const char *shard_default_out(struct arena *, const struct shard_options *, const char *model, bool folder);
/* The folder's name without trailing slashes. */
const char *shard_folder_name(struct arena *, const char *dir);
/* The length of the name without a trailing ".onnx". */
size_t shard_name_length(const char *file);

/* what_if.c: prints estimates for numbers of ranks, and which suffices. given: the model and options of the command line; NULL: without
 * advice. */
void what_if_print(struct compile *, const char *given);
/* grid.c: prints estimates for dividing this many ranks into tensor parallel ranks, stages and replicas, and the best division for one text
 * and for many. given: as above. */
void grid_print(struct compile *, int ranks, const char *given);

/* shard_report.c. Fails if a file may not be written; kind: see out_check. */
void shard_check_file(const char *option, const char *path, const char *kind);
/* The texts of --report KIND[=FILE]. An unknown kind, an empty FILE or two reports for stdout: wrong usage. */
void shard_report_check(const struct text_list *);
bool shard_report_is(const char *text, const char *kind);
bool shard_report_has(const struct text_list *, const char *kind);
/* True if the text report goes to stdout. */
bool shard_report_shows_text(const struct text_list *);
/* Writes one report, given a checked text. */
void shard_report_write(const struct compile *, const char *text);

#endif
