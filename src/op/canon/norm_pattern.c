/* Norms written out in elementary ops become one node.
 *
 *   RMSNormalization    w * (x / sqrt(mean(x^2) + eps))
 *   LayerNormalization  w * (d / sqrt(mean(d^2) + eps)) + b    with d = x - mean(x)
 *
 * over the last dimension, eps a constant; squares by Pow or Mul, the quotient by Div, or Mul by a Reciprocal or by 1 / sqrt. A cast of
 * x to float32 before and of the result back before the scale is what stash_type 1 means. */
#include "op/canon/canon.h"
#include "op/infer/infer.h"
#include "op/op.h"

#include <math.h>
#include <string.h>

/* A floating point constant of one element. */
static bool scalar(const struct value *v, double *out)
{
    if (!v || !v->constant || !dtype_is_float(v->constant->dtype) || constant_elements(v->constant) != 1)
        return false;
    *out = constant_float(v->constant, v->name, 0);
    return true;
}

static bool scalar_is(const struct value *v, double expected)
{
    double k;
    return scalar(v, &k) && k <= expected && k >= expected;
}

/* The x of x * x or x ^ 2. */
static struct value *squared(const struct value *v)
{
    const struct node *pow = op_made_by(v, "Pow"), *mul = op_made_by(v, "Mul");
    if (pow && scalar_is(pow->in[1], 2))
        return pow->in[0];
    return mul && mul->in[0] == mul->in[1] ? mul->in[0] : NULL;
}

/* The x of a mean of x over the last dimension, kept as 1. */
static struct value *norm_mean(const struct value *v)
{
    const struct node *mean = op_made_by(v, "ReduceMean");
    const struct dim **axes;
    if (!mean || !op_resolved(mean) || !attr_is_set(mean, "axes") || !attr_int(mean, "keepdims") || attr_dims(mean, "axes", &axes) != 1)
        return NULL;
    return dim_equals(axes[0], mean->in[0]->type.rank - 1) ? mean->in[0] : NULL;
}

/* The x whose root mean square (plus eps) v is. */
static struct value *root_mean_square(const struct value *v, double *eps)
{
    const struct node *root = op_made_by(v, "Sqrt"), *sum = root ? op_made_by(root->in[0], "Add") : NULL;
    for (int i = 0; sum && i < 2; i++) {
        struct value *mean = scalar(sum->in[1 - i], eps) ? norm_mean(sum->in[i]) : NULL;
        if (mean)
            return squared(mean);
    }
    return NULL;
}

/* The x of 1 / rms(x). */
static struct value *inverse_rms(const struct value *v, double *eps)
{
    const struct node *reciprocal = op_made_by(v, "Reciprocal"), *div = op_made_by(v, "Div");
    if (reciprocal)
        return root_mean_square(reciprocal->in[0], eps);
    return div && scalar_is(div->in[0], 1) ? root_mean_square(div->in[1], eps) : NULL;
}

/* The x of x / rms(x). */
static struct value *normalized(const struct value *v, double *eps)
{
    const struct node *div = op_made_by(v, "Div"), *mul = op_made_by(v, "Mul");
    if (div && root_mean_square(div->in[1], eps) == div->in[0])
        return div->in[0];
    for (int i = 0; mul && i < 2; i++)
        if (inverse_rms(mul->in[1 - i], eps) == mul->in[i])
            return mul->in[i];
    return NULL;
}

/* The x of d = x - mean(x); NULL when v is something else. */
static struct value *centered(const struct value *v)
{
    const struct node *sub = op_made_by(v, "Sub");
    return sub && norm_mean(sub->in[1]) == sub->in[0] ? sub->in[0] : NULL;
}

/* One factor per element of the last dimension, and of x's type. */
static bool is_scale(const struct value *w, const struct value *x)
{
    return x->type.rank > 0 && w->type.rank == 1 && w->type.dim[0] == x->type.dim[x->type.rank - 1] && w->type.dtype == x->type.dtype;
}

/* The operand of the norm: seen through casts when the result is cast back to what x was. NULL when the casts do not pair. */
static struct value *before_casts(struct value *x, const struct node *back)
{
    const struct node *to_float = op_made_by(x, "Cast");
    if (!back)
        return x;
    if (!to_float || to_float->in[0]->type.dtype != back->out[0]->type.dtype || x->type.dtype != DT_F32)
        return NULL;
    return to_float->in[0];
}

static bool make_norm(struct rewrite *w, struct node *root, struct value *x, struct value *scale, double eps, bool layer)
{
    struct value *in[2] = {x, scale};
    struct node *norm = rewrite_node(w, "", layer ? "LayerNormalization" : "RMSNormalization", root, 2, in);
    attr_set_int(norm, "axis", x->type.rank - 1);
    node_attr(norm, "epsilon")->f = eps;
    node_attr(norm, "epsilon")->set = true;
    node_output(w->g, norm, 0, root->out[0]);
    return true;
}

/* root = scale * [Cast] (x / rms(x)). */
static bool norm_with_scale(struct rewrite *w, struct node *root, struct value *scale, const struct value *y)
{
    const struct node *back = op_made_by(y, "Cast");
    double eps;
    struct value *x = normalized(back ? back->in[0] : y, &eps);
    if (!x || !isfinite(eps))
        return false;
    struct value *mean_free = centered(x);
    struct value *operand = before_casts(mean_free ? mean_free : x, back);
    if (!operand || !is_scale(scale, operand))
        return false;
    return make_norm(w, root, operand, scale, eps, mean_free != NULL);
}

bool canon_find_norm(struct rewrite *w, struct node *node)
{
    if (!op_is_onnx(node, "Mul"))
        return false;
    return norm_with_scale(w, node, node->in[0], node->in[1]) || norm_with_scale(w, node, node->in[1], node->in[0]);
}

/* LayerNormalization(x, w) + b, the sum being the norm's only use. */
bool canon_find_norm_bias(struct rewrite *w, struct node *node)
{
    if (!op_is_onnx(node, "Add"))
        return false;
    for (int i = 0; i < 2; i++) {
        const struct node *norm = op_made_by(node->in[i], "LayerNormalization");
        struct value *bias = node->in[1 - i];
        if (!norm || norm->nin != 2 || norm->nout != 1 || !is_scale(bias, norm->in[0]))
            continue;
        struct value *in[3] = {norm->in[0], norm->in[1], bias};
        struct node *sum = rewrite_node(w, "", "LayerNormalization", node, 3, in);
        for (int k = 0; k < norm->nattr; k++)
            sum->attr[k] = norm->attr[k];
        node_output(w->g, sum, 0, node->out[0]);
        return true;
    }
    return false;
}
