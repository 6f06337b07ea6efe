/* signature: global types and placements of a graph's inputs and outputs, and the symbols that real inputs bind. A rank file has it in its
 * metadata; for a plain graph it follows from the types and the equations found at load.
 *
 * A dimension that is one unknown symbol binds it; an expression with one unknown symbol in which it is affine is solved for it; everything
 * else is computed and compared. Solving repeats until nothing new is known; then everything is checked. */
#include "ir/rank_meta.h"
#include "run/session/session.h"

#include <string.h>

/* Checks that the metadata's global type matches the graph's local type: kernels rely on the graph, callers on the metadata. */
static void check_piece(struct graph *g, const char *kind, const struct value *v, const struct formal *f, bool sizes)
{
    bool same = f->type.dtype == v->type.dtype && f->type.rank == v->type.rank;
    for (int k = 0; same && sizes && k < v->type.rank; k++)
        if (f->place.kind != PLACE_S || f->place.dim != k)
            same = dim_rewrite(g->alg, f->type.dim[k]) == dim_rewrite(g->alg, v->type.dim[k]);
    if (!same)
        fail("%s: metadata of %s '%s' says %s, the graph %s", g->path, kind, v->name, type_str(g->arena, &f->type),
             type_str(g->arena, &v->type));
}

static struct formal formal_read(struct graph *g, enum rank_end end, const struct value *v)
{
    struct formal f = {.name = v->name, .type = v->type, .place = placement_replicated};
    const char *kind = end == RANK_INPUT ? "input" : "output";
    if (!g->rank_meta)
        return f;
    if (!rank_meta_value(g, end, v->name, &f.type, &f.place))
        fail("%s: metadata has no entry for %s '%s'", g->path, kind, v->name);
    check_piece(g, kind, v, &f, end == RANK_INPUT);
    return f;
}

/* raw: an interner without equations, in which an assumption does not simplify to "S == S". */
static const struct dim *parse_side(struct alg *raw, const struct graph *g, const char *text, const char *assumption)
{
    const char *error = NULL;
    const struct dim *d = dim_parse(raw, text, 0, &error);
    if (!d)
        fail("%s: assumption '%s': %s", g->path, assumption, error);
    return d;
}

static void read_rank_meta(struct arena *a, const struct graph *g, const struct rank_meta *m, struct signature *s)
{
    struct alg *raw = alg_new(a);
    for (int i = 0; i < m->nassumption; i++) {
        const struct rank_assumption *e = &m->assumption[i];
        s->assume[s->nassume++] = (struct assumption){parse_side(raw, g, e->left, e->text), parse_side(raw, g, e->right, e->text), e->text};
    }
    for (int i = 0; i < m->nbound; i++)
        VEC_PUSH(a, &s->lower, ((struct binding){m->bound[i].symbol, m->bound[i].least}));
}

static void read_equations(struct arena *a, const struct graph *g, struct signature *s)
{
    const struct equation *e;
    int n = alg_equations(g->alg, &e);
    for (int i = 0; i < n; i++)
        s->assume[s->nassume++] = (struct assumption){
            e[i].left, e[i].right,
            arena_printf(a, "%s == %s # %s", dim_str(a, e[i].left), dim_str(a, e[i].right), e[i].why ? e[i].why : "")};
}

struct lower_bounds {
    struct arena *arena;
    struct signature *of;
};

static void lower_add(void *data, const struct dim *symbol)
{
    const struct lower_bounds *to = data;
    for (int i = 0; i < to->of->lower.n; i++)
        if (strcmp(to->of->lower.at[i].name, symbol->name) == 0)
            return;
    VEC_PUSH(to->arena, &to->of->lower, ((struct binding){symbol->name, symbol->lo}));
}

