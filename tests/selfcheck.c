/* The self-check of rules: no wrong rule can land.
 *
 * For every op that has a rule, on sample one-node graphs, every factor (and every product of adjoining factors) is split in every way:
 * even, uneven, with empty ranks, segmented, strided, overlapping, from the end, inside a symbolic outer or inner size. Factors that only a
 * lowering splits are split through it, on threads where ranks talk within a node. The node is localized for each rank, the op's own kernel
 * runs whole and on each rank's shard, the results are combined as the rule says and compared. Partial operands are dense random addends,
 * never one rank's value beside zeros. Each sample runs in a process of its own, since a wrong rule may end in a bug(). At the end: what
 * the rules do not claim although it would be right, and ops with a rule but no sample (a failure). */
#include "tests/selfcheck.h"

#include "ir/text/text.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"
#include "op/emit/emit.h"
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/op.h"
#include "op/plugin/plugin.h"
#include "op/recurrent/recurrent.h"
#include "op/rule/rule.h"
#include "passes/pass.h"
#include "plan/cost/cost.h"
#include "run/collective/collective.h"
#include "tests/ready.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct sample samples[] = {
#include "tests/selfcheck.def"
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static const struct binding sizes[] = {{"B", 3}, {"S", 5}, {"T", 7}, {"P", 2}};

/* The float types in which every sample is run, f32 first: the one in which samples are written. */
static const enum dtype float_types[] = {DT_F32, DT_F16, DT_BF16};

/* The difference that is allowed, in parts of the largest number (at least 1): results are rounded once, addends of a sum once each. */
static double tolerance(enum dtype t)
{
    return t == DT_F16 ? 0x1p-8 : t == DT_BF16 ? 0x1p-5 : 2e-5;
}

/* It has floats, and the op takes other ones than f32, too. */
static bool in_half(const struct sample *s)
{
    return strstr(s->text, "f32") && strcmp(s->op, "DynamicQuantizeLinear") != 0 && strcmp(s->op, "IntegerMatMul") != 0 &&
        strcmp(s->op, "IntegerConv") != 0;
}

/* The sample's text with its floats in another type. */
static const char *retyped(struct arena *arena, const char *text, enum dtype type)
{
    const char *out = "", *at;
    for (; (at = strstr(text, "f32")); text = at + 3)
        out = arena_printf(arena, "%s%.*s%s", out, (int)(at - text), text, dtype_name(type));
    return arena_printf(arena, "%s%s", out, text);
}

/* ---- one sample under way ------------------------------------------------------------------------------------------------------ */

static uint64_t random_state = 1;

double trial_draw(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) / 9007199254740992.0 * 2 - 1;
}

/* ---- tensors ------------------------------------------------------------------------------------------------------------------------- */

struct tensor trial_tensor(struct trial *t, const struct type *type)
{
    struct tensor out = {.dtype = type->dtype, .rank = type->rank};
    for (int d = 0; d < type->rank; d++)
        if (!dim_eval(type->dim[d], &t->bind, &out.dim[d]))
            bug("%s: size %s has no value", t->sample->op, dim_str(t->arena, type->dim[d]));
    out.data = arena_alloc(t->arena, tensor_bytes(&out) + 64);
    return out;
}

/* A kernel that reads elements of few bits as files have them gets them so. */
static struct tensor operand_tensor(struct trial *t, const struct type *type)
{
    struct tensor out = trial_tensor(t, type);
    out.packed = dtype_is_packed(type->dtype) && t->node->op->flags & OP_PACKED;
    return out;
}

double tensor_get(const struct tensor *x, int64_t i)
{
    double k;
    float packed;
    if (x->packed) {
        dequant_load(x, i, 1, &packed);
        return (double)packed;
    }
    convert_to_f64(x->dtype, element_at_const(x->data, dtype_size(x->dtype), i), 1, &k);
    return k;
}

void trial_set(struct tensor *x, int64_t i, double k)
{
    if (x->packed) {
        int bits = dtype_bits(x->dtype), per = 8 / bits, at = (int)(i % per) * bits, mask = (1 << bits) - 1;
        uint8_t *byte = (uint8_t *)x->data + i / per;
        *byte = (uint8_t)((*byte & ~(mask << at)) | ((int)k & mask) << at);
        return;
    }
    convert_from_f64(x->dtype, &k, 1, element_at(x->data, dtype_size(x->dtype), i));
}

/* What floats lie around. */
static double centre(const struct trial *t)
{
    for (int i = 0; i < t->node->nin; i++)
        if (t->node->in[i] && !dtype_is_float(t->node->in[i]->type.dtype))
            return 0;
    return (double)t->sample->below;
}

