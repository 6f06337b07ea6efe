/* tpc-shard: the compiler. It reads one ONNX model, plans how to shard it over N ranks, and writes one graph and one weight file per
 * rank. Reports, text forms and lists go to stdout, messages to stderr. */
#ifdef HAVE_CONFIG_H
#include "config.h"

#include "plan/facts/facts.h"
#include "plan/folder/folder.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#endif
#include "cli/args.h"
#include "cli/shard.h"
#include "job/job.h"
#include "onnx/onnx.h"
#include "op/op.h"
#include "plan/report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct shard_options {
    struct options plan;
    int64_t tp, random_seed;
    struct text_maybe sp, strict, train;
    struct text_list dim, bind, workload, external_root, compare, report;
    const char *out, *state_from, *machine, *solver, *memory, *weights, *dump_after, *print, *merge, *plan_file, *explain, *configuration,
        *annotate, *loss, *freeze, *trace, *recompute, *wire;
    bool dry_run, list_passes, list_ops, force, quiet, verbose, random_split_only;
};

static const struct arg_prose usage[] = {{"tpc-shard MODEL.onnx --tp N [options]", "compile for N ranks into MODEL.tpN"},
                                         {"tpc-shard MODEL.onnx", "compare numbers of ranks, and say how many are enough"},
                                         {"tpc-shard DIR --tp M", "compile again from a folder it wrote"},
                                         {"tpc-shard --merge DIR -o MODEL.onnx", "restore the model that DIR was made from"},
                                         {"tpc-shard --print FILE.onnx", "print a model or rank file as text"},
                                         {NULL, NULL}};
static const struct arg_prose description[] = {
    {"",
     "tpc-shard compiles one ONNX model into N ONNX files, one per rank, that together compute the same outputs. Each rank holds about 1/N "
     "of the weights and of the KV cache. One rule per op gives the possible placements; a solver picks the cheapest consistent ones for "
     "the machine profile."},
    {"",
     "The output folder holds rank-R.onnx and rank-R.data for every rank, plan.json, and model.onnx, the model without its weights. It "
     "appears complete or not at all. tpc-run executes it."},
    {NULL, NULL}};
static const struct arg_prose environment[] = {
    {"TPC_DATADIR", "folder with machines/NAME.json for --machine NAME; default: ../share/tpc from the program's folder"}, {NULL, NULL}};
static const struct arg_prose examples[] = {
    {"tpc-shard model.onnx --tp 4 --sp", "Compile for four ranks with sequence parallelism, into model.tp4:"},
    {"tpc-shard model.onnx --tp 8 -n", "Plan and report only, even without the weights:"},
    {"tpc-shard model.tp4 --tp 3", "Compile again for three ranks:"},
    {"tpc-shard --merge model.tp4 -o model.onnx", "Restore the model:"},
    {"tpc-shard model.onnx --tp 2 --workload batch_size=8,sequence_length=128:1", "Plan for given sizes:"},
    {NULL, NULL}};

/* ---- the command line --------------------------------------------------------------------------------------------------------- */

