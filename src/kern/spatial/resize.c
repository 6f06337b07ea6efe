/* resize: one dimension at a time, which is equivalent to interpolation in several dimensions. The source elements and weights of each
 * position along a dimension are tabulated; rows are then blended in float32, or copied for nearest mode. */
#include "ir/operands.h"
#include "kern/core/core.h"

#include <math.h>
#include <string.h>

/* For one dimension: from `from` to `to` positions, `taps` elements each. index -1: outside, the extrapolation value. */
struct axis {
    int d;
    int64_t from, to, taps, *index;
    int64_t first, places; /* positions from `first` on */
    float *weight;
    double scale, crop_start, crop_end;
};
struct resize_call {
    struct kcall *call;
    bool nearest, cubic, antialias, exclude, crops;
    const char *where, *round;
    double a;
    struct axis axis[MAX_RANK];
    int n;
};

/* ---- scales -------------------------------------------------------------------------------------------------------------------------- */

static bool is(const struct kcall *call, const char *attr, const char *text)
{
    return strcmp(attr_string(call->node, attr), text) == 0;
}

static int resize_axes(const struct kcall *call, int rank, int *axis)
{
    const int64_t *given = NULL;
    int n = attr_is_set(call->node, "axes") ? attr_ints(call->graph, call->node, "axes", &given) : 0;
    for (int i = 0; i < rank; i++)
        axis[i] = i < n ? kcall_axis(call, given[i], rank) : i;
    return n ? n : rank;
}

/* The common scale if all dimensions keep their proportions. */
static double shared_scale(const struct resize_call *r)
{
    int64_t size[MAX_RANK];
    const struct tensor *x = &r->call->in[IN_Resize_X];
    bool least = is(r->call, "keep_aspect_ratio_policy", "not_larger");
    double scale = 0;
    require(kcall_sizes(r->call, IN_Resize_sizes, "sizes", size, MAX_RANK) == r->n);
    for (int i = 0; i < r->n; i++) {
        double own = (double)size[i] / (double)x->dim[r->axis[i].d];
        scale = i == 0 || (least ? own < scale : own > scale) ? own : scale;
    }
    return scale;
}

static void resize_scales(struct resize_call *r)
{
    const struct tensor *x = &r->call->in[IN_Resize_X], *y = &r->call->out[0], *scales = kcall_in(r->call, IN_Resize_scales),
                        *roi = kcall_in(r->call, IN_Resize_roi);
    bool given = scales && tensor_elements(scales) == r->n, stretch = is(r->call, "keep_aspect_ratio_policy", "stretch");
    double common = given || stretch ? 0 : shared_scale(r);
    const int64_t *crop = NULL;
    bool crops = attr_is_set(r->call->node, "crop") && attr_ints(r->call->graph, r->call->node, "crop", &crop) == 2 * x->rank;
    if (r->crops && (!roi || tensor_elements(roi) != 2 * r->n))
        fail("%s: expected a roi of two numbers for each of %d dimensions", kcall_where(r->call), r->n);
    for (int i = 0; i < r->n; i++) {
        struct axis *a = &r->axis[i];
        a->from = x->dim[a->d];
        a->to = y->dim[a->d];
        a->first = crops ? crop[a->d] : 0;
        a->places = a->to + (crops ? crop[a->d] + crop[x->rank + a->d] : 0);
        a->scale = stretch ? (double)a->to / (double)a->from : common;
        if (given)
            convert_to_f64(scales->dtype, element_at_const(scales->data, dtype_size(scales->dtype), i), 1, &a->scale);
        if (r->crops) {
            convert_to_f64(roi->dtype, element_at_const(roi->data, dtype_size(roi->dtype), i), 1, &a->crop_start);
            convert_to_f64(roi->dtype, element_at_const(roi->data, dtype_size(roi->dtype), r->n + i), 1, &a->crop_end);
        }
    }
}

/* ---- coordinates --------------------------------------------------------------------------------------------------------------------- */

