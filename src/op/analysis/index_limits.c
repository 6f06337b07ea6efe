/* index_limits: the sizes and integers for which the indices of lookups are within their tables: positions counted from sizes or from a
 * mask, shifted, sliced and selected, and integers of inputs.
 *
 * From the inputs on, an integer value is known exactly as an affine function of its index (affine.c), or lies between two bounds. A mask
 * is all ones, and no token equals one that the graph compares with, such as padding: so the largest index is that of a text without
 * padding. */
#include "ir/rank_meta.h"
#include "op/analysis/analysis.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/shape/shape.h"

#include <string.h>

enum { MOST_ELEMENTS = 1 << 20 }; /* of a constant that is searched */

struct value_bounds {
    const struct dim *lo, *hi; /* NULL: unknown */
    bool met;                  /* both are elements */
};
struct index_walk {
    struct arena *arena;
    struct graph *g;
    struct affines *exact;      /* by value id; n == 1: known */
    struct value_bounds *range; /* by value id, if not exact */
    bool *of_inputs;            /* by value id: whether it depends on elements of inputs */
    struct index_limits *found;
};

static bool holds_integers(const struct value *v)
{
    return v->type.dtype == DT_I64 || v->type.dtype == DT_I32 || v->type.dtype == DT_BOOL;
}

static const struct dim *number(const struct index_walk *w, int64_t k)
{
    return dim_int(w->g->alg, k);
}

/* ---- what is known of a value -------------------------------------------------------------------------------------------------- */

static const struct affine *exact_of(const struct index_walk *w, const struct value *v)
{
    return w->exact[v->id].n == 1 ? w->exact[v->id].at[0] : NULL;
}

/* The number that all elements equal; NULL: they differ, or it is unknown. */
static const struct dim *uniform_of(const struct index_walk *w, struct value *v)
{
    const struct affine *a = exact_of(w, v);
    const struct dims_value *dims = a ? NULL : op_dims(w->g, v);
    for (int d = 0; a && d < v->type.rank; d++)
        if (!dim_equals(a->step[d], 0))
            return NULL;
    return a ? a->base : dims && dims->n == 1 ? dims->at[0] : NULL;
}

static struct value_bounds bounds_of_affine(const struct index_walk *w, const struct affine *a, const struct type *t)
{
    struct alg *alg = w->g->alg;
    struct value_bounds b = {a->base, a->base, true};
    for (int d = 0; d < t->rank; d++) {
        const struct dim *way = dim_mul(alg, a->step[d], dim_sub(alg, t->dim[d], number(w, 1)));
        if (dim_ge(alg, a->step[d], number(w, 0)))
            b.hi = dim_add(alg, b.hi, way);
        else if (dim_ge(alg, number(w, 0), a->step[d]))
            b.lo = dim_add(alg, b.lo, way);
        else
            return (struct value_bounds){NULL, NULL, false};
    }
    return b;
}

static struct value_bounds bounds_of_list(const struct index_walk *w, const struct dims_value *list)
{
    struct value_bounds b = {list->at[0], list->at[0], false};
    for (int i = 1; i < list->n; i++) {
        b.lo = dim_min(w->g->alg, b.lo, list->at[i]);
        b.hi = dim_max(w->g->alg, b.hi, list->at[i]);
    }
    return b;
}

static struct value_bounds bounds_of_constant(const struct index_walk *w, const struct value *v)
{
    int64_t n = constant_elements(v->constant), lo = INT64_MAX, hi = INT64_MIN;
    if (n < 1 || n > MOST_ELEMENTS)
        return (struct value_bounds){NULL, NULL, false};
    for (int64_t i = 0; i < n; i++) {
        int64_t k = constant_int(v->constant, v->name, i);
        lo = k < lo ? k : lo;
        hi = k > hi ? k : hi;
    }
    return (struct value_bounds){number(w, lo), number(w, hi), true};
}

static struct value_bounds bounds_of(const struct index_walk *w, struct value *v)
{
    enum { MOST_LISTED = 64 };
    const struct affine *a = exact_of(w, v);
    if (a)
        return bounds_of_affine(w, a, &v->type);
    if (v->constant && holds_integers(v))
        return bounds_of_constant(w, v);
    const struct dims_value *dims = op_dims(w->g, v);
    return dims && dims->n > 0 && dims->n <= MOST_LISTED ? bounds_of_list(w, dims) : w->range[v->id];
}