static struct text_list parse_shard_options(struct arena *a, struct shard_options *o, int argc, char **argv)
{
    const struct arg table[] = {
        ARG_HEADING("The plan"),
        {"tp", 0, ARG_RANKS, &o->tp, "N", "number of ranks"},
        {"sp", 0, ARG_MAYBE, &o->sp, "[=SYMBOL|auto]", "shard activations along the sequence; auto: where it saves time, images too"},
        {"out", 'o', ARG_TEXT, &o->out, "DIR", "output folder (default: MODEL.tpN)"},
        {"dim", 0, ARG_LIST, &o->dim, "NAME=INT,..", "bind symbolic dimensions (repeatable)"},
        {"bind", 0, ARG_LIST, &o->bind, "NAME=VALUE,..", "fix an input of the model to a constant (repeatable)"},
        {"workload", 0, ARG_LIST, &o->workload, "DIM=INT,..[:WEIGHT]", "sizes to plan for (repeatable)"},
        {"memory", 0, ARG_TEXT, &o->memory, "SIZE", "memory limit of a rank: 800M, 1.5GiB, ..."},
        {"machine", 0, ARG_TEXT, &o->machine, "FILE", "machine profile, or name of an installed one (default: reference)"},
        {"weights", 0, ARG_TEXT, &o->weights, "f32|f16|bf16|int8|int4|FILE",
         "store large f32 weights in this type; with --merge: a checkpoint's weights"},
        {"wire", 0, ARG_TEXT, &o->wire, "f32|bf16|q8",
         "between machines, tpc-run sends addends of f32 sums in 4 bytes, in 2, or in 1 (default: f32)"},
        {"plan", 0, ARG_TEXT, &o->plan_file, "FILE", "placement constraints, or a plan.json to replay"},
        {"configuration", 0, ARG_TEXT, &o->configuration, "NAME", "follow these device annotations of the model ('': none)"},
        {"strict", 0, ARG_MAYBE, &o->strict, "[=warn]", "refuse communication that --plan does not request; warn: list it"},
        {"state-from", 0, ARG_TEXT, &o->state_from, "DIR", "take the placements of shared state from the plan in DIR"},
        {"solver", 0, ARG_TEXT, &o->solver, "exact|first", "exact: the cheapest plan; first: the first valid one"},
        ARG_HEADING("Training"),
        {"train", 0, ARG_MAYBE, &o->train, "[=GLOB]", "compile a step of training: the loss and the gradients of these weights"},
        {"freeze", 0, ARG_TEXT, &o->freeze, "GLOB", "with --train: weights that have no gradient"},
        {"recompute", 0, ARG_TEXT, &o->recompute, "HOW", "with --train: none, full, or auto: full if only then --memory holds (default)"},
        {"loss", 0, ARG_TEXT, &o->loss, "NAME", "with --train: cross-entropy, mse, l1, bce, or an output"},
        ARG_HEADING("Reports"),
        {"dry-run", 'n', ARG_FLAG, &o->dry_run, NULL, "plan and report only; needs no weight data"},
        {"report", 0, ARG_LIST, &o->report, "text|json|html|dot|svg[=FILE]", "write a report to stdout or FILE (repeatable)"},
        {"trace", 0, ARG_TEXT, &o->trace, "FILE", "with --report html: show the run that tpc-run --trace recorded beside the plan"},
        {"compare", 0, ARG_LIST, &o->compare, "first|none|FILE", "report what another plan costs, too (repeatable)"},
        {"explain", 0, ARG_TEXT, &o->explain, "NAME", "print why a node, weight or collective is placed so; write nothing"},
        {"annotate", 0, ARG_TEXT, &o->annotate, "FILE", "also write the model with the plan as device annotations"},
        {"dump-after", 0, ARG_TEXT, &o->dump_after, "PASS", "print the graph after a pass"},
        {"list-passes", 0, ARG_FLAG, &o->list_passes, NULL, "print the passes of the pipeline"},
        {"list-ops", 0, ARG_FLAG, &o->list_ops, NULL, "print the ops with opset, rule and kernel"},
        {"print", 0, ARG_TEXT, &o->print, "FILE", "print a model or rank file as text"},
        ARG_HEADING("Files"),
        {"merge", 0, ARG_TEXT, &o->merge, "DIR", "restore the model that DIR was made from, to -o"},
        {"external-root", 0, ARG_LIST, &o->external_root, "DIR", "allow weights in this folder too (repeatable)"},
        {"force", 0, ARG_FLAG, &o->force, NULL, "replace existing files"},
        ARG_HEADING("Messages"),
        {"quiet", 'q', ARG_FLAG, &o->quiet, NULL, "print errors only, no report"},
        {"verbose", 'v', ARG_FLAG, &o->verbose, NULL, "explain what is done"},
        {"test-random", 0, ARG_INT, &o->random_seed, "SEED", NULL},
        {"test-split-only", 0, ARG_FLAG, &o->random_split_only, NULL, NULL},
    };
    const struct args args = {
        "tpc-shard", "compile an ONNX model for several ranks", usage, table, (int)(sizeof table / sizeof *table), description, environment,
        examples};
    return args_parse(a, &args, argc, argv);
}

