/* trial: one plan of a model, made, emitted, run and compared. */
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/space/space.h"
#include "tests/prove/private.h"

#include <math.h>
#include <string.h>

struct trial {
    struct prove *prove;
    struct prepared *prepared;
    const struct prove_plan *plan;
};

/* ---- state shared by plans for one number of ranks ---- */

/* One of the ranks has the speed of the profile, the others from a tenth of it. */
static void set_speeds(struct arena *a, struct machine *m, int ranks)
{
    double *speed = NEWN(a, double, ranks);
    for (int r = 0; r < ranks; r++)
        speed[r] = r == ranks / 2 ? 1 : 0.1 * (1 + (7 * r + 3 * ranks) % 10);
    m->speeds = ranks;
    m->speed = speed;
}

/* What the pass choose does before it chooses. */
static void make_space(struct prove *p, struct prepared *q)
{
    q->options = *p->compile.options;
    q->options.ranks = q->ranks;
    q->options.sp = q->sp;
    q->options.force = true;
    q->options.digest = p->digest;
    q->options.machine.pass_bandwidth_1m = q->options.machine.pass_bandwidth_4m = q->options.machine.memory_bandwidth; /* priced.c */
    if (q->unequal)
        set_speeds(p->arena, &q->options.machine, q->ranks);
    q->options.out = path_join(p->arena, p->folder, "out");
    q->plan = (struct plan){.ranks = q->ranks, .workloads = p->plan.workloads};
    q->compile = p->compile;
    q->compile.options = &q->options;
    q->compile.plan = &q->plan;
    q->compile.source = p->compile.graph;
    q->compile.graph = graph_copy(p->arena, p->compile.graph);
    q->compile.graph->ranks = q->ranks;
    plan_space(p->arena, q->compile.graph, &q->options, &q->plan);
    if (q->wide)
        wide_seed(q->plan.space, (uint64_t)q->ranks);
}

static void make_space_apart(void *data, struct proof *out)
{
    const struct trial *t = data;
    (void)out;
    make_space(t->prove, t->prepared);
}

/* First in a process of its own, which may not survive it. */
static bool is_prepared(const struct prepared *q, const struct prove_plan *plan)
{
    return q->ranks == plan->ranks && q->sp == plan->sp && q->unequal == plan->unequal && q->wide == plan->wide;
}

static struct prepared *prepare(struct prove *p, const struct prove_plan *plan)
{
    for (int i = 0; i < p->prepared.n; i++)
        if (is_prepared(p->prepared.at[i], plan))
            return p->prepared.at[i];
    struct prepared *q = NEW(p->arena, struct prepared);
    q->ranks = plan->ranks;
    q->sp = plan->sp;
    q->unequal = plan->unequal;
    q->wide = plan->wide;
    prove_apart(p->arena, make_space_apart, &(struct trial){.prove = p, .prepared = q}, &q->state);
    if (q->state.kind == PROOF_EQUAL)
        make_space(p, q);
    VEC_PUSH(p->arena, &p->prepared, q);
    return q;
}

/* ---- the choice ------------------------------------------------------------------------------------------------------------------- */

static const char *find_forced(const struct named_list *forced, const char *node)
{
    for (int i = 0; i < forced->list.n; i++)
        if (strcmp(forced->list.at[i].name, node) == 0)
            return forced->list.at[i].text;
    return NULL;
}

/* Leaves the node the strategy of that text, or, for NULL, to be whole. */
static void force_node(struct space *s, int i, const char *text)
{
    struct strategies left = {0};
    const struct node *n = s->g->nodes.at[i];
    for (int k = 0; k < s->offered[i].list.n; k++) {
        struct strategy *st = s->offered[i].list.at[k];
        if (text ? strcmp(strategy_str(s->arena, n, st), text) == 0 : !strategy_splits(n, st))
            VEC_PUSH(s->arena, &left.list, st);
    }
    if (left.list.n == 0)
        fail("node '%s' has no strategy %s", n->name, text ? text : "whole");
    s->offered[i] = left;
}

