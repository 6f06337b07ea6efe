/* tpc-shard: the compiler. It reads one ONNX model, plans how to shard it over N ranks, and writes one graph and one weight file per
 * rank. Reports, text forms and lists go to stdout, messages to stderr. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/options/args.h"
#include "cli/shard.h"
#include "job/job.h"
#include "onnx/onnx.h"
#include "op/op.h"
#include "op/plugin/plugin.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/folder/folder.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/report/report.h"
#include "run/comm/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what the program does ----------------------------------------------------------------------------------------------------------- */

/* Without --report, the text form is written unless another option rules it out. */
static void set_reports(struct arena *a, struct shard_options *o)
{
    if (!o->report.text.n && !o->quiet && (!o->dump_after || dump_is_folder(o->dump_after)))
        VEC_PUSH(a, &o->report.text, "text");
    shard_report_check(&o->report);
}

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
    for (const struct plugin *p = plugin_first(); p; p = p->next)
        for (int i = 0; i < p->n; i++)
            printf("%-16s %-34s %5d  %-20s plug-in %s\n", p->at[i].op.domain, p->at[i].op.name, p->at[i].op.since,
                   p->at[i].op.rule ? p->at[i].given.rule : "none", p->name);
    onnx_each_composed(list_composed, NULL);
    onnx_each_upgraded(list_upgraded, NULL);
}

/* The rows of an op in every domain; over: the meaning of "[n a]". */
static void print_rule(const char *name)
{
    int found = 0;
    for (int i = 0; i < op_count(); i++) {
        const struct op *op = op_at(i);
        if (strcmp(op->name, name) != 0)
            continue;
        found++;
        printf("%s %s: ", plain_domain(op->domain), op->name);
        if (op->rule_text)
            printf("%s%s%s%s\n", op->over ? "over " : "", op->over ? op->over_name : "", op->over ? ": " : "", op->rule_text);
        else if (op->rule && strcmp(op->rule_name, "replicated") != 0)
            printf("code, rule_%s; --explain NODE prints it for a node\n", op->rule_name);
        else
            printf("none; the op is kept replicated\n");
    }
    if (!found)
        fail_usage("--print-rule: no operator is named '%s'; --list-ops prints those that are", name);
}

static void print_file(struct arena *a, const struct shard_options *o)
{
    struct compile c = {.arena = a, .model_path = o->print, .external_roots = args_folders(&o->external_root), .prints = true};
    pass_run(&c, "load", "load", "load");
}

static void merge_folder(struct arena *a, const struct shard_options *o)
{
    if (!o->out)
        fail_usage("--merge needs -o MODEL.onnx: where to write the model");
    job_merge(a, shard_folder_name(a, o->merge), o->weights, o->out, o->force);
}

static void keep_weights(void *shard_options, const char *location)
{
    const struct shard_options *o = shard_options;
    struct arena *a = arena_new();
    if (path_same(path_join(a, path_dir(a, o->plan.model), location), o->annotate))
        fail("%s holds weights of %s: name another file with --annotate", o->annotate, o->plan.model);
    arena_free(a);
}

