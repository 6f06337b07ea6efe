/* shard_options: the command line of tpc-shard, and the plan options derived from it. */
#include "cli/options/args.h"
#include "cli/shard.h"
#include "op/plugin/plugin.h"
#include "plan/facts/facts.h"
#include "plan/folder/folder.h"
#include "plan/input/input.h"
#include "plan/lora/lora.h"

#include <string.h>

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

/* Each copies its options to `to`, and returns their number. */
#define GIVE(to, table) (memcpy((to), (table), sizeof(table)), (int)(sizeof(table) / sizeof *(table)))

static int plan_options(struct shard_options *o, struct arg *to)
{
    const struct arg table[] = {
        ARG_HEADING("The plan"),
        {"tp", 0, ARG_RANKS, &o->tp, "N", "number of ranks"},
        {"ranks", 0, ARG_RANKS, &o->ranks, "N", "compare the ways in which N ranks are tensor parallel, stages and replicas"},
        {"pp", 0, ARG_RANKS, &o->pp, "P", "cut the graph into P stages of N ranks each (default: 1)"},
        {"sp", 0, ARG_MAYBE, &o->sp, "[=SYMBOL|auto]", "shard activations along the sequence; auto: where it saves time, images too"},
        {"out", 'o', ARG_TEXT, &o->out, "DIR", "output folder (default: MODEL.tpN, with --train MODEL.train.tpN)"},
        {"memory", 0, ARG_TEXT, &o->memory, "SIZE", "memory limit of a rank: 800M, 1.5GiB; of each: 8G,8G,4G"},
        {"machine", 0, ARG_TEXT, &o->machine, "FILE", "machine profile, or name of an installed one (default: reference)"},
        {"speed", 0, ARG_TEXT, &o->speed, "X,Y,..", "speeds of the ranks, relative to the profile's numbers: 1,1,0.5"},
        {"weights", 0, ARG_TEXT, &o->weights, "f32|f16|bf16|int8|int4|FILE",
         "store large f32 weights in this type; with --merge: a checkpoint's weights"},
        {"wire", 0, ARG_TEXT, &o->wire, "f32|bf16|q8",
         "between machines, tpc-run sends addends of f32 sums in 4 bytes, in 2, or in 1 (default: f32)"},
        {"plan", 0, ARG_TEXT, &o->plan_file, "FILE", "placement constraints, or a plan.json to replay"},
        {"configuration", 0, ARG_ANY, &o->configuration, "NAME", "follow these device annotations of the model ('': none)"},
        {"strict", 0, ARG_MAYBE, &o->strict, "[=warn]", "refuse communication that --plan does not request; warn: list it"},
        {"state-from", 0, ARG_TEXT, &o->state_from, "DIR", "take the placements of shared state from the plan in DIR"},
        {"solver", 0, ARG_TEXT, &o->solver, "exact|first", "exact: the cheapest plan; first: the first valid one"},
        ARG_HEADING("Inputs and sizes"),
        {"dim", 0, ARG_LIST, &o->dim, "NAME=INT,..", "bind symbolic dimensions (repeatable)"},
        {"bind", 0, ARG_LIST, &o->bind, "NAME=VALUE,..", "fix an input of the model to a constant (repeatable)"},
        {"keep-input", 0, ARG_LIST, &o->plan.kept_inputs, "NAME", "runs give this input, although it has an initializer (repeatable)"},
        {"workload", 0, ARG_LIST, &o->workload, "DIM=INT,..[:WEIGHT]", "sizes to plan for (repeatable)"},
    };
    return GIVE(to, table);
}

static int training_options(struct shard_options *o, struct arg *to)
{
    const struct arg table[] = {
        ARG_HEADING("Training"),
        {"train", 0, ARG_MAYBE, &o->train, "[=GLOB,..]", "compile a step of training: the loss and the gradients of these weights"},
        {"freeze", 0, ARG_TEXT, &o->freeze, "GLOB,..", "with --train: weights that have no gradient"},
        {"lora", 0, ARG_TEXT, &o->lora, "RANK[,ALPHA]", "with --train: add adapters of this rank to products, and train them alone"},
        {"on", 0, ARG_TEXT, &o->on, "GLOB,..", "with --lora: the products (default: all with weights, but those that make an output)"},
        {"recompute", 0, ARG_TEXT, &o->recompute, "HOW", "with --train: none, full, or auto: full if only then --memory holds (default)"},
        {"loss", 0, ARG_TEXT, &o->loss, "NAME", "with --train: cross-entropy, mse, l1, bce, or an output"},
    };
    return GIVE(to, table);
}

