/* bind: what a graph takes and gives, globally, and the symbols that real inputs bind. A rank file says so in its metadata
 * (tpc.input.NAME, tpc.output.NAME, tpc.assume.N, tpc.dims.SYMBOL); a plain graph by its types and the equations met at load.
 *
 * A dimension that is one unknown symbol binds it; an expression with one unknown symbol in which it is linear solves for it;
 * everything else is computed and compared. Solving repeats until nothing new is known, then all is checked. */
#include "run/session/session.h"

#include <string.h>

static char *formal_text(struct arena *a, struct graph *g, const char *kind, const char *name, const char **place)
{
    const char *text = graph_meta(g, arena_printf(a, "tpc.%s.%s", kind, name));
    if (!text)
        return NULL;
    char *copy = arena_strdup(a, text), *bar = strrchr(copy, '|');
    if (!bar)
        fail("%s: metadata of %s '%s' is '%s', expected a type and a placement separated by '|'", g->path, kind, name, text);
    *bar = '\0';
    *place = bar + 1 + strspn(bar + 1, " ");
    for (char *end = bar; end > copy && end[-1] == ' ';)
        *--end = '\0';
    return copy;
}

/* What the metadata says of the whole must be what the graph says of the piece: kernels trust the graph, callers the metadata. */
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

static struct formal formal_read(struct arena *a, struct graph *g, const char *kind, const struct value *v)
{
    struct formal f = {.name = v->name, .type = v->type, .place = placement_whole};
    const char *place = NULL, *error = NULL;
    char *type = formal_text(a, g, kind, v->name, &place);
    if (!type) {
        if (graph_meta(g, "tpc.ranks"))
            fail("%s: metadata has no entry for %s '%s'", g->path, kind, v->name);
        return f;
    }
    if (!type_parse(g->alg, type, 0, &f.type, &error))
        fail("%s: metadata of %s '%s': %s", g->path, kind, v->name, error);
    if (!placement_parse(g->alg, place, &f.place, &error))
        fail("%s: metadata of %s '%s': %s", g->path, kind, v->name, error);
    if (f.place.kind == PLACE_S && (f.place.dim < 0 || f.place.dim >= f.type.rank))
        fail("%s: metadata of %s '%s' splits dimension %d of %d", g->path, kind, v->name, f.place.dim, f.type.rank);
    check_piece(g, kind, v, &f, !strcmp(kind, "input"));
    return f;
}

/* raw: an interner without equations, under which an assumption would read "S == S". */
static const struct dim *side(struct alg *raw, const struct graph *g, const char *text, const char *whole)
{
    const char *error = NULL;
    const struct dim *d = dim_parse(raw, text, 0, &error);
    if (!d)
        fail("%s: assumption '%s': %s", g->path, whole, error);
    return d;
}

static void assumption_read(struct arena *a, struct alg *raw, const struct graph *g, const char *text, struct assumption *out)
{
    char *copy = arena_strdup(a, text), *why = strstr(copy, " # "), *equal;
    if (why)
        *why = '\0';
    equal = strstr(copy, " == ");
    if (!equal)
        fail("%s: assumption '%s' is not of the form 'left == right'", g->path, text);
    *equal = '\0';
    *out = (struct assumption){side(raw, g, copy, text), side(raw, g, equal + 4, text), text};
}

static void equations_read(struct arena *a, struct graph *g, struct signature *s)
{
    const struct equation *e;
    int n = alg_equations(g->alg, &e);
    s->assume = NEWN(a, struct assumption, n + g->meta.n);
    if (!graph_meta(g, "tpc.ranks"))
        for (int i = 0; i < n; i++)
            s->assume[s->nassume++] = (struct assumption){
                e[i].left, e[i].right,
                arena_printf(a, "%s == %s # %s", dim_str(a, e[i].left), dim_str(a, e[i].right), e[i].why ? e[i].why : "")};
}

static void meta_read(struct arena *a, struct graph *g, struct signature *s)
{
    struct alg *raw = alg_new(a);
    for (int i = 0; i < g->meta.n; i++) {
        const struct meta *m = &g->meta.at[i];
        if (!strncmp(m->key, "tpc.assume.", 11))
            assumption_read(a, raw, g, m->text, &s->assume[s->nassume++]);
        if (!strncmp(m->key, "tpc.dims.", 9)) {
            int64_t lo;
            if (!i64_parse(m->text, INT64_MIN, INT64_MAX, &lo))
                fail("%s: metadata '%s' is '%s', expected an integer", g->path, m->key, m->text);
            VEC_PUSH(a, &s->lower, ((struct binding){m->key + 9, lo}));
        }
    }
}

struct lower_bounds {
    struct arena *arena;
    struct signature *of;
};

static void lower_add(void *data, const struct dim *symbol)
{
    const struct lower_bounds *to = data;
    for (int i = 0; i < to->of->lower.n; i++)
        if (!strcmp(to->of->lower.at[i].name, symbol->name))
            return;
    VEC_PUSH(to->arena, &to->of->lower, ((struct binding){symbol->name, symbol->lo}));
}