/* One of few floats: ties, and NaN. */
static double draw_tie(void)
{
    double k = floor(trial_draw() * 3);
    return k < -2 ? NAN : k;
}

/* Integer operands: indices below the sample's bound, or (-1) the length that attention states: past plus sequence (less one: per row).
 * TIES: floats are few. */
static double draw_element(const struct trial *t, const struct tensor *x)
{
    if (dtype_is_float(x->dtype))
        return t->sample->below == TIES ? draw_tie() : centre(t) + trial_draw();
    if (t->sample->below < 0)
        return x->rank == 0 ? 7 : 6;
    return floor((trial_draw() + 1) / 2 * (double)t->sample->below);
}

/* A constant that says something keeps its value; one of zeros stands for any. */
static void fill(const struct trial *t, struct tensor *x, const struct value *v)
{
    const char *said = v->constant ? constant_data(v->constant, v->name) : "";
    size_t bytes = v->constant && (int64_t)tensor_bytes(x) == v->constant->bytes ? tensor_bytes(x) : 0, zeros = 0;
    while (zeros < bytes && !said[zeros])
        zeros++;
    if (zeros < bytes)
        memcpy(x->data, said, bytes);
    for (int64_t i = 0; zeros == bytes && i < tensor_elements(x); i++)
        trial_set(x, i, draw_element(t, x));
}

/* ---- shards ------------------------------------------------------------------------------------------------------------------ */

/* Copies between a rank's shard and the global tensor, or compares what is there with the shard. seen: elements of the global one. */
enum copying { TO_SHARD, COMPARE, BACK_UNCHECKED };
static bool copy_shard(struct trial *t, struct placement place, int rank, struct tensor *global, struct tensor *local, enum copying how,
                       uint8_t *seen)
{
    struct interval *piece;
    int n = split_pieces(t->arena, place.split, rank, false, &t->bind, &piece);
    int64_t inner = 1, outer = 1, at = 0, size = global->dim[place.dim], held = local->dim[place.dim];
    require(n >= 0);
    for (int d = 0; d < global->rank; d++)
        *(d < place.dim ? &outer : &inner) *= d == place.dim ? 1 : global->dim[d];
    for (int k = 0; k < n; k++)
        for (int64_t i = piece[k].lo; i < piece[k].hi; i++, at++)
            for (int64_t o = 0; o < outer; o++)
                for (int64_t e = 0; e < inner; e++) {
                    int64_t g = (o * size + i) * inner + e, l = (o * held + at) * inner + e;
                    if (how == TO_SHARD) {
                        trial_set(local, l, tensor_get(global, g));
                        continue;
                    }
                    if (how == BACK_UNCHECKED)
                        trial_set(global, g, tensor_get(local, l));
                    double a = tensor_get(global, g), b = tensor_get(local, l);
                    if (!(fabs(a - b) <= tolerance(t->type) * fmax(1, fabs(a))) && !(isnan(a) && isnan(b)) && !(a == b))
                        return false;
                    seen[g] = 1;
                }
    return at == held;
}

/* The rank's operand: a shard, or an addend of a reduction. addends: [ranks], made by make_addends. */
static struct tensor shard(struct trial *t, int i, const struct type *type, struct placement place, int rank, const struct tensor *addends)
{
    if (place.kind == PLACE_P)
        return addends[rank];
    struct tensor out = operand_tensor(t, type);
    if (place.kind == PLACE_R)
        memcpy(out.data, t->in[i].data, tensor_bytes(&out));
    else if (!copy_shard(t, place, rank, &t->in[i], &out, TO_SHARD, NULL))
        bug("%s: a shard does not fill its local type", t->sample->op);
    return out;
}

/* Dense random addends whose reduction is x; for max and min they have the range of x. */
static struct tensor *make_addends(struct trial *t, const struct tensor *x, const struct type *type, enum redop op, int ranks)
{
    struct tensor *addends = NEWN(t->arena, struct tensor, ranks);
    for (int r = 0; r < ranks; r++)
        addends[r] = trial_tensor(t, type);
    for (int64_t i = 0; i < tensor_elements(x); i++) {
        double rest = tensor_get(x, i);
        int owner = (int)(fabs(trial_draw()) * ranks);
        for (int r = 0; r < ranks; r++)
            if (r != owner) {
                double end = centre(t) + (op == RED_MAX ? -1 : 1), most = tensor_get(x, i);
                trial_set(&addends[r], i, op == RED_SUM ? trial_draw() : most + (end - most) * fabs(trial_draw()));
                rest -= op == RED_SUM ? tensor_get(&addends[r], i) : 0;
            }
        trial_set(&addends[owner], i, rest);
    }
    return addends;
}