static void set_sequence(struct shard_options *o)
{
    if (!o->sp.given)
        return;
    bool is_auto = o->sp.text && strcmp(o->sp.text, "auto") == 0;
    o->plan.sp = is_auto ? SP_AUTO : SP_ON;
    o->plan.sp_symbol = is_auto ? NULL : o->sp.text;
}

static void set_strict(struct shard_options *o)
{
    if (o->strict.text && strcmp(o->strict.text, "warn") != 0)
        fail_usage("--strict is '%s', expected nothing or warn", o->strict.text);
    o->plan.strict = !o->strict.given ? STRICT_OFF : o->strict.text ? STRICT_WARN : STRICT_ON;
}

static void set_solver(struct shard_options *o)
{
    if (!o->solver || strcmp(o->solver, "exact") == 0)
        return;
    if (strcmp(o->solver, "first") != 0)
        fail_usage("--solver is '%s', expected exact or first", o->solver);
    o->plan.solver_first = true;
}

static void set_weights(struct shard_options *o)
{
    if (o->weights)
        o->plan.weights = weight_type_parse(o->weights);
    if (o->weights && o->plan.weights == DT_NONE)
        fail_usage("--weights is '%s', expected f32, f16, bf16, int8 or int4", o->weights);
}

static void set_wire(struct shard_options *o)
{
    struct machine *m = &o->plan.machine;
    if (o->wire && !sum_wire_parse(o->wire, &m->wire))
        fail_usage("--wire is '%s', expected f32, bf16 or q8", o->wire);
    if (o->plan.train && m->wire != WIRE_F32)
        fail_usage("--wire rounds sums: it does not go with --train");
}

/* The length of the name without an ending ".tpN". */
static size_t stem_length(const char *dir)
{
    size_t all = strlen(dir), n = all;
    while (n > 0 && strchr("0123456789", dir[n - 1]))
        n--;
    return n < all && n > 3 && strncmp(dir + n - 3, ".tp", 3) == 0 ? n - 3 : all;
}

/* The length of the name without an ending ".onnx". */
static size_t name_length(const char *file)
{
    size_t n = strlen(file);
    return n > 5 && path_ends(file, ".onnx") ? n - 5 : n;
}

static const char *default_out(struct arena *a, const char *model, bool folder, int ranks)
{
    size_t n = folder ? stem_length(model) : name_length(model);
    return arena_printf(a, "%.*s.tp%d", (int)n, model, ranks);
}

static const char *without_slash(struct arena *a, const char *dir)
{
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    if (n == 0)
        fail_usage("an empty name, expected that of a folder");
    return arena_strndup(a, dir, n);
}

/* Without --report, the text form is written unless another option rules it out. */
static void set_reports(struct arena *a, struct shard_options *o)
{
    if (!o->report.text.n && !o->quiet && !o->dump_after)
        VEC_PUSH(a, &o->report.text, "text");
    shard_report_check(&o->report);
}