static int report_options(struct shard_options *o, struct arg *to)
{
    const struct arg table[] = {
        ARG_HEADING("Reports"),
        {"dry-run", 'n', ARG_FLAG, &o->dry_run, NULL, "plan and report only, and write no folder; needs no weight data"},
        {"report", 0, ARG_LIST, &o->report, "text|json|html|dot|svg[=FILE]", "write a report to stdout or FILE (repeatable)"},
        {"trace", 0, ARG_TEXT, &o->trace, "FILE", "with --report html: compare the plan with the run that tpc-run --trace recorded"},
        {"compare", 0, ARG_LIST, &o->compare, "first|none|FILE", "report what another plan costs, too (repeatable)"},
        {"explain", 0, ARG_TEXT, &o->explain, "NAME", "print why a node, weight or collective is placed so; write nothing"},
        {"annotate", 0, ARG_TEXT, &o->annotate, "FILE", "also write the model with the plan as device annotations"},
        {"dump-after", 0, ARG_TEXT, &o->dump_after, "PASS|all=DIR",
         "print the graph after a pass; all: write a file for each pass to a new DIR"},
        {"list-passes", 0, ARG_FLAG, &o->list_passes, NULL, "print the passes of the pipeline"},
        {"list-ops", 0, ARG_FLAG, &o->list_ops, NULL, "print the ops with opset, rule and kernel"},
        {"print-rule", 0, ARG_TEXT, &o->print_rule, "OP", "print the rule by which an op is split, from its row"},
        {"print", 0, ARG_TEXT, &o->print, "FILE", "print a model or rank file as text"},
    };
    return GIVE(to, table);
}

static int file_options(struct shard_options *o, struct arg *to)
{
    const struct arg table[] = {
        ARG_HEADING("Files"),
        {"merge", 0, ARG_TEXT, &o->merge, "DIR", "restore the model that DIR was made from, to -o"},
        {"external-root", 0, ARG_LIST, &o->external_root, "DIR", "allow weights in this folder too (repeatable)"},
        {"plugin", 0, ARG_LIST, &o->plugin, "FILE.so", "operators of a shared library (repeatable)"},
        {"force", 0, ARG_FLAG, &o->force, NULL, "replace existing files"},
        ARG_HEADING("Messages"),
        {"quiet", 'q', ARG_FLAG, &o->quiet, NULL, "print errors only, no report"},
        {"verbose", 'v', ARG_FLAG, &o->verbose, NULL, "explain what is done"},
        {"test-random", 0, ARG_INT, &o->random_seed, "SEED", NULL},
        {"test-split-only", 0, ARG_FLAG, &o->random_split_only, NULL, NULL},
    };
    return GIVE(to, table);
}

/* Modes that do not compile take few options, and no model. */
static const struct mode {
    const char *name, *expected, *takes[7]; /* expected: its operand; takes: allowed options, including its own */
    int given;                              /* how many of them the mode itself names */
} modes[] = {
    {"merge", "one folder", {"merge", "out", "weights", "force", "quiet", "verbose"}, 1},
    {"print", "one file", {"print", "external-root", "plugin", "quiet", "verbose"}, 1},
    {"list-passes", "no model", {"list-passes", "quiet", "verbose"}, 0},
    {"print-rule", "one op", {"print-rule", "plugin", "quiet", "verbose"}, 1},
    {"list-ops", "no model", {"list-ops", "plugin", "quiet", "verbose"}, 0},
};

static void check_mode(const struct args *args, const struct mode *m, const struct text_list *plain)
{
    const char *other = args_other(args, m->takes);
    if (other)
        fail_usage("--%s does not go with --%s", other, m->name);
    if (plain->text.n)
        fail_usage("--%s: expected %s, found %d, with '%s'", m->name, m->expected, m->given + plain->text.n, plain->text.at[0]);
}

static void check_modes(const struct args *args, const struct text_list *plain)
{
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (args_has(args, modes[i].name)) {
            check_mode(args, &modes[i], plain);
            return;
        }
    if (plain->text.n != 1)
        fail_usage("expected one model, found %d: --help shows the usage", plain->text.n);
}