/* ---- running ----------------------------------------------------------------------------------------------------------------- */

static void run_kernel(struct trial *t, const struct graph *g, const struct node *node, const struct tensor *in, struct tensor *out)
{
    struct kcall call = {
        .node = node, .graph = g, .nin = node->nin, .nout = node->nout, .in = in, .out = out, .bind = &t->bind, .env = t->env};
    for (int i = 0; i < node->nout; i++)
        if (node->out[i])
            out[i] = trial_tensor(t, &node->out[i]->type);
    node->op->kernel(&call);
}

/* NaN wins a maximum or minimum. */
static double reduce(enum redop op, double a, double b)
{
    if (op == RED_MAX || op == RED_MIN)
        return isnan(a) || (op == RED_MAX ? a > b : a < b) ? a : b;
    return op == RED_SUM ? a + b : a * b;
}

static bool close_to(const struct trial *t, const struct tensor *a, const struct tensor *b)
{
    double most = 1;
    for (int64_t i = 0; i < tensor_elements(b); i++)
        if (fabs(tensor_get(b, i)) > most && isfinite(tensor_get(b, i)))
            most = fabs(tensor_get(b, i));
    for (int64_t i = 0; i < tensor_elements(b); i++) {
        double x = tensor_get(a, i), y = tensor_get(b, i);
        if (!(fabs(x - y) <= tolerance(t->type) * most) && !(isnan(x) && isnan(y)) && !(x == y))
            return false;
    }
    return true;
}

/* What the ranks have of one result, against the whole one. results: [rank][output]. */
static bool result_right(struct trial *t, int i, struct placement place, int ranks, struct tensor **results)
{
    struct tensor *whole = &t->whole[i];
    int64_t n = tensor_elements(whole);
    if (place.kind == PLACE_S) {
        uint8_t *seen = arena_alloc(t->arena, (size_t)n + 1);
        for (int r = 0; r < ranks; r++)
            if (!copy_shard(t, place, r, whole, &results[r][i], COMPARE, seen))
                return false;
        return n == 0 || !memchr(seen, 0, (size_t)n);
    }
    if (place.kind == PLACE_R) {
        for (int r = 0; r < ranks; r++)
            if (!close_to(t, &results[r][i], whole))
                return false;
        return true;
    }
    struct tensor sum = results[0][i];
    for (int r = 1; r < ranks; r++)
        for (int64_t k = 0; k < n; k++)
            trial_set(&sum, k, reduce(place.op, tensor_get(&sum, k), tensor_get(&results[r][i], k)));
    return close_to(t, &sum, whole);
}

static void place_values(struct trial *t, const struct placement *in, const struct placement *out)
{
    for (int i = 0; i < t->node->nin; i++)
        if (t->node->in[i]) {
            t->node->in[i]->place = in[i];
            t->node->in[i]->placed = true;
        }
    for (int i = 0; i < t->node->nout; i++)
        if (t->node->out[i]) {
            t->node->out[i]->place = out[i];
            t->node->out[i]->placed = true;
        }
}

/* A node that windows of a symbolic size make two of is run as in a file. */
static void run_local(struct trial *t, struct graph *g, struct node *local, const struct tensor *in, struct tensor *out)
{
    struct node was = *local;
    if (!local->op->slide || !local->op->expand || strcmp(local->op->expand_name, "window") != 0 || !attr_is_set(local, "border")) {
        run_kernel(t, g, local, in, out);
        return;
    }
    expand_nodes(g, 0);
    struct tensor *held = NEWN(t->arena, struct tensor, g->values.n + 1);
    for (int i = 0; i < was.nin; i++)
        if (was.in[i])
            held[was.in[i]->id] = in[i];
    for (int i = 0; i < g->nodes.n; i++)
        trial_run(t, g, g->nodes.at[i], held);
    for (int i = 0; i < was.nout; i++)
        if (was.out[i])
            out[i] = held[was.out[i]->id];
}