/* ---- results that are known exactly --------------------------------------------------------------------------------------------- */

static struct affine *affine_uniform(const struct index_walk *w, const struct dim *k)
{
    struct affine *a = NEW(w->g->arena, struct affine);
    a->base = k;
    for (int d = 0; d < MAX_RANK; d++)
        a->step[d] = number(w, 0);
    return a;
}

static struct affine *affine_sum(const struct index_walk *w, const struct node *n)
{
    const struct dim *k = uniform_of(w, n->in[0]), *const * axis;
    int64_t at;
    if (!k || attr_dims(n, "axis", (const struct dim ***)&axis) != 1 || !dim_is_int(axis[0], &at))
        return NULL;
    at = op_axis(w->g, n, at, n->out[0]->type.rank);
    struct affine *a = affine_uniform(w, attr_int(n, "exclusive") ? number(w, 0) : k);
    a->step[at] = k;
    if (attr_int(n, "reverse")) {
        a->base = dim_add(w->g->alg, a->base, dim_mul(w->g->alg, k, dim_sub(w->g->alg, n->out[0]->type.dim[at], number(w, 1))));
        a->step[at] = dim_neg(w->g->alg, k);
    }
    return a;
}

static struct affine *affine_cut(const struct index_walk *w, const struct node *n)
{
    struct alg *alg = w->g->alg;
    const struct affine *x = exact_of(w, n->in[0]);
    struct slice cut[MAX_RANK];
    int axes = x ? op_slices(w->g, n, cut) : -1;
    if (axes < 0)
        return NULL;
    struct affine *a = affine_uniform(w, x->base);
    memcpy(a->step, x->step, sizeof a->step);
    for (int i = 0; i < axes; i++) {
        if (!cut[i].start)
            return NULL;
        a->base = dim_add(alg, a->base, dim_mul(alg, x->step[cut[i].axis], cut[i].start));
        a->step[cut[i].axis] = dim_mul(alg, x->step[cut[i].axis], number(w, cut[i].step));
    }
    return a;
}

/* The elements that a known index selects from a known list. */
static struct affine *affine_gathered(const struct index_walk *w, const struct node *n)
{
    struct alg *alg = w->g->alg;
    const struct affine *list = exact_of(w, n->in[0]), *index = exact_of(w, n->in[1]);
    if (!list || !index || n->in[0]->type.rank != 1)
        return NULL;
    struct affine *a = affine_uniform(w, dim_add(alg, list->base, dim_mul(alg, list->step[0], index->base)));
    for (int d = 0; d < n->out[0]->type.rank; d++)
        a->step[d] = dim_mul(alg, list->step[0], index->step[d]);
    return a;
}

static bool is_one_of(const struct node *n, const char *const *list)
{
    for (; *list; list++)
        if (op_is_onnx(n, *list))
            return true;
    return false;
}

/* Whether the result has all elements of operand 0, and no others. */
static bool keeps_elements(const struct node *n)
{
    static const char *const list[] = {"Reshape",  "Squeeze", "Unsqueeze", "Transpose", "Expand",
                                       "Identity", "Flatten", "Cast",      "Tile",      NULL};
    return is_one_of(n, list);
}

static bool takes_elements(const struct node *n)
{
    static const char *const list[] = {"Slice", "Split", "Gather", "GatherElements", "GatherND", NULL};
    return is_one_of(n, list);
}

static bool is_token(const struct index_walk *w, const struct value *v)
{
    return w->of_inputs[v->id] && holds_integers(v) && !exact_of(w, v);
}

/* 1, 0, or -1: unknown. A token differs from any number that it is compared with. */
static int is_equal(const struct index_walk *w, struct value *x, struct value *y)
{
    const struct dim *one = number(w, 1), *a = uniform_of(w, x), *b = uniform_of(w, y);
    const struct value_bounds p = bounds_of(w, x), q = bounds_of(w, y);
    if (a && a == b)
        return 1;
    if ((b && is_token(w, x) && !w->of_inputs[y->id]) || (a && is_token(w, y) && !w->of_inputs[x->id]))
        return 0;
    if (!p.lo || !p.hi || !q.lo || !q.hi)
        return -1;
    bool apart = dim_ge(w->g->alg, p.lo, dim_add(w->g->alg, q.hi, one)) || dim_ge(w->g->alg, q.lo, dim_add(w->g->alg, p.hi, one));
    return apart ? 0 : -1;
}

