/* variants [WORD]: every fusion against the graph as it is. Each graph of tests/pass/fuse_kernels-*.graph that tpc-run takes, whose name
 * has the word, and each of its variants (changes.c) runs three times on random inputs: without the pass fuse_kernels, with it, and with it
 * as
 * --deterministic has it. What they compute must be the same but for rounding. A variant that does not run as it is, is none. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "ir/text/text.h"
#include "job/io/io.h"
#include "op/op.h"
#include "passes/pass.h"
#include "tests/ready.h"
#include "tests/variants/variants.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum form { PLAIN, FUSED, DETERMINISTIC, FORMS };
static const char *const form_name[] = {"as it is", "fused", "with --deterministic"};

/* One form of one variant, run. */
struct outcome {
    struct graph *graph;
    struct session *session;
    struct tensor *out;
};
struct trial {
    struct arena *arena;
    const char *path, *text;
    const struct change *change;
    int k;
    bool fast; /* --fast: products are rounded */
    enum form form;
    bool found; /* there is such a change */
    struct comm *self;
    struct tensor *in;
    struct outcome of[FORMS];
};

static struct graph *parsed(struct trial *t)
{
    struct graph *g = graph_parse(t->arena, alg_new(t->arena), t->text, t->path, op_find);
    g->properties = PROP_LOADED;
    t->found = t->change->make(g, t->k);
    return g;
}

/* Scales are positive. */
static void make_inputs(struct trial *t, struct session *s, struct graph *g)
{
    struct job_options made = {.random = true, .seed = 1};
    t->in = job_inputs(t->arena, t->self, s, g, &made);
    for (int i = 0; i < g->inputs.n; i++)
        if (t->in[i].rank == 0 && dtype_is_float(t->in[i].dtype))
            tensor_put(&t->in[i], 0, fabs(tensor_element(&t->in[i], 0)) + 0.125);
}

static void run_form(void *trial)
{
    struct trial *t = trial;
    struct outcome *o = &t->of[t->form];
    struct lower_options lower = {.deterministic = t->form == DETERMINISTIC, .fast = t->fast && t->form == FUSED};
    struct compile c = {.arena = t->arena, .graph = parsed(t), .lower = lower};
    if (!t->found)
        return;
    c.graph->keeps_sums = lower.deterministic;
    pass_run(&c, "shapes", "canon", NULL);
    if (t->form != PLAIN)
        pass_run(&c, "fuse_kernels", "fuse_kernels", NULL);
    o->graph = c.graph;
    o->session = session_new(c.graph, t->self, (struct session_options){.threads = 1, .deterministic = lower.deterministic});
    if (!t->in)
        make_inputs(t, o->session, c.graph);
    o->out = NEWN(t->arena, struct tensor, c.graph->outputs.n);
    session_run(o->session, t->in, o->out);
}

/* ---- comparing --------------------------------------------------------------------------------------------------------------- */

/* By how much elements may differ: floats by rounding, and by a code of what is rounded to bytes. */
static double allowed(const struct trial *t, const struct tensor *want)
{
    const struct job_options none = {.rtol = -1, .atol = -1, .rel = -1};
    double most = 0, rel = compare_tolerance(t->of[PLAIN].graph, &none).rel;
    if (dtype_is_integer(want->dtype) || want->dtype == DT_BOOL)
        return dtype_is_byte(want->dtype);
    for (int64_t i = 0; i < tensor_elements(want); i++) {
        double x = fabs(tensor_element(want, i));
        most = isfinite(x) && x > most ? x : most;
    }
    return (t->fast ? 0.1 : 4 * rel) * most + 1e-30; /* of what cancels to almost nothing */
}

static bool same_sizes(const struct tensor *a, const struct tensor *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (int d = 0; same && d < a->rank; d++)
        same = a->dim[d] == b->dim[d];
    return same;
}