static bool run_ranks(struct trial *t, int ranks, struct placement *in, struct placement *out, const struct assignment *assignment)
{
    struct strategy strategy = {.in = in, .out = out, .assignment = *assignment};
    struct compile c = {.arena = t->arena, .graph = t->graph};
    struct tensor **results = NEWN(t->arena, struct tensor *, ranks), **addends = NEWN(t->arena, struct tensor *, t->node->nin + 1);
    t->graph->ranks = ranks;
    t->node->strategy = &strategy;
    place_values(t, in, out);
    pass_localize(&c);
    for (int i = 0; i < t->node->nin; i++)
        if (t->node->in[i] && in[i].kind == PLACE_P)
            addends[i] = make_addends(t, &t->in[i], &t->node->in[i]->type, in[i].op, ranks);
    for (int r = 0; r < ranks; r++) {
        struct node *local = c.rank_graphs[r]->nodes.at[0];
        struct tensor *operand = NEWN(t->arena, struct tensor, local->nin + 1);
        for (int i = 0; i < local->nin; i++)
            if (local->in[i])
                operand[i] = shard(t, i, &local->in[i]->type, in[i], r, addends[i]);
        results[r] = NEWN(t->arena, struct tensor, local->nout + 1);
        run_local(t, c.rank_graphs[r], local, operand, results[r]);
    }
    for (int i = 0; i < t->node->nout; i++)
        if (t->node->out[i] && !result_right(t, i, out[i], ranks, results))
            return false;
    return true;
}

/* ---- assignments ------------------------------------------------------------------------------------------------------------- */

struct splits {
    int n;
    const struct split *at[TRIAL_SPLITS];
};

static struct splits all_splits(struct trial *t, const struct dim *size)
{
    struct splits s = {0};
    s.n = trial_splits(t->arena, t->graph->alg, size, s.at);
    return s;
}

static bool try_assignment(struct trial *t, int ranks, const struct assignment *assignment, const char *what, const struct split *s)
{
    struct placement *in = NEWN(t->arena, struct placement, t->node->nin + 1), *out = NEWN(t->arena, struct placement, t->node->nout + 1);
    t->tried++;
    if (!rule_project(t->graph, t->rule, ranks, assignment, in, out, NULL))
        return true;
    t->legal++;
    if (run_ranks(t, ranks, in, out, assignment))
        return true;
    fprintf(stderr, "wrong: %s with %s split %s\n    rule %s\n", t->sample->op, what, split_str(t->arena, s), rule_str(t->arena, t->rule));
    return false;
}

static struct assignment no_assignment(struct trial *t)
{
    return (struct assignment){.factor = NEWN(t->arena, const struct split *, t->rule->nfactor + 1)};
}

bool trial_factor(struct trial *t, int f)
{
    struct splits s = all_splits(t, t->rule->factor[f].size);
    bool right = true;
    if (dim_equals(t->rule->factor[f].size, 1) || (t->rule->factor[f].flags & FACTOR_LOWERED))
        return true;
    for (int i = 0; i < s.n; i++) {
        struct assignment c = no_assignment(t);
        c.factor[f] = s.at[i];
        right &= try_assignment(t, s.at[i]->ranks, &c, t->rule->factor[f].name, s.at[i]);
    }
    return right;
}

/* All members of a group by the same fractions. */
static bool try_group(struct trial *t)
{
    bool right = true;
    if (t->rule->ngroup == 0)
        return true;
    struct splits s = all_splits(t, t->rule->factor[t->rule->group[0]].size);
    for (int i = 0; i < s.n; i++) {
        struct assignment c = no_assignment(t);
        bool fits = true;
        for (int k = 0; k < t->rule->ngroup; k++) {
            int64_t size;
            int f = t->rule->group[k];
            fits = fits && dim_is_int(t->rule->factor[f].size, &size) && !(t->rule->factor[f].flags & FACTOR_REPLICATED);
            c.factor[f] = fits ? split_rescale(t->graph->alg, s.at[i], size) : NULL;
            fits = fits && c.factor[f];
        }
        if (fits)
            right &= try_assignment(t, s.at[i]->ranks, &c, "the group", s.at[i]);
    }
    return right;
}

static bool try_product(struct trial *t, int outer, int inner)
{
    const struct dim *size = dim_mul(t->graph->alg, t->rule->factor[outer].size, t->rule->factor[inner].size);
    struct splits s = all_splits(t, size);
    bool right = true;
    for (int i = 0; i < s.n; i++) {
        struct assignment c = no_assignment(t);
        c.nproduct = 2;
        c.product[0] = outer;
        c.product[1] = inner;
        c.product_split = s.at[i];
        right &= try_assignment(t, s.at[i]->ranks, &c,
                                arena_printf(t->arena, "(%s %s)", t->rule->factor[outer].name, t->rule->factor[inner].name), s.at[i]);
    }
    return right;
}

