/* Random graphs under random plans. Graph number S is made of the random choices of seed S; every fourth one is exact: integers only, by
 * ops that keep them so, and equal bits. It runs whole and under some random legal plans on 2 to 5 ranks, half of them of split strategies
 * only, half with dense addends, half of splits that the planner would not think of. Where rows are said to be independent it also runs in
 * parts. What fails is made smaller (draws.h) and printed with its plan. Work is shared among processes by number. At the end: ops that no
 * graph had, and those that are never generated without a reason, which is a failure, too. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/options/args.h"
#include "op/op.h"
#include "tests/graphs/families.h"
#include "tests/graphs/generate.h"
#include "tests/prove/prove.h"
#include "tests/ready.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLANS_OF_SHRUNK = 8, SHRINK_TRIES = 150, MOST_REPORTS = 3 };

struct graphs_options {
    int64_t graphs, seed, plans, jobs;
    bool exact, print;
};
/* Over all processes. */
struct tally {
    int graphs, empty, nodes, plans, split, rows, wrong, made[1024];
    double worst;
};

/* ---- the command line -------------------------------------------------------------------------------------------------------------- */

static const struct arg_prose usage[] = {{"graphs [options]", "random graphs under random plans, compared with the whole run"},
                                         {NULL, NULL}};
static const struct arg_prose none[] = {{NULL, NULL}};

static int64_t from_environment(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text ? number_read(name, text, 1, 1000000000) : otherwise;
}

static void read_options(struct arena *a, struct graphs_options *o, int argc, char **argv)
{
    const struct arg table[] = {
        {"graphs", 0, ARG_INT, &o->graphs, "K", "how many (default: 300)"},
        {"seed", 0, ARG_INT, &o->seed, "S", "number of the first"},
        {"plans", 0, ARG_INT, &o->plans, "K", "plans of each"},
        {"jobs", 'j', ARG_INT, &o->jobs, "J", "processes at a time (default: cores)"},
        {"exact", 0, ARG_FLAG, &o->exact, NULL, "exact graphs only"},
        {"print", 0, ARG_FLAG, &o->print, NULL, "only print the graphs"},
    };
    struct args args = {
        "graphs", "random graphs under random plans", usage, table, (int)(sizeof table / sizeof *table), none, none, none, NULL, NULL};
    *o = (struct graphs_options){.graphs = from_environment("GRAPHS", 300), .seed = 1, .plans = 1, .jobs = sysconf(_SC_NPROCESSORS_ONLN)};
    if (args_parse(a, &args, argc, argv).text.n)
        fail_usage("graphs takes options only");
}

/* ---- one graph --------------------------------------------------------------------------------------------------------------- */

struct subject {
    const struct generated *g;
    uint64_t seed;
    int plans;
    bool exact;
    struct tally *tally;
};

/* Two ranks are as likely as any other number; the seed says everything. */
static struct prove_plan plan_of(const struct subject *s, int k)
{
    uint64_t state = s->seed * 1000 + (uint64_t)k, bits = next_random(&state);
    return (struct prove_plan){.ranks = 2 + (int)(bits % 4),
                               .seed = 1 + (bits >> 40),
                               .split_only = bits >> 8 & 1,
                               .dense = bits >> 9 & 1,
                               .wide = bits >> 10 & 1,
                               .sp = bits >> 11 & 1 ? SP_AUTO : SP_OFF,
                               .exact = s->exact};
}

static void try_rows(struct prove *p, bool exact, int *tried, struct proof *out)
{
    *out = prove_rows(p, 0, exact, tried);
    if (out->kind != PROOF_EQUAL)
        printf("rows of a symbol in two parts: %s: %s\n", proof_kind_name(out->kind), out->said);
}