/* Position i of the result, in the operand. */
static double source_position(const struct resize_call *r, const struct axis *a, int64_t i)
{
    double at = (double)i, last = (double)(a->from - 1), width = a->scale * (double)a->from, half = (at + 0.5) / a->scale - 0.5;
    bool single = width >= 1 && width <= 1;
    if (strcmp(r->where, "align_corners") == 0)
        return single ? 0 : at * last / (width - 1);
    if (strcmp(r->where, "asymmetric") == 0)
        return at / a->scale;
    if (r->crops && single)
        return (a->crop_start + a->crop_end) * last / 2;
    if (r->crops)
        return a->crop_start * last + at * (a->crop_end - a->crop_start) * last / (width - 1);
    if (strcmp(r->where, "pytorch_half_pixel") == 0)
        return a->places == 1 ? -0.5 : half;
    if (strcmp(r->where, "half_pixel_symmetric") == 0)
        return (double)a->from / 2 * (1 - (double)a->places / width) + half;
    if (strcmp(r->where, "half_pixel") == 0)
        return half;
    fail("%s: attribute coordinate_transformation_mode is '%s', which is not known", kcall_where(r->call), r->where);
}

static int64_t nearest_of(const struct resize_call *r, double at)
{
    if (strcmp(r->round, "round_prefer_floor") == 0)
        return (int64_t)ceil(at - 0.5);
    if (strcmp(r->round, "round_prefer_ceil") == 0)
        return (int64_t)floor(at + 0.5);
    if (strcmp(r->round, "floor") == 0)
        return (int64_t)floor(at);
    if (strcmp(r->round, "ceil") == 0)
        return (int64_t)ceil(at);
    fail("%s: attribute nearest_mode is '%s', which is not known", kcall_where(r->call), r->round);
}