/* Takes the options that a replayed plan.json holds. They may not be given again. */
static void set_emitted(struct shard_options *o, const struct plan_file *file)
{
    const struct emitted *e = file->emitted;
    struct options *p = &o->plan;
    const char *given = o->machine ? "--machine"
        : o->solver                ? "--solver"
        : o->weights               ? "--weights"
        : o->wire                  ? "--wire"
        : o->dim.text.n            ? "--dim"
        : o->bind.text.n           ? "--bind"
        : o->workload.text.n       ? "--workload"
        : o->memory && e->memory   ? "--memory"
        : o->configuration         ? "--configuration"
                                   : NULL;
    if (given)
        fail_usage("%s: %s sets it already", given, file->path);
    if (o->tp >= 0 && o->tp != e->ranks)
        fail("%s: is a plan for %d ranks, but --tp is %lld", file->path, e->ranks, (long long)o->tp);
    if (o->sp.given && (p->sp != e->sp || (p->sp_symbol && (!e->sp_symbol || strcmp(p->sp_symbol, e->sp_symbol) != 0))))
        fail("%s: --sp differs from the plan's", file->path);
    if (p->strict && p->strict != e->strict)
        fail("%s: was not made with --strict%s%s", file->path, o->strict.text ? "=" : "", o->strict.text ? o->strict.text : "");
    o->tp = e->ranks;
    p->sp = e->sp;
    p->sp_symbol = e->sp_symbol;
    p->solver_first = e->solver_first;
    p->strict = e->strict;
    p->configuration = e->configuration;
    p->dims = e->dims;
    p->fixed = e->fixed;
    p->weights = e->storage;
    p->memory = e->memory;
    p->machine = e->machine;
}

/* Sets the model: a file, the one in an emitted folder, or the one in another. */
static void set_model(struct arena *a, struct options *p, const char *model)
{
    p->model = model;
    p->digest = digest_file(a, model);
    if (!path_is_folder(model))
        return;
    p->folder = folder_read(a, without_slash(a, model), !p->dry_run);
    p->model = path_join(a, p->folder->dir, "model.onnx");
}

/* Without a number of ranks there is a table of several plans: nothing goes with it that is about one. */
static void check_what_if(const struct shard_options *o)
{
    const char *one = o->out ? "--out"
        : o->sp.given        ? "--sp"
        : o->plan_file       ? "--plan"
        : o->configuration   ? "--configuration"
        : o->strict.given    ? "--strict"
        : o->state_from      ? "--state-from"
        : o->solver          ? "--solver"
        : o->annotate        ? "--annotate"
        : o->dry_run         ? "--dry-run"
        : o->report.text.n   ? "--report"
        : o->compare.text.n  ? "--compare"
        : o->explain         ? "--explain"
        : o->dump_after      ? "--dump-after"
        : o->force           ? "--force"
                             : NULL;
    if (one)
        fail_usage("--tp is missing: %s is about one number of ranks (the model alone compares several)", one);
}

static enum recompute recompute_of(const char *text)
{
    if (!text || strcmp(text, "auto") == 0)
        return RECOMPUTE_AUTO;
    if (strcmp(text, "none") == 0)
        return RECOMPUTE_NONE;
    if (strcmp(text, "full") != 0)
        fail_usage("--recompute is '%s', expected none, full or auto", text);
    return RECOMPUTE_FULL;
}

