/* elementwise: elementwise ops: inference by broadcasting and shape arithmetic on dimension vectors. */
#include "op/infer/infer.h"
#include "op/table/table.h"

/* ---- inference ------------------------------------------------------------------------------------------------------------ */

void infer_same(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    op_result(g, node, 0, x->dtype, x->rank, x->dim);
}

void infer_test(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    op_result(g, node, 0, DT_BOOL, x->rank, x->dim);
}

static void refuse_small_text(const struct graph *g, const struct node *node, enum dtype from, enum dtype to)
{
    if ((from == DT_STRING && dtype_is_small(to)) || (to == DT_STRING && dtype_is_small(from)))
        fail("%s: makes %s of %s, expected numbers of whole bytes, and no floats of 8 bits, beside strings", node_where(g, node),
             dtype_name(to), dtype_name(from));
}

void infer_cast(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    enum dtype to = (enum dtype)attr_int(node, "to");
    if (dtype_size(to) == 0)
        fail("%s: attribute 'to' is %lld, which is no element type that is handled", node_where(g, node), (long long)attr_int(node, "to"));
    refuse_small_text(g, node, x->dtype, to);
    op_result(g, node, 0, to, x->rank, x->dim);
}

/* Both types have elements of one size. */
void infer_bitcast(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    enum dtype to = (enum dtype)attr_int(node, "to");
    if (to == DT_STRING || dtype_bits(to) == 0 || dtype_bits(to) != dtype_bits(x->dtype))
        fail("%s: attribute 'to' is %lld, expected a type with elements as large as those of %s", node_where(g, node),
             (long long)attr_int(node, "to"), dtype_name(x->dtype));
    op_result(g, node, 0, to, x->rank, x->dim);
}

static struct type broadcast_all(struct graph *g, struct node *node)
{
    if (node->nin < 1)
        fail("%s: has no operands", node_where(g, node));
    const struct type **type = NEWN(g->arena, const struct type *, node->nin);
    for (int i = 0; i < node->nin; i++)
        type[i] = op_operand(g, node, i);
    return op_broadcast(g, node, node->nin, type);
}

void infer_broadcast(struct graph *g, struct node *node)
{
    for (int i = 1; i < node->nin; i++)
        op_same_dtype(g, node, 0, i);
    struct type out = broadcast_all(g, node);
    op_result(g, node, 0, out.dtype, out.rank, out.dim);
}

/* The exponent may have another element type than the base. */
void infer_pow(struct graph *g, struct node *node)
{
    struct type out = broadcast_all(g, node);
    op_result(g, node, 0, out.dtype, out.rank, out.dim);
}

/* The bounds of Clip are scalars or absent. */
void infer_clip(struct graph *g, struct node *node)
{
    for (int i = 1; i < node->nin; i++)
        if (node->in[i]) {
            op_same_dtype(g, node, 0, i);
            if (!dim_equals(type_elements(g->alg, op_operand(g, node, i)), 1))
                fail("%s: the bound '%s' must be one number but is %s", node_where(g, node), node->in[i]->name,
                     type_str(g->arena, op_operand(g, node, i)));
        }
    infer_same(g, node);
}

/* The slope is broadcast to X, never X to the slope. */
void infer_prelu(struct graph *g, struct node *node)
{
    op_same_dtype(g, node, 0, 1);
    op_need_rank(g, node, 1, 0, op_operand(g, node, 0)->rank);
    struct type out = broadcast_all(g, node);
    op_result(g, node, 0, out.dtype, out.rank, out.dim);
}

/* Reads only the type of the second operand; the canonical form is a Cast. */
void infer_castlike(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    refuse_small_text(g, node, x->dtype, op_operand(g, node, 1)->dtype);
    op_result(g, node, 0, op_operand(g, node, 1)->dtype, x->rank, x->dim);
}

void infer_compare(struct graph *g, struct node *node)
{
    op_same_dtype(g, node, 0, 1);
    struct type out = broadcast_all(g, node);
    op_result(g, node, 0, DT_BOOL, out.rank, out.dim);
}