void signature_read(struct arena *a, struct graph *g, struct signature *s)
{
    *s = (struct signature){.path = graph_file(g), .nin = g->inputs.n, .nout = g->outputs.n};
    s->in = NEWN(a, struct formal, s->nin);
    s->out = NEWN(a, struct formal, s->nout);
    for (int i = 0; i < s->nin; i++)
        s->in[i] = formal_read(g, RANK_INPUT, g->inputs.at[i]);
    for (int i = 0; i < s->nout; i++)
        s->out[i] = formal_read(g, RANK_OUTPUT, g->outputs.at[i]);
    for (int i = 0; i < s->nin; i++)
        if (s->in[i].place.kind == PLACE_P)
            fail("%s: input '%s' is declared partial", s->path, s->in[i].name);
    const struct equation *equations;
    s->assume = NEWN(a, struct assumption, alg_equations(g->alg, &equations) + (g->rank_meta ? g->rank_meta->nassumption : 0));
    if (g->rank_meta)
        read_rank_meta(a, g, g->rank_meta, s);
    read_equations(a, g, s); /* a rank file's own sizes may need more */
    for (int i = 0; !g->rank_meta && i < s->nin; i++)
        for (int k = 0; k < s->in[i].type.rank; k++)
            dim_each_symbol(s->in[i].type.dim[k], lower_add, &(struct lower_bounds){a, s});
}

/* The only symbol of d without a value; NULL: none, or several. */
static const char *only_unknown(const struct dim *d, const struct bindings *b)
{
    const char *name[16], *unknown = NULL;
    int n = dim_symbols(d, name, 16);
    for (int i = 0; i < n && i < 16; i++) {
        if (bindings_get(b, name[i]))
            continue;
        if (unknown)
            return NULL;
        unknown = name[i];
    }
    return unknown;
}

static bool eval_at(struct arena *a, const struct dim *d, struct bindings *b, const char *name, int64_t x, int64_t *out)
{
    bindings_set(a, b, name, x);
    return dim_eval(d, b, out);
}

/* Whether neighbours of the solution have other values: min(x, 1) = 1 has many solutions. */
static bool is_affine_at(struct arena *a, const struct dim *d, struct bindings *b, const char *name, int64_t x, int64_t slope)
{
    int64_t below, above, lower, higher;
    return i64_sub(x, 1, &below) && i64_add(x, 1, &above) && eval_at(a, d, b, name, below, &lower) &&
        eval_at(a, d, b, name, above, &higher) && higher - lower == 2 * slope;
}

/* Solves d = wanted for its only unknown symbol if d is affine in it (checked at the solution). */
static bool solve_symbol(struct arena *a, const struct dim *d, int64_t wanted, struct bindings *b)
{
    const char *name = only_unknown(d, b);
    int64_t y0, y1, slope, rest, y;
    if (!name)
        return false;
    int known = b->list.n;
    if (eval_at(a, d, b, name, 0, &y0) && eval_at(a, d, b, name, 1, &y1) && i64_sub(y1, y0, &slope) && slope != 0 &&
        i64_sub(wanted, y0, &rest) && rest % slope == 0 && is_affine_at(a, d, b, name, rest / slope, slope) &&
        eval_at(a, d, b, name, rest / slope, &y) && y == wanted)
        return true;
    b->list.n = known;
    return false;
}

/* Solves sizes of the inputs, or of the session's states, which have sizes and no data here. */
static bool solve_inputs(struct arena *a, const struct signature *s, const struct tensor *in, bool kept, struct bindings *b)
{
    bool more = false;
    for (int i = 0; i < s->nin; i++)
        for (int k = 0; k < in[i].rank; k++)
            if (!in[i].data == kept && in[i].dim[k] >= 0 && solve_symbol(a, s->in[i].type.dim[k], in[i].dim[k], b))
                more = true;
    return more;
}

static bool solve_assumptions(struct arena *a, const struct signature *s, struct bindings *b)
{
    bool more = false;
    int64_t y;
    for (int i = 0; i < s->nassume; i++) {
        const struct assumption *e = &s->assume[i];
        if (dim_eval(e->right, b, &y) && solve_symbol(a, e->left, y, b))
            more = true;
        else if (dim_eval(e->left, b, &y) && solve_symbol(a, e->right, y, b))
            more = true;
    }
    return more;
}

void signature_complete(struct arena *a, const struct signature *s, struct bindings *b)
{
    while (solve_assumptions(a, s, b))
        continue;
}

static void check_input_type(struct arena *a, const struct signature *s, const struct formal *f, const struct tensor *t)
{
    if (t->dtype != f->type.dtype)
        fail("%s: input '%s' is %s, expected %s", s->path, f->name, dtype_name(t->dtype), type_str(a, &f->type));
    if (t->rank != f->type.rank)
        fail("%s: input '%s' has %d dimensions, expected %s", s->path, f->name, t->rank, type_str(a, &f->type));
}