static void set_plan_options(struct arena *a, struct shard_options *o, const char *model)
{
    struct options *p = &o->plan;
    set_sequence(o);
    set_strict(o);
    p->configuration = o->configuration;
    p->plan_file = o->plan_file ? plan_file_read(a, o->plan_file) : NULL;
    if (p->plan_file && p->plan_file->emitted)
        set_emitted(o, p->plan_file);
    else
        p->machine = o->machine ? machine_read(a, o->machine) : machine_reference();
    if (o->tp < 0)
        check_what_if(o);
    require(o->tp < 0 || (o->tp >= 1 && o->tp <= PLAN_RANKS));
    p->ranks = o->tp < 0 ? 1 : (int)o->tp;
    p->out = without_slash(a, o->out ? o->out : default_out(a, without_slash(a, model), path_is_folder(model), p->ranks));
    if (p->plan_file && p->plan_file->state_from.n && !p->plan_file->emitted && !o->state_from)
        fail_usage("%s is given without --state-from", p->plan_file->state_from.at[0].path);
    p->state_from = o->state_from ? state_from_read(a, o->state_from, p->ranks) : NULL;
    p->dry_run = o->dry_run || o->explain;
    set_model(a, p, model);
    p->force = o->force;
    p->random_seed = (uint64_t)o->random_seed;
    p->random_split_only = o->random_split_only;
    p->train = !o->train.given ? NULL : o->train.text ? o->train.text : "*";
    p->freeze = o->freeze;
    p->loss = o->loss;
    p->recompute = recompute_of(o->recompute);
    if (!p->train && (p->freeze || p->loss || o->recompute))
        fail_usage("--%s is given without --train", p->freeze ? "freeze" : p->loss ? "loss" : "recompute");
    if (p->train && o->weights && strcmp(o->weights, "f32") != 0)
        fail_usage("--train keeps weights in f32: --weights does not go with it");
    p->explain = o->explain;
    p->annotate = o->annotate;
    p->price = shard_report_has(&o->report, "html");
    p->trace = o->trace;
    if (p->trace && !p->price)
        fail_usage("--trace is shown by --report html, which is not given");
    for (int i = 0; i < o->dim.text.n; i++)
        args_bindings(a, o->dim.text.at[i], &p->dims);
    for (int i = 0; i < o->bind.text.n; i++)
        VEC_PUSH(a, &p->fixed.list, o->bind.text.at[i]);
    for (int i = 0; i < o->workload.text.n; i++)
        VEC_PUSH(a, &p->workload, o->workload.text.at[i]);
    if (o->memory)
        p->memory = args_bytes("--memory", o->memory);
    for (int i = 0; o->report.text.n && i < o->compare.text.n; i++)
        VEC_PUSH(a, &p->compare, o->compare.text.at[i]);
    set_solver(o);
    set_weights(o);
    set_wire(o);
}

/* ---- what the program does ----------------------------------------------------------------------------------------------------------- */

static void list_passes(void)
{
    for (int i = 0; pass_rows[i].name; i++)
        printf("%-14s %s\n", pass_rows[i].name, pass_rows[i].purpose);
}

static const char *plain_domain(const char *domain)
{
    return *domain ? domain : "ai.onnx";
}

static void list_composed(void *unused, const char *domain, const char *op, int since, const char *of)
{
    (void)unused;
    printf("%-16s %-34s %5d  composed of %s\n", plain_domain(domain), op, since, of);
}

static void list_upgraded(void *unused, const char *domain, const char *op, int below, const char *to)
{
    char forms[16] = "all";
    (void)unused;
    if (below)
        snprintf(forms, sizeof forms, "< %d", below);
    printf("%-16s %-34s %5s  upgraded to %s\n", plain_domain(domain), op, forms, to);
}

static void list_ops(void)
{
    printf("%-16s %-34s %5s  %-20s %s\n", "domain", "op", "since", "rule", "kernel");
    for (int i = 0; i < op_count(); i++) {
        const struct op *op = op_at(i);
        printf("%-16s %-34s %5d  %-20s %s\n", plain_domain(op->domain), op->name, op->since, op->rule_name, op->kernel_name);
    }
    onnx_each_composed(list_composed, NULL);
    onnx_each_upgraded(list_upgraded, NULL);
}

static void print_file(struct arena *a, const struct shard_options *o)
{
    struct compile c = {.arena = a, .model_path = o->print, .external_roots = args_folders(&o->external_root)};
    pass_run(&c, "load", "load", "load");
}

static void merge_folder(struct arena *a, const struct shard_options *o)
{
    if (!o->out)
        fail_usage("--merge needs -o MODEL.onnx: where to write the model");
    if (o->tp >= 0)
        fail_usage("--merge gives one model: --tp does not go with it");
    job_merge(a, without_slash(a, o->merge), o->weights, o->out, o->force);
}

static void check_annotate(const struct shard_options *o)
{
    if (!o->annotate)
        return;
    if (o->explain)
        fail_usage("--explain writes nothing: --annotate does not go with it");
    if (o->plan.folder)
        fail_usage("--annotate needs the model's own file: --merge %s gives it", o->plan.folder->dir);
    if (path_exists(o->annotate) && (!o->force || path_is_folder(o->annotate)))
        fail(path_is_folder(o->annotate) ? "%s is a folder, expected the name of a file" : "%s exists already: --force replaces it",
             o->annotate);
    out_check(o->annotate);
}