static struct space *choose(const struct trial *t)
{
    struct prepared *q = t->prepared;
    struct space *s = q->plan.space;
    q->options.random_seed = t->plan->seed;
    q->options.random_split_only = t->plan->split_only;
    if (t->plan->wide && !t->plan->forced)
        wide_thin(s, t->plan->seed);
    for (int i = 0; t->plan->forced && i < s->g->nodes.n; i++)
        force_node(s, i, find_forced(t->plan->forced, s->g->nodes.at[i]->name));
    plan_choose(s);
    s->g->properties |= PROP_PLACED;
    q->compile.properties |= PROP_CHOSEN;
    return s;
}

static bool reads_weight(const struct node *n)
{
    bool found = false;
    for (int i = 0; n->op && (n->op->flags & OP_SEEDS) && i < n->nin; i++)
        found |= n->in[i] && n->in[i]->constant;
    return found;
}

static void count_split(const struct space *s, struct proof *out)
{
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        bool splits = strategy_splits(n, n->strategy), weight = reads_weight(n);
        out->split += splits;
        out->weights += weight;
        out->weights_split += weight && splits;
    }
}

static int count_terms(const struct graph *g)
{
    const struct op *term = op_find("tpc", "Term");
    int n = 0;
    for (int i = 0; i < g->nodes.n; i++)
        n += g->nodes.at[i]->op == term;
    return n;
}

/* ---- running ------------------------------------------------------------------------------------------------------------------------- */

struct job {
    const struct trial *trial;
    struct graph **graph;
    struct proof *out;
};

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    fail("the rank file has '%s', the model has not", name);
}

struct tensor *prove_inputs(struct arena *a, const struct prove *p, int set, const struct graph *g)
{
    struct tensor *in = NEWN(a, struct tensor, g->inputs.n);
    for (int i = 0; i < g->inputs.n; i++)
        in[i] = p->sets.at[set].in[find_name(p->in_name, p->nin, g->inputs.at[i]->name)];
    return in;
}

static double magnitude(const struct tensor *t)
{
    double most = 0;
    for (int64_t i = 0; dtype_is_float(t->dtype) && i < tensor_elements(t); i++)
        most = fmax(most, fabs(tensor_element(t, i)));
    return most;
}

/* Some gradients are zero but for rounding, like the gradients of key biases: differences are relative to a tenth of the largest one. */
static double least_magnitude(const struct prove *p, const struct tensor *want)
{
    double largest = 0;
    for (int k = 0; p->compile.options->train && k < p->nout; k++)
        if (want[k].rank > 0)
            largest = fmax(largest, magnitude(&want[k]));
    return largest / 10;
}

void prove_compare(const struct prove *p, int set, bool exact, const struct graph *g, const struct tensor *got, struct proof *out)
{
    const struct tensor *want = p->sets.at[set].want;
    struct verdict v = {0};
    double rel = exact              ? 0
        : p->compile.options->train ? 3 * p->rel
                                    : p->rel,
           least = least_magnitude(p, want); /* a step rounds there and back */
    if (g->outputs.n != p->nout)
        fail("the rank files have %d outputs, the model has %d", g->outputs.n, p->nout);
    for (int i = 0; i < g->outputs.n; i++) {
        int k = find_name(p->out_name, p->nout, g->outputs.at[i]->name);
        compare_relative(&v, g->outputs.at[i]->name, &got[i], &want[k], rel, least);
    }
    out->kind = v.failed ? PROOF_DIFFERS : PROOF_EQUAL;
    out->worst = v.worst;
    (void)snprintf(out->output, sizeof out->output, "%s", v.name ? v.name : "");
}

