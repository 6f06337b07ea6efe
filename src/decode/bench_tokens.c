/* bench_tokens: --bench of a graph that decodes text: prompts of random tokens, and the tokens after them, decoded as by --generate. */
#include "decode/decode.h"
#include "job/io/io.h"
#include "job/timing/timing.h"

#include <string.h>

enum { USUAL_PROMPT = 512, USUAL_STEPS = 32 };

static int count_states(const struct graph *g)
{
    return g->rank_meta ? g->rank_meta->nstate : g->states.n;
}

/* Whether every state carries over between runs and grows. */
static bool states_grow(const struct graph *g)
{
    const struct rank_meta *m = g->rank_meta;
    for (int i = 0; i < count_states(g); i++) {
        if (m ? !*m->state[i].past || !*m->state[i].present : !g->states.at[i].past || !g->states.at[i].present)
            return false;
        if ((m ? m->state[i].dim : g->states.at[i].dim) < 0)
            return false;
    }
    return true;
}

/* Whether there are states, which grow, and some input has tokens: in stages, in any of them. */
static bool decodes(struct arena *a, const struct stage *s, struct comm *all)
{
    bool shrinks = stage_any(s, all, !states_grow(s->graph)), keeps = stage_any(s, all, count_states(s->graph) > 0);
    return stage_any(s, all, op_tokens_input(job_value_uses(a, s->graph), s->graph->inputs.n) >= 0) && keeps && !shrinks;
}

/* Whether the graph has rows of tokens and needs no other input. */
static bool feeds_itself(const struct stage *s)
{
    int i = decode_find_input(s, ROLE_TOKENS);
    return i >= 0 && s->graph->inputs.at[i]->type.rank == 2 && decode_find_input(s, ROLE_CONSTANT) < 0 && s->decides;
}

/* The symbol of a dimension of the tokens; NULL: its size is fixed. */
static const char *symbol_of(const struct type *t, int dim)
{
    return t->dim[dim]->kind == DIM_SYM ? t->dim[dim]->name : NULL;
}

/* The size of a dimension of the tokens: fixed, given, or the first workload's. */
static int64_t planned(const struct stage *s, const struct job_options *o, const struct type *t, int dim, int64_t usual)
{
    const char *symbol = symbol_of(t, dim);
    struct bindings first = {0};
    int64_t size = usual;
    if (!symbol)
        return dim_is_int(t->dim[dim], &size) ? size : usual;
    const int64_t *at = bindings_get(&o->dims, symbol);
    if (!at && rank_meta_workload(s->graph, 1, &first))
        at = bindings_get(&first, symbol);
    return at ? *at : usual;
}

static void check_names(const struct job_options *o, const char *rows, const char *prompt)
{
    for (int i = 0; i < o->dims.list.n; i++) {
        const char *name = o->dims.list.at[i].name;
        if ((!rows || strcmp(name, rows)) && (!prompt || strcmp(name, prompt)))
            fail_usage("--dim names '%s', and the prompts of --bench have %s%s%s", name, rows ? rows : "no size to choose",
                       prompt ? " and " : "", prompt ? prompt : "");
        if (o->dims.list.at[i].value < 1)
            fail_usage("--dim: %s is %lld, expected at least 1", name, (long long)o->dims.list.at[i].value);
    }
}

struct sizes {
    int64_t rows, prompt, steps;
};

static struct sizes find_sizes(const struct stage *s, const struct job_options *o)
{
    int64_t positions = s->positions;
    const struct type t = roles_type(s->graph, RANK_INPUT, s->graph->inputs.at[decode_find_input(s, ROLE_TOKENS)]);
    int64_t tokens;
    check_names(o, symbol_of(&t, 0), symbol_of(&t, 1));
    struct sizes n = {planned(s, o, &t, 0, 1), planned(s, o, &t, 1, USUAL_PROMPT), o->generate};
    if (!n.steps)
        n.steps = positions > 1 && positions / 2 < USUAL_STEPS ? positions / 2 : USUAL_STEPS;
    if (positions > 0 && n.steps >= positions)
        fail_usage("--generate is %lld, and %s has positions for %lld tokens%s", (long long)n.steps, s->path, (long long)positions,
                   s->limit);
    if (positions > 0 && n.prompt + n.steps > positions)
        n.prompt = positions - n.steps;
    if (!i64_mul(n.rows, n.prompt, &tokens) || tokens > INT32_MAX)
        fail_usage("--dim: %lld prompts of %lld tokens are too many", (long long)n.rows, (long long)n.prompt);
    return n;
}

static double since(struct comm *all, double *at)
{
    all->barrier(all);
    double now = clock_seconds(), seconds = now - *at;
    *at = now;
    return seconds;
}