void infer_where(struct graph *g, struct node *node)
{
    if (op_operand(g, node, 0)->dtype != DT_BOOL)
        fail("%s: the condition must be bool but is %s", node_where(g, node), dtype_name(node->in[0]->type.dtype));
    op_same_dtype(g, node, 1, 2);
    struct type out = broadcast_all(g, node);
    op_result(g, node, 0, node->in[1]->type.dtype, out.rank, out.dim);
}

/* ---- shape arithmetic ------------------------------------------------------------------------------------------------------- */

/* Values of operand i if the node computes on integers only and they are known. */
static const struct dims_value *known(struct graph *g, struct node *node, int i)
{
    const struct type *type = op_operand(g, node, i);
    return op_carries_dims(type->dtype) && type->rank <= 1 ? op_dims(g, node->in[i]) : NULL;
}

typedef const struct dim *(*unary_value)(struct alg *, const struct dim *);
/* NULL: not provable; then nothing is known of the result. */
typedef const struct dim *(*binary_value)(struct alg *, const struct dim *, const struct dim *);

static void value_unary(struct graph *g, struct node *node, unary_value f)
{
    const struct dims_value *x = known(g, node, 0);
    if (!x || !node->out[0])
        return;
    const struct dim **out = NEWN(g->arena, const struct dim *, x->n + 1);
    for (int i = 0; i < x->n; i++)
        if (!(out[i] = f(g->alg, x->at[i])))
            return;
    const struct dim **at = op_set_dims(g, node, x->n);
    for (int i = 0; i < x->n; i++)
        at[i] = out[i];
}

/* Elements of a broadcast of vectors and scalars; -1 if they do not match. */
static int broadcast_count(int n, const struct dims_value *const *x)
{
    int count = 1;
    for (int i = 0; i < n; i++) {
        if (x[i]->n == 1)
            continue;
        if (count != 1 && count != x[i]->n)
            return -1;
        count = x[i]->n;
    }
    return count;
}

static const struct dim *value_element(const struct dims_value *x, int i)
{
    return x->at[x->n == 1 ? 0 : i];
}

/* Folds f over all operands, from the left. */
static void value_fold(struct graph *g, struct node *node, binary_value f)
{
    const struct dims_value **x = NEWN(g->arena, const struct dims_value *, node->nin + 1);
    for (int i = 0; i < node->nin; i++)
        if (!(x[i] = known(g, node, i)))
            return;
    int count = broadcast_count(node->nin, x);
    if (count < 0 || !node->out[0])
        return;
    const struct dim **out = NEWN(g->arena, const struct dim *, count + 1);
    for (int i = 0; i < count; i++) {
        out[i] = value_element(x[0], i);
        for (int k = 1; k < node->nin; k++)
            if (!(out[i] = f(g->alg, out[i], value_element(x[k], i))))
                return;
    }
    const struct dim **at = op_set_dims(g, node, count);
    for (int i = 0; i < count; i++)
        at[i] = out[i];
}

static const struct dim *truth(struct alg *alg, bool value)
{
    return dim_int(alg, value ? 1 : 0);
}

static const struct dim *of_abs(struct alg *alg, const struct dim *x)
{
    return dim_max(alg, x, dim_neg(alg, x));
}

static const struct dim *of_not(struct alg *alg, const struct dim *x)
{
    return dim_sub(alg, dim_int(alg, 1), x);
}

static bool is_nonnegative(struct alg *alg, const struct dim *x)
{
    return dim_ge(alg, x, dim_int(alg, 0));
}