static bool try_products(struct trial *t)
{
    const struct rule *r = t->rule;
    bool right = true;
    for (int i = 0; i < r->nin + r->nout; i++) {
        const struct rule_operand *o = i < r->nin ? &r->in[i] : &r->out[i - r->nin];
        for (int d = 0; o->present && d < o->rank; d++)
            for (int p = 0; p < o->dim[d].n; p++)
                for (int k = 0; k + 1 < o->dim[d].part[p].n; k++)
                    right &= try_product(t, o->dim[d].part[p].factor[k], o->dim[d].part[p].factor[k + 1]);
    }
    return right;
}

bool trial_pass(struct trial *t, const struct rule_pass *pass)
{
    struct assignment c = no_assignment(t);
    struct placement *in = NEWN(t->arena, struct placement, t->node->nin + 1), *out = NEWN(t->arena, struct placement, t->node->nout + 1);
    for (int i = 0; i < t->node->nin; i++)
        in[i] = i < 32 && (pass->operands >> i & 1) ? placement_partial(pass->from) : placement_replicated;
    for (int i = 0; i < t->node->nout; i++)
        out[i] = placement_partial(pass->to);
    t->tried++;
    t->legal++;
    return run_ranks(t, 3, in, out, &c);
}

/* "max to min 0+1" */
char *pass_text(struct arena *a, const struct rule_pass *pass)
{
    char *text = arena_printf(a, pass->from == pass->to ? "%s" : "%s to %s", redop_name(pass->from), redop_name(pass->to));
    const char *joint = " ";
    for (int i = 0; i < 32; i++)
        if (pass->operands >> i & 1) {
            text = arena_printf(a, "%s%s%d", text, joint, i);
            joint = "+";
        }
    return text;
}

/* Terms of integers do not arise in samples of one node. */
bool addends_are_floats(const struct trial *t, uint32_t operands)
{
    for (int i = 0; i < t->node->nin; i++)
        if ((operands >> i & 1) && !(t->node->in[i] && dtype_is_float(t->node->in[i]->type.dtype)))
            return false;
    return true;
}

static bool try_all_passes(struct trial *t)
{
    struct rule_pass pass[MOST_PASSES];
    bool right = true;
    int n = rule_passes(t->rule, pass);
    for (int i = 0; i < n; i++) {
        if (!addends_are_floats(t, pass[i].operands) || trial_pass(t, &pass[i]))
            continue;
        fprintf(stderr, "wrong: %s does not pass %s\n", t->sample->op, pass_text(t->arena, &pass[i]));
        right = false;
    }
    return right;
}

/* ---- a sample ---------------------------------------------------------------------------------------------------------------- */