/* The last pass to run. */
static const char *last_pass(const struct shard_options *o)
{
    return o->explain ? "explain" : o->dry_run ? "memory" : "emit";
}

static struct compile compilation(struct arena *a, const struct shard_options *o, struct plan *plan)
{
    return (struct compile){.arena = a,
                            .options = &o->plan,
                            .plan = plan,
                            .model_path = o->plan.model,
                            .fixed = &o->plan.fixed,
                            .external_roots = args_folders(&o->external_root)};
}

/* json: for plan.json; NULL: it is not asked for. */
static void compile_model(struct arena *a, const struct shard_options *o, const char **json)
{
    struct plan plan = {.ranks = o->plan.ranks};
    struct compile c = compilation(a, o, &plan);
    check_annotate(o);
    if (!o->plan.folder)
        map_close(map_file(o->plan.model)); /* a model that can't be read is told before a folder that can't be made */
    if (!o->plan.dry_run) {
        folder_check(o->plan.out, o->plan.force);
        if (!o->plan.folder)
            digest_files_begin(a, 1, &o->plan.digest);
    }
    c.record = o->verbose ? pass_record_new(a) : NULL;
    pass_run(&c, "load", last_pass(o), o->dump_after);
    pass_tell(&c);
    plan.compared = c.compared;
    for (int i = 0; !o->explain && i < o->report.text.n; i++)
        shard_report_write(&c, o->report.text.at[i]);
    if (json)
        *json = plan_json(c.source, c.graph, &o->plan, &plan);
}

/* ranks: a folder in out with rank files; else: what a run needs without a tokenizer. */
static void print_next(struct arena *a, const struct shard_options *o, const char *out, const char *ranks, const char *otherwise)
{
    bool text = path_exists(path_join(a, ranks, "tokenizer.json"));
    const char *how = o->train.given ? " --train --data FILE --sequence 64 --steps 1000 --save FILE" : text ? " --prompt TEXT" : otherwise;
    const char *start = o->tp > 1 ? arena_printf(a, "mpirun -n %lld ", (long long)o->tp) : "";
    if (!o->dry_run && !o->explain && shard_report_shows_text(&o->report))
        printf("wrote %s; next: %stpc-run %s%s\n", out, start, out, how);
}

/* given: for the advice, NULL: none is given. */
static void compare_numbers(struct arena *a, const struct shard_options *o, const char *given)
{
    struct shard_options own = *o;
    struct plan plan = {.ranks = 1};
    struct compile c = compilation(a, &own, &plan);
    int64_t limit = own.plan.memory;
    own.plan.dry_run = true;
    own.plan.memory = 0;
    what_if_print(&c, given, limit);
}

/* ---- several graphs of one model -------------------------------------------------------------------------------------------------- */

/* What a failure takes away: the folder of this run, with those in it. */
struct graph_folders {
    const char *out;
    struct text_list at;
};

