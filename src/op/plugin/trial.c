/* trial: runs a node whole and on ranks, and compares the results. */
#include "op/plugin/trial.h"

#include "op/infer/infer.h"

#include <math.h>
#include <string.h>

/* Tolerance relative to the largest number (at least 1): results are rounded once, and each addend of a sum once. */
#define TOLERANCE 2e-5

double plugin_trial_draw(struct plugin_trial *t)
{
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(t->random >> 11) / 9007199254740992.0 * 2 - 1;
}

enum { GUARD = 64, CANARY = 0xa5 }; /* bytes before and after a tensor, which no kernel may write */

/* ---- tensors ------------------------------------------------------------------------------------------------------------------------ */

struct tensor plugin_trial_tensor(struct plugin_trial *t, const struct type *type)
{
    struct tensor x = {.dtype = type->dtype, .rank = type->rank};
    for (int d = 0; d < type->rank; d++)
        if (!dim_is_int(type->dim[d], &x.dim[d]))
            bug("%s: the size of a trial is no number", t->where);
    char *at = arena_alloc(t->arena, tensor_bytes(&x) + 2 * (size_t)GUARD);
    memset(at, CANARY, GUARD);
    memset(at + GUARD + tensor_bytes(&x), CANARY, GUARD);
    x.data = at + GUARD;
    return x;
}

static bool is_guarded(const struct tensor *x)
{
    const uint8_t *front = (const uint8_t *)x->data - GUARD, *back = (const uint8_t *)x->data + tensor_bytes(x);
    for (int i = 0; i < GUARD; i++)
        if (front[i] != CANARY || back[i] != CANARY)
            return false;
    return true;
}

double plugin_trial_get(const struct tensor *x, int64_t i)
{
    return x->dtype == DT_F32 ? (double)((const float *)x->data)[i] : (double)((const int64_t *)x->data)[i];
}

void plugin_trial_set(struct tensor *x, int64_t i, double k)
{
    if (x->dtype == DT_F32)
        ((float *)x->data)[i] = (float)k;
    else
        ((int64_t *)x->data)[i] = (int64_t)k;
}

static void fill(struct plugin_trial *t, struct tensor *x, const struct plugin_value *v)
{
    int64_t below = 8;
    if (v->below && !dim_eval(v->below, &t->bind, &below))
        bug("%s: a bound has no value", t->where);
    for (int64_t i = 0; i < tensor_elements(x); i++)
        plugin_trial_set(x, i, x->dtype == DT_F32 ? plugin_trial_draw(t) : floor((plugin_trial_draw(t) + 1) / 2 * (double)below));
}

static bool near(const struct tensor *x, double a, double b, double most)
{
    return x->dtype == DT_I64 ? a == b : fabs(a - b) <= TOLERANCE * most || (isnan(a) && isnan(b)) || a == b;
}

static double largest(const struct tensor *x)
{
    double most = 1;
    for (int64_t i = 0; i < tensor_elements(x); i++)
        most = isfinite(plugin_trial_get(x, i)) ? fmax(most, fabs(plugin_trial_get(x, i))) : most;
    return most;
}

/* Calls note(global, local) for each element of a rank's shard, with its indices. */
static void each_element(struct plugin_trial *t, const struct tensor *global, const struct tensor *local, struct placement place, int rank,
                         void (*note)(void *, int64_t, int64_t), void *data)
{
    struct interval *piece;
    int n = split_pieces(t->arena, place.split, rank, false, &t->bind, &piece);
    int64_t inner = 1, outer = 1, size = global->dim[place.dim], held = local->dim[place.dim], at = 0;
    for (int d = 0; d < global->rank; d++)
        *(d < place.dim ? &outer : &inner) *= d == place.dim ? 1 : global->dim[d];
    for (int k = 0; k < n; k++)
        for (int64_t i = piece[k].lo; i < piece[k].hi; i++, at++)
            for (int64_t o = 0; o < outer; o++)
                for (int64_t e = 0; e < inner; e++)
                    note(data, (o * size + i) * inner + e, (o * held + at) * inner + e);
    require(n >= 0 && at == held);
}

struct pair {
    struct tensor *global, *local;
    double most;
    uint8_t *seen;
    int64_t wrong; /* the first element that differs; -1: none */
    double is;     /* its value */
};

static void take_element(void *pair, int64_t global, int64_t local)
{
    struct pair *p = pair;
    plugin_trial_set(p->local, local, plugin_trial_get(p->global, global));
}