void signature_read(struct arena *a, struct graph *g, struct signature *s)
{
    *s = (struct signature){.path = graph_file(g), .nin = g->inputs.n, .nout = g->outputs.n};
    s->in = NEWN(a, struct formal, s->nin);
    s->out = NEWN(a, struct formal, s->nout);
    for (int i = 0; i < s->nin; i++)
        s->in[i] = formal_read(a, g, "input", g->inputs.at[i]);
    for (int i = 0; i < s->nout; i++)
        s->out[i] = formal_read(a, g, "output", g->outputs.at[i]);
    for (int i = 0; i < s->nin; i++)
        if (s->in[i].place.kind == PLACE_P)
            fail("%s: input '%s' is declared partial", s->path, s->in[i].name);
    equations_read(a, g, s);
    meta_read(a, g, s);
    if (graph_meta(g, "tpc.ranks"))
        return;
    for (int i = 0; i < s->nin; i++)
        for (int k = 0; k < s->in[i].type.rank; k++)
            dim_each_symbol(s->in[i].type.dim[k], lower_add, &(struct lower_bounds){a, s});
}

/* The only symbol of d without a value; NULL when there is none, or more than one. */
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

/* d = wanted, solved for its only unknown symbol where d is affine in it (checked at the solution). */
static bool solve(struct arena *a, const struct dim *d, int64_t wanted, struct bindings *b)
{
    const char *name = only_unknown(d, b);
    int64_t y0, y1, slope, rest, y;
    if (!name)
        return false;
    int known = b->list.n;
    if (eval_at(a, d, b, name, 0, &y0) && eval_at(a, d, b, name, 1, &y1) && i64_sub(y1, y0, &slope) && slope != 0 &&
        i64_sub(wanted, y0, &rest) && rest % slope == 0 && eval_at(a, d, b, name, rest / slope, &y) && y == wanted)
        return true;
    b->list.n = known;
    return false;
}

static bool solve_inputs(struct arena *a, const struct signature *s, const struct tensor *in, struct bindings *b)
{
    bool more = false;
    for (int i = 0; i < s->nin; i++)
        for (int k = 0; k < in[i].rank; k++)
            if (in[i].dim[k] >= 0 && solve(a, s->in[i].type.dim[k], in[i].dim[k], b))
                more = true;
    return more;
}

static bool solve_assumptions(struct arena *a, const struct signature *s, struct bindings *b)
{
    bool more = false;
    int64_t y;
    for (int i = 0; i < s->nassume; i++) {
        const struct assumption *e = &s->assume[i];
        if (dim_eval(e->right, b, &y) && solve(a, e->left, y, b))
            more = true;
        else if (dim_eval(e->left, b, &y) && solve(a, e->right, y, b))
            more = true;
    }
    return more;
}

void signature_complete(struct arena *a, const struct signature *s, struct bindings *b)
{
    while (solve_assumptions(a, s, b))
        continue;
}

static void check_kind(struct arena *a, const struct signature *s, const struct formal *f, const struct tensor *t)
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

static void check_sizes(struct arena *a, const struct signature *s, const struct formal *f, const struct tensor *t,
                        const struct bindings *b)
{
    for (int k = 0; k < t->rank; k++) {
        const struct dim *d = f->type.dim[k];
        int64_t y;
        if (t->dim[k] < 0)
            continue;
        if (!dim_eval(d, b, &y))
            fail("%s: input '%s': size %s of dimension %d can't be computed", s->path, f->name, dim_str(a, d), k);
        if (y == t->dim[k])
            continue;
        fail("%s: input '%s' has %lld in dimension %d, expected %s = %lld%s", s->path, f->name, (long long)t->dim[k], k, dim_str(a, d),
             (long long)y, values_str(a, d, b));
    }
}

static void check_assumptions(struct arena *a, const struct signature *s, const struct bindings *b)
{
    for (int i = 0; i < s->nassume; i++) {
        const struct assumption *e = &s->assume[i];
        int64_t x, y;
        if (!dim_eval(e->left, b, &x) || !dim_eval(e->right, b, &y)) {
            explain("%s: assumption %s is about sizes that no input has", s->path, e->text);
            continue;
        }
        if (x == y)
            continue;
        fail("%s: these inputs break an assumption the graph was compiled under, %s: left is %lld%s, right is %lld%s", s->path, e->text,
             (long long)x, values_str(a, e->left, b), (long long)y, values_str(a, e->right, b));
    }
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

void signature_bind(struct arena *a, const struct signature *s, const struct tensor *in, struct bindings *b)
{
    for (int i = 0; i < s->nin; i++)
        check_kind(a, s, &s->in[i], &in[i]);
    while (solve_inputs(a, s, in, b) || solve_assumptions(a, s, b))
        continue;
    for (int i = 0; i < s->nin; i++)
        check_sizes(a, s, &s->in[i], &in[i], b);
    check_assumptions(a, s, b);
    check_lower(s, b);
}
