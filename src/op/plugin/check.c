/* check: the self-check of a plug-in's op. tests/selfcheck does the same for the rows of schemas/ops.def, with more kinds of sizes. */
#include "kern/kern.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/plugin/plugin.h"
#include "op/rule/rule.h"

#include <math.h>
#include <string.h>

/* Allowed of the largest number (at least 1): results are rounded once, addends of a sum once each. */
#define TOLERANCE 2e-5

/* One size for each name of the signature, and the node whole: its operands, and what the kernel makes of them. */
struct trial {
    struct arena *arena;
    const struct plugin_op *p;
    const char *where;
    struct bindings bind;
    struct graph *graph;
    struct node *node;
    struct rule *rule;
    struct kenv *env;
    struct tensor in[PLUGIN_OPERANDS], whole[PLUGIN_RESULTS];
    uint64_t random;
};

static double draw(struct trial *t) /* between -1 and 1 */
{
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(t->random >> 11) / 9007199254740992.0 * 2 - 1;
}

/* ---- tensors ------------------------------------------------------------------------------------------------------------------------ */

static struct tensor new_tensor(struct trial *t, const struct type *type)
{
    struct tensor x = {.dtype = type->dtype, .rank = type->rank};
    for (int d = 0; d < type->rank; d++)
        if (!dim_is_int(type->dim[d], &x.dim[d]))
            bug("%s: the size of a trial is no number", t->where);
    x.data = arena_alloc(t->arena, tensor_bytes(&x) + 64);
    return x;
}

static double get(const struct tensor *x, int64_t i)
{
    return x->dtype == DT_F32 ? (double)((const float *)x->data)[i] : (double)((const int64_t *)x->data)[i];
}

static void set(struct tensor *x, int64_t i, double k)
{
    if (x->dtype == DT_F32)
        ((float *)x->data)[i] = (float)k;
    else
        ((int64_t *)x->data)[i] = (int64_t)k;
}

static void fill(struct trial *t, struct tensor *x, const struct plugin_value *v)
{
    int64_t below = 8;
    if (v->below && !dim_eval(v->below, &t->bind, &below))
        bug("%s: a bound has no value", t->where);
    for (int64_t i = 0; i < tensor_elements(x); i++)
        set(x, i, x->dtype == DT_F32 ? draw(t) : floor((draw(t) + 1) / 2 * (double)below));
}

static bool near(const struct tensor *x, double a, double b, double most)
{
    return x->dtype == DT_I64 ? a == b : fabs(a - b) <= TOLERANCE * most || (isnan(a) && isnan(b)) || a == b;
}

static double largest(const struct tensor *x)
{
    double most = 1;
    for (int64_t i = 0; i < tensor_elements(x); i++)
        most = isfinite(get(x, i)) ? fmax(most, fabs(get(x, i))) : most;
    return most;
}

/* Calls note(global, local) of each element of a rank's shard, by their places. */
static void each_element(struct trial *t, const struct tensor *global, const struct tensor *local, struct placement place, int rank,
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
    bool right;
};

static void take_element(void *pair, int64_t global, int64_t local)
{
    struct pair *p = pair;
    set(p->local, local, get(p->global, global));
}

static void compare_element(void *pair, int64_t global, int64_t local)
{
    struct pair *p = pair;
    p->right = p->right && near(p->global, get(p->global, global), get(p->local, local), p->most);
    p->seen[global] = 1;
}

/* ---- the node, whole and on ranks -----------------------------------------------------------------------------------------------------
 */

static struct node *new_node(struct trial *t, struct graph *g, const struct type *in)
{
    struct value *operand[PLUGIN_OPERANDS];
    const struct plugin_signature *s = &t->p->signature;
    for (int i = 0; i < s->nin; i++)
        operand[i] = graph_value(g, s->in[i].name, &in[i]);
    struct node *n = graph_node(g, &t->p->op, "self-check", s->nin, operand, s->nout);
    for (int i = 0; i < s->nout; i++)
        node_output(g, n, i, graph_value(g, s->out[i].name, NULL));
    return n;
}

