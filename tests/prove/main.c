/* Random legal plans on real exports: every model of samples/, or those that are named, at several numbers of ranks, in these modes: any
 * strategies, only those that split, --sp, and where asked for --sp=auto. Each is compared with the whole run. In every second plan terms
 * are dense. A line per model, number of ranks and mode says how many were right. Work is shared among processes by model and ranks. */
#include "cli/options/args.h"
#include "ir/text/text.h"
#include "job/io/io.h"
#include "tests/prove/integral.h"
#include "tests/ready.h"

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A model that makes nothing but zeros proves nothing. Many gradients are zero. */
static const double LEAST_NONZERO = 0.25, LEAST_NONZERO_GRADIENTS = 0.05;

enum mode { MODE_PLAIN, MODE_SPLIT, MODE_SP, MODE_UNEQUAL, MODE_AUTO, MODES };
static const char *const mode_name[] = {"plain", "split", "sp", "unequal", "auto"};

struct prove_options {
    struct text_list models, tp, mode, input, force, dim;
    struct named_list forced; /* of --force */
    struct bindings sizes;    /* of --dim */
    int64_t plans, seed, jobs;
    bool exact, integral, train;
};
struct work {
    const struct prove_options *options;
    struct prove *model;
    const char *path;
    int ranks;
    FILE *out;
};
struct count {
    int plans, wrong, dense;
    int64_t weights, weights_split;
    double worst;
};

/* ---- the command line -------------------------------------------------------------------------------------------------------------- */

static const struct arg_prose usage[] = {{"prove [options] [MODEL...]", "random plans of each model (default: samples/*/model.onnx)"},
                                         {NULL, NULL}};
static const struct arg_prose none[] = {{NULL, NULL}};

static struct text_list all_samples(struct arena *a)
{
    const char *srcdir = getenv("srcdir");
    struct text_list list = {0};
    glob_t found;
    if (glob(arena_printf(a, "%s/samples/*/model.onnx", srcdir ? srcdir : "."), 0, NULL, &found))
        fail("no samples/*/model.onnx in %s", srcdir ? srcdir : ".");
    for (size_t i = 0; i < found.gl_pathc; i++)
        VEC_PUSH(a, &list.text, arena_strdup(a, found.gl_pathv[i]));
    globfree(&found);
    return list;
}

static int64_t from_environment(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text ? number_read(name, text, 1, 1000000000) : otherwise;
}

static struct named forced_of(struct arena *a, const char *text)
{
    const char *equal = strrchr(text, '=');
    if (!equal)
        fail_usage("--force '%s': expected NODE=STRATEGY", text);
    return (struct named){arena_strndup(a, text, (size_t)(equal - text)), equal + 1};
}

static void read_options(struct arena *a, struct prove_options *o, int argc, char **argv)
{
    const char *seed = NULL;
    const struct arg table[] = {
        {"tp", 0, ARG_LIST, &o->tp, "N", "number of ranks (repeatable; default: 2 to 5)"},
        {"mode", 0, ARG_LIST, &o->mode, "plain|split|sp|unequal|auto", "which plans (repeatable; default: all but the last)"},
        {"plans", 0, ARG_INT, &o->plans, "K", "plans of each model, N and mode (default: $PLANS, or 1)"},
        {"seed", 0, ARG_TEXT, &seed, "S", "seed of the first plan; addends are dense where S + N is odd; 0: the cheapest plan"},
        {"jobs", 'j', ARG_INT, &o->jobs, "J", "processes at a time (default: cores)"},
        {"input", 0, ARG_LIST, &o->input, "FILE", "the inputs of a graph in text form, in its order (repeatable)"},
        {"dim", 0, ARG_LIST, &o->dim, "NAME=INT,..", "sizes of symbolic dimensions of random inputs, which --train binds (repeatable)"},
        {"force", 0, ARG_LIST, &o->force, "NODE=STRATEGY", "nodes that do not stay whole, instead of any by the seed (repeatable)"},
        {"exact", 0, ARG_FLAG, &o->exact, NULL, "outputs are equal as numbers"},
        {"integral", 0, ARG_FLAG, &o->integral, NULL, "the same, of models that compute in integers"},
        {"train", 0, ARG_FLAG, &o->train, NULL, "of steps of training: the loss and all gradients"},
    };
    struct args args = {"prove",
                        "random plans of models, compared with the whole run",
                        usage,
                        table,
                        (int)(sizeof table / sizeof *table),
                        none,
                        none,
                        none,
                        NULL,
                        NULL};
    *o = (struct prove_options){.plans = from_environment("PLANS", 1), .seed = 1, .jobs = sysconf(_SC_NPROCESSORS_ONLN)};
    o->models = args_parse(a, &args, argc, argv);
    if (seed)
        o->seed = number_read("--seed", seed, 0, INT32_MAX);
    if (o->models.text.n == 0)
        o->models = all_samples(a);
    for (int i = 0; i < o->dim.text.n; i++)
        args_bindings(a, o->dim.text.at[i], &o->sizes);
    for (int i = 0; i < o->force.text.n; i++)
        VEC_PUSH(a, &o->forced.list, forced_of(a, o->force.text.at[i]));
    static const char *const usual[] = {"2", "3", "4", "5"};
    for (int i = 0, given = o->tp.text.n; !given && i < 4; i++)
        VEC_PUSH(a, &o->tp.text, usual[i]);
}