void trial_start(struct trial *t, const struct sample *sample, enum dtype type)
{
    struct arena *arena = arena_new();
    *t = (struct trial){.arena = arena, .sample = sample, .type = type, .env = kenv_new(1, false)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        bindings_set(arena, &t->bind, sizes[i].name, sizes[i].value);
    t->graph = graph_parse(arena, alg_new(arena), retyped(arena, sample->text, type), sample->op, op_find);
    t->node = t->graph->nodes.at[0];
    op_infer(t->graph, t->node);
    t->rule = rule_of(t->graph, t->node);
    t->in = NEWN(arena, struct tensor, t->node->nin + 1);
    t->whole = NEWN(arena, struct tensor, t->node->nout + 1);
    for (int i = 0; i < t->node->nin; i++)
        if (t->node->in[i]) {
            t->in[i] = operand_tensor(t, &t->node->in[i]->type);
            fill(t, &t->in[i], t->node->in[i]);
        }
    run_kernel(t, t->graph, t->node, t->in, t->whole);
}

/* ---- factors that only a lowering splits --------------------------------------------------------------------------------------------- */

static struct tensor constant_tensor(const struct value *v)
{
    struct tensor x = {.dtype = v->constant->dtype, .rank = v->constant->rank};
    memcpy(x.dim, v->constant->dim, (size_t)x.rank * sizeof *x.dim);
    x.data = (void *)(uintptr_t)constant_data(v->constant, v->name);
    return x;
}

/* What all ranks hold of a value, put together. */
static struct tensor put_together(struct trial *t, const struct value *v, int ranks, struct tensor **held)
{
    struct tensor whole = trial_tensor(t, &v->type);
    uint8_t *seen = arena_alloc(t->arena, (size_t)tensor_elements(&whole) + 1);
    if (v->place.kind == PLACE_S) {
        for (int r = 0; r < ranks; r++)
            copy_shard(t, v->place, r, &whole, &held[r][v->id], BACK_UNCHECKED, seen);
        return whole;
    }
    memcpy(whole.data, held[0][v->id].data, tensor_bytes(&whole));
    for (int r = 1; v->place.kind == PLACE_P && r < ranks; r++)
        for (int64_t k = 0; k < tensor_elements(&whole); k++)
            trial_set(&whole, k, reduce(v->place.op, tensor_get(&whole, k), tensor_get(&held[r][v->id], k)));
    return whole;
}

/* A collective: whole, global ends of it by value id. */
static void communicate(struct trial *t, const struct graph *whole, const struct node *n, struct graph **rank, int ranks,
                        struct tensor **held)
{
    const struct value *from = whole->values.at[n->in[0]->id], *to = whole->values.at[n->out[0]->id];
    struct tensor x = put_together(t, from, ranks, held);
    for (int r = 0; r < ranks; r++) {
        struct tensor y = trial_tensor(t, &rank[r]->values.at[to->id]->type);
        if (to->place.kind == PLACE_R)
            memcpy(y.data, x.data, tensor_bytes(&y));
        else if (to->place.kind != PLACE_S || !copy_shard(t, to->place, r, &x, &y, TO_SHARD, NULL))
            bug("%s: %s to %s", t->sample->op, n->optype, placement_str(t->arena, to->place));
        held[r][to->id] = y;
    }
}

/* Shape has no kernel: tpc-run knows sizes before it runs. */
static void run_shape(struct trial *t, const struct node *n, struct tensor *held)
{
    const struct tensor *x = &held[n->in[0]->id];
    int64_t from = attr_int(n, "start"), to = attr_is_set(n, "end") ? attr_int(n, "end") : x->rank;
    struct tensor y = {.dtype = DT_I64, .rank = 1, .dim = {to - from}};
    y.data = arena_alloc(t->arena, tensor_bytes(&y));
    memcpy(y.data, x->dim + from, tensor_bytes(&y));
    held[n->out[0]->id] = y;
}

void trial_run(struct trial *t, struct graph *g, const struct node *n, struct tensor *held)
{
    if (strcmp(n->optype, "Shape") == 0) {
        run_shape(t, n, held);
        return;
    }
    struct tensor *in = NEWN(t->arena, struct tensor, n->nin + 1), *out = NEWN(t->arena, struct tensor, n->nout + 1);
    for (int k = 0; k < n->nin; k++)
        if (n->in[k])
            in[k] = n->in[k]->constant && !held[n->in[k]->id].data ? constant_tensor(n->in[k]) : held[n->in[k]->id];
    run_kernel(t, g, n, in, out);
    for (int k = 0; k < n->nout; k++)
        if (n->out[k])
            held[n->out[k]->id] = out[k];
}

/* A node in which ranks exchange hidden units: on threads. Operands and results by rank. */
struct exchanging {
    const struct trial *trial;
    struct graph **rank;
    int node;
    const struct split *units;
    struct tensor **in, **out;
};

static void run_exchanging(struct comm *comm, void *data)
{
    const struct exchanging *e = data;
    const struct graph *g = e->rank[comm->rank];
    const struct node *n = g->nodes.at[e->node];
    struct arena *arena = arena_new();
    struct buffer blocks = {0};
    struct kenv *env = kenv_new(1, false);
    comm->id = 1;
    comm->name = n->name;
    struct kcall call = {.node = n, .graph = g, .nin = n->nin, .nout = n->nout, .in = e->in[comm->rank], .out = e->out[comm->rank]};
    call.units = unit_gather_units(unit_gather_new(arena, comm, &blocks, e->units));
    call.bind = &e->trial->bind;
    call.env = env;
    n->op->kernel(&call);
    kenv_free(env);
    buffer_free(&blocks);
    arena_free(arena);
}

static void run_together(struct trial *t, struct graph **rank, int ranks, int node, const struct split *units, struct tensor **held)
{
    struct tensor *in[TRIAL_RANKS], *out[TRIAL_RANKS];
    struct exchanging e = {.trial = t, .rank = rank, .node = node, .units = units, .in = in, .out = out};
    for (int r = 0; r < ranks; r++) {
        const struct node *n = rank[r]->nodes.at[node];
        in[r] = NEWN(t->arena, struct tensor, n->nin + 1);
        out[r] = NEWN(t->arena, struct tensor, n->nout + 1);
        for (int k = 0; k < n->nin; k++)
            if (n->in[k])
                in[r][k] = held[r][n->in[k]->id];
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                out[r][k] = held[r][n->out[k]->id] = trial_tensor(t, &n->out[k]->type);
    }
    comm_local_run(ranks, run_exchanging, &e);
}

/* Runs the ranks' graphs, expanded as for files, in step. held: by rank and value id, given for the sample's operands. */
static void run_in_step(struct trial *t, const struct graph *whole, struct graph **rank, int ranks, struct tensor **held)
{
    for (int i = 0; i < rank[0]->nodes.n; i++) {
        const struct node *n = rank[0]->nodes.at[i];
        if (n->op->flags & OP_COLLECTIVE) {
            communicate(t, whole, n, rank, ranks, held);
            continue;
        }
        struct recurrent_exchange x;
        if (recurrent_exchanges(rank[0], n, &x)) {
            run_together(t, rank, ranks, i, x.units, held);
            continue;
        }
        for (int r = 0; r < ranks; r++)
            trial_run(t, rank[r], rank[r]->nodes.at[i], held[r]);
    }
}

/* Inputs that are whole on every rank, one for each symbol: what knows global sizes in a real graph. */
static void add_size_inputs(struct trial *t)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct type type = {.dtype = DT_BOOL, .rank = 1, .dim = {dim_sym(t->graph->alg, sizes[i].name, 1)}};
        struct value *v = graph_value(t->graph, sizes[i].name, &type);
        v->placed = true;
        VEC_PUSH(t->arena, &t->graph->inputs, v);
    }
}