static int is_greater(const struct index_walk *w, struct value *x, struct value *y, int64_t by)
{
    const struct value_bounds p = bounds_of(w, x), q = bounds_of(w, y);
    if (!p.lo || !p.hi || !q.lo || !q.hi)
        return -1;
    if (dim_ge(w->g->alg, p.lo, dim_add(w->g->alg, q.hi, number(w, by))))
        return 1;
    return dim_ge(w->g->alg, dim_add(w->g->alg, q.lo, number(w, by - 1)), p.hi) ? 0 : -1;
}

static int truth_of(const struct index_walk *w, const struct node *n)
{
    const struct dim *x = uniform_of(w, n->in[0]), *y = n->nin > 1 ? uniform_of(w, n->in[1]) : NULL;
    if (op_is_onnx(n, "Equal"))
        return is_equal(w, n->in[0], n->in[1]);
    if (op_is_onnx(n, "Greater"))
        return is_greater(w, n->in[0], n->in[1], 1);
    if (op_is_onnx(n, "GreaterOrEqual"))
        return is_greater(w, n->in[0], n->in[1], 0);
    if (op_is_onnx(n, "Less"))
        return is_greater(w, n->in[1], n->in[0], 1);
    if (op_is_onnx(n, "LessOrEqual"))
        return is_greater(w, n->in[1], n->in[0], 0);
    if (op_is_onnx(n, "Not"))
        return x && dim_equals(x, 0) ? 1 : x && dim_equals(x, 1) ? 0 : -1;
    if (op_is_onnx(n, "And"))
        return x && y && dim_equals(x, 1) && dim_equals(y, 1) ? 1 : (x && dim_equals(x, 0)) || (y && dim_equals(y, 0)) ? 0 : -1;
    if (op_is_onnx(n, "Or"))
        return (x && dim_equals(x, 1)) || (y && dim_equals(y, 1)) ? 1 : x && y && dim_equals(x, 0) && dim_equals(y, 0) ? 0 : -1;
    return -1;
}

/* For Min, Max and Where: the operand from which all elements come; -1: unknown. */
static int only_operand(const struct index_walk *w, const struct node *n)
{
    bool least = op_is_onnx(n, "Min");
    if (op_is_onnx(n, "Where")) {
        const struct dim *c = uniform_of(w, n->in[0]);
        return c && dim_equals(c, 1) ? 1 : c && dim_equals(c, 0) ? 2 : -1;
    }
    if (n->nin == 1 && n->in[0] && (least || op_is_onnx(n, "Max")))
        return 0;
    if (n->nin != 2 || !(least || op_is_onnx(n, "Max")))
        return -1;
    int more = is_greater(w, n->in[0], n->in[1], 0);
    return more < 0 ? -1 : more ^ least ? 0 : 1;
}

/* A broadcast operand keeps its steps, aligned at the last dimension. */
static struct affine *affine_chosen(const struct index_walk *w, const struct node *n, int k)
{
    const struct affine *x = k >= 0 ? exact_of(w, n->in[k]) : NULL;
    const struct dim *same = k >= 0 && !x ? uniform_of(w, n->in[k]) : NULL;
    int more = k >= 0 ? n->out[0]->type.rank - n->in[k]->type.rank : 0;
    struct affine *a = x || same ? affine_uniform(w, x ? x->base : same) : NULL;
    for (int d = 0; x && d < n->in[k]->type.rank; d++)
        a->step[d + more] = x->step[d];
    return a;
}

static bool has_all_operands(const struct node *n)
{
    for (int k = 0; k < n->nin; k++)
        if (!n->in[k])
            return false;
    return n->nin > 0;
}

