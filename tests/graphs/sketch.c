/* A growing graph and the data of its values: sketch.h. */
#include "tests/graphs/sketch.h"

#include "kern/core/core.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "tests/graphs/families.h"

#include <math.h>
#include <string.h>

/* Results stay below these, so that differences come from rounding only and sums of integers are exact: 256 * 256 * 64 < 2^24. */
static const double most_float = 50, most_integer = 256;
/* What one node's rounding is taken to be, and what may become of it, in parts of the largest number (at least 1). */
static const double rounding = 5e-7, conditioned = 1e-5;

struct item *sketch_item(const struct sketch *s, const struct value *v)
{
    require(v->id < s->items.n);
    return &s->items.at[v->id];
}

double sketch_get(const struct tensor *t, int64_t i)
{
    double k;
    convert_to_f64(t->dtype, element_at_const(t->data, dtype_size(t->dtype), i), 1, &k);
    return k;
}

static void put(struct tensor *t, int64_t i, double k)
{
    convert_from_f64(t->dtype, &k, 1, element_at(t->data, dtype_size(t->dtype), i));
}

struct type sketch_type(enum dtype dtype, int rank, const struct dim *const *dim)
{
    struct type t = {.dtype = dtype, .rank = rank};
    for (int d = 0; d < rank; d++)
        t.dim[d] = dim[d];
    return t;
}

int64_t sketch_size(const struct sketch *s, const struct dim *d)
{
    int64_t n;
    if (!dim_eval(d, &s->bind, &n))
        bug("size %s has no value", dim_str(s->arena, d));
    return n;
}

/* ---- the pool of dimensions -------------------------------------------------------------------------------------------------- */

const struct dim *sketch_static(struct sketch *s)
{
    static const int64_t sizes[] = {2, 4, 3, 1, 6, 5, 8, 7, 12, 11, 13};
    return dim_int(s->g->alg, sizes[draw(s->draws, sizeof sizes / sizeof *sizes)]);
}

/* Sizes of symbols: 0, 1 and those smaller than the number of ranks are as likely as others. */
static const struct dim *symbol(struct sketch *s, const char *name)
{
    static const int64_t sizes[] = {2, 1, 3, 4, 5, 7, 9, 6, 8, 0};
    bindings_set(s->arena, &s->bind, name, sizes[draw(s->draws, sizeof sizes / sizeof *sizes)]);
    return dim_sym(s->g->alg, name, 1);
}

static void fill_pool(struct sketch *s)
{
    static const char *const names[POOL] = {"B", "S", "T", "U", "V", "W"};
    s->npool = 2 + (int)draw(s->draws, POOL - 1);
    for (int i = 0; i < s->npool; i++)
        s->pool[i] = draw(s->draws, 2) ? symbol(s, names[i]) : sketch_static(s);
}

const struct dim *sketch_dim(struct sketch *s)
{
    return s->pool[draw(s->draws, (uint32_t)s->npool)];
}

struct sketch *sketch_new(struct arena *arena, struct draws *draws, bool exact)
{
    struct sketch *s = NEW(arena, struct sketch);
    s->arena = arena;
    s->draws = draws;
    s->exact = exact;
    s->env = kenv_new(1, false);
    s->g = graph_new(arena, alg_new(arena), "random");
    s->g->opset = 24;
    s->made = NEWN(arena, int, op_count());
    fill_pool(s);
    return s;
}

void sketch_free(struct sketch *s)
{
    kenv_free(s->env);
}

/* ---- data -------------------------------------------------------------------------------------------------------------------- */

/* Room for a tensor of this type; false where it has no size here or too large a one. */
static bool tensor_room(struct sketch *s, const struct type *type, struct tensor *out)
{
    int64_t n = 1;
    *out = (struct tensor){.dtype = type->dtype, .rank = type->rank};
    for (int d = 0; d < type->rank; d++)
        if (!dim_eval(type->dim[d], &s->bind, &out->dim[d]) || out->dim[d] < 0)
            return false;
    if (!type_sizes_product(out->dim, out->rank, &n) || n > SKETCH_ELEMENTS || dtype_size(out->dtype) == 0)
        return false;
    out->data = arena_alloc(s->arena, tensor_bytes(out) + 64);
    return true;
}

static struct item *new_item(struct sketch *s, const struct value *v)
{
    while (s->items.n <= v->id) {
        struct item none = {.there = false};
        VEC_PUSH(s->arena, &s->items, none);
    }
    return sketch_item(s, v);
}