static const char *values_str(struct arena *a, const struct dim *d, const struct bindings *b)
{
    const char *name[16], *text = "";
    int n = dim_symbols(d, name, 16);
    for (int i = 0; i < n && i < 16; i++) {
        const int64_t *x = bindings_get(b, name[i]);
        if (x)
            text = arena_printf(a, "%s%s%s = %lld", text, *text ? ", " : "", name[i], (long long)*x);
    }
    return *text ? arena_printf(a, " (%s)", text) : "";
}

static bool keeps_some(const struct signature *s, const struct tensor *in)
{
    for (int i = 0; i < s->nin; i++)
        if (!in[i].data)
            return true;
    return false;
}

static void check_input_sizes(struct arena *a, const struct signature *s, const struct tensor *in, int input, const struct bindings *b)
{
    const struct formal *f = &s->in[input];
    const struct tensor *t = &in[input];
    for (int k = 0; k < t->rank; k++) {
        const struct dim *d = f->type.dim[k];
        int64_t y;
        if (t->dim[k] < 0)
            continue;
        if (!dim_eval(d, b, &y))
            fail("%s: input '%s': size %s of dimension %d can't be computed", s->path, f->name, dim_str(a, d), k);
        if (y == t->dim[k])
            continue;
        const char *of = dim_is_int(d, NULL) ? "" : arena_printf(a, "%s = ", dim_str(a, d));
        fail("%s: input '%s' has %lld in dimension %d, expected %s%lld%s%s", s->path, f->name, (long long)t->dim[k], k, of, (long long)y,
             values_str(a, d, b), keeps_some(s, in) ? ", behind the state that is kept" : "");
    }
}

static void check_assumption(struct arena *a, const struct signature *s, const struct assumption *e, const struct bindings *b)
{
    int64_t x, y, most;
    if (!dim_eval(e->left, b, &x) || !dim_eval(e->right, b, &y) || x == y)
        return;
    const struct dim *zero = dim_of_not_zero(e->left, e->right), *bounded = dim_at_most(e->left, e->right, &most);
    const char *why = strstr(e->text, " # ");
    if (zero && why)
        fail("%s: size %s is %lld, expected at least 1 for %s", s->path, dim_str(a, zero), (long long)x, why + 3);
    else if (bounded)
        fail("%s: the inputs are too large: %s is %lld, and is at most %lld for this model%s%s", s->path, dim_str(a, bounded),
             (long long)(bounded == e->left ? x : y), (long long)most, why ? ", by " : "", why ? why + 3 : "");
    else
        fail("%s: these inputs break an assumption the graph was compiled under, %s: left is %lld%s, right is %lld%s", s->path, e->text,
             (long long)x, values_str(a, e->left, b), (long long)y, values_str(a, e->right, b));
}

void signature_check_assumptions(struct arena *a, const struct signature *s, const struct bindings *b)
{
    for (int i = 0; i < s->nassume; i++)
        check_assumption(a, s, &s->assume[i], b);
}

static void check_lower(const struct signature *s, const struct bindings *b)
{
    for (int i = 0; i < s->lower.n; i++) {
        const int64_t *x = bindings_get(b, s->lower.at[i].name);
        if (x && *x < s->lower.at[i].value)
            fail("%s: size %s is %lld, expected at least %lld", s->path, s->lower.at[i].name, (long long)*x,
                 (long long)s->lower.at[i].value);
    }
}

static void check_input_types(struct arena *a, const struct signature *s, const struct tensor *in)
{
    for (int i = 0; i < s->nin; i++)
        check_input_type(a, s, &s->in[i], &in[i]);
}

void signature_check_inputs(struct arena *a, const struct signature *s, const struct tensor *in, const struct bindings *b)
{
    check_input_types(a, s, in);
    for (int i = 0; i < s->nin; i++)
        check_input_sizes(a, s, in, i, b);
}

void signature_bind(struct arena *a, const struct signature *s, const struct tensor *in, struct bindings *b)
{
    check_input_types(a, s, in);
    while (solve_inputs(a, s, in, true, b)) /* first: errors are usually in what the user gives */
        continue;
    while (solve_inputs(a, s, in, false, b) || solve_assumptions(a, s, b))
        continue;
    signature_check_inputs(a, s, in, b);
    signature_check_assumptions(a, s, b);
    check_lower(s, b);
}