struct text_list shard_options_parse(struct arena *a, struct shard_options *o, int argc, char **argv)
{
    struct arg table[64];
    int n = plan_options(o, table);
    n += training_options(o, table + n);
    n += report_options(o, table + n);
    n += file_options(o, table + n);
    require(n <= (int)(sizeof table / sizeof *table));
    struct args args = {"tpc-shard", "compile an ONNX model for several ranks", usage, table, n, description, environment, examples, NULL,
                        NULL};
    struct text_list plain = args_parse(a, &args, argc, argv);
    check_modes(&args, &plain);
    if (o->ranks && (o->tp >= 0 || o->pp))
        fail_usage("--ranks compares several ways, and --tp and --pp name one");
    if (o->pp && o->tp < 0)
        o->tp = 1;
    o->repeated = args_given(a, &args, (const char *const[]){"tp", "ranks", NULL});
    return plain;
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

#define TRAINS ".train"

/* The length of the first n characters without a trailing `word` and number. */
static size_t length_without(const char *dir, size_t all, const char *word)
{
    size_t n = all, end = strlen(word);
    while (n > 0 && strchr("0123456789", dir[n - 1]))
        n--;
    return n == all || n <= end || strncmp(dir + n - end, word, end) != 0 ? all : n - end;
}

/* The length of the name without a trailing ".tpN", ".tpN.ppN" or ".train.tpN". */
static size_t stem_length(const char *dir)
{
    size_t all = strlen(dir), end = strlen(TRAINS), n = length_without(dir, length_without(dir, all, ".pp"), ".tp");
    if (n == length_without(dir, all, ".pp"))
        return all;
    return n > end && strncmp(dir + n - end, TRAINS, end) == 0 ? n - end : n;
}

/* The length of the name without a trailing ".onnx". */
size_t shard_name_length(const char *file)
{
    size_t n = strlen(file);
    return n > 5 && path_ends(file, ".onnx") ? n - 5 : n;
}

const char *shard_default_out(struct arena *a, const struct shard_options *o, const char *model, bool folder)
{
    size_t n = folder ? stem_length(model) : shard_name_length(model);
    const char *stages = o->pp > 1 ? arena_printf(a, ".pp%d", (int)o->pp) : "";
    return arena_printf(a, "%.*s%s.tp%d%s", (int)n, model, o->train.given ? TRAINS : "", o->tp < 0 ? 1 : (int)o->tp, stages);
}

const char *shard_folder_name(struct arena *a, const char *dir)
{
    if (!*dir)
        fail_usage("an empty name, expected the name of a folder");
    return path_trimmed(a, dir);
}

/* Takes the options that a replayed plan.json holds. They may not be given again. */
static void set_emitted(struct shard_options *o, const struct plan_file *file)
{
    const struct emitted *e = file->emitted;
    struct options *p = &o->plan;
    const char *given = o->machine ? "--machine"
        : o->speed                 ? "--speed"
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
    if (o->pp > 1)
        fail_usage("--pp: %s is a plan without stages; a file of constraints goes with them", file->path);
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

/* The model of a folder uses their operators, too. */
static void require_plugins(struct arena *a, const char *dir)
{
    const char *path = path_join(a, dir, "plan.json");
    json_t *plan = json_read(path), *one;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(plan, "options"), "plugins"), i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        plugin_require_name(path, name ? name : "");
    }
    json_decref(plan);
}

/* Sets the model: a file, the model in an emitted folder, or the ONNX file in another folder. */
static void set_model(struct arena *a, struct options *p, const char *model)
{
    p->model = model;
    p->digest = digest_file(a, model);
    if (!path_is_folder(model))
        return;
    p->folder = folder_read(a, shard_folder_name(a, model), !p->dry_run);
    p->model = path_join(a, p->folder->dir, "model.onnx");
    require_plugins(a, p->folder->dir);
}

/* Without a number of ranks a table of several plans is printed: options for one plan are refused. */
static void check_what_if(const struct shard_options *o)
{
    const struct machine *m = &o->plan.machine;
    if (o->ranks && (o->train.given || o->speed || (o->memory && strchr(o->memory, ','))))
        fail_usage("--ranks does not go with %s yet", o->train.given ? "--train" : o->speed ? "--speed" : "a list of --memory");
    if (o->ranks && (m->speeds || m->memories))
        fail_usage("--ranks: %s has %s of ranks, which it does not go with yet", m->name, m->speeds ? "speeds" : "memory");
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
    if (one && o->ranks)
        fail_usage("--ranks compares several ways, and %s is about one", one);
    if (one)
        fail_usage("--tp is missing: %s is about one number of ranks (the model alone compares several)", one);
}