static void run_rank(struct comm *comm, void *data)
{
    const struct job *job = data;
    const struct prove *p = job->trial->prove;
    struct arena *a = arena_new();
    struct graph *g = job->graph[comm->rank];
    job_fuse(g, comm, &(struct job_options){.local = comm->size});
    struct session *s = session_new(g, comm, (struct session_options){.threads = 1});
    struct tensor *in = prove_inputs(a, p, job->trial->plan->set, g), *piece = NEWN(a, struct tensor, g->outputs.n),
                  *out = NEWN(a, struct tensor, g->outputs.n);
    session_run(s, in, piece);
    for (int i = 0; i < g->outputs.n; i++)
        out[i] = session_gather(s, a, i, &piece[i]);
    if (comm->rank == 0)
        prove_compare(p, job->trial->plan->set, job->trial->plan->exact, g, out, job->out);
    comm->barrier(comm);
    session_free(s);
    arena_free(a);
}

/* Read one after another, before there are ranks, who would wait for each other; each into an arena of its own, for ranks are threads. */
static struct graph **load_ranks(const struct trial *t)
{
    const struct job_options o = {.local = t->plan->ranks};
    struct arena *a = t->prove->arena;
    struct graph **g = NEWN(a, struct graph *, t->plan->ranks);
    for (int r = 0; r < t->plan->ranks; r++)
        g[r] = job_load_model(arena_new(), path_join(a, t->prepared->options.out, arena_printf(a, "rank-%d.onnx", r)), NULL, NULL, &o);
    return g;
}

/* A random plan may reshard inside a pattern, which then is not found; the rest fuses differently. Nine of ten are within 0.1. */
#define RANDOM_APART 0.5
#define CHEAPEST_APART 0.06

static void try_plan(void *data, struct proof *out)
{
    const struct trial *t = data;
    struct compile *c = &t->prepared->compile;
    count_split(choose(t), out);
    int nvalues = c->graph->values.n;
    if (!t->plan->seed && !t->plan->forced)
        prove_objective(c->plan);
    pass_run(c, "insert", "insert", NULL);
    prove_price(c, nvalues, t->plan->seed ? RANDOM_APART : CHEAPEST_APART);
    pass_run(c, "fuse", "cut_weights", NULL);
    out->terms = count_terms(c->rank_graphs[0]);
    if (t->plan->dense)
        prove_dense_terms(c->rank_graphs, c->graph->ranks);
    c->plan->use = NEWN(c->arena, struct rank_use, c->graph->ranks); /* what the pass memory predicts changes no file but plan.json */
    c->properties |= PROP_MEASURED;
    pass_run(c, "emit", "emit", NULL);
    comm_local_run(t->plan->ranks, run_rank, &(struct job){t, load_ranks(t), out});
}

struct proof prove_try(struct prove *p, const struct prove_plan *plan)
{
    struct trial t = {p, prepare(p, plan), plan};
    struct proof out = t.prepared->state;
    require(plan->set >= 0 && plan->set < p->sets.n);
    if (out.kind != PROOF_EQUAL)
        return out;
    struct arena *tmp = arena_new();
    prove_apart(tmp, try_plan, &t, &out);
    arena_free(tmp);
    return out;
}

/* ---- what was chosen --------------------------------------------------------------------------------------------------------- */

static void print_chosen(void *data, struct proof *out)
{
    const struct space *s = choose(data);
    (void)out;
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        if (strategy_splits(n, n->strategy))
            printf("%s\t%s\n", n->name, strategy_str(s->arena, n, n->strategy));
    }
}

struct named_list prove_chosen(struct arena *a, struct prove *p, const struct prove_plan *plan, struct proof *out)
{
    struct trial t = {p, prepare(p, plan), plan};
    struct named_list list = {0};
    *out = t.prepared->state;
    char *line = out->kind == PROOF_EQUAL ? prove_apart(a, print_chosen, &t, out) : NULL;
    for (char *end; out->kind == PROOF_EQUAL && (end = strchr(line, '\n')); line = end + 1) {
        char *tab = memchr(line, '\t', (size_t)(end - line));
        if (tab)
            VEC_PUSH(a, &list.list,
                     ((struct named){arena_strndup(a, line, (size_t)(tab - line)), arena_strndup(a, tab + 1, (size_t)(end - tab - 1))}));
    }
    return list;
}