static bool is_requested(const struct prove_options *o, int mode)
{
    bool asked = o->mode.text.n == 0 && mode != MODE_AUTO;
    for (int i = 0; i < o->mode.text.n; i++)
        asked |= strcmp(o->mode.text.at[i], mode_name[mode]) == 0;
    return asked;
}

/* ---- one model, number of ranks and mode --------------------------------------------------------------------------------------------- */

/* The seed says everything that ranks and mode leave open, so that a plan repeats alone. */
static struct prove_plan plan_of(const struct work *w, int mode, int64_t seed)
{
    return (struct prove_plan){.ranks = w->ranks,
                               .seed = (uint64_t)seed,
                               .split_only = mode == MODE_SPLIT,
                               .sp = mode == MODE_SP   ? SP_ON
                                   : mode == MODE_AUTO ? SP_AUTO
                                                       : SP_OFF,
                               .unequal = mode == MODE_UNEQUAL && w->ranks > 1,
                               .dense = (seed + w->ranks) % 2,
                               .exact = w->options->exact || w->options->integral,
                               .set = (int)((seed + w->ranks) / 2 % prove_sets(w->model)),
                               .forced = w->options->force.text.n > 0 ? &w->options->forced : NULL};
}

/* The first of a mode is shrunk. */
static void report_wrong(const struct work *w, int mode, int64_t seed, const struct proof *p, bool first)
{
    const struct prove_plan plan = plan_of(w, mode, seed);
    struct arena *tmp = arena_new();
    fprintf(w->out, "wrong: prove %s%s", w->options->integral ? "--integral " : "", w->options->train ? "--train " : "");
    for (int i = 0; i < w->options->dim.text.n; i++)
        fprintf(w->out, "--dim %s ", w->options->dim.text.at[i]);
    fprintf(w->out, "%s --tp %d --mode %s --plans 1 --seed %lld\n  %s: %s\n", w->path, w->ranks, mode_name[mode], (long long)seed,
            proof_kind_name(p->kind), p->said);
    if (first && !plan.forced)
        prove_shrink(
            w->out, w->model, &plan, p,
            arena_printf(tmp, "prove-%s-%d-%s-%lld.graph", path_base(path_dir(tmp, w->path)), w->ranks, mode_name[mode], (long long)seed));
    arena_free(tmp);
}

/* --sp is refused where no dimension qualifies. */
static bool has_mode(const struct work *w, int mode)
{
    const struct prove_plan cheapest = plan_of(w, mode, 0);
    struct arena *tmp = arena_new();
    struct proof p = {0};
    if (mode == MODE_SP)
        (void)prove_chosen(tmp, w->model, &cheapest, &p);
    arena_free(tmp);
    return p.kind != PROOF_REFUSED;
}

static struct count prove_mode(const struct work *w, int mode)
{
    struct count c = {0};
    for (int64_t seed = w->options->seed; seed < w->options->seed + w->options->plans; seed++) {
        const struct prove_plan plan = plan_of(w, mode, seed);
        struct proof p = prove_try(w->model, &plan);
        c.plans++;
        c.dense += plan.dense && p.terms > 0;
        c.weights += p.weights;
        c.weights_split += p.weights_split;
        if (p.kind == PROOF_EQUAL)
            c.worst = fmax(c.worst, p.worst);
        else if (c.wrong++ < 5)
            report_wrong(w, mode, seed, &p, c.wrong == 1);
    }
    return c;
}