static void compare(struct pair *p, int64_t element, double is)
{
    if (p->wrong >= 0 || near(p->global, plugin_trial_get(p->global, element), is, p->most))
        return;
    p->wrong = element;
    p->is = is;
}

static void compare_element(void *pair, int64_t global, int64_t local)
{
    struct pair *p = pair;
    compare(p, global, plugin_trial_get(p->local, local));
    p->seen[global] = 1;
}

/* ---- the node, whole and on ranks -------------------------------------------------------------------------------------------- */

static struct node *new_node(struct plugin_trial *t, struct graph *g, const struct type *in)
{
    struct value *operand[PLUGIN_OPERANDS];
    const struct plugin_signature *s = &t->p->signature;
    for (int i = 0; i < s->nin; i++)
        operand[i] = graph_value(g, s->in[i].name, &in[i]);
    struct node *n = graph_node(g, &t->p->op, "self-check", s->nin, operand, s->nout);
    if (t->like)
        attr_copy(n, t->like);
    for (int i = 0; i < s->nout; i++)
        node_output(g, n, i, graph_value(g, s->out[i].name, NULL));
    return n;
}

struct graph *plugin_trial_graph(struct plugin_trial *t, struct alg *alg)
{
    struct graph *g = graph_new(t->arena, alg, "self-check");
    g->path = t->where;
    return g;
}

/* "x: f32[4, 8], w: f32[8]" */
static const char *operands_text(const struct plugin_trial *t, const struct node *n)
{
    const char *text = "";
    for (int i = 0; i < n->nin; i++)
        text = arena_printf(t->arena, "%s%s%s: %s", text, i ? ", " : "", n->in[i]->name, type_str(t->arena, &n->in[i]->type));
    return text;
}

static void run_kernel(struct plugin_trial *t, const struct graph *g, const struct node *n, const struct tensor *in, struct tensor *out)
{
    struct kcall call = {.node = n, .graph = g, .nin = n->nin, .nout = n->nout, .in = in, .out = out, .bind = &t->bind, .env = t->env};
    const char *with = operands_text(t, n);
    signal_while(arena_printf(t->arena, "the self-check of %s ran its kernel with %s", t->where, with));
    t->p->op.kernel(&call);
    signal_while(NULL);
    for (int i = 0; i < n->nin + n->nout; i++)
        if (!is_guarded(i < n->nin ? &in[i] : &out[i - n->nin]))
            fail("%s: its kernel writes before or behind '%s', with %s", t->where, i < n->nin ? n->in[i]->name : n->out[i - n->nin]->name,
                 with);
}

/* The whole run: its results, all of which the kernel must write, and which must depend on the operands alone. */
static void run_whole(struct plugin_trial *t)
{
    struct tensor again[PLUGIN_RESULTS];
    uint64_t before[PLUGIN_OPERANDS];
    for (int i = 0; i < t->node->nin; i++) {
        t->in[i] = plugin_trial_tensor(t, &t->node->in[i]->type);
        fill(t, &t->in[i], &t->p->signature.in[i]);
        before[i] = digest_bytes(t->in[i].data, tensor_bytes(&t->in[i]));
    }
    for (int i = 0; i < t->node->nout; i++) {
        t->whole[i] = plugin_trial_tensor(t, &t->node->out[i]->type);
        again[i] = plugin_trial_tensor(t, &t->node->out[i]->type);
        memset(again[i].data, 0xff, tensor_bytes(&again[i]));
    }
    run_kernel(t, t->graph, t->node, t->in, t->whole);
    run_kernel(t, t->graph, t->node, t->in, again);
    for (int i = 0; i < t->node->nin; i++)
        if (before[i] != digest_bytes(t->in[i].data, tensor_bytes(&t->in[i])))
            fail("%s: its kernel writes to operand '%s'", t->where, t->p->signature.in[i].name);
    for (int i = 0; i < t->node->nout; i++)
        if (memcmp(t->whole[i].data, again[i].data, tensor_bytes(&again[i])) != 0)
            fail("%s: its kernel leaves elements of '%s' unwritten, or two runs on the same operands differ", t->where,
                 t->p->signature.out[i].name);
}

struct local {
    struct graph *graph;
    struct node *node;
};

static void infer_local(void *local)
{
    struct local *l = local;
    op_infer(l->graph, l->node);
}

