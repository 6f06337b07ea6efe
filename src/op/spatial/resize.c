/* resize: each resized dimension is interpolated separately; other dimensions are free. A dimension whose elements are repeated k times is
 * a product, y elements times k, and y is free. A dimension interpolated to k times its size is windows over the elements, whose neighbours
 * are a halo. Others are never split. In canonical form `sizes` and `axes` name only the resized dimensions, so the node contains no size
 * of another dimension. */
#include "ir/operands.h"
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/spatial/spatial.h"
#include "op/table/table.h"

#include <math.h>
#include <string.h>

enum { MOST_REPEATED = 64 };

struct resize_targets {
    bool known;
    struct resize_target dim[MAX_RANK];
};

static bool mode_is(const struct node *node, const char *attr, const char *mode)
{
    return strcmp(attr_string(node, attr), mode) == 0;
}

/* The axes of sizes and scales: the attribute's, or all. Returns their number. */
static int resized_axes(const struct graph *g, const struct node *node, int rank, int *axis)
{
    const int64_t *at = NULL;
    int n = attr_is_set(node, "axes") ? attr_ints(g, node, "axes", &at) : 0;
    if (n > rank)
        fail("%s: %d axes are given for %d dimensions", node_where(g, node), n, rank);
    for (int i = 0; i < rank; i++)
        axis[i] = i < n ? op_axis(g, node, at[i], rank) : i;
    op_distinct_axes(g, node, n, axis, "resized");
    return n ? n : rank;
}

static bool is_given(const struct node *node, int i)
{
    return node_operand(node, i) && !(node->in[i]->type.rank == 1 && dim_equals(node->in[i]->type.dim[0], 0));
}

static void target_scales(const struct graph *g, const struct node *node, int n, const int *axis, struct resize_targets *r)
{
    struct constant *c = node->in[IN_Resize_scales]->constant;
    r->known = c && dtype_is_float(c->dtype);
    if (r->known && constant_elements(c) != n)
        fail("%s: there are %lld scales for %d dimensions", node_where(g, node), (long long)constant_elements(c), n);
    for (int i = 0; i < n; i++) {
        double scale = r->known ? constant_float(c, node->in[IN_Resize_scales]->name, i) : 1;
        if (!(scale > 0) || !(scale <= INT32_MAX))
            fail("%s: the scale of dimension %d is %g, expected a positive number", node_where(g, node), axis[i], scale);
        r->dim[axis[i]] = (struct resize_target){true, NULL, scale};
    }
}

static void read_sizes(struct graph *g, const struct node *node, int n, const int *axis, struct resize_targets *r)
{
    const struct dim *const *size = NULL;
    int count = op_size_operand(g, node, IN_Resize_sizes, "sizes", &size);
    r->known = count >= 0;
    if (count == -2)
        fail("%s: neither scales nor sizes are given", node_where(g, node));
    if (r->known && count != n)
        fail("%s: there are %d sizes for %d dimensions", node_where(g, node), count, n);
    for (int i = 0; i < n; i++)
        r->dim[axis[i]] = (struct resize_target){true, r->known ? size[i] : NULL, 0};
}

static struct resize_targets resize_of(struct graph *g, const struct node *node)
{
    struct resize_targets r = {0};
    int axis[MAX_RANK], n = resized_axes(g, node, node->in[IN_Resize_X]->type.rank, axis);
    if (is_given(node, IN_Resize_scales))
        target_scales(g, node, n, axis, &r);
    else
        read_sizes(g, node, n, axis, &r);
    return r;
}

struct resize_target resize_target_of(struct graph *g, const struct node *node, int d)
{
    return resize_of(g, node).dim[d];
}

/* ---- inference ----------------------------------------------------------------------------------------------------------------------- */