/* Integers prove little where next to nothing is split. */
static bool hardly_splits(const struct work *w, int mode, const struct count *c)
{
    return w->options->integral && w->ranks > 1 && mode == MODE_SPLIT && 2 * c->weights_split < c->weights;
}

/* Returns how many plans were wrong. */
static int prove_modes(const struct work *w)
{
    int wrong = 0;
    for (int mode = 0; mode < MODES; mode++) {
        if (!is_requested(w->options, mode) || !has_mode(w, mode))
            continue;
        struct count c = prove_mode(w, mode);
        c.wrong += hardly_splits(w, mode, &c);
        fprintf(w->out,
                "%s: %s, %d ranks, %s: %d plans, %d with dense addends, %.0f %% of the reads of weights split, %d wrong, "
                "worst difference %.3g\n",
                c.wrong ? "not ok" : "ok", w->path, w->ranks, mode_name[mode], c.plans, c.dense,
                100 * (double)c.weights_split / (double)c.weights, c.wrong, c.worst);
        wrong += c.wrong;
    }
    return wrong;
}

/* ---- processes --------------------------------------------------------------------------------------------------------------- */

static struct prove *open_integral(struct arena *a, const struct work *w)
{
    struct integral i;
    struct prove *model = prove_open_integral(a, w->path, &w->options->sizes, w->options->train, &i);
    double share = (double)i.nonzero / (double)i.elements, least = w->options->train ? LEAST_NONZERO_GRADIENTS : LEAST_NONZERO;
    fprintf(w->out,
            "# %s: %d nodes replaced, %d results rounded, %d operands reduced; magnitudes up to %g, %.2g of what is exact; %.0f %% "
            "of the outputs are not 0\n",
            w->path, i.replaced, i.rounded, i.reduced, i.largest, i.room, 100 * share);
    if (!(share > least))
        fail("%s: %.0f %% of the outputs are not 0, expected more than %.0f %%", w->path, 100 * share, 100 * least);
    return model;
}

static struct prove *open_model(struct arena *a, const struct prove_options *o, const char *path)
{
    struct tensor *in = NEWN(a, struct tensor, o->input.text.n);
    const char *text = o->input.text.n > 0 ? graph_text(a, path) : NULL;
    for (int i = 0; i < o->input.text.n; i++)
        in[i] = job_read_tensor(a, o->input.text.at[i], NULL);
    return text ? prove_open_given(a, text, 1, &in) : o->train ? prove_open_training(a, path, &o->sizes) : prove_open(a, path, &o->sizes);
}

/* What a process says comes in one piece. */
static _Noreturn void work(const struct prove_options *o, const char *path, int ranks)
{
    char *text = NULL;
    size_t n = 0;
    struct arena *a = arena_new();
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal_watch(true); /* an end by a signal leaves no files */
    struct work w = {.options = o, .path = path, .ranks = ranks, .out = open_memstream(&text, &n)};
    if (!w.out)
        fail("no memory for a report");
    w.model = o->integral ? open_integral(a, &w) : open_model(a, o, path);
    int wrong = prove_modes(&w);
    prove_close(w.model);
    (void)fclose(w.out);
    (void)fwrite(text, 1, n, stdout);
    (void)fflush(stdout);
    _exit(wrong ? 1 : 0);
}

/* Waits for one process; true when something was wrong there. */
static bool reap(void)
{
    int status = 0;
    while (wait(&status) < 0)
        if (errno != EINTR)
            fail("a process can't be waited for: %s", strerror(errno));
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void start(const struct prove_options *o, const char *path, int ranks)
{
    (void)fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        fail("no process for %s: %s", path, strerror(errno));
    if (child == 0)
        work(o, path, ranks);
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct prove_options o;
    int64_t running = 0;
    bool wrong = false;
    diag_setup("prove", -1);
    read_options(a, &o, argc, argv);
    ready_products();
    for (int i = 0; i < o.models.text.n; i++)
        for (int k = 0; k < o.tp.text.n; k++) {
            if (running == o.jobs)
                wrong |= reap();
            else
                running++;
            start(&o, o.models.text.at[i], (int)number_read("--tp", o.tp.text.at[k], 1, PLAN_RANKS));
        }
    for (; running > 0; running--)
        wrong |= reap();
    arena_free(a);
    return wrong ? 1 : 0;
}