/* Prints a line that names the plan where one is wrong. */
static void try_plans(void *data, struct proof *out)
{
    const struct subject *s = data;
    struct arena *a = arena_new();
    struct prove *p = prove_open_given(a, s->g->text, 1, &s->g->input);
    for (int k = 0; k < s->plans && out->kind == PROOF_EQUAL; k++) {
        const struct prove_plan plan = plan_of(s, k);
        *out = prove_try(p, &plan);
        if (s->tally) {
            s->tally->plans++;
            s->tally->split += out->split;
            s->tally->worst = out->worst > s->tally->worst ? out->worst : s->tally->worst;
        }
        if (out->kind != PROOF_EQUAL)
            printf("plan %d: %d ranks, seed %llu%s%s%s%s: %s: %s\n", k, plan.ranks, (unsigned long long)plan.seed,
                   plan.split_only ? ", split only" : "", plan.dense ? ", dense" : "", plan.wide ? ", wide" : "",
                   plan.sp ? ", sp=auto" : "", proof_kind_name(out->kind), out->said);
    }
    int rows = 0;
    if (out->kind == PROOF_EQUAL)
        try_rows(p, s->exact, &rows, out);
    if (s->tally)
        s->tally->rows += rows;
    prove_close(p);
}

/* ---- shrinking --------------------------------------------------------------------------------------------------------------- */

struct shrunk {
    struct subject subject;
    enum proof_kind kind;
};

static bool still_fails(void *data, struct draw_list *list)
{
    struct shrunk *s = data;
    struct arena *a = arena_new();
    struct draws draws = draws_given(a, list);
    struct proof p = {.kind = PROOF_EQUAL};
    s->subject.g = generate(a, &draws, s->subject.exact);
    if (s->subject.g)
        (void)prove_apart(a, try_plans, &s->subject, &p);
    for (int i = 0; i < list->list.n && i < draws.made.list.n; i++)
        list->list.at[i] = draws.made.list.at[i];
    list->list.n = draws.made.list.n < list->list.n ? draws.made.list.n : list->list.n;
    arena_free(a);
    return p.kind == s->kind;
}

/* The first plan of the small graph that fails, made small itself. */
static void explain_failure(void *data, struct proof *out)
{
    const struct subject *s = data;
    struct arena *a = arena_new();
    struct prove *p = prove_open_given(a, s->g->text, 1, &s->g->input);
    for (int k = 0; k < s->plans && out->kind == PROOF_EQUAL; k++) {
        const struct prove_plan plan = plan_of(s, k);
        *out = prove_try(p, &plan);
        if (out->kind != PROOF_EQUAL)
            prove_shrink(stdout, p, &plan, out, arena_printf(a, "graph-%llu.txt", (unsigned long long)s->seed));
    }
    prove_close(p);
}

static void report(struct draw_list *list, const struct subject *failed, const struct proof *p)
{
    struct arena *a = arena_new();
    struct shrunk s = {*failed, p->kind};
    s.subject.plans = PLANS_OF_SHRUNK;
    s.subject.tally = NULL;
    draws_shrink(a, list, SHRINK_TRIES, still_fails, &s);
    struct draws draws = draws_given(a, list);
    struct proof ignored = {.kind = PROOF_EQUAL};
    s.subject.g = generate(a, &draws, s.subject.exact);
    if (s.subject.g) {
        char *said = prove_apart(a, explain_failure, &s.subject, &ignored);
        printf("smaller:\n%s", s.subject.g->text);
        for (int i = 0; i < s.subject.g->sizes.list.n; i++)
            printf("  %s = %lld\n", s.subject.g->sizes.list.at[i].name, (long long)s.subject.g->sizes.list.at[i].value);
        printf("%s", said);
    }
    (void)fflush(stdout);
    arena_free(a);
}

/* ---- a range of graphs ------------------------------------------------------------------------------------------------------- */

static void count(struct tally *t, const struct generated *g)
{
    t->graphs++;
    t->nodes += g->nodes;
    for (int i = 0; i < op_count(); i++)
        t->made[i] += g->made[i];
}