static struct graph *new_graph(struct trial *t, struct alg *alg)
{
    struct graph *g = graph_new(t->arena, alg, "self-check");
    g->path = t->where;
    return g;
}

static void run_kernel(struct trial *t, const struct graph *g, const struct node *n, const struct tensor *in, struct tensor *out)
{
    struct kcall call = {.node = n, .graph = g, .nin = n->nin, .nout = n->nout, .in = in, .out = out, .bind = &t->bind, .env = t->env};
    t->p->op.kernel(&call);
}

/* The whole run: its results, all of which the kernel writes, and which operands alone decide. */
static void run_whole(struct trial *t)
{
    struct tensor again[PLUGIN_RESULTS];
    uint64_t before[PLUGIN_OPERANDS];
    for (int i = 0; i < t->node->nin; i++) {
        t->in[i] = new_tensor(t, &t->node->in[i]->type);
        fill(t, &t->in[i], &t->p->signature.in[i]);
        before[i] = digest_bytes(t->in[i].data, tensor_bytes(&t->in[i]));
    }
    for (int i = 0; i < t->node->nout; i++) {
        t->whole[i] = new_tensor(t, &t->node->out[i]->type);
        again[i] = new_tensor(t, &t->node->out[i]->type);
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

/* What a rank makes of its shards; its types are those of the placements, or the sentence says why not. */
static const char *run_rank(struct trial *t, int rank, const struct placement *in, const struct placement *out,
                            struct tensor *const *addends, struct tensor *result)
{
    struct alg *alg = t->graph->alg;
    struct type type[PLUGIN_OPERANDS];
    struct tensor shard[PLUGIN_OPERANDS];
    for (int i = 0; i < t->node->nin; i++)
        type[i] = placement_local(alg, &t->node->in[i]->type, in[i], rank);
    struct local l = {.graph = new_graph(t, alg)};
    l.node = new_node(t, l.graph, type);
    const char *why = diag_try(t->arena, infer_local, &l);
    if (why)
        return why;
    for (int i = 0; i < t->node->nout; i++) {
        struct type want = placement_local(alg, &t->node->out[i]->type, out[i], rank);
        if (!type_eq(&want, &l.node->out[i]->type))
            return arena_printf(t->arena, "a rank's '%s' is %s, expected %s", t->p->signature.out[i].name,
                                type_str(t->arena, &l.node->out[i]->type), type_str(t->arena, &want));
        result[i] = new_tensor(t, &want);
    }
    for (int i = 0; i < t->node->nin; i++) {
        shard[i] = in[i].kind == PLACE_P ? addends[i][rank] : in[i].kind == PLACE_R ? t->in[i] : new_tensor(t, &type[i]);
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

/* Result i of all ranks, against the whole one. */
static bool result_right(struct trial *t, int i, struct placement place, int ranks, struct tensor (*result)[PLUGIN_RESULTS])
{
    struct tensor *whole = &t->whole[i];
    int64_t n = tensor_elements(whole);
    struct pair p = {.global = whole, .most = largest(whole), .seen = arena_alloc(t->arena, (size_t)n + 1), .right = true};
    for (int r = 0; place.kind == PLACE_S && r < ranks; r++) {
        p.local = &result[r][i];
        each_element(t, whole, p.local, place, r, compare_element, &p);
    }
    if (place.kind == PLACE_S)
        return p.right && !memchr(p.seen, 0, (size_t)n);
    for (int64_t k = 0; k < n; k++) {
        double sum = get(&result[0][i], k);
        for (int r = 1; r < ranks; r++) {
            p.right = p.right && (place.kind == PLACE_P || near(whole, get(&result[r][i], k), get(whole, k), p.most));
            sum = place.kind == PLACE_P ? reduce(place.op, sum, get(&result[r][i], k)) : sum;
        }
        p.right = p.right && near(whole, sum, get(whole, k), p.most);
    }
    return p.right;
}

/* NULL: ranks with these placements make what one makes. */
static const char *why_wrong(struct trial *t, int ranks, const struct placement *in, const struct placement *out,
                             struct tensor *const *addends)
{
    struct tensor result[TRIAL_RANKS][PLUGIN_RESULTS];
    for (int r = 0; r < ranks; r++) {
        const char *why = run_rank(t, r, in, out, addends, result[r]);
        if (why)
            return why;
    }
    for (int i = 0; i < t->node->nout; i++)
        if (!result_right(t, i, out[i], ranks, result))
            return arena_printf(t->arena, "'%s' of %d ranks is not that of one", t->p->signature.out[i].name, ranks);
    return NULL;
}

/* ---- what the rule claims --------------------------------------------------------------------------------------------------------------
 */

static void try_factor(struct trial *t, int f)
{
    const struct split *split[TRIAL_SPLITS];
    struct rule *r = t->rule;
    int n = trial_splits(t->arena, t->graph->alg, r->factor[f].size, split);
    for (int i = 0; i < n; i++) {
        struct placement in[PLUGIN_OPERANDS], out[PLUGIN_RESULTS];
        struct assignment a = {.factor = NEWN(t->arena, const struct split *, r->nfactor)};
        a.factor[f] = split[i];
        if (!rule_project(t->graph, r, split[i]->ranks, &a, in, out, NULL))
            continue;
        const char *why = why_wrong(t, split[i]->ranks, in, out, NULL);
        if (why)
            fail("%s: the rule '%s' is wrong: with %s split as %s, %s", t->where, t->p->given.rule, r->factor[f].name,
                 split_str(t->arena, split[i]), why);
    }
}

/* Dense random addends whose reduction is x. */
static struct tensor *new_addends(struct trial *t, const struct tensor *x, const struct type *type, enum redop op, int ranks)
{
    struct tensor *all = NEWN(t->arena, struct tensor, ranks);
    for (int r = 0; r < ranks; r++)
        all[r] = new_tensor(t, type);
    for (int64_t i = 0; i < tensor_elements(x); i++) {
        int owner = (int)(fabs(draw(t)) * ranks) % ranks;
        double rest = get(x, i);
        for (int r = 0; r < ranks; r++) {
            double k = op == RED_SUM ? draw(t) : op == RED_PROD ? 1 + draw(t) / 2 : get(x, i) + (op == RED_MAX ? -1 : 1) * fabs(draw(t));
            if (r == owner)
                continue;
            set(&all[r], i, k);
            rest = op == RED_SUM ? rest - get(&all[r], i) : op == RED_PROD ? rest / get(&all[r], i) : rest;
        }
        set(&all[owner], i, rest);
    }
    return all;
}

static void try_pass(struct trial *t, const struct rule_pass *pass)
{
    enum { RANKS = 3 };
    struct placement in[PLUGIN_OPERANDS], out[PLUGIN_RESULTS];
    struct tensor *addends[PLUGIN_OPERANDS] = {NULL};
    for (int i = 0; i < t->node->nin; i++) {
        bool partial = pass->operands >> i & 1;
        if (partial && t->in[i].dtype != DT_F32)
            return;
        in[i] = partial ? placement_partial(pass->from) : placement_replicated;
        if (partial)
            addends[i] = new_addends(t, &t->in[i], &t->node->in[i]->type, pass->from, RANKS);
    }
    for (int i = 0; i < t->node->nout; i++)
        out[i] = placement_partial(pass->to);
    const char *why = why_wrong(t, RANKS, in, out, addends);
    if (why)
        fail("%s: the rule '%s' is wrong: it does not pass %s: %s", t->where, t->p->given.rule, redop_name(pass->from), why);
}

/* Every dimension is one factor, or 1: what the trials cover. */
static void check_form(const struct trial *t)
{
    const struct rule *r = t->rule;
    bool plain = r->ngroup == 0 && r->nsize == 0 && r->query_outer < 0;
    for (int f = 0; f < r->nfactor; f++)
        plain = plain && !(r->factor[f].flags & FACTOR_LOWERED);
    for (int i = 0; i < r->nin + r->nout; i++) {
        const struct rule_operand *o = i < r->nin ? &r->in[i] : &r->out[i - r->nin];
        for (int d = 0; d < o->rank; d++)
            plain = plain && !o->dim[d].window && o->dim[d].n <= 1 && (o->dim[d].n == 0 || o->dim[d].part[0].n <= 1);
    }
    if (!plain)
        fail("%s: the rule '%s': a dimension of a plug-in's rule is one factor or 1, without windows, parts, groups and lowerings",
             t->where, t->p->given.rule);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------------------------------
 */

static bool has_dotted(const struct plugin_signature *s)
{
    for (int i = 0; i < s->nin; i++)
        for (int d = 0; d < s->in[i].n; d++)
            if (s->in[i].dim[d].dotted)
                return true;
    return false;
}

/* Each name gets another size; round shifts them. */
static int64_t size_of(struct trial *t, const struct dim *size, int round)
{
    static const int64_t sizes[] = {8, 5, 6, 7, 9, 10, 4};
    if (size->kind == DIM_INT)
        return size->k;
    const int64_t *known = bindings_get(&t->bind, size->name);
    if (!known)
        bindings_set(t->arena, &t->bind, size->name, sizes[(t->bind.list.n + round) % (int)(sizeof sizes / sizeof *sizes)]);
    return *bindings_get(&t->bind, size->name);
}

static void set_types(struct trial *t, int round, int dotted, struct type *type)
{
    static const int64_t leading[] = {4, 3, 2};
    const struct plugin_signature *s = &t->p->signature;
    for (int i = 0; i < s->nin; i++) {
        type[i] = (struct type){.dtype = s->in[i].dtype};
        for (int k = 0; k < s->in[i].n; k++) {
            const struct plugin_dim *x = &s->in[i].dim[k];
            for (int j = 0; j < (x->dotted ? dotted : 1); j++) {
                if (type[i].rank == MAX_RANK)
                    return;
                type[i].dim[type[i].rank++] = dim_int(t->graph->alg, x->dotted ? leading[j] : size_of(t, x->size, round));
            }
        }
    }
}

static void check_round(const struct plugin_op *p, const char *where, int round, int dotted)
{
    struct arena *a = arena_new();
    struct trial t = {.arena = a, .p = p, .where = where, .env = kenv_new(1, false), .random = (uint64_t)round + 1};
    struct type type[PLUGIN_OPERANDS];
    struct rule_pass pass[MOST_PASSES];
    t.graph = new_graph(&t, alg_new(a));
    set_types(&t, round, dotted, type);
    t.node = new_node(&t, t.graph, type);
    op_infer(t.graph, t.node);
    run_whole(&t);
    t.rule = p->op.rule ? rule_of(t.graph, t.node) : NULL;
    if (t.rule)
        check_form(&t);
    for (int f = 0; t.rule && f < t.rule->nfactor; f++)
        if (rule_factor_splits(&t.rule->factor[f]))
            try_factor(&t, f);
    int passes = t.rule ? rule_passes(t.rule, pass) : 0;
    for (int i = 0; i < passes; i++)
        try_pass(&t, &pass[i]);
    kenv_free(t.env);
    arena_free(a);
}

void plugin_check(const struct plugin_op *p, const char *where)
{
    for (int round = 0; round < 3; round++)
        check_round(p, where, round, has_dotted(&p->signature) ? (round + 1) % 3 : 0);
}