/* The node's lowering, run on every rank, against the whole op. The sample's graph is consumed. */
static bool lowered_right(struct trial *t, const struct split *s, struct placement *in, struct placement *out,
                          struct assignment *assignment)
{
    struct strategy strategy = {.in = in, .out = out, .assignment = *assignment, .lowered = true};
    struct compile c = {.arena = t->arena, .graph = t->graph};
    struct node *node = t->node;
    struct tensor *held[TRIAL_RANKS], **results = NEWN(t->arena, struct tensor *, s->ranks);
    require(s->ranks <= TRIAL_RANKS);
    t->graph->ranks = s->ranks;
    node->strategy = &strategy;
    place_values(t, in, out);
    add_size_inputs(t);
    t->graph->nodes.n = 0;
    lowering_append(t->graph, node);
    graph_sort(t->graph);
    pass_localize(&c);
    for (int r = 0; r < s->ranks; r++) {
        struct graph *g = c.rank_graphs[r];
        expand_nodes(g, 0);
        held[r] = NEWN(t->arena, struct tensor, g->values.n + 1);
        for (int i = 0; i < node->nin; i++)
            if (node->in[i])
                held[r][node->in[i]->id] = shard(t, i, &g->values.at[node->in[i]->id]->type, in[i], r, NULL);
        for (int i = 0; i < g->inputs.n; i++)
            if (!held[r][g->inputs.at[i]->id].data)
                held[r][g->inputs.at[i]->id] = trial_tensor(t, &g->inputs.at[i]->type);
    }
    run_in_step(t, t->graph, c.rank_graphs, s->ranks, held);
    for (int r = 0; r < s->ranks; r++) {
        results[r] = NEWN(t->arena, struct tensor, node->nout + 1);
        for (int i = 0; i < node->nout; i++)
            if (node->out[i])
                results[r][i] = held[r][node->out[i]->id];
    }
    for (int i = 0; i < node->nout; i++)
        if (node->out[i] && !result_right(t, i, out[i], s->ranks, results))
            return false;
    return true;
}

static bool try_lowered(struct trial *count, int f)
{
    bool right = true, more = true;
    for (int k = 0; more; k++) {
        struct trial t;
        trial_start(&t, count->sample, count->type);
        count->tried++;
        struct splits s = all_splits(&t, t.rule->factor[f].size);
        more = k + 1 < s.n;
        struct placement *in = NEWN(t.arena, struct placement, t.node->nin + 1), *out = NEWN(t.arena, struct placement, t.node->nout + 1);
        struct assignment c = no_assignment(&t);
        c.factor[f] = s.at[k];
        if (!op_lowers(t.rule, f, s.at[k]) || !rule_project(t.graph, t.rule, s.at[k]->ranks, &c, in, out, NULL))
            continue;
        count->legal++;
        if (lowered_right(&t, s.at[k], in, out, &c))
            continue;
        fprintf(stderr, "wrong: %s with %s split %s by its lowering\n", count->sample->op, t.rule->factor[f].name,
                split_str(t.arena, s.at[k]));
        right = false;
    }
    return right;
}