/* floor(scale * size); a symbolic size needs a scale that is a fraction of small numbers. NULL: unknown. */
static const struct dim *scaled_size(struct alg *alg, const struct dim *size, double scale)
{
    int64_t n, under = 1;
    if (dim_is_int(size, &n) && (float)scale * (float)n < 0x1p62f)
        return dim_int(alg, (int64_t)((float)scale * (float)n));
    while (under < 1024 && scale * (double)under > (double)(int64_t)(scale * (double)under))
        under *= 2;
    int64_t over = (int64_t)(scale * (double)under);
    bool exact = scale * (double)under <= (double)over && over < INT32_MAX;
    return exact ? dim_div(alg, dim_mul(alg, size, dim_int(alg, over)), dim_int(alg, under)) : NULL;
}

/* One scale for all named dimensions, the least or the greatest that sizes imply; 0: unknown. */
static double aspect_scale(const struct type *x, const struct resize_targets *r, bool least)
{
    double scale = 0;
    for (int d = 0; d < x->rank; d++) {
        int64_t from, to;
        if (!r->dim[d].named)
            continue;
        if (!dim_is_int(x->dim[d], &from) || !dim_is_int(r->dim[d].size, &to) || from < 1)
            return 0;
        double own = (double)to / (double)from;
        scale = !(scale > 0) || (least ? own < scale : own > scale) ? own : scale;
    }
    return scale;
}

static const struct dim *rounded(struct alg *alg, const struct dim *size, double scale)
{
    int64_t n;
    return scale > 0 && dim_is_int(size, &n) ? dim_int(alg, (int64_t)((double)n * scale + 0.5)) : NULL;
}

/* Positions omitted in each dimension: rank entries for the start, rank entries for the end. */
static void crop_of(const struct graph *g, const struct node *node, int64_t *crop)
{
    const int64_t *at = NULL;
    int rank = node->in[IN_Resize_X]->type.rank, n = attr_is_set(node, "crop") ? attr_ints(g, node, "crop", &at) : 0;
    for (int i = 0; i < 2 * rank; i++)
        crop[i] = n == 2 * rank ? at[i] : 0;
}

static const struct dim *resized(struct graph *g, const struct node *node, const struct resize_targets *r, int d)
{
    const struct type *x = &node->in[IN_Resize_X]->type;
    const struct resize_target *t = &r->dim[d];
    if (!t->named)
        return x->dim[d];
    if (!r->known)
        return NULL;
    if (!t->size)
        return scaled_size(g->alg, x->dim[d], t->scale);
    if (mode_is(node, "keep_aspect_ratio_policy", "stretch"))
        return t->size;
    return rounded(g->alg, x->dim[d], aspect_scale(x, r, mode_is(node, "keep_aspect_ratio_policy", "not_larger")));
}

void infer_resize(struct graph *g, struct node *node)
{
    op_need_rank(g, node, IN_Resize_X, 1, MAX_RANK);
    const struct type *x = op_operand(g, node, IN_Resize_X);
    struct resize_targets r = resize_of(g, node);
    const struct dim *dim[MAX_RANK];
    int64_t crop[2 * MAX_RANK];
    crop_of(g, node, crop);
    for (int d = 0; d < x->rank; d++) {
        dim[d] = resized(g, node, &r, d);
        dim[d] = dim[d] ? dim_sub(g->alg, dim[d], dim_int(g->alg, crop[d] + crop[x->rank + d])) : op_unknown_dim(g, node, 0, d);
    }
    op_result(g, node, 0, x->dtype, x->rank, dim);
}

/* ---- elements that are repeated ---------------------------------------------------------------------------------------------- */

/* Whether positions k e .. k e + k - 1 read element e, for every e: checked at element 0, without its being the first. */
static bool repeats(const struct node *node, int64_t k)
{
    const char *round = attr_string(node, "nearest_mode");
    bool asymmetric = mode_is(node, "coordinate_transformation_mode", "asymmetric"), same = true;
    for (int64_t i = 0; i < k; i++) {
        double at = asymmetric ? (double)i / (double)k : ((double)i + 0.5) / (double)k - 0.5;
        double near = strcmp(round, "floor") == 0     ? floor(at)
            : strcmp(round, "ceil") == 0              ? ceil(at)
            : strcmp(round, "round_prefer_ceil") == 0 ? floor(at + 0.5)
                                                      : ceil(at - 0.5);
        same = same && near >= 0 && near < 1;
    }
    return same;
}