/* Runs a rank on its shards; fails with a sentence if its types differ from those of the placements. */
static const char *run_rank(struct plugin_trial *t, int rank, const struct placement *in, const struct placement *out,
                            struct tensor *const *addends, struct tensor *result)
{
    struct alg *alg = t->graph->alg;
    struct type type[PLUGIN_OPERANDS];
    struct tensor shard[PLUGIN_OPERANDS];
    for (int i = 0; i < t->node->nin; i++)
        type[i] = placement_local(alg, &t->node->in[i]->type, in[i], rank);
    struct local l = {.graph = plugin_trial_graph(t, alg)};
    l.node = new_node(t, l.graph, type);
    const char *why = diag_try(t->arena, infer_local, &l);
    if (why)
        return why;
    for (int i = 0; i < t->node->nout; i++) {
        struct type want = placement_local(alg, &t->node->out[i]->type, out[i], rank);
        if (!type_eq(&want, &l.node->out[i]->type))
            return arena_printf(t->arena, "a rank's '%s' is %s, expected %s", t->p->signature.out[i].name,
                                type_str(t->arena, &l.node->out[i]->type), type_str(t->arena, &want));
        result[i] = plugin_trial_tensor(t, &want);
    }
    for (int i = 0; i < t->node->nin; i++) {
        shard[i] = in[i].kind == PLACE_P ? addends[i][rank] : in[i].kind == PLACE_R ? t->in[i] : plugin_trial_tensor(t, &type[i]);
        struct pair p = {.global = &t->in[i], .local = &shard[i]};
        if (in[i].kind == PLACE_S)
            each_element(t, &t->in[i], &shard[i], in[i], rank, take_element, &p);
    }
    for (int i = 0; i < t->node->nout; i++)
        if (tensor_elements(&result[i]) > 0) {
            run_kernel(t, l.graph, l.node, shard, result);
            break;
        }
    return NULL;
}

static double reduce(enum redop op, double a, double b)
{
    return op == RED_SUM ? a + b : op == RED_PROD ? a * b : op == RED_MAX ? fmax(a, b) : fmin(a, b);
}

/* Compares element k with the whole result. */
static void compare_sum(struct pair *p, int64_t k, struct placement place, int ranks, int i, struct tensor (*result)[PLUGIN_RESULTS])
{
    double sum = plugin_trial_get(&result[0][i], k);
    for (int r = 1; r < ranks; r++) {
        double next = plugin_trial_get(&result[r][i], k);
        if (place.kind == PLACE_P)
            sum = reduce(place.op, sum, next);
        else
            compare(p, k, next);
    }
    compare(p, k, sum);
}

/* Compares result i of all ranks with the whole one; NULL: it is right. */
static const char *result_wrong(struct plugin_trial *t, int i, struct placement place, int ranks, struct tensor (*result)[PLUGIN_RESULTS])
{
    struct tensor *whole = &t->whole[i];
    int64_t n = tensor_elements(whole);
    struct pair p = {.global = whole, .most = largest(whole), .seen = arena_alloc(t->arena, (size_t)n + 1), .wrong = -1};
    for (int r = 0; place.kind == PLACE_S && r < ranks; r++) {
        p.local = &result[r][i];
        each_element(t, whole, p.local, place, r, compare_element, &p);
    }
    const char *name = t->p->signature.out[i].name;
    if (place.kind == PLACE_S && p.wrong < 0 && memchr(p.seen, 0, (size_t)n))
        return arena_printf(t->arena, "no rank makes all of '%s'", name);
    for (int64_t k = 0; place.kind != PLACE_S && k < n; k++)
        compare_sum(&p, k, place, ranks, i, result);
    if (p.wrong < 0)
        return NULL;
    double one = plugin_trial_get(whole, p.wrong);
    t->infinite = !isfinite(one) || !isfinite(p.is);
    return arena_printf(t->arena, "'%s' of %d ranks is not that of one: element %lld is %g, expected %g", name, ranks, (long long)p.wrong,
                        p.is, one);
}

/* NULL: with these placements ranks compute what one computes. */
const char *plugin_trial_wrong(struct plugin_trial *t, int ranks, const struct placement *in, const struct placement *out,
                               struct tensor *const *addends)
{
    struct tensor result[TRIAL_RANKS][PLUGIN_RESULTS];
    for (int r = 0; r < ranks; r++) {
        const char *why = run_rank(t, r, in, out, addends, result[r]);
        if (why)
            return why;
    }
    const char *why = NULL;
    for (int i = 0; i < t->node->nout && !why; i++)
        why = result_wrong(t, i, out[i], ranks, result);
    return why;
}

void plugin_trial_start(struct plugin_trial *t, const struct type *in)
{
    t->node = new_node(t, t->graph, in);
    op_infer(t->graph, t->node);
    run_whole(t);
}