static int check_sample(const struct sample *sample, int type)
{
    struct trial t;
    trial_start(&t, sample, (enum dtype)type);
    if (!t.rule)
        return 0;
    bool right = true;
    for (int f = 0; f < t.rule->nfactor; f++)
        right &= trial_factor(&t, f);
    for (int f = 0; f < t.rule->nfactor; f++)
        if (t.rule->factor[f].flags & FACTOR_LOWERED)
            right &= try_lowered(&t, f);
    right &= try_group(&t);
    right &= try_products(&t);
    right &= try_all_passes(&t);
    printf("%-36s %-4s %3d of %3d legal  %s\n", sample->op, dtype_name(t.type), t.legal, t.tried, rule_str(t.arena, t.rule));
    return right ? 0 : 1;
}

/* ---- processes --------------------------------------------------------------------------------------------------------------- */

/* What the check returns; UNANSWERED: it ended otherwise. said: what it says on stderr, NULL: that is not kept. */
enum { UNANSWERED = 64 };
static int child_answer(int (*check)(const struct sample *, int), const struct sample *sample, int i, char said[256])
{
    int status;
    FILE *kept = said ? tmpfile() : NULL;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (kept)
            dup2(fileno(kept), STDERR_FILENO);
        int answer = check(sample, i);
        fflush(stdout);
        _exit(answer);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        fail("can't run a sample in a process of its own");
    if (kept) {
        rewind(kept);
        said[fread(said, 1, 255, kept)] = 0;
        fclose(kept);
    } else if (WIFSIGNALED(status)) {
        printf("%-36s ended by signal %d\n", sample->op, WTERMSIG(status));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : UNANSWERED;
}

static bool in_child(int (*check)(const struct sample *, int), const struct sample *sample, int i)
{
    return child_answer(check, sample, i, NULL) == 0;
}

static bool has_sample(const char *op)
{
    for (int i = 0; i < SAMPLES; i++)
        if (strcmp(samples[i].op, op) == 0)
            return true;
    return false;
}

static int rows_without_sample(void)
{
    int missing = 0;
    for (int i = 0; i < op_count(); i++)
        if (op_at(i)->rule && !has_sample(op_at(i)->name)) {
            printf("%-36s has a rule but no sample\n", op_at(i)->name);
            missing++;
        }
    return missing;
}

/* In float64, and where the op has no such kernel, in float32. Some attributes of an op may have no gradient, as it says. */
static bool gradients_right(const struct sample *sample)
{
    char said[256] = "";
    int answer = child_answer(check_backward, sample, DT_F64, said);
    if (answer == 1 || answer == UNANSWERED)
        answer = child_answer(check_backward, sample, DT_F32, said);
    bool refused = answer == 1 && strstr(said, "no gradient passes this node");
    if (refused || *said)
        printf("%-36s %s", sample->op, said);
    return answer == 0 || answer == 2 || refused;
}

static int all_gradients(const char *op)
{
    static const struct sample more[] = {
#include "tests/backward.def"
    };
    int wrong = 0;
    for (int i = 0; i < SAMPLES; i++)
        if (!op || strcmp(op, samples[i].op) == 0)
            wrong += !gradients_right(&samples[i]);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (!op || strcmp(op, more[i].op) == 0)
            wrong += !gradients_right(&more[i]);
    return wrong + rows_without_backward();
}

/* The rule of every sample, for docs/compatibility.md. */
static int print_rules(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        struct trial t;
        trial_start(&t, &samples[i], DT_F32);
        if (t.rule)
            printf("%s::%s\t%s\n", *t.node->domain ? t.node->domain : "ai.onnx", samples[i].op, rule_str(t.arena, t.rule));
    }
    return 0;
}

int main(int argc, char **argv)
{
    int wrong = 0;
    diag_setup("selfcheck", 0);
    ready_products();
    if (argc > 1 && strcmp(argv[1], "--backward") == 0) {
        wrong = all_gradients(argc > 2 ? argv[2] : NULL);
        printf("%d wrong\n", wrong);
        return wrong != 0;
    }
    if (argc > 1 && strcmp(argv[1], "--rules") == 0)
        return print_rules();
    for (int i = 0; i < SAMPLES; i++) {
        if (argc > 1 && strcmp(argv[1], samples[i].op) != 0)
            continue;
        for (size_t k = 0; k < sizeof float_types / sizeof *float_types; k++)
            if (k == 0 || in_half(&samples[i]))
                wrong += !in_child(check_sample, &samples[i], (int)float_types[k]);
        wrong += search_unclaimed(&samples[i]);
    }
    wrong += rows_without_sample();
    wrong += argc > 1 ? 0 : reasons_unused() + all_gradients(NULL);
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