static bool lanes_equal(const struct item *it)
{
    size_t bytes = tensor_bytes(&it->lane[0]);
    for (int k = 1; k < LANES; k++)
        if (bytes && memcmp(it->lane[0].data, it->lane[k].data, bytes) != 0)
            return false;
    return true;
}

static void measure(struct item *it)
{
    bool any = false;
    it->integral = lanes_equal(it);
    for (int64_t i = 0; i < tensor_elements(&it->lane[0]); i++) {
        double x = sketch_get(&it->lane[0], i);
        it->integral = it->integral && isfinite(x) && x <= floor(x);
        if (!isfinite(x))
            continue;
        it->least = any ? fmin(it->least, x) : x;
        it->most = any ? fmax(it->most, x) : x;
        any = true;
    }
}

static double magnitude(const struct item *it)
{
    return fmax(1, fmax(-it->least, it->most));
}

struct fill sketch_fill(struct sketch *s, enum dtype dtype)
{
    if (dtype == DT_BOOL)
        return (struct fill){COINS, 0, 1};
    if (!dtype_is_float(dtype))
        return (struct fill){INTEGERS, 0, 5};
    if (s->exact || draw(s->draws, 4) == 1)
        return (struct fill){INTEGERS, -3, 3};
    return (struct fill){FLOATS, -1.5, 1.5};
}

/* Elements follow from one draw. */
static void fill_tensor(struct sketch *s, struct tensor *t, struct fill fill)
{
    uint64_t state = draw(s->draws, 1000);
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        double u = (double)(next_random(&state) >> 11) / 9007199254740992.0, wide = fill.hi - fill.lo;
        put(t, i, fill.what == FLOATS ? fill.lo + u * wide : fill.lo + floor(u * (wide + 1)));
    }
}

static struct value *new_value(struct sketch *s, const char *name, const struct type *type, const struct tensor *data)
{
    struct value *v = graph_value(s->g, name, type);
    struct item *it = new_item(s, v);
    for (int k = 0; k < LANES; k++)
        it->lane[k] = *data;
    it->there = true;
    measure(it);
    return v;
}

static struct value *filled(struct sketch *s, const char *name, const struct type *type, struct fill fill)
{
    struct tensor t;
    if (!tensor_room(s, type, &t))
        return NULL;
    fill_tensor(s, &t, fill);
    return new_value(s, name, type, &t);
}

struct value *sketch_input(struct sketch *s, const struct type *type, struct fill fill)
{
    struct value *v = filled(s, "x", type, fill);
    if (v)
        VEC_PUSH(s->arena, &s->g->inputs, v);
    return v;
}

static struct value *become_constant(struct sketch *s, struct value *v)
{
    const struct tensor *t = v ? &sketch_item(s, v)->lane[0] : NULL;
    if (!v)
        return NULL;
    v->constant = NEW(s->arena, struct constant);
    v->constant->dtype = t->dtype;
    v->constant->rank = t->rank;
    memcpy(v->constant->dim, t->dim, sizeof t->dim);
    v->constant->bytes = (int64_t)tensor_bytes(t);
    v->constant->data = t->data;
    return v;
}

struct value *sketch_const(struct sketch *s, const struct type *type, struct fill fill)
{
    return become_constant(s, filled(s, "w", type, fill));
}

struct value *sketch_ints(struct sketch *s, int n, const int64_t *at)
{
    struct type type = {.dtype = DT_I64, .rank = 1, .dim = {dim_int(s->g->alg, n)}};
    struct tensor t;
    require(tensor_room(s, &type, &t));
    memcpy(t.data, at, (size_t)n * sizeof *at);
    return become_constant(s, new_value(s, "k", &type, &t));
}

struct value *sketch_scalar(struct sketch *s, enum dtype dtype, double k)
{
    struct type type = {.dtype = dtype};
    struct tensor t;
    require(tensor_room(s, &type, &t));
    put(&t, 0, k);
    return become_constant(s, new_value(s, "k", &type, &t));
}

/* ---- computing a node -------------------------------------------------------------------------------------------------------- */

static void put_dims(struct sketch *s, const struct value *v, struct tensor *t)
{
    for (int i = 0; i < v->dims->n; i++)
        put(t, i, (double)sketch_size(s, v->dims->at[i]));
}

/* Ops that are gone before anything runs have no kernel. */
static void compute_early(struct sketch *s, struct kcall *call)
{
    const struct node *n = call->node;
    if (n->out[0]->dims)
        put_dims(s, n->out[0], &call->out[0]);
    else if (strcmp(n->optype, "Einsum") == 0)
        einsum_compute(call);
    else
        bug("%s has no kernel", n->optype);
}