static const struct affine *affine_result(const struct index_walk *w, const struct node *n)
{
    const struct affines known = affine_of(w->g, n, w->exact);
    if (known.n == 1)
        return known.at[0];
    if (!has_all_operands(n))
        return NULL;
    const struct dim *same = keeps_elements(n) || takes_elements(n) ? uniform_of(w, n->in[0]) : NULL;
    int truth = same ? -1 : truth_of(w, n);
    if (same || truth >= 0)
        return affine_uniform(w, same ? same : number(w, truth));
    if (op_is_onnx(n, "CumSum"))
        return affine_sum(w, n);
    if (op_is_onnx(n, "Gather"))
        return affine_gathered(w, n);
    return op_is_onnx(n, "Slice") ? affine_cut(w, n) : affine_chosen(w, n, only_operand(w, n));
}

/* ---- bounds of other results ------------------------------------------------------------------------------------------------------ */

typedef const struct dim *dim_of_two(struct alg *, const struct dim *, const struct dim *);

/* NULL: one of them is unknown. */
static const struct dim *both(const struct index_walk *w, dim_of_two *make, const struct dim *x, const struct dim *y)
{
    return x && y ? make(w->g->alg, x, y) : NULL;
}

static const struct dim *either(const struct index_walk *w, dim_of_two *make, const struct dim *x, const struct dim *y)
{
    return x && y ? make(w->g->alg, x, y) : x ? x : y;
}

static struct value_bounds bounds_between(const struct index_walk *w, struct value_bounds x, struct value_bounds y)
{
    return (struct value_bounds){both(w, dim_min, x.lo, y.lo), both(w, dim_max, x.hi, y.hi), false};
}

static bool is_nonnegative(const struct index_walk *w, struct value_bounds x)
{
    return x.lo && dim_ge(w->g->alg, x.lo, number(w, 0));
}

/* If one operand is a single number, the bounds of the other give both bounds. */
static struct value_bounds bounds_of_two(const struct index_walk *w, const struct node *n)
{
    const struct value_bounds x = bounds_of(w, n->in[0]), y = bounds_of(w, n->in[1]), none = {NULL, NULL, false};
    bool positive = is_nonnegative(w, x) && is_nonnegative(w, y),
         met = x.met && y.met && (uniform_of(w, n->in[0]) || uniform_of(w, n->in[1]));
    if (op_is_onnx(n, "Add"))
        return (struct value_bounds){both(w, dim_add, x.lo, y.lo), both(w, dim_add, x.hi, y.hi), met};
    if (op_is_onnx(n, "Sub"))
        return (struct value_bounds){both(w, dim_sub, x.lo, y.hi), both(w, dim_sub, x.hi, y.lo), met};
    if (op_is_onnx(n, "Min"))
        return (struct value_bounds){both(w, dim_min, x.lo, y.lo), either(w, dim_min, x.hi, y.hi), met};
    if (op_is_onnx(n, "Max"))
        return (struct value_bounds){either(w, dim_max, x.lo, y.lo), both(w, dim_max, x.hi, y.hi), met};
    if (op_is_onnx(n, "Mul") && positive)
        return (struct value_bounds){dim_mul(w->g->alg, x.lo, y.lo), both(w, dim_mul, x.hi, y.hi), met};
    positive = positive && dim_ge(w->g->alg, y.lo, number(w, 1));
    if (op_is_onnx(n, "Div") && positive)
        return (struct value_bounds){number(w, 0), both(w, dim_div, x.hi, y.lo), false};
    if (op_is_onnx(n, "Mod") && positive)
        return (struct value_bounds){number(w, 0), both(w, dim_sub, y.hi, number(w, 1)), false};
    return none;
}

static struct value_bounds bounds_of_sums(const struct index_walk *w, const struct node *n)
{
    const struct value_bounds x = bounds_of(w, n->in[0]), none = {NULL, NULL, false};
    const struct dim **axis;
    int64_t at;
    if (!is_nonnegative(w, x) || attr_dims(n, "axis", &axis) != 1 || !dim_is_int(axis[0], &at))
        return none;
    at = op_axis(w->g, n, at, n->out[0]->type.rank);
    return (struct value_bounds){number(w, 0), both(w, dim_mul, x.hi, n->out[0]->type.dim[at]), false};
}

static struct value_bounds bounds_of_all(const struct index_walk *w, const struct node *n)
{
    struct value_bounds all = bounds_of(w, n->in[0]);
    for (int k = 1; k < n->nin; k++)
        all = bounds_between(w, all, bounds_of(w, n->in[k]));
    return all;
}