/* Features not supported in stages yet. */
static void check_stages(const struct shard_options *o)
{
    bool everywhere = o->sp.given && !(o->sp.text && strcmp(o->sp.text, "auto") == 0); /* a stage may have no sequence */
    const char *other = everywhere ? "--sp, but with --sp=auto,"
        : o->state_from            ? "--state-from"
        : o->compare.text.n        ? "--compare"
        : o->explain               ? "--explain"
        : o->dump_after            ? "--dump-after"
                                   : NULL;
    if (o->pp <= 1)
        return;
    if (other)
        fail_usage("--pp: stages do not go with %s yet", other);
    for (int i = 0; i < o->report.text.n; i++)
        if (shard_report_is(o->report.text.at[i], "html") || shard_report_is(o->report.text.at[i], "dot"))
            fail_usage("--pp: stages do not go with --report %s yet, only with text, json and svg", o->report.text.at[i]);
    if (o->tp * o->pp > PLAN_RANKS)
        fail_usage("--pp %lld stages of --tp %lld ranks are more than %d", (long long)o->pp, (long long)o->tp, PLAN_RANKS);
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

/* RANK[,ALPHA]: by default, the factor is 1. */
static void set_lora(struct arena *a, struct shard_options *o)
{
    struct options *p = &o->plan;
    size_t n = o->lora ? strcspn(o->lora, ",") : 0;
    if (!o->lora && o->on)
        fail_usage("--on is given without --lora");
    if (!o->lora)
        return;
    if (!p->train || o->train.text || p->freeze)
        fail_usage("--lora %s",
                   !p->train ? "is for --train: tpc-run --lora applies adapters"
                             : "trains adapters alone: it takes no names with --train, and no --freeze");
    if (!i64_parse(arena_strndup(a, o->lora, n), 1, LORA_RANK, &p->lora.rank))
        fail_usage("--lora is '%s', expected RANK[,ALPHA] with a rank of 1 to %d", o->lora, LORA_RANK);
    p->lora.alpha = o->lora[n] ? args_real("ALPHA of --lora", o->lora + n + 1, true) : (double)p->lora.rank;
    if (!(p->lora.alpha > 0))
        fail_usage("--lora is '%s', expected an ALPHA above 0", o->lora);
    p->lora.on = o->on;
}

static void set_training(struct shard_options *o)
{
    struct options *p = &o->plan;
    p->train = !o->train.given ? NULL : o->train.text ? o->train.text : "*";
    p->freeze = o->freeze;
    p->loss = o->loss;
    p->recompute = recompute_of(o->recompute);
    if (!p->train && (p->freeze || p->loss || o->recompute))
        fail_usage("--%s is given without --train", p->freeze ? "freeze" : p->loss ? "loss" : "recompute");
    if (p->train && o->weights && strcmp(o->weights, "f32") != 0 && strcmp(o->weights, "bf16") != 0)
        fail_usage("--train stores weights as f32 or bf16: --weights %s does not go with it", o->weights);
    if (p->train && o->weights && strcmp(o->weights, "bf16") == 0 && o->pp > 1)
        fail_usage("--pp: stages that train store weights as f32: --weights bf16 does not go with them yet");
}

static void set_shown(struct arena *a, struct shard_options *o)
{
    struct options *p = &o->plan;
    p->explain = o->explain;
    p->annotate = o->annotate;
    p->price = shard_report_has(&o->report, "html");
    p->trace = o->trace;
    if (p->trace && !p->price)
        fail_usage("--trace is shown by --report html, which is not given");
    p->compare_equal = o->report.text.n && (machine_speeds_differ(&p->machine, p->ranks) || limits_differ(p, p->ranks));
    for (int i = 0; i < o->compare.text.n; i++) {
        if (!*o->compare.text.at[i])
            fail_usage("--compare is '', expected first, none or the name of a plan");
        if (o->report.text.n)
            VEC_PUSH(a, &p->compare, o->compare.text.at[i]);
    }
}

static void set_sizes(struct arena *a, struct shard_options *o)
{
    struct options *p = &o->plan;
    for (int i = 0; i < o->dim.text.n; i++)
        args_bindings(a, o->dim.text.at[i], &p->dims);
    for (int i = 0; i < o->bind.text.n; i++)
        VEC_PUSH(a, &p->fixed.list, o->bind.text.at[i]);
    for (int i = 0; i < o->workload.text.n; i++)
        VEC_PUSH(a, &p->workload, o->workload.text.at[i]);
}

/* "8G" for all ranks, "8G,8G,4G" by rank. */
static void set_memory(struct arena *a, struct machine *m, const char *list)
{
    int64_t *memory = NEWN(a, int64_t, PLAN_RANKS);
    int n = 0;
    for (const char *at = list, *end; at; at = *end ? end + 1 : NULL) {
        if (n == PLAN_RANKS)
            fail_usage("--memory has more than %d sizes", PLAN_RANKS);
        end = at + strcspn(at, ",");
        memory[n++] = args_bytes("--memory", arena_strndup(a, at, (size_t)(end - at)));
    }
    m->memories = n;
    m->memory = memory;
}

/* A list by rank has an entry for each rank of all stages. of: the meaning of an entry. */
static void check_listed(const struct shard_options *o, const char *where, int listed, const char *what, const char *of)
{
    int stages = o->plan.stages ? o->plan.stages : 1, ranks = o->plan.ranks * stages;
    if (ranks > listed)
        fail_usage("%s has %d %s%s%s, and --tp%s asks for %d ranks", where, listed, what, listed == 1 ? "" : "s", of,
                   stages > 1 ? " with --pp" : "", ranks);
}

static void set_limits(struct arena *a, struct shard_options *o)
{
    struct options *p = &o->plan;
    bool own = p->plan_file && p->plan_file->emitted && !o->memory; /* the limits of the replayed plan */
    if (o->memory)
        set_memory(a, &p->machine, o->memory);
    p->memory = own ? p->memory : machine_most_memory(&p->machine);
    if (p->machine.memories == 1 && o->memory)
        p->machine.memories = 0;
    if (p->machine.memories)
        check_listed(o, o->memory ? "--memory" : p->machine.name, p->machine.memories, "size", " of memory");
    if (own && p->memory != (p->machine.memories ? machine_most_memory(&p->machine) : p->memory))
        fail("%s: memory: expected a 'limit' of %lld, the most of machine.memory, found %lld", p->plan_file->path,
             (long long)machine_most_memory(&p->machine), (long long)p->memory);
}

void shard_options_plan(struct arena *a, struct shard_options *o, const char *model)
{
    struct options *p = &o->plan;
    check_stages(o);
    set_sequence(o);
    set_strict(o);
    p->configuration = o->configuration;
    p->plan_file = o->plan_file ? plan_file_read(a, o->plan_file) : NULL;
    if (p->plan_file && p->plan_file->emitted)
        set_emitted(o, p->plan_file);
    if (o->tp < 0)
        check_what_if(o);
    require(o->tp < 0 || (o->tp >= 1 && o->tp <= PLAN_RANKS));
    p->ranks = o->tp < 0 ? 1 : (int)o->tp;
    p->stages = o->pp > 1 ? (int)o->pp : 0;
    if (p->machine.speeds)
        check_listed(o, o->speed ? "--speed" : p->machine.name, p->machine.speeds, "speed", "");
    p->out = shard_folder_name(a, o->out ? o->out : shard_default_out(a, o, shard_folder_name(a, model), path_is_folder(model)));
    if (p->plan_file && p->plan_file->state_from.n && !p->plan_file->emitted && !o->state_from)
        fail_usage("%s is given without --state-from", p->plan_file->state_from.at[0].path);
    p->state_from = o->state_from ? state_from_read(a, o->state_from, p->ranks) : NULL;
    p->dry_run = o->dry_run || o->explain;
    set_model(a, p, model);
    p->force = o->force;
    p->random_seed = (uint64_t)o->random_seed;
    p->random_split_only = o->random_split_only;
    set_training(o);
    set_lora(a, o);
    set_sizes(a, o);
    set_limits(a, o);
    set_shown(a, o);
    set_solver(o);
    set_weights(o);
    set_wire(o);
}