struct bench {
    const struct sizes *sizes;
    const int64_t *prompt;
    int64_t *next;
    struct prompt_groups groups; /* one, or in stages as many as there are stages */
};

static void join_row(void *bench, struct rows *rows, int64_t row)
{
    const struct row_sampling best = {.of = {.top_p = 1, .penalty = 1}};
    const struct bench *b = bench;
    rows_join(rows, b->prompt + row * b->sizes->prompt, b->sizes->prompt, 0, &best);
}

static void run_steps(const struct bench *b)
{
    for (int64_t i = 0; i <= b->sizes->steps; i++)
        for (int k = 0; k < b->groups.n; k++) {
            (void)rows_finish(b->groups.at[k].rows, b->next + b->groups.at[k].from);
            if (i < b->sizes->steps)
                rows_begin_step(b->groups.at[k].rows);
        }
}

/* Runs all rows' prompts, then their further tokens: seconds of both. */
static void run_once(struct comm *all, struct bench *b, double seconds[2])
{
    double at = 0;
    (void)since(all, &at);
    prompt_groups_prompts(&b->groups, b->next, join_row, b);
    seconds[0] = since(all, &at);
    run_steps(b);
    seconds[1] = since(all, &at);
    for (int k = 0; k < b->groups.n; k++) {
        while (rows_count(b->groups.at[k].rows))
            rows_leave(b->groups.at[k].rows, rows_count(b->groups.at[k].rows) - 1);
        b->groups.at[k].joined = 0;
    }
}

/* The same on every rank. */
static int64_t *random_tokens(struct arena *a, int64_t n, int64_t vocabulary)
{
    int64_t *token = NEWN(a, int64_t, n);
    for (int64_t i = 0; i < n; i++)
        token[i] = (int64_t)(splitmix((uint64_t)i * SPLITMIX_STEP) % (uint64_t)vocabulary);
    return token;
}

static void measure(struct arena *a, struct comm *all, struct bench *b, const struct job_options *o, int threads)
{
    const struct sizes *n = b->sizes;
    int64_t runs = bench_runs(o), tokens = n->rows * n->prompt;
    double *seconds[2] = {NEWN(a, double, runs), NEWN(a, double, runs)}, of[2];
    const char *many = n->rows > 1 ? arena_printf(a, "%lld x ", (long long)n->rows) : "";
    struct bench_table *table = bench_table_new(a, all, o, threads);
    run_once(all, b, of); /* reads and packs weights */
    for (int64_t i = 0; i < runs; i++) {
        run_once(all, b, of);
        seconds[0][i] = of[0];
        seconds[1][i] = of[1];
    }
    bench_table_add(table, &(struct bench_test){arena_printf(a, "%spp%lld", many, (long long)n->prompt), tokens, (int)runs, seconds[0]});
    bench_table_add(table,
                    &(struct bench_test){arena_printf(a, "%stg%lld @ d%lld", many, (long long)n->steps, (long long)n->prompt),
                                         n->rows * n->steps, (int)runs, seconds[1]});
    bench_table_end(table);
}

bool bench_tokens_run(struct arena *a, const struct replicas *replicas, const struct job_options *given, int threads)
{
    struct job_options own = *given;
    struct comm *all = replicas->all;
    struct stage s = {.path = given->paths.text.at[0], .number = 1};
    own.generate = own.generate ? own.generate : USUAL_STEPS;
    stage_load(a, all, &own, &s);
    bool text = decodes(a, &s, all);
    if (text)
        roles_find(a, all, &s, 1, &own);
    if (!text || !feeds_itself(&s)) {
        pipeline_free(s.pipeline);
        return false;
    }
    job_note_workloads(s.graph, s.path);
    positions_find(a, all, &own, &s);
    const struct sizes n = find_sizes(&s, given);
    own.generate = n.steps;
    int64_t vocabulary = decode_vocabulary(a, &s);
    stage_prepare(a, all, &own, threads, &s, 0);
    struct rows *rows = rows_new(a, all, &s, n.rows);
    if (n.rows > 1 && rows_alone(rows))
        fail_usage("--dim: %lld rows can't run together in %s: %s", (long long)n.rows, s.path, rows_alone(rows));
    if (s.pipeline && n.prompt > PREFIX_BLOCK) /* parts of one prompt are in several stages */
        (void)rows_try_parts(rows, &own, vocabulary, s.positions > 0 ? s.positions : INT32_MAX);
    struct bench b = {.sizes = &n, .groups = prompt_groups_new(a, &s, rows, n.rows), .next = NEWN(a, int64_t, n.rows)};
    b.prompt = random_tokens(a, n.rows * n.prompt, vocabulary);
    bench_warn(all, &own);
    measure(a, all, &b, &own, threads);
    prompt_groups_free(&b.groups);
    stage_free(&s);
    return true;
}