static struct value_bounds bounds_of_result(const struct index_walk *w, const struct node *n, const struct value *out)
{
    struct value_bounds b = {NULL, NULL, false};
    if (!has_all_operands(n))
        return b;
    if (holds_integers(n->in[0]) && (keeps_elements(n) || takes_elements(n))) {
        b = bounds_of(w, n->in[0]);
        b.met = b.met && keeps_elements(n);
        return b;
    }
    if (op_is_onnx(n, "Concat"))
        return bounds_of_all(w, n);
    if (op_is_onnx(n, "Where"))
        return bounds_between(w, bounds_of(w, n->in[1]), bounds_of(w, n->in[2]));
    if (op_is_onnx(n, "CumSum"))
        return bounds_of_sums(w, n);
    if (out->type.dtype == DT_BOOL)
        return (struct value_bounds){number(w, 0), number(w, 1), false};
    return n->nin == 2 ? bounds_of_two(w, n) : b;
}

/* ---- lookups ----------------------------------------------------------------------------------------------------------------------- */

static int operand_called(const struct node *n, const char *name)
{
    for (int k = 0; k < n->nin && k < n->op->nin; k++)
        if (n->in[k] && strcmp(n->op->in[k].name, name) == 0)
            return k;
    return -1;
}

/* The table whose rows operand k indexes; -1: none. *axis: the dimension of its rows. */
static int table_of(const struct node *n, int k, int *axis)
{
    bool rows = op_is_onnx(n, "Gather") || op_is_onnx(n, "GatherElements") || op_is_onnx(n, "ScatterElements");
    bool coded = strcmp(n->op->name, "GatherBlockQuantized") == 0;
    *axis = 0;
    if (strcmp(n->op->in[k < n->op->nin ? k : n->op->nin - 1].name, "position_ids") == 0)
        return operand_called(n, "cos_cache");
    if (k != 1 || !n->in[0] || !(rows || coded))
        return -1;
    *axis = (int)attr_int(n, coded ? "gather_axis" : "axis");
    *axis += *axis < 0 ? n->in[0]->type.rank : 0;
    return *axis < n->in[0]->type.rank ? 0 : -1;
}

static const struct dim *rows_chosen(const struct node *n, int k)
{
    int axis, table = n->op && n->in[k] && n->op->nin > 0 ? table_of(n, k, &axis) : -1;
    return table < 0 ? NULL : n->in[table]->type.dim[axis];
}

int64_t op_rows_chosen(const struct node *n, int k)
{
    const struct dim *rows = rows_chosen(n, k);
    int64_t number;
    return !rows ? -1 : dim_is_int(rows, &number) ? number : 1;
}

static void note_limit(const struct index_walk *w, const struct node *n, const struct value *index, const struct dim *last,
                       const struct dim *rows, bool exact)
{
    if (!last || dim_is_int(last, NULL) || dim_has_data(last) || dim_has_data(rows) ||
        dim_ge(w->g->alg, rows, dim_add(w->g->alg, last, number(w, 1))))
        return;
    VEC_PUSH(w->arena, &w->found->list, ((struct index_limit){last, rows, n->name, exact, w->of_inputs[index->id]}));
}

/* Index tuples: entry i indexes dimension i after the batch dimensions. */
static void note_tuples(const struct index_walk *w, const struct node *n)
{
    const struct value *index = n->in[1];
    const struct affines entry = w->exact[index->id];
    int batch = (int)attr_int(n, "batch_dims");
    struct type t = index->type;
    if (t.rank < 1 || !dim_equals(t.dim[t.rank - 1], entry.n))
        return;
    t.dim[t.rank - 1] = number(w, 1);
    for (int i = 0; i < entry.n && batch + i < n->in[0]->type.rank; i++)
        if (entry.at[i])
            note_limit(w, n, index, bounds_of_affine(w, entry.at[i], &t).hi, n->in[0]->type.dim[batch + i], true);
}

static void note_lookup(const struct index_walk *w, const struct node *n, int k)
{
    const struct dim *rows = rows_chosen(n, k);
    if (rows && holds_integers(n->in[k]) && !n->in[k]->constant)
        note_limit(w, n, n->in[k], bounds_of(w, n->in[k]).hi, rows, bounds_of(w, n->in[k]).met);
    else if (k == 1 && n->in[0] && op_is_onnx(n, "GatherND"))
        note_tuples(w, n);
}