static void check_annotate(const struct shard_options *o)
{
    if (!o->annotate)
        return;
    if (o->explain)
        fail_usage("--explain writes nothing: --annotate does not go with it");
    if (o->plan.folder)
        fail_usage("--annotate needs the model's own file: --merge %s gives it", o->plan.folder->dir);
    shard_check_file("--annotate", o->annotate, NULL);
    if (path_exists(o->annotate) && !path_is_special(o->annotate))
        onnx_each_location(o->plan.model, keep_weights, (void *)(uintptr_t)o);
    if (path_exists(o->annotate) && !o->force)
        fail("%s exists already: --force replaces it", o->annotate);
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

/* Reports activations too large for this machine when no sizes were given. The memory of weights does not depend on sizes. */
static void tell_memory(struct arena *a, const struct plan *plan)
{
    int64_t room = available_memory().bytes, peak = plan->use ? memory_most(plan->ranks, plan->use).peak : 0;
    bool assumed = false;
    for (int w = 0; w < plan->workloads.n; w++)
        assumed |= plan->workloads.at[w].assumed != NULL;
    if (assumed && peak > room)
        diag_tell("the activations of a rank take %s at the assumed sizes, and this machine has %s available: --workload gives other sizes",
                  units_bytes(a, (double)peak), units_bytes(a, (double)room));
}

/* The inputs of a training step: tokens, or samples of each input. */
static const char *training_inputs(struct arena *a, const struct compile *c)
{
    struct graph *g = c->source;
    const char *all = "";
    if (workload_tokens(g, &c->plan->workloads.at[0]))
        return " --data FILE --sequence 64";
    for (int i = 0; i < g->inputs.n; i++)
        all = arena_printf(a, "%s --input %s=FILE.npy", all, g->inputs.at[i]->name);
    return all;
}

/* json: for plan.json; fed: the options of tpc-run that feed a training step; NULL: not requested. */
static void compile_model(struct arena *a, const struct shard_options *o, const char **json, const char **fed)
{
    struct plan plan = {.ranks = o->plan.ranks};
    struct compile c = compilation(a, o, &plan);
    check_annotate(o);
    if (!o->plan.folder)
        map_close(map_file(o->plan.model)); /* a model that can't be read is reported before a folder that can't be made */
    if (!o->plan.dry_run) {
        if (o->plan.folder && weight_converted(&o->plan) && path_same(o->plan.folder->dir, o->plan.out))
            fail("%s: holds the weights that --weights would convert, and is not replaced: name another folder with -o", o->plan.out);
        folder_check(o->plan.out, o->plan.force);
        if (!o->plan.folder)
            digest_files_begin(a, 1, &o->plan.digest);
    }
    c.record = o->verbose ? pass_record_new(a) : NULL;
    c.plans_only = o->plan.dry_run && !o->dump_after;
    pass_run(&c, "load", o->plan.stages ? "stages" : o->explain ? "explain" : o->dry_run ? "memory" : "emit", o->dump_after);
    if (o->plan.stages && !o->plan.dry_run)
        emit_stages(&c);
    pass_tell(&c);
    plan.compared = c.compared;
    for (int i = 0; !o->explain && i < o->report.text.n; i++)
        shard_report_write(&c, o->report.text.at[i]);
    tell_memory(a, &plan);
    if (json && !o->plan.stages)
        *json = plan_json(c.source, c.graph, &o->plan, &plan);
    if (fed && o->train.given)
        *fed = training_inputs(a, &c);
}

/* ranks: a folder in out with rank files; otherwise: the inputs of a run without a tokenizer, or in training. */
static void print_next(struct arena *a, const struct shard_options *o, const char *out, const char *ranks, const char *otherwise)
{
    bool text = path_exists(path_join(a, ranks, model_texts[TEXT_TOKENIZER]));
    bool chat = text && path_exists(path_join(a, ranks, model_texts[TEXT_CHAT_TEMPLATE]));
    const char *how = o->train.given ? arena_printf(a, " --train%s --steps 1000 --save FILE", otherwise)
        : chat                       ? " --chat"
        : text                       ? " --prompt TEXT"
                                     : otherwise;
    int64_t all = o->pp > 1 ? o->tp * o->pp : o->tp;
    bool several = all > 1, starts = launch_starts(all);
    for (int i = 0; i < o->plugin.text.n; i++)
        how = arena_printf(a, "%s --plugin %s", how, shell_word(a, o->plugin.text.at[i]));
    const char *start = several && starts ? arena_printf(a, "mpirun -n %lld ", (long long)all) : "";
    const char *local = several && !starts ? arena_printf(a, " --local %lld", (long long)all) : "";
    if (!o->dry_run && !o->explain && shard_report_shows_text(&o->report))
        printf("wrote %s; next: %s%s %s%s%s\n", out, start, launch_beside(a, "tpc-run"), shell_word(a, out), local, how);
}

/* given: for the advice; NULL: none. */
static void compare_numbers(struct arena *a, const struct shard_options *o, const char *given)
{
    struct shard_options own = *o;
    struct plan plan = {.ranks = 1};
    struct compile c = compilation(a, &own, &plan);
    own.plan.dry_run = true;
    given = given ? shell_word(a, given) : NULL;
    for (int i = 0; given && i < o->repeated.text.n; i++)
        given = arena_printf(a, "%s %s", given, o->repeated.text.at[i]);
    if (o->ranks)
        grid_print(&c, (int)o->ranks, given);
    else
        what_if_print(&c, given);
}

/* ---- several graphs of one model -------------------------------------------------------------------------------------------------- */

/* What a failure removes: this run's folder and its subfolders. */
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
        : o->pp > 1                ? "--pp"
                                   : NULL;
    if (one)
        fail_usage("%s holds several graphs, and %s is about one: name its file", given, one);
    for (int i = 0; i < o->report.text.n; i++)
        if (strcmp(o->report.text.at[i], "text") != 0)
            fail_usage("%s holds several graphs, and --report %s is about one: name its file", given, o->report.text.at[i]);
}