/* An integer scale, small enough to check, that fixes no size; 0: none. */
static int64_t whole_scale(const struct resize_target *t)
{
    bool looked_at = t->named && !t->size && t->scale >= 2 && t->scale <= MOST_REPEATED;
    int64_t k = looked_at ? (int64_t)t->scale : 0;
    return k && t->scale <= (double)k ? k : 0;
}

/* How many times the elements of a dimension are repeated; 0: they are not. */
static int64_t repeated(const struct node *node, const struct resize_target *t)
{
    bool shifts = mode_is(node, "coordinate_transformation_mode", "align_corners") ||
        mode_is(node, "coordinate_transformation_mode", "tf_crop_and_resize");
    int64_t k = shifts || !mode_is(node, "mode", "nearest") ? 0 : whole_scale(t);
    return k && repeats(node, k) ? k : 0;
}

/* ---- interpolated elements ---------------------------------------------------------------------------------- */

/* The number of elements on each side that a position reads; 0: they do not move with the position, or are not two or four. */
static int64_t taps_beside(const struct node *node)
{
    static const char *const sliding[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric"};
    for (size_t i = 0; i < sizeof sliding / sizeof *sliding; i++)
        if (mode_is(node, "coordinate_transformation_mode", sliding[i]))
            return mode_is(node, "mode", "linear") ? 1 : mode_is(node, "mode", "cubic") ? 2 : 0;
    return 0;
}

/* Whether position i is at i / k in the operand, or offset by half an element if centres count. */
static bool slides_over(const struct node *node, const struct resize_target *t, int d, struct sliding *out)
{
    int64_t size, places, k = whole_scale(t), beside = taps_beside(node);
    bool middle = !mode_is(node, "coordinate_transformation_mode", "asymmetric");
    if (k == 0 || beside == 0 || !dim_is_int(node->in[IN_Resize_X]->type.dim[d], &size) ||
        !dim_is_int(node->out[0]->type.dim[d], &places) || places != k * size)
        return false;
    int64_t before = middle ? (k - 1) / 2 : 0, even = middle && k % 2 == 0;
    *out = (struct sliding){
        .stride = 1, .reach = 2 * beside * k + 1 - even, .pad = beside * k + before, .size = node->in[IN_Resize_X]->type.dim[d], .per = k};
    return true;
}

/* A rank's part: the result of its elements, without its neighbours' positions. */
void slide_resize(struct graph *g, struct node *node, const struct slide *s)
{
    int64_t crop[2 * MAX_RANK], k = s->by->per;
    int rank = node->in[IN_Resize_X]->type.rank;
    crop_of(g, node, crop);
    crop[s->dim] = s->windows.lo - k * s->elements.lo;
    crop[rank + s->dim] = k * s->elements.hi - s->windows.hi;
    require(crop[s->dim] >= 0 && crop[rank + s->dim] >= 0);
    attr_set_ints(g, node, "crop", 2 * rank, crop);
}

/* ---- canonical form ------------------------------------------------------------------------------------------------------------------ */

static int named_count(const struct resize_targets *r, int rank)
{
    int n = 0;
    for (int d = 0; d < rank; d++)
        n += r->dim[d].named;
    return n;
}

/* The integer factor by which a size is larger; 0: none, or unknown. */
static int64_t times_larger(struct alg *alg, const struct dim *size, const struct dim *of)
{
    for (int64_t k = 2; k <= MOST_REPEATED; k++)
        if (dim_mul(alg, of, dim_int(alg, k)) == size)
            return k;
    return 0;
}

/* Replaces sizes that are integer multiples by scales, which fix no size of a rank's part. */
static bool becomes_scales(struct graph *g, struct node *node, int n, const int64_t *axis, const struct dim *const *size)
{
    float scale[MAX_RANK];
    struct value *x = node->in[IN_Resize_X];
    for (int i = 0; i < n; i++) {
        int64_t k = times_larger(g->alg, size[i], x->type.dim[axis[i]]);
        if (k == 0 || (!taps_beside(node) && !repeated(node, &(struct resize_target){true, NULL, (double)k})))
            return false;
        scale[i] = (float)k;
    }
    node->nin = IN_Resize_scales + 1;
    node->in = NEWN(g->arena, struct value *, node->nin);
    node->in[IN_Resize_X] = x;
    node->in[IN_Resize_scales] = graph_constant(g, arena_printf(g->arena, "%s/scales", node->name), DT_F32, 1, &(int64_t){n}, scale);
    node_attr(node, "sizes")->set = false;
    return true;
}

/* Keeps only sizes that differ from the operand's; if none does, the last one stays, because no axes would mean all. */
void resize_canonical(struct graph *g, struct node *node)
{
    const struct type *x = &node->in[IN_Resize_X]->type;
    struct resize_targets r = resize_of(g, node);
    const struct dim *size[MAX_RANK];
    int64_t axis[MAX_RANK];
    int n = 0;
    bool crops = mode_is(node, "coordinate_transformation_mode", "tf_crop_and_resize");
    if (!crops && node->nin > IN_Resize_roi)
        node->in[IN_Resize_roi] = NULL;
    if (is_given(node, IN_Resize_scales) || crops || !mode_is(node, "keep_aspect_ratio_policy", "stretch"))
        return;
    for (int d = 0, left = named_count(&r, x->rank); d < x->rank; d++) {
        left -= r.dim[d].named;
        if (r.dim[d].named && (r.dim[d].size != x->dim[d] || n + left == 0)) {
            axis[n] = d;
            size[n++] = r.dim[d].size;
        }
    }
    node->nin = 1;
    attr_set_ints(g, node, "axes", n, axis);
    if (!becomes_scales(g, node, n, axis, size))
        attr_set_dims(g, node, "sizes", n, size);
}

/* ---- rule ---------------------------------------------------------------------------------------------------------------------------- */

/* A scale of 1 does not fix a dimension's size; an entry of sizes does. */
static bool is_free(const struct node *node, const struct resize_target *t)
{
    bool crops = mode_is(node, "coordinate_transformation_mode", "tf_crop_and_resize");
    return !t->named || (!t->size && t->scale >= 1 && t->scale <= 1 && !crops);
}

static void put_resized(struct graph *g, const struct node *node, struct rule *r, int d, const struct resize_target *t)
{
    const struct dim *from = node->in[IN_Resize_X]->type.dim[d], *to = node->out[0]->type.dim[d];
    int64_t k = repeated(node, t);
    bool free = is_free(node, t) && from == to, product = k > 0 && dim_mul(g->alg, from, dim_int(g->alg, k)) == to;
    if (free) {
        rule_same_dim(g, r, "a", d, from, 0);
        return;
    }
    struct sliding by;
    if (slides_over(node, t, d, &by)) {
        rule_slide(g, r, d, rule_numbered(g, r, "y", d, to, 0), &by);
        return;
    }
    int f = rule_numbered(g, r, "h", d, from, product ? 0 : FACTOR_REPLICATED);
    rule_put(g, &r->in[IN_Resize_X], d, 0, f);
    if (product)
        rule_put(g, &r->out[0], d, 0, f);
    rule_put(g, &r->out[0], d, 0, rule_numbered(g, r, product ? "k" : "y", d, product ? dim_int(g->alg, k) : to, FACTOR_REPLICATED));
}

struct rule *rule_resize(struct graph *g, const struct node *node)
{
    struct resize_targets resize = resize_of(g, node);
    struct rule *r = rule_new(g, node);
    const struct type *x = &node->in[IN_Resize_X]->type;
    for (int d = 0; d < x->rank; d++)
        put_resized(g, node, r, d, &resize.dim[d]);
    for (int i = IN_Resize_roi; i < node->nin; i++)
        for (int d = 0; node->in[i] && d < node->in[i]->type.rank; d++)
            rule_put(g, &r->in[i], d, 0, rule_factor(g, r, "s", node->in[i]->type.dim[d], FACTOR_REPLICATED));
    bool crops = mode_is(node, "coordinate_transformation_mode", "tf_crop_and_resize");
    r->moves = !crops && mode_is(node, "mode", "nearest");
    if (dtype_is_float(x->dtype) && !crops)
        rule_linear(r, 1);
    return r;
}