/* The weight of an element at this distance: a triangle, or R. Keys' cubic with parameter a. */
static double filter_weight(const struct resize_call *r, double x)
{
    double a = r->a, t = fabs(x);
    if (!r->cubic)
        return t < 1 ? 1 - t : 0;
    if (t <= 1)
        return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

/* Downsampling with antialiasing widens the filter. */
static double filter_scale(const struct resize_call *r, const struct axis *a)
{
    return r->antialias && a->scale < 1 ? a->scale : 1;
}

static int64_t first_tap(const struct resize_call *r, const struct axis *a)
{
    return (int64_t)floor((r->cubic ? -2 : -1) / filter_scale(r, a)) + 1;
}

static int64_t clamped(int64_t i, int64_t n)
{
    return i < 0 ? 0 : i < n ? i : n - 1;
}

static void tabulate_filter(const struct resize_call *r, const struct axis *a, double at, int64_t *index, float *weight)
{
    double base = ceil(at) - 1, sum = 0, scale = filter_scale(r, a);
    int64_t first = first_tap(r, a);
    for (int64_t k = 0; k < a->taps; k++) {
        int64_t i = (int64_t)base + first + k;
        double w = r->exclude && (i < 0 || i >= a->from) ? 0 : filter_weight(r, scale * ((double)(first + k) - (at - base)));
        index[k] = clamped(i, a->from);
        weight[k] = (float)w;
        sum += w;
    }
    for (int64_t k = 0; k < a->taps; k++)
        weight[k] = (float)((double)weight[k] / sum);
}

static void tabulate_weights(const struct resize_call *r, const struct axis *a)
{
    for (int64_t i = 0; i < a->to; i++) {
        double at = source_position(r, a, a->first + i);
        int64_t *index = a->index + i * a->taps;
        if (r->crops && !(at >= 0 && at <= (double)(a->from - 1)))
            index[0] = -1;
        else if (r->nearest)
            index[0] = clamped(nearest_of(r, at), a->from);
        else
            tabulate_filter(r, a, at, index, a->weight + i * a->taps);
    }
}

/* ---- one dimension ------------------------------------------------------------------------------------------------------------------- */

struct resize_pass {
    const struct axis *axis;
    bool nearest;
    int64_t inner;
    size_t size;
    const void *x;
    void *y;
    const void *beyond;
};

static void fill_row(const struct resize_pass *p, void *to)
{
    for (int64_t j = 0; j < p->inner; j++)
        memcpy(element_at(to, p->size, j), p->beyond, p->size);
}

static void blend_row(const struct resize_pass *p, const float *x, const int64_t *index, const float *weight, float *to)
{
    for (int64_t j = 0; j < p->inner; j++)
        to[j] = 0;
    for (int64_t k = 0; k < p->axis->taps; k++) {
        const float *from = x + index[k] * p->inner;
        LOOP for (int64_t j = 0; j < p->inner; j++) to[j] += weight[k] * from[j];
    }
}

static void pass_range(void *data, int64_t lo, int64_t hi)
{
    const struct resize_pass *p = data;
    const struct axis *a = p->axis;
    for (int64_t row = lo; row < hi; row++) {
        const int64_t *index = a->index + row % a->to * a->taps;
        const void *x = element_at_const(p->x, p->size, row / a->to * a->from * p->inner);
        void *to = element_at(p->y, p->size, row * p->inner);
        if (index[0] < 0)
            fill_row(p, to);
        else if (p->nearest)
            memcpy(to, element_at_const(x, p->size, index[0] * p->inner), (size_t)p->inner * p->size);
        else
            blend_row(p, x, index, a->weight + row % a->to * a->taps, to);
    }
}

/* Lines of the last dimension, in the order of blend_row. */
static SIMD void blend_line(const struct axis *a, const float *x, float *to)
{
    int64_t n = a->to, taps = a->taps;
    const int64_t *index = a->index;
    const float *weight = a->weight;
    for (int64_t i = 0; i < n; i++)
        to[i] = 0;
    for (int64_t k = 0; k < taps; k++)
        LOOP for (int64_t i = 0; i < n; i++) to[i] += weight[i * taps + k] * x[index[i * taps + k]];
}

static void line_range(void *data, int64_t lo, int64_t hi)
{
    const struct resize_pass *p = data;
    const struct axis *a = p->axis;
    for (int64_t line = lo; line < hi; line++)
        blend_line(a, (const float *)p->x + line * a->from, (float *)p->y + line * a->to);
}

/* ---- all of them --------------------------------------------------------------------------------------------------------------------- */

static void resize_begin(struct kcall *call, struct resize_call *r)
{
    const struct tensor *x = &call->in[IN_Resize_X];
    int axis[MAX_RANK];
    *r = (struct resize_call){.call = call,
                              .nearest = is(call, "mode", "nearest"),
                              .cubic = is(call, "mode", "cubic"),
                              .antialias = attr_int(call->node, "antialias") != 0,
                              .exclude = attr_int(call->node, "exclude_outside") != 0,
                              .crops = is(call, "coordinate_transformation_mode", "tf_crop_and_resize"),
                              .where = attr_string(call->node, "coordinate_transformation_mode"),
                              .round = attr_string(call->node, "nearest_mode"),
                              .a = attr_float(call->node, "cubic_coeff_a"),
                              .n = resize_axes(call, x->rank, axis)};
    if (!r->nearest && !r->cubic && !is(call, "mode", "linear"))
        fail("%s: attribute mode is '%s', expected nearest, linear or cubic", kcall_where(call), attr_string(call->node, "mode"));
    bool works = r->nearest ? dtype_size(x->dtype) != 0 : dtype_fits_f32(x->dtype) || dtype_is_byte(x->dtype);
    if (!works)
        kcall_bad_type(call, x->dtype);
    for (int i = 0; i < r->n; i++)
        r->axis[i].d = axis[i];
    resize_scales(r);
}

static bool changes(const struct resize_call *r, const struct axis *a)
{
    return r->crops || a->from != a->to || a->scale < 1 || a->scale > 1;
}

/* Allocates and fills the tables of every dimension that changes. */
static void make_tables(struct resize_call *r)
{
    int64_t entries = 0;
    for (int i = 0; i < r->n; i++) {
        struct axis *a = &r->axis[i];
        a->taps = r->nearest ? 1 : 2 - 2 * first_tap(r, a);
        int64_t own;
        if (a->taps < 1 || a->taps > INT32_MAX || !i64_mul(a->to, a->taps, &own) || !i64_add(entries, own, &entries))
            fail("%s: scale %g of dimension %d is too small", kcall_where(r->call), a->scale, a->d);
    }
    char *room = kenv_scratch(r->call->env, kcall_bytes(r->call, entries, sizeof(int64_t) + sizeof(float)));
    int64_t *index = (int64_t *)(void *)room;
    float *weight = (float *)(void *)(room + (size_t)entries * sizeof *index);
    for (int i = 0; i < r->n; i++) {
        r->axis[i].index = index;
        r->axis[i].weight = weight;
        index += r->axis[i].to * r->axis[i].taps;
        weight += r->axis[i].to * r->axis[i].taps;
        if (changes(r, &r->axis[i]))
            tabulate_weights(r, &r->axis[i]);
    }
}

/* Dimensions that grow come last, the last of them first: passes then have less work and more contiguous elements. */
static int pass_order(const struct resize_call *r, int *order)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        if (changes(r, &r->axis[i]) && r->axis[i].scale <= 1)
            order[n++] = i;
    for (int i = r->n - 1; i >= 0; i--)
        if (changes(r, &r->axis[i]) && !(r->axis[i].scale <= 1))
            order[n++] = i;
    return n;
}