/* One table per graph. The last graph makes every token except the first, so its table gives the advice. */
static void compare_graphs(struct arena *a, const struct shard_options *o, const char *given, const struct text_list *graphs)
{
    check_graphs(o, given);
    for (int i = 0; i < graphs->text.n; i++) {
        struct shard_options one = *o;
        bool last = i + 1 == graphs->text.n;
        shard_options_plan(a, &one, graphs->text.at[i]);
        compare_numbers(a, &one, last ? given : NULL);
        if (!last)
            printf("\n");
    }
}

/* Compiles into a folder of folders. Each graph takes the placements of state shared with earlier graphs. */
static void compile_graphs(struct arena *a, const struct shard_options *o, const char *given, const struct text_list *graphs)
{
    struct graph_folders made = {.out = NULL};
    const char *plan = NULL;
    check_graphs(o, given);
    made.out = shard_folder_name(a, o->out ? o->out : shard_default_out(a, o, shard_folder_name(a, given), true));
    bool writes = !o->dry_run, fresh = writes && !path_exists(made.out);
    if (writes && !fresh && !o->force)
        fail("%s exists already: name another folder with -o, or replace what tpc-shard wrote to it with --force", made.out);
    if (fresh && mkdir(made.out, 0777) != 0)
        fail("%s: %s", made.out, strerror(errno));
    if (fresh)
        diag_on_failure(drop_graphs, &made);
    for (int i = 0; i < graphs->text.n; i++) {
        struct shard_options one = *o;
        const char *name = path_base(graphs->text.at[i]);
        one.out = path_join(a, made.out, arena_strndup(a, name, shard_name_length(name)));
        shard_options_plan(a, &one, graphs->text.at[i]);
        one.plan.state_from = plan ? state_from_text(a, path_join(a, path_dir(a, one.out), "plan.json"), plan, one.plan.ranks) : NULL;
        compile_model(a, &one, &plan, NULL);
        VEC_PUSH(a, &made.at.text, one.out);
    }
    if (fresh)
        diag_forget(drop_graphs, &made);
    print_next(a, o, made.out, made.at.text.at[0], " --generate 64 --input NAME=FILE");
}

static void compile_given(struct arena *a, struct shard_options *o, const char *given)
{
    struct text_list graphs = find_graphs(a, given);
    o->plan.machine = o->machine ? machine_read(a, o->machine) : machine_reference();
    if (o->speed)
        machine_set_speeds(a, &o->plan.machine, o->speed);
    if (graphs.text.n > 1 && o->ranks)
        fail_usage("%s holds several graphs, and --ranks is about one", given);
    if (graphs.text.n > 1 && o->tp < 0) {
        compare_graphs(a, o, given, &graphs);
        return;
    }
    if (graphs.text.n > 1) {
        compile_graphs(a, o, given, &graphs);
        return;
    }
    bool folder = path_is_folder(given);
    o->out = o->out || !folder || o->tp < 0 ? o->out : shard_default_out(a, o, shard_folder_name(a, given), folder);
    shard_options_plan(a, o, graphs.text.at[0]);
    if (o->tp < 0) {
        compare_numbers(a, o, given);
        return;
    }
    const char *fed = "";
    compile_model(a, o, NULL, &fed);
    print_next(a, o, o->plan.out, o->plan.out, fed);
}

static void compile_asked(struct arena *a, struct shard_options *o, const char *given)
{
    if (o->explain && (o->compare.text.n || o->report.text.n))
        fail_usage("--explain writes no report: --%s does not go with it", o->report.text.n ? "report" : "compare");
    if (o->tp >= 0 || o->plan_file) /* a plan.json gives the number of ranks */
        set_reports(a, o);
    compile_given(a, o, given);
}

void shard_command(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct shard_options o = {.tp = -1};
    diag_setup("tpc-shard", 0);
    struct text_list plain = shard_options_parse(a, &o, argc, argv);
    diag_setup("tpc-shard", o.quiet ? -1 : o.verbose);
    args_plugins(&o.plugin);
    if (o.list_passes)
        list_passes();
    else if (o.list_ops)
        list_ops();
    else if (o.print_rule)
        print_rule(o.print_rule);
    else if (o.print)
        print_file(a, &o);
    else if (o.merge)
        merge_folder(a, &o);
    else
        compile_asked(a, &o, plain.text.at[0]);
    arena_free(a);
}
