/* signature: "x: f32[b.., n], w: f32[n] -> y: f32[b.., n]", parsed once, and the types of a node's results by it. */
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/plugin/plugin.h"

#include <ctype.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------------------------------------------------------------------ */

enum { MOST_TIMES = 256 }; /* of a dimension that is a multiple */
struct signature_reader {
    struct arena *arena;
    struct alg *alg;
    const char *where, *text, *at;
};

static _Noreturn void misread(const struct signature_reader *in, const char *what)
{
    fail("%s: signature '%s': %s at character %d, '%s'", in->where, in->text, what, (int)(in->at - in->text) + 1, in->at);
}

/* Fails; names the text from there on. */
static _Noreturn void misread_from(struct signature_reader *in, const char *start, const char *what)
{
    in->at = start;
    misread(in, what);
}

static bool take(struct signature_reader *in, const char *token)
{
    in->at += strspn(in->at, " ");
    size_t n = strlen(token);
    if (strncmp(in->at, token, n) != 0)
        return false;
    in->at += n;
    return true;
}

static void expect(struct signature_reader *in, const char *token)
{
    if (!take(in, token))
        misread(in, arena_printf(in->arena, "expected %s", token));
}

static const char *take_name(struct signature_reader *in)
{
    in->at += strspn(in->at, " ");
    const char *start = in->at;
    while (isalnum((unsigned char)*in->at) || *in->at == '_')
        in->at++;
    if (in->at == start || isdigit((unsigned char)*start))
        misread_from(in, start, "expected a name");
    return arena_strndup(in->arena, start, (size_t)(in->at - start));
}

/* An expression up to one of these characters outside of parentheses. */
static const struct dim *take_size(struct signature_reader *in, const char *end)
{
    in->at += strspn(in->at, " ");
    const char *start = in->at, *error = NULL;
    for (int depth = 0; *in->at && (depth > 0 || !strchr(end, *in->at)); in->at++)
        depth += (*in->at == '(') - (*in->at == ')');
    const struct dim *size = dim_parse(in->alg, arena_strndup(in->arena, start, (size_t)(in->at - start)), 0, &error);
    if (!size)
        misread_from(in, start, error);
    return size;
}

/* For an operand: an integer, a name, or a multiple of one. */
static void set_times(struct signature_reader *in, struct plugin_dim *d, const char *start)
{
    const char *name;
    d->times = 1;
    if (d->size->kind == DIM_SYM || (d->size->kind == DIM_INT && d->size->k > 0))
        return;
    const struct dim *symbol = dim_symbols(d->size, &name, 1) == 1 ? dim_sym(in->alg, name, 0) : NULL;
    const struct dim *times = symbol ? dim_quotient(in->alg, d->size, symbol) : NULL;
    if (!times || !dim_is_int(times, &d->times) || d->times < 1 || d->times > MOST_TIMES)
        misread_from(in, start,
                     arena_printf(in->arena,
                                  "a dimension of an operand is a name, as n, up to %d times one, as 2*n, or an integer above 0,",
                                  MOST_TIMES));
    d->size = symbol;
}