/* Integer division truncates; that is floor division if neither side is negative. An exact quotient needs no such proof. */
static const struct dim *of_div(struct alg *alg, const struct dim *a, const struct dim *b)
{
    if (dim_equals(b, 0))
        return NULL;
    const struct dim *exact = dim_quotient(alg, a, b);
    if (exact)
        return exact;
    int64_t x, y;
    if (dim_is_int(a, &x) && dim_is_int(b, &y))
        return y == -1 ? dim_neg(alg, a) : dim_int(alg, x / y);
    bool fits = is_nonnegative(alg, a) && dim_ge(alg, b, dim_int(alg, 1));
    return fits ? dim_div(alg, a, b) : NULL;
}

static const struct dim *of_mod(struct alg *alg, const struct dim *a, const struct dim *b)
{
    return dim_ge(alg, b, dim_int(alg, 1)) ? dim_mod(alg, a, b) : NULL;
}

static const struct dim *of_equal(struct alg *alg, const struct dim *a, const struct dim *b)
{
    if (a == b)
        return truth(alg, true);
    const struct dim *one = dim_int(alg, 1);
    bool apart = dim_ge(alg, a, dim_add(alg, b, one)) || dim_ge(alg, b, dim_add(alg, a, one));
    return apart ? truth(alg, false) : NULL;
}

static const struct dim *of_greaterorequal(struct alg *alg, const struct dim *a, const struct dim *b)
{
    if (dim_ge(alg, a, b))
        return truth(alg, true);
    return dim_ge(alg, b, dim_add(alg, a, dim_int(alg, 1))) ? truth(alg, false) : NULL;
}

static const struct dim *of_lessorequal(struct alg *alg, const struct dim *a, const struct dim *b)
{
    return of_greaterorequal(alg, b, a);
}

static const struct dim *of_less(struct alg *alg, const struct dim *a, const struct dim *b)
{
    const struct dim *not = of_greaterorequal(alg, a, b);
    return not ? of_not(alg, not ) : NULL;
}

static const struct dim *of_greater(struct alg *alg, const struct dim *a, const struct dim *b)
{
    return of_less(alg, b, a);
}

/* ---- conditions on operands, which may become an assumption that a size is not 0 --------------------------------- */

static bool is_above(struct graph *g, const struct node *node, const struct dim *a, const struct dim *b, int64_t by)
{
    return op_assume_ge(g, node, a, dim_add(g->alg, b, dim_int(g->alg, by)), "the sizes compared");
}

static bool told_apart(struct graph *g, const struct node *node, const struct dim *a, const struct dim *b)
{
    return a == b || is_above(g, node, a, b, 1) || is_above(g, node, b, a, 1);
}

static bool ordered(struct graph *g, const struct node *node, const struct dim *a, const struct dim *b)
{
    bool known = dim_ge(g->alg, a, b) || dim_ge(g->alg, b, a);
    return known || told_apart(g, node, a, b) || is_above(g, node, a, b, 0) || is_above(g, node, b, a, 0);
}

static bool by_positive(struct graph *g, const struct node *node, const struct dim *a, const struct dim *b)
{
    bool floors = is_nonnegative(g->alg, a) && !dim_equals(b, 0) && !dim_quotient(g->alg, a, b);
    return floors && op_assume_ge(g, node, b, dim_int(g->alg, 1), "the divisor");
}

static void value_fold_checked(struct graph *g, struct node *node, binary_value f,
                               bool (*check)(struct graph *, const struct node *, const struct dim *, const struct dim *))
{
    const struct dims_value *x[2] = {known(g, node, 0), known(g, node, 1)};
    int count = x[0] && x[1] ? broadcast_count(2, x) : 0;
    for (int i = 0; i < count; i++)
        (void)check(g, node, value_element(x[0], i), value_element(x[1], i));
    value_fold(g, node, f);
}

