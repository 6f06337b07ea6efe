/* positions: how many tokens a graph takes: by its position tables, its vocabulary, and the configuration next to it. */
#include "decode/stage/stage.h"
#include "job/io/io.h"

static int64_t lesser(int64_t x, int64_t y)
{
    return x < 0 || (y >= 0 && y < x) ? y : x;
}

/* Rows of tables that the input of a role indexes. One row: a table of unknown length. */
static int64_t rows_of_role(const struct stage *s, const struct value_use *use, enum role role)
{
    int i = decode_find_input(s, role);
    return i < 0 || use[i].rows <= 1 ? -1 : use[i].rows;
}

static int64_t rows_of_positions(const struct stage *s, const struct value_use *use)
{
    int64_t most = lesser(rows_of_role(s, use, ROLE_POSITIONS), rows_of_role(s, use, ROLE_CACHE_POSITION));
    return lesser(lesser(most, rows_of_role(s, use, ROLE_MASK)), op_position_tables(s->graph, NULL).rows);
}

/* ---- tables whose indices follow from the number of tokens ---- */

static void bind_open(struct arena *a, struct bindings *b, const struct dim *d, int64_t size)
{
    if (d->kind == DIM_SYM && !bindings_get(b, d->name))
        bindings_set(a, b, d->name, size);
}

static void bind_role(struct arena *a, struct bindings *b, const struct stage *s, enum role role, int64_t size)
{
    for (int i = 0; i < job_given_inputs(s->graph); i++)
        for (int d = 0; s->role[i] == role && d < s->graph->inputs.at[i]->type.rank; d++)
            bind_open(a, b, s->graph->inputs.at[i]->type.dim[d], size);
}

/* A text of n tokens, as one prompt, or, if a run takes a fixed number of them, after a past. All other sizes are 1. */
static struct bindings sizes_of_text(struct arena *a, const struct stage *s, int64_t n)
{
    const struct type *t = &s->graph->inputs.at[decode_find_input(s, ROLE_TOKENS)]->type;
    struct bindings b = {0};
    int64_t fixed = 0;
    bool whole = t->rank < 1 || !dim_is_int(t->dim[t->rank - 1], &fixed);
    for (int d = 0; d < t->rank; d++)
        bind_open(a, &b, t->dim[d], d + 1 < t->rank ? 1 : n);
    bind_role(a, &b, s, ROLE_STATE, whole ? 0 : n - fixed);
    bind_role(a, &b, s, ROLE_ELSEWHERE, whole ? 0 : n - fixed);
    bind_role(a, &b, s, ROLE_MASK, n);
    for (enum role role = ROLE_UNKNOWN; role <= ROLE_ELSEWHERE; role++)
        bind_role(a, &b, s, role, 1);
    return b;
}

static bool fits(const struct stage *s, const struct index_limits *limits, int64_t n)
{
    struct arena *tmp = arena_new();
    const struct bindings b = sizes_of_text(tmp, s, n);
    const struct index_limit *broken;
    bool holds = index_limits_hold(limits, &b, &broken);
    arena_free(tmp);
    return holds;
}

/* -1: there is no such table, or not even one token fits. */
static int64_t rows_of_lookups(struct arena *a, const struct stage *s)
{
    const struct index_limits all = job_size_limits(a, s->graph);
    struct index_limits limits = {0};
    for (int i = 0; i < all.list.n; i++)
        if (dim_is_int(all.list.at[i].rows, NULL))
            VEC_PUSH(a, &limits.list, all.list.at[i]);
    int64_t lo = 1, hi = INT32_MAX;
    if (decode_find_input(s, ROLE_TOKENS) < 0 || !limits.list.n || !fits(s, &limits, lo) || fits(s, &limits, hi))
        return -1;
    while (lo + 1 < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (fits(s, &limits, mid))
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* If a run is a whole text: a part that the graph adds may have a fixed size. -1: none. */
static int64_t most_of_run(struct arena *a, const struct stage *s)
{
    int i = decode_find_input(s, ROLE_TOKENS);
    const struct type *t = i < 0 || s->keeps ? NULL : &s->graph->inputs.at[i]->type;
    const struct dim *size = t && t->rank ? dim_rewrite(s->graph->alg, t->dim[t->rank - 1]) : NULL;
    return size && size->kind == DIM_SYM ? job_most_of(a, s->graph, size->name) : -1;
}

/* As read by rank 0. */
struct stated_limit {
    int64_t tokens;
    char says[512];
};

static void read_limit(struct arena *a, const struct job_options *o, const struct stage *s, struct stated_limit *limit)
{
    const struct config_limit c = config_beside_limit(a, o, s->path, s->decides ? CONFIG_DECODER : CONFIG_ENCODER);
    if (c.note)
        diag_tell("note: %s", c.note);
    limit->tokens = c.tokens;
    (void)snprintf(limit->says, sizeof limit->says, "%s", c.says ? c.says : "");
}

void positions_find(struct arena *a, struct comm *all, const struct job_options *o, struct stage *s)
{
    const struct value_use *use = job_value_uses(a, s->graph);
    struct stated_limit stated = {.tokens = -1};
    s->vocabulary = rows_of_role(s, use, ROLE_TOKENS);
    s->positions = lesser(lesser(rows_of_positions(s, use), rows_of_lookups(a, s)), most_of_run(a, s));
    s->limit = "";
    if (all->rank == 0 && decode_find_input(s, ROLE_TOKENS) >= 0)
        read_limit(a, o, s, &stated);
    comm_from_first(all, "the longest text", &stated, sizeof stated);
    if (stated.tokens < 1 || (s->positions > 0 && s->positions <= stated.tokens))
        return;
    s->positions = stated.tokens;
    s->limit = arena_printf(a, " (%s)", stated.says);
}

int64_t decode_vocabulary(struct arena *a, const struct stage *s)
{
    const struct type *t = &s->logits_type;
    int64_t scores, rows = rows_of_role(s, job_value_uses(a, s->graph), ROLE_TOKENS);
    if (!s->chosen && t->rank > 0 && dim_is_int(t->dim[t->rank - 1], &scores) && (rows < 0 || scores < rows))
        rows = scores;
    return rows < 0 ? INT32_MAX : rows;
}