/* Alternates between rooms A and B; the last pass writes to y. */
static void run_passes(const struct resize_call *r, const void *x, size_t size, const void *beyond, void *y)
{
    int64_t dim[MAX_RANK];
    int order[MAX_RANK], rank = r->call->in[IN_Resize_X].rank, passes = pass_order(r, order);
    memcpy(dim, r->call->in[IN_Resize_X].dim, sizeof dim);
    if (passes == 0)
        copy_dense(r->call->env, y, x, kcall_bytes(r->call, tensor_dims_product(dim, 0, rank), size));
    for (int i = 0; i < passes; i++) {
        const struct axis *a = &r->axis[order[i]];
        dim[a->d] = a->to;
        struct resize_pass p = {a, r->nearest, tensor_dims_product(dim, a->d + 1, rank), size, x, y, beyond};
        if (i + 1 < passes)
            p.y = kenv_room(r->call->env, i % 2 ? ROOM_A : ROOM_B, kcall_bytes(r->call, tensor_dims_product(dim, 0, rank), size));
        int64_t lines = tensor_dims_product(dim, 0, a->d);
        if (p.inner == 1 && !r->nearest && !r->crops)
            kenv_parallel_for(r->call->env, lines, 2 * a->to * a->taps, line_range, &p);
        else
            kenv_parallel_for(r->call->env, lines * a->to, p.inner * a->taps + 4, pass_range, &p);
        x = p.y;
    }
}

/* ---- bytes: interpolated as float32, then truncated --------------------------------------------------------------- */

static const float *read_bytes(struct kcall *call, const struct tensor *x)
{
    int64_t n = tensor_elements(x);
    float *to = kenv_room(call->env, ROOM_TURN_Q, kcall_bytes(call, n, sizeof *to));
    for (int64_t i = 0; i < n; i++)
        to[i] = x->dtype == DT_U8 ? (float)((const uint8_t *)x->data)[i] : (float)((const int8_t *)x->data)[i];
    return to;
}

static void write_bytes(const float *from, struct tensor *y)
{
    float least = y->dtype == DT_U8 ? 0 : INT8_MIN, most = y->dtype == DT_U8 ? UINT8_MAX : INT8_MAX;
    for (int64_t i = 0, n = tensor_elements(y); i < n; i++) {
        float low = from[i] > least ? from[i] : least, code = low < most ? low : most;
        ((uint8_t *)y->data)[i] = (uint8_t)(int)code;
    }
}

void kern_Resize(struct kcall *call)
{
    struct resize_call r;
    struct tensor *y = &call->out[0];
    uint64_t beyond = 0;
    double value = attr_float(call->node, "extrapolation_value");
    float single = (float)value;
    if (tensor_elements(y) == 0)
        return;
    if (tensor_elements(&call->in[IN_Resize_X]) == 0)
        fail("%s: there are no elements to resize", kcall_where(call));
    resize_begin(call, &r);
    make_tables(&r);
    convert_from_f64(y->dtype, &value, 1, &beyond);
    if (r.nearest) {
        run_passes(&r, call->in[IN_Resize_X].data, dtype_size(y->dtype), &beyond, y->data);
        return;
    }
    float *to = kcall_result_f32(call, y);
    bool bytes = dtype_is_byte(y->dtype);
    run_passes(&r, bytes ? read_bytes(call, &call->in[IN_Resize_X]) : tensor_f32(call->env, &call->in[IN_Resize_X], ROOM_TURN_Q),
               sizeof(float), &single, to);
    if (bytes)
        write_bytes(to, y);
    else
        kcall_result_store(to, y);
}