/* The worst difference; infinity: they can't be compared. */
static double difference(const struct tensor *a, const struct tensor *b)
{
    double worst = 0;
    if (!same_sizes(a, b))
        return (double)INFINITY;
    for (int64_t i = 0; i < tensor_elements(a); i++) {
        double x = tensor_element(a, i), y = tensor_element(b, i), off = fabs(x - y);
        if ((isnan(x) && isnan(y)) || (isinf(x) && isinf(y)) /* of either sign: zero has one, too */)
            continue;
        worst = isnan(off) ? (double)INFINITY : off > worst ? off : worst;
    }
    return worst;
}

static void tell(const struct trial *t, const char *what)
{
    printf("%s: %s, number %d, %s: %s\n", path_base(t->path), t->change->name, t->k, form_name[t->form], what);
    graph_print(parsed(&(struct trial){.arena = t->arena, .path = t->path, .text = t->text, .change = t->change, .k = t->k}), stdout);
}

static bool same_outputs(const struct trial *t)
{
    const struct outcome *want = &t->of[PLAIN], *got = &t->of[t->form];
    for (int i = 0; i < want->graph->outputs.n; i++) {
        double most = allowed(t, &want->out[i]), off = difference(&want->out[i], &got->out[i]);
        if (off <= most)
            continue;
        tell(t, arena_printf(t->arena, "output %s is off by %g, %g is allowed", want->graph->outputs.at[i]->name, off, most));
        return false;
    }
    return true;
}

/* ---- a case ------------------------------------------------------------------------------------------------------------------ */

/* False: something differs. *more: there are more of this kind. */
static bool try_change(struct trial *t, int *run, bool *more)
{
    bool same = true;
    for (t->form = PLAIN; same && t->form < FORMS; t->form++) {
        const char *failure = diag_try(t->arena, run_form, t);
        *more = t->found;
        if (!t->found || (failure && t->form == PLAIN))
            break;
        if (failure)
            tell(t, failure);
        same = !failure && (t->form == PLAIN || same_outputs(t));
        *run += t->form == PLAIN;
    }
    for (int i = 0; i < FORMS; i++)
        if (t->of[i].session && t->of[i].out)
            session_free(t->of[i].session);
    return same;
}

static int try_case(const char *path)
{
    struct arena *a = arena_new();
    const char *text = graph_text(a, path);
    int run = 0, wrong = 0;
    if (!text || !strstr(text, "\n# run: tpc-run ") || strstr(text, "\n# compile: ") || strstr(text, " --generate "))
        return 0;
    struct comm *self = comm_self();
    for (const struct change *c = changes; c->name; c++) {
        bool more = true;
        for (int k = 0; more; k++) {
            struct trial t = {.arena = arena_new(), .path = path, .text = text, .change = c, .k = k, .self = self};
            t.fast = strstr(text, " --fast ") != NULL;
            wrong += !try_change(&t, &run, &more);
            arena_free(t.arena);
        }
    }
    printf("%-44s %4d variants, %d wrong\n", path_base(path), run, wrong);
    return wrong || !run;
}

/* In a process of its own: what a crash leaves is said by its parent. */
static bool case_is_right(const char *path)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int answer = try_case(path);
        fflush(stdout);
        _exit(answer);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        fail("can't run a case in a process of its own");
    if (WIFSIGNALED(status))
        printf("%s: ended by signal %d\n", path_base(path), WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    const char *top = getenv("srcdir");
    glob_t found;
    int cases = 0, wrong = 0;
    diag_setup("variants", -1);
    ready_products();
    if (glob(path_join(a, top ? top : ".", "tests/pass/fuse_kernels-*.graph"), 0, NULL, &found) != 0)
        fail("there are no cases in tests/pass");
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (argc > 1 && !strstr(found.gl_pathv[i], argv[1]))
            continue;
        cases++;
        wrong += !case_is_right(found.gl_pathv[i]);
    }
    globfree(&found);
    printf("%d cases, %d wrong\n", cases, wrong);
    arena_free(a);
    return wrong > 0 || cases == 0;
}