static void compute(struct sketch *s, struct node *n, int lane)
{
    struct tensor *in = NEWN(s->arena, struct tensor, n->nin + 1), *out = NEWN(s->arena, struct tensor, n->nout + 1);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i])
            in[i] = sketch_item(s, n->in[i])->lane[lane];
    for (int i = 0; i < n->nout; i++)
        if (n->out[i])
            out[i] = sketch_item(s, n->out[i])->lane[lane];
    struct kcall call = {.node = n, .graph = s->g, .nin = n->nin, .nout = n->nout, .in = in, .out = out, .bind = &s->bind, .env = s->env};
    if (n->op->kernel)
        n->op->kernel(&call);
    else
        compute_early(s, &call);
}

static bool room_for_results(struct sketch *s, const struct node *n)
{
    for (int i = 0; i < n->nout; i++)
        for (int k = 0; n->out[i] && k < LANES; k++)
            if (!tensor_room(s, &n->out[i]->type, &new_item(s, n->out[i])->lane[k]))
                return false;
    return true;
}

/* Nothing of it is rounded: integers stay so, or elements are only moved. */
static bool keeps_exact(const struct sketch *s, const struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && !sketch_item(s, n->in[i])->integral)
            return false;
    return family_is_exact(n->op);
}

/* Two lanes for each of the lowest bits of an element's position: up where it is set, or down. Of any two among sixteen, one goes up in
 * some lane while the other goes down. */
static void add_rounding(struct item *it)
{
    double off = rounding * magnitude(it);
    for (int k = 1; k < LANES; k++)
        for (int64_t i = 0; i < tensor_elements(&it->lane[k]); i++) {
            bool up = (i >> (k - 1) / 2 & 1) == (k - 1) % 2;
            put(&it->lane[k], i, sketch_get(&it->lane[k], i) + (up ? off : -off));
        }
}

static bool is_tame(const struct sketch *s, const struct item *it)
{
    for (int k = 0; k < LANES; k++)
        for (int64_t i = 0; i < tensor_elements(&it->lane[0]); i++) {
            double x = sketch_get(&it->lane[0], i), y = sketch_get(&it->lane[k], i);
            bool meant = s->infinite && !isnan(x) && x <= y && y <= x;
            if (!meant && (!isfinite(x) || !isfinite(y) || fabs(x - y) > conditioned * magnitude(it)))
                return false;
        }
    return true;
}

/* A result is as it should be. */
static bool accept(struct sketch *s, struct item *it, bool exact)
{
    bool is_float = dtype_is_float(it->lane[0].dtype);
    measure(it);
    if (!is_float)
        return lanes_equal(it) && magnitude(it) < 1 << 20;
    if (exact && it->integral && magnitude(it) <= most_integer)
        return true;
    it->integral = false;
    if (s->exact || magnitude(it) > most_float)
        return false;
    add_rounding(it);
    return is_tame(s, it);
}

static bool accept_all(struct sketch *s, const struct node *n)
{
    bool exact = keeps_exact(s, n);
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && !accept(s, sketch_item(s, n->out[i]), exact))
            return false;
    return true;
}

static void append(struct sketch *s, struct node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i])
            sketch_item(s, n->in[i])->uses++;
    for (int i = 0; i < n->nout; i++)
        if (n->out[i]) {
            struct item *it = sketch_item(s, n->out[i]);
            it->there = true;
            it->infinite = s->infinite;
        }
    for (int i = 0; i < op_count(); i++)
        s->made[i] += op_at(i) == n->op;
    graph_append(s->g, n);
}

struct node *sketch_node(struct sketch *s, const struct op *op, int nin, struct value *const *in, int nout)
{
    for (int i = 0; i < nin; i++)
        if (!in[i] && (i >= op->nin || (!op->in[i].optional && !op->in[i].size)))
            return NULL;
    struct type untyped = {.dtype = DT_NONE};
    struct node *n = graph_node(s->g, op, arena_printf(s->arena, "n%d", s->g->nodes.n), nin, in, nout);
    for (int i = 0; i < nout; i++)
        node_output(s->g, n, i, graph_value(s->g, arena_printf(s->arena, "v%d", s->g->values.n), &untyped));
    return n;
}

struct value *sketch_add(struct sketch *s, struct node *n, const struct type *type)
{
    if (!n)
        return NULL;
    if (type)
        n->out[0]->type = *type;
    op_infer(s->g, n);
    if (!room_for_results(s, n))
        return NULL;
    for (int k = 0; k < LANES; k++)
        compute(s, n, k);
    if (!accept_all(s, n))
        return NULL;
    append(s, n);
    return n->out[0];
}