static void drop_graphs(void *graph_folders, int status)
{
    struct graph_folders *made = graph_folders;
    (void)status;
    for (int i = 0; i < made->at.text.n; i++) {
        int folder = open(made->at.text.at[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0)
            continue;
        folder_remove_written(folder);
        (void)close(folder);
        (void)rmdir(made->at.text.at[i]);
    }
    (void)rmdir(made->out);
}

static void check_graphs(const struct shard_options *o, const char *given)
{
    const char *one = o->plan_file ? "--plan"
        : o->state_from            ? "--state-from"
        : o->configuration         ? "--configuration"
        : o->annotate              ? "--annotate"
        : o->explain               ? "--explain"
        : o->dump_after            ? "--dump-after"
        : o->train.given           ? "--train"
                                   : NULL;
    if (one)
        fail_usage("%s holds several graphs, and %s is about one: name its file", given, one);
    for (int i = 0; i < o->report.text.n; i++)
        if (strcmp(o->report.text.at[i], "text") != 0)
            fail_usage("%s holds several graphs, and --report %s is about one: name its file", given, o->report.text.at[i]);
}

/* A table for each. The last graph makes every token except the first, so its table says how many ranks are enough. */
static void compare_graphs(struct arena *a, const struct shard_options *o, const char *given, const struct text_list *graphs)
{
    check_graphs(o, given);
    for (int i = 0; i < graphs->text.n; i++) {
        struct shard_options one = *o;
        bool last = i + 1 == graphs->text.n;
        set_plan_options(a, &one, graphs->text.at[i]);
        compare_numbers(a, &one, last ? given : NULL);
        if (!last)
            printf("\n");
    }
}

/* Into a folder of folders. Each graph takes the placements of the state that it shares with those before it. */
static void compile_graphs(struct arena *a, const struct shard_options *o, const char *given, const struct text_list *graphs)
{
    struct graph_folders made = {.out = NULL};
    const char *plan = NULL;
    check_graphs(o, given);
    made.out = without_slash(a, o->out ? o->out : default_out(a, without_slash(a, given), true, (int)o->tp));
    bool writes = !o->dry_run, fresh = writes && !path_exists(made.out);
    if (writes && !fresh && !o->force)
        fail("%s exists already: --force replaces it", made.out);
    if (fresh && mkdir(made.out, 0777) != 0)
        fail("%s: %s", made.out, strerror(errno));
    if (fresh)
        diag_on_failure(drop_graphs, &made);
    for (int i = 0; i < graphs->text.n; i++) {
        struct shard_options one = *o;
        const char *name = path_base(graphs->text.at[i]);
        one.out = path_join(a, made.out, arena_strndup(a, name, name_length(name)));
        set_plan_options(a, &one, graphs->text.at[i]);
        one.plan.state_from = plan ? state_from_text(a, path_join(a, path_dir(a, one.out), "plan.json"), plan, one.plan.ranks) : NULL;
        compile_model(a, &one, &plan);
        VEC_PUSH(a, &made.at.text, one.out);
    }
    if (fresh)
        diag_forget(drop_graphs, &made);
    print_next(a, o, made.out, made.at.text.at[0], " --generate 64 --input NAME=FILE");
}

static void compile_given(struct arena *a, struct shard_options *o, const char *given)
{
    struct text_list graphs = find_graphs(a, given);
    if (graphs.text.n > 1 && o->tp < 0) {
        compare_graphs(a, o, given, &graphs);
        return;
    }
    if (graphs.text.n > 1) {
        compile_graphs(a, o, given, &graphs);
        return;
    }
    bool folder = path_is_folder(given);
    o->out = o->out || !folder || o->tp < 0 ? o->out : default_out(a, without_slash(a, given), folder, (int)o->tp);
    set_plan_options(a, o, graphs.text.at[0]);
    if (o->tp < 0) {
        compare_numbers(a, o, given);
        return;
    }
    compile_model(a, o, NULL);
    print_next(a, o, o->plan.out, o->plan.out, "");
}

void shard_command(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct shard_options o = {.tp = -1};
    diag_setup("tpc-shard", 0);
    struct text_list plain = parse_shard_options(a, &o, argc, argv);
    diag_setup("tpc-shard", o.quiet ? -1 : o.verbose);
    if (o.list_passes)
        list_passes();
    if (o.list_ops)
        list_ops();
    if (o.print)
        print_file(a, &o);
    if (o.merge)
        merge_folder(a, &o);
    bool asked = o.list_passes || o.list_ops || o.print || o.merge;
    if (plain.text.n != 1 && !(asked && plain.text.n == 0))
        fail_usage("expected one model, found %d: --help shows the usage", plain.text.n);
    if (plain.text.n) {
        if (o.tp >= 0)
            set_reports(a, &o);
        if (o.explain && o.compare.text.n)
            fail_usage("--explain writes no report: --compare does not go with it");
        compile_given(a, &o, plain.text.at[0]);
    }
    arena_free(a);
}