static void take_dim(struct signature_reader *in, struct plugin_dim *d, bool operand)
{
    in->at += strspn(in->at, " ");
    const char *start = in->at;
    size_t n = strspn(start, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    if (strncmp(start + n, "..", 2) == 0) {
        *d = (struct plugin_dim){.dotted = true, .name = take_name(in), .at = start};
        in->at += 2;
        return;
    }
    d->size = take_size(in, ",]");
    d->at = start;
    if (operand)
        set_times(in, d, start);
}

static void take_value(struct signature_reader *in, struct plugin_value *v, bool operand)
{
    int dotted = 0;
    v->name = take_name(in);
    expect(in, ":");
    in->at += strspn(in->at, " ");
    const char *start = in->at;
    v->dtype = dtype_parse(take_name(in));
    if (v->dtype != DT_F32 && v->dtype != DT_I64)
        misread_from(in, start, "a type is f32 or i64,");
    expect(in, "[");
    start = in->at;
    while (!take(in, "]")) {
        if (v->n == MAX_RANK)
            misread(in, "too many dimensions");
        if (v->n)
            expect(in, ",");
        take_dim(in, &v->dim[v->n], operand);
        dotted += v->dim[v->n++].dotted;
    }
    if (dotted > 1)
        misread_from(in, start, "two dimensions with ..");
    if (operand && take(in, "<")) {
        start = v->below_at = in->at + strspn(in->at, " ");
        v->below = take_size(in, ",-");
        if (v->dtype != DT_I64 || (v->below->kind != DIM_SYM && v->below->kind != DIM_INT))
            misread_from(in, start, "only i64 is below a name or an integer,");
    }
}

static int take_values(struct signature_reader *in, struct plugin_value *v, int most, bool operand, const char **names)
{
    int n = 0;
    *names = "";
    do {
        const char *start = in->at + strspn(in->at, " ");
        if (n == most)
            misread(in, arena_printf(in->arena, "more than %d %s", most, operand ? "operands" : "results"));
        take_value(in, &v[n], operand);
        for (int i = 0; i < n; i++)
            if (strcmp(v[i].name, v[n].name) == 0)
                misread_from(in, start, "two values of one name");
        *names = arena_printf(in->arena, "%s%s%s", *names, n ? " " : "", v[n].name);
        n++;
    } while (take(in, ","));
    return n;
}

/* Whether it is a dimension, of this kind, of some operand. */
static bool operand_has(const struct plugin_signature *s, const char *name, bool dotted)
{
    for (int i = 0; i < s->nin; i++)
        for (int d = 0; d < s->in[i].n; d++) {
            const struct plugin_dim *x = &s->in[i].dim[d];
            if (x->dotted == dotted && (dotted ? strcmp(x->name, name) == 0 : x->size->kind == DIM_SYM && strcmp(x->size->name, name) == 0))
                return true;
        }
    return false;
}

/* at: its position in the text. */
static void check_known(struct signature_reader *in, const struct plugin_signature *s, const struct dim *size, const char *at)
{
    enum { MOST_NAMES = 16 };
    const char *name[MOST_NAMES];
    int n = dim_symbols(size, name, MOST_NAMES);
    for (int i = 0; i < n && i < MOST_NAMES; i++)
        if (!operand_has(s, name[i], false))
            misread_from(in, at, arena_printf(in->arena, "no operand has a dimension '%s',", name[i]));
}

struct plugin_signature plugin_signature_parse(struct arena *a, struct alg *alg, const char *text, const char *where)
{
    struct signature_reader in = {a, alg, where, text, text};
    struct plugin_signature s = {0};
    s.nin = take_values(&in, s.in, PLUGIN_OPERANDS, true, &s.inputs);
    expect(&in, "->");
    s.nout = take_values(&in, s.out, PLUGIN_RESULTS, false, &s.outputs);
    in.at += strspn(in.at, " ");
    if (*in.at)
        misread(&in, "expected its end");
    for (int i = 0; i < s.nin; i++)
        if (s.in[i].below)
            check_known(&in, &s, s.in[i].below, s.in[i].below_at);
    for (int i = 0; i < s.nout; i++)
        for (int d = 0; d < s.out[i].n; d++) {
            const struct plugin_dim *x = &s.out[i].dim[d];
            if (x->dotted && !operand_has(&s, x->name, true))
                misread_from(&in, x->at, arena_printf(a, "no operand has dimensions '%s..',", x->name));
            if (!x->dotted)
                check_known(&in, &s, x->size, x->at);
        }
    return s;
}

/* ---- types -------------------------------------------------------------------------------------------------------------------------- */

/* The dimensions for the names of a signature in one node. */
struct named_dims {
    const char *name;
    bool dotted;
    int n;
    const struct dim *at[MAX_RANK];
};
struct names {
    struct graph *g;
    struct node *node;
    int n;
    struct named_dims at[PLUGIN_OPERANDS * MAX_RANK];
};

static struct named_dims *find_name(struct names *all, const char *name, bool dotted)
{
    for (int i = 0; i < all->n; i++)
        if (all->at[i].dotted == dotted && strcmp(all->at[i].name, name) == 0)
            return &all->at[i];
    return NULL;
}

static void bind_name(struct names *all, const char *name, bool dotted, int n, const struct dim *const *at)
{
    struct named_dims *known = find_name(all, name, dotted);
    if (!known) {
        all->at[all->n] = (struct named_dims){.name = name, .dotted = dotted, .n = n};
        memcpy(all->at[all->n++].at, at, (size_t)n * sizeof *at);
        return;
    }
    if (known->n != n)
        fail("%s: '%s..' stands for %d dimensions of one operand and %d of another", node_where(all->g, all->node), name, known->n, n);
    for (int i = 0; i < n; i++)
        known->at[i] = op_same_dim(all->g, all->node, known->at[i], at[i], arena_printf(all->g->arena, "dimensions '%s'", name));
}

static void bind_multiple(struct names *all, const struct plugin_value *v, const struct plugin_dim *x, const struct dim *size)
{
    const struct dim *by = x->times == 1 ? size : dim_quotient(all->g->alg, size, dim_int(all->g->alg, x->times));
    if (!by)
        fail("%s: a dimension of operand '%s' is %s, and the plug-in takes multiples of %lld", node_where(all->g, all->node), v->name,
             dim_str(all->g->arena, size), (long long)x->times);
    bind_name(all, x->size->name, false, 1, &by);
}

static void bind_operand(struct names *all, const struct plugin_value *v, int i)
{
    const struct type *t = op_operand(all->g, all->node, i);
    int dotted = 0, d = 0;
    for (int k = 0; k < v->n; k++)
        dotted += v->dim[k].dotted;
    int spread = t->rank - (v->n - dotted);
    if (t->dtype != v->dtype)
        fail("%s: operand '%s' is %s, and the plug-in takes %s", node_where(all->g, all->node), v->name, dtype_name(t->dtype),
             dtype_name(v->dtype));
    if (spread < 0 || (!dotted && spread > 0))
        fail("%s: operand '%s' has %d dimensions, and the plug-in takes %s%d", node_where(all->g, all->node), v->name, t->rank,
             dotted ? "at least " : "", v->n - dotted);
    for (int k = 0; k < v->n; k++) {
        const struct plugin_dim *x = &v->dim[k];
        if (x->dotted)
            bind_name(all, x->name, true, spread, &t->dim[d]);
        else if (x->size->kind == DIM_SYM)
            bind_multiple(all, v, x, t->dim[d]);
        else
            (void)op_same_dim(all->g, all->node, dim_int(all->g->alg, x->size->k), t->dim[d], "dimensions that the plug-in fixes");
        d += x->dotted ? spread : 1;
    }
}

static const struct dim *size_of_name(void *names, const struct dim *symbol)
{
    const struct named_dims *known = find_name(names, symbol->name, false);
    return known ? known->at[0] : NULL;
}

static void set_result(struct names *all, const struct plugin_value *v, int i)
{
    const struct dim *dim[MAX_RANK];
    int rank = 0;
    for (int k = 0; k < v->n; k++) {
        const struct named_dims *dotted = v->dim[k].dotted ? find_name(all, v->dim[k].name, true) : NULL;
        int n = dotted ? dotted->n : 1;
        if (rank + n > MAX_RANK)
            fail("%s: result '%s' has more than %d dimensions", node_where(all->g, all->node), v->name, MAX_RANK);
        for (int j = 0; j < n; j++)
            dim[rank++] = dotted ? dotted->at[j] : dim_replace(all->g->alg, v->dim[k].size, size_of_name, all);
    }
    op_result(all->g, all->node, i, v->dtype, rank, dim);
}

void plugin_infer(struct graph *g, struct node *node)
{
    const struct plugin_signature *s = &plugin_op_of(node)->signature;
    struct names all = {.g = g, .node = node};
    for (int i = 0; i < s->nin; i++)
        bind_operand(&all, &s->in[i], i);
    for (int i = 0; i < s->nout; i++) {
        if (!node_result(node, i))
            fail("%s: the plug-in makes %d results, and the node does not take '%s'", node_where(g, node), s->nout, s->out[i].name);
        set_result(&all, &s->out[i], i);
    }
}