VALUE_IS(abs, value_unary(g, node, of_abs))
VALUE_IS(neg, value_unary(g, node, dim_neg))
VALUE_IS(not, value_unary(g, node, of_not))
VALUE_IS(add, value_fold(g, node, dim_add))
VALUE_IS(sub, value_fold(g, node, dim_sub))
VALUE_IS(mul, value_fold(g, node, dim_mul))
VALUE_IS(div, value_fold_checked(g, node, of_div, by_positive))
VALUE_IS(max, value_fold(g, node, dim_max))
VALUE_IS(min, value_fold(g, node, dim_min))
VALUE_IS(and, value_fold(g, node, dim_min))
VALUE_IS(or, value_fold(g, node, dim_max))
VALUE_IS(equal, value_fold_checked(g, node, of_equal, told_apart))
VALUE_IS(greater, value_fold_checked(g, node, of_greater, ordered))
VALUE_IS(greaterorequal, value_fold_checked(g, node, of_greaterorequal, ordered))
VALUE_IS(less, value_fold_checked(g, node, of_less, ordered))
VALUE_IS(lessorequal, value_fold_checked(g, node, of_lessorequal, ordered))

/* fmod keeps the sign of the dividend; for what is known here, both agree only if it is not negative, so fmod is skipped. */
void value_mod(struct graph *g, struct node *node)
{
    if (attr_int(node, "fmod") == 0)
        value_fold_checked(g, node, of_mod, by_positive);
}

/* Numbers keep their value between integer types; as a truth value only 0 or not 0 remains. */
static const struct dim *of_truth(struct alg *alg, const struct dim *x)
{
    const struct dim *zero = of_equal(alg, x, dim_int(alg, 0));
    return zero ? of_not(alg, zero) : NULL;
}

static const struct dim *of_itself(struct alg *alg, const struct dim *x)
{
    (void)alg;
    return x;
}

/* An integer may come from a constant of a float type. */
static void value_to(struct graph *g, struct node *node, enum dtype to)
{
    int64_t number;
    if (!op_carries_dims(to))
        return;
    value_unary(g, node, to == DT_BOOL ? of_truth : of_itself);
    const struct type *from = op_operand(g, node, 0);
    if (to == DT_I64 && dtype_is_float(from->dtype) && from->rank <= 1 && op_whole_constant(node->in[0], &number))
        *op_set_dims(g, node, 1) = dim_int(g->alg, number);
}

VALUE_IS(cast, value_to(g, node, (enum dtype)attr_int(node, "to")))
VALUE_IS(castlike, value_to(g, node, op_operand(g, node, 1)->dtype))

/* min(max(x, low), high), with each bound absent or known. */
void value_clip(struct graph *g, struct node *node)
{
    const struct dims_value *x = known(g, node, 0), *bound[2] = {NULL, NULL};
    for (int i = 1; i < node->nin; i++)
        if (node->in[i] && (!(bound[i - 1] = known(g, node, i)) || bound[i - 1]->n != 1))
            return;
    if (!x || !node->out[0])
        return;
    const struct dim **at = op_set_dims(g, node, x->n);
    for (int i = 0; i < x->n; i++) {
        at[i] = bound[0] ? dim_max(g->alg, x->at[i], bound[0]->at[0]) : x->at[i];
        at[i] = bound[1] ? dim_min(g->alg, at[i], bound[1]->at[0]) : at[i];
    }
}

static const struct dim *choose_element(const struct dim *c, const struct dim *x, const struct dim *y)
{
    int64_t truth_value;
    if (x == y)
        return x;
    if (!dim_is_int(c, &truth_value))
        return NULL;
    return truth_value ? x : y;
}

void value_where(struct graph *g, struct node *node)
{
    const struct dims_value *x[3];
    for (int i = 0; i < 3; i++)
        if (!(x[i] = known(g, node, i)))
            return;
    int count = broadcast_count(3, x);
    if (count < 0 || !node->out[0])
        return;
    const struct dim **out = NEWN(g->arena, const struct dim *, count + 1);
    for (int i = 0; i < count; i++)
        if (!(out[i] = choose_element(value_element(x[0], i), value_element(x[1], i), value_element(x[2], i))))
            return;
    const struct dim **at = op_set_dims(g, node, count);
    for (int i = 0; i < count; i++)
        at[i] = out[i];
}