/* ---- the graph ---------------------------------------------------------------------------------------------------------------------- */

#define VALUES "values of input "

const char *index_limits_symbol(struct arena *a, int input)
{
    return arena_printf(a, VALUES "%d", input);
}

bool index_limits_is_value(const char *symbol)
{
    return strncmp(symbol, VALUES, strlen(VALUES)) == 0;
}

static void set_exact(const struct index_walk *w, const struct value *v, const struct affine *a)
{
    const struct affine **at = NEW(w->arena, const struct affine *);
    *at = a;
    w->exact[v->id] = (struct affines){a != NULL, at};
}

/* A list of equidistant numbers, such as positions. */
static void begin_constant(const struct index_walk *w, const struct value *v)
{
    int64_t n = v->constant && holds_integers(v) ? constant_elements(v->constant) : 0, step = 0, length = 1;
    int last = v->type.rank - 1;
    if (n < 1 || n > MOST_ELEMENTS || (n > 1 && (last < 0 || !dim_is_int(v->type.dim[last], &length) || length != n)))
        return;
    const int64_t first = constant_int(v->constant, v->name, 0);
    if (n > 1 && !i64_sub(constant_int(v->constant, v->name, 1), first, &step))
        return;
    for (int64_t i = 1; i < n; i++)
        if (constant_int(v->constant, v->name, i) != (int64_t)((uint64_t)first + (uint64_t)i * (uint64_t)step))
            return;
    struct affine *a = affine_uniform(w, number(w, first));
    if (n > 1)
        a->step[last] = number(w, step);
    set_exact(w, v, a);
}

static void begin_input(const struct index_walk *w, int i, bool mask)
{
    const struct value *v = w->g->inputs.at[i];
    w->of_inputs[v->id] = true;
    if (!holds_integers(v))
        return;
    if (mask || v->type.dtype == DT_BOOL)
        set_exact(w, v, affine_uniform(w, number(w, 1)));
    else
        w->range[v->id] = (struct value_bounds){number(w, 0), dim_sym(w->g->alg, index_limits_symbol(w->g->arena, i), 0), false};
}

static void follow_node(const struct index_walk *w, const struct node *n)
{
    bool of_inputs = false;
    for (int k = 0; k < n->nin; k++)
        of_inputs = of_inputs || (n->in[k] && w->of_inputs[n->in[k]->id] && !op_dims(w->g, n->in[k]));
    for (int k = 0; n->op && k < n->nin; k++)
        if (n->in[k])
            note_lookup(w, n, k);
    for (int k = 0; k < n->nout; k++) {
        if (!n->out[k])
            continue;
        w->of_inputs[n->out[k]->id] = of_inputs;
        if (!n->op || !holds_integers(n->out[k]) || node_bodies(n))
            continue;
        const struct affine *a = n->nout == 1 ? affine_result(w, n) : NULL;
        if (a)
            set_exact(w, n->out[k], a);
        else if (n->nout == 1)
            w->exact[n->out[k]->id] = affine_of(w->g, n, w->exact);
        if (!a)
            w->range[n->out[k]->id] = bounds_of_result(w, n, n->out[k]);
    }
}

struct index_limits index_limits_find(struct arena *a, struct graph *g, const bool *mask)
{
    struct index_limits found = {0};
    struct index_walk w = {.arena = a, .g = g, .found = &found};
    w.exact = NEWN(a, struct affines, g->values.n + 1);
    w.range = NEWN(a, struct value_bounds, g->values.n + 1);
    w.of_inputs = NEWN(a, bool, g->values.n + 1);
    for (int i = 0; i < g->values.n; i++)
        begin_constant(&w, g->values.at[i]);
    for (int i = 0; i < g->inputs.n; i++)
        begin_input(&w, i, mask[i]);
    for (int i = 0; i < g->nodes.n; i++)
        follow_node(&w, g->nodes.at[i]);
    return found;
}

bool index_limits_hold(const struct index_limits *limits, const struct bindings *b, const struct index_limit **broken)
{
    EACH (const struct index_limit, l, limits->list) {
        int64_t last, rows;
        if (!l->exact || !dim_eval(l->last, b, &last) || !dim_eval(l->rows, b, &rows) || last < rows)
            continue;
        *broken = l;
        return false;
    }
    return true;
}