static void try_graph(const struct graphs_options *o, uint64_t seed, struct tally *t)
{
    struct arena *a = arena_new();
    struct draws draws = draws_random(a, seed);
    bool exact = o->exact || seed % 4 == 0;
    struct generated *g = generate(a, &draws, exact);
    struct subject s = {g, seed, (int)o->plans, exact, t};
    struct proof p = {.kind = PROOF_EQUAL};
    if (!g) {
        t->empty++;
    } else if (o->print) {
        printf("# graph %llu\n%s", (unsigned long long)seed, g->text);
    } else {
        count(t, g);
        char *said = prove_apart(a, try_plans, &s, &p);
        if (p.kind != PROOF_EQUAL) {
            printf("not ok: graphs --seed %llu --graphs 1 --plans %d%s: %s", (unsigned long long)seed, s.plans, o->exact ? " --exact" : "",
                   said);
            (void)fflush(stdout);
            if (t->wrong++ < MOST_REPORTS)
                report(&draws.made, &s, &p);
        }
    }
    arena_free(a);
}

/* In a process of its own, which an op that refuses what was made for it may end. */
static void try_graph_apart(const struct graphs_options *o, uint64_t seed, struct tally *t)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        try_graph(o, seed, t);
        (void)fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) {
        printf("not ok: graphs --seed %llu --graphs 1: it could not be made\n", (unsigned long long)seed);
        (void)fflush(stdout);
        t->wrong++;
    }
}

static _Noreturn void work(const struct graphs_options *o, int64_t first, struct tally *t)
{
    for (int64_t i = first; i < o->graphs; i += o->jobs)
        try_graph_apart(o, (uint64_t)(o->seed + i), t);
    _exit(0);
}

static struct tally *shared_tallies(int64_t n)
{
    struct tally *t = mmap(NULL, (size_t)n * sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED)
        fail("no memory to share: %s", strerror(errno));
    return t;
}

static struct tally run_all(const struct graphs_options *o)
{
    struct tally *t = shared_tallies(o->jobs), sum = {0};
    for (int64_t j = 0; j < o->jobs; j++)
        if (fork() == 0)
            work(o, j, &t[j]);
    for (int status, left = (int)o->jobs; left > 0; left--)
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
            sum.wrong++;
    for (int64_t j = 0; j < o->jobs; j++) {
        sum.graphs += t[j].graphs;
        sum.empty += t[j].empty;
        sum.nodes += t[j].nodes;
        sum.plans += t[j].plans;
        sum.split += t[j].split;
        sum.rows += t[j].rows;
        sum.wrong += t[j].wrong;
        sum.worst = t[j].worst > sum.worst ? t[j].worst : sum.worst;
        for (int i = 0; i < op_count(); i++)
            sum.made[i] += t[j].made[i];
    }
    return sum;
}

static int ops_not_met(const struct tally *t)
{
    int n = 0;
    for (int i = 0; i < op_count(); i++)
        if (family_of(op_at(i)) && !t->made[i])
            n += printf("%s is in no graph\n", op_at(i)->name) > 0;
    return n;
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct graphs_options o;
    diag_setup("graphs", -1);
    read_options(a, &o, argc, argv);
    require(op_count() <= (int)(sizeof((struct tally *)0)->made / sizeof(int)));
    (void)fflush(NULL);
    ready_products();
    struct tally t = run_all(&o);
    int unmet = o.print || o.graphs < 300 ? 0 : ops_not_met(&t), unexplained = never_generated(stdout);
    printf("%s: %d graphs (%d empty) of %d nodes, %d plans, %d nodes split, rows of %d symbols in parts, %d wrong, worst difference %.3g\n",
           t.wrong || unmet || unexplained ? "not ok" : "ok", t.graphs, t.empty, t.nodes, t.plans, t.split, t.rows, t.wrong, t.worst);
    arena_free(a);
    return t.wrong || unmet || unexplained;
}