struct value *sketch_op(struct sketch *s, const char *op, int nin, struct value *const *in)
{
    return sketch_add(s, sketch_node(s, op_find("", op), nin, in, 1), NULL);
}

struct value *sketch_op1(struct sketch *s, const char *op, struct value *x)
{
    return sketch_op(s, op, 1, &x);
}

struct value *sketch_op2(struct sketch *s, const char *op, struct value *x, struct value *y)
{
    return sketch_op(s, op, 2, (struct value *[]){x, y});
}

void set_float(struct node *n, const char *name, double k)
{
    struct attr *a = node_attr(n, name);
    a->f = (double)(float)k;
    a->set = true;
}

void set_sizes(struct sketch *s, struct node *n, const char *name, int count, const int64_t *at)
{
    const struct dim *dim[POOL + MAX_RANK * 2];
    require(count <= POOL + MAX_RANK * 2);
    for (int i = 0; i < count; i++)
        dim[i] = dim_int(s->g->alg, at[i]);
    if (n)
        attr_set_dims(s->g, n, name, count, dim);
}

/* ---- choosing operands ------------------------------------------------------------------------------------------------------- */

static bool is_sort(enum sort sort, enum dtype t)
{
    switch (sort) {
    case SORT_FLOAT: return t == DT_F32;
    case SORT_INT: return t == DT_I64;
    case SORT_BOOL: return t == DT_BOOL;
    case SORT_NUMBER: return t == DT_F32 || t == DT_I64;
    case SORT_ANY: return t == DT_F32 || t == DT_I64 || t == DT_BOOL;
    }
    return false;
}

static enum dtype draw_dtype(struct sketch *s, enum sort sort)
{
    switch (sort) {
    case SORT_FLOAT: return DT_F32;
    case SORT_INT: return DT_I64;
    case SORT_BOOL: return DT_BOOL;
    case SORT_NUMBER: return draw(s->draws, 4) == 1 ? DT_I64 : DT_F32;
    case SORT_ANY: return (enum dtype[]){DT_F32, DT_F32, DT_I64, DT_BOOL}[draw(s->draws, 4)];
    }
    return DT_F32;
}

/* The newest ones are the most likely. */
static struct value *choose(struct sketch *s, int n, struct value *const *from)
{
    uint32_t i = draw(s->draws, (uint32_t)n), j = draw(s->draws, (uint32_t)n);
    return from[n - 1 - (int)(i < j ? i : j)];
}

static struct value *new_operand(struct sketch *s, enum sort sort, int least, int most)
{
    struct type t = {.dtype = draw_dtype(s, sort)};
    t.rank = least + (int)draw(s->draws, (uint32_t)((most > 4 ? 4 : most) - least + 1));
    for (int d = 0; d < t.rank; d++)
        t.dim[d] = sketch_dim(s);
    return sketch_input(s, &t, sketch_fill(s, t.dtype));
}

struct value *sketch_pick(struct sketch *s, enum sort sort, int least, int most)
{
    struct value **from = NEWN(s->arena, struct value *, s->items.n + 1);
    int n = 0;
    for (int i = 0; i < s->items.n; i++) {
        struct value *v = s->g->values.at[i];
        if (s->items.at[i].there && !s->items.at[i].infinite && !v->constant && is_sort(sort, v->type.dtype) && v->type.rank >= least &&
            v->type.rank <= most)
            from[n++] = v;
    }
    return n == 0 || draw(s->draws, 8) == 1 ? new_operand(s, sort, least, most) : choose(s, n, from);
}

static bool is_static(const struct type *t)
{
    for (int d = 0; d < t->rank; d++)
        if (!dim_is_int(t->dim[d], NULL))
            return false;
    return true;
}

struct value *sketch_like(struct sketch *s, enum dtype dtype, int rank, const struct dim *const *dim)
{
    struct type t = sketch_type(dtype, rank, dim);
    struct value **from = NEWN(s->arena, struct value *, s->items.n + 1);
    int n = 0;
    for (int i = 0; i < s->items.n; i++)
        if (s->items.at[i].there && !s->items.at[i].infinite && type_eq(&s->g->values.at[i]->type, &t))
            from[n++] = s->g->values.at[i];
    if (n > 0 && draw(s->draws, 3) != 1)
        return choose(s, n, from);
    if (is_static(&t) && draw(s->draws, 3) != 1)
        return sketch_const(s, &t, sketch_fill(s, dtype));
    return sketch_input(s, &t, sketch_fill(s, dtype));
}
