/* dnnl_conv: convolutions through oneDNN. */
#include "kern/core/core.h"
#include "kern/gemm/dnnl_primitive.h"
#include "kern/gemm/gemm.h"

#include <string.h>

static const dnnl_format_tag_t plain_tag[] = {0, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};
static const dnnl_format_tag_t last_tag[] = {0, 0, 0, dnnl_acb, dnnl_acdb, dnnl_acdeb}; /* channels last */

static int weight_dims(const struct conv_shape *c, int64_t *dim)
{
    int n = 0;
    if (c->groups > 1)
        dim[n++] = c->groups;
    dim[n++] = c->out / c->groups;
    dim[n++] = c->in / c->groups;
    for (int d = 0; d < c->spatial; d++)
        dim[n++] = c->kernel[d];
    return n;
}

static int image_dims(const struct conv_shape *c, bool result, int64_t *dim)
{
    int n = 0;
    dim[n++] = c->batch;
    dim[n++] = result ? c->out : c->in;
    for (int d = 0; d < c->spatial; d++)
        dim[n++] = result ? c->result[d] : c->size[d];
    return n;
}

/* The layouts of a convolution: the tensors' own; or chosen by the library for the weight; or for weight, x and y. */
enum conv_freedom { AS_GIVEN, ANY_WEIGHT, ANY_LAYOUT };

static void conv_layouts(const struct primitive_key *key, struct md_layout *l, dnnl_data_type_t operands, enum conv_freedom free)
{
    int64_t dim[6];
    int n = image_dims(&key->conv, false, dim);
    dnnl_format_tag_t image = free == ANY_LAYOUT ? dnnl_format_tag_any : key->conv.last ? last_tag[n] : plain_tag[n];
    layout_make(&l[SRC], n, dim, operands, image);
    n = weight_dims(&key->conv, dim);
    layout_make(&l[WEIGHTS], n, dim, operands, free == AS_GIVEN ? plain_tag[n] : dnnl_format_tag_any);
    n = image_dims(&key->conv, true, dim);
    layout_make(&l[DST], n, dim, dnnl_f32, image);
    if (key->bias)
        layout_make(&l[BIAS], 1, &key->conv.out, dnnl_f32, dnnl_a);
}

#define KIND(name) dnnl_eltwise_##name
/* HARD_SIGMOID applies bounds before its linear function: the library mixes up two linear functions. */
static void append_activation(dnnl_post_ops_t ops, const struct conv_shape *c)
{
    static const dnnl_alg_kind_t kind[] = {0,           KIND(relu),      KIND(clip), KIND(logistic), KIND(tanh),
                                           KIND(swish), KIND(hardswish), KIND(clip), KIND(gelu_erf)};
    bool hard = c->activation == CONV_HARD_SIGMOID;
    float a = hard ? -c->beta / c->alpha : c->alpha, b = hard ? (1 - c->beta) / c->alpha : c->beta;
    float scale = hard ? c->alpha * c->scale : c->scale, shift = hard ? c->beta * c->scale + c->shift : c->shift;
    if (c->activation != CONV_LINEAR)
        dnnl_checked(APPEND_ELTWISE(ops, kind[c->activation], a, b), "adding an activation");
    if (c->activation != CONV_LINEAR && (scale < 1 || scale > 1 || shift < 0 || shift > 0))
        dnnl_checked(APPEND_ELTWISE(ops, dnnl_eltwise_linear, scale, shift), "adding a scale");
}

static dnnl_primitive_attr_t conv_attr(const struct conv_shape *c)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;
    dnnl_checked(dnnl_primitive_attr_create(&attr) | dnnl_post_ops_create(&ops), "making attributes");
    if (!c->activates_last)
        append_activation(ops, c);
    if (c->adds)
        dnnl_checked(APPEND_SUM(ops), "adding a sum");
    if (c->activates_last)
        append_activation(ops, c);
    dnnl_checked(dnnl_primitive_attr_set_post_ops(attr, ops), "making attributes");
    dnnl_post_ops_destroy(ops);
    return attr;
}

/* With the tensors' layouts if the library is fast with them; else with those that it prefers. */
static bool plan_convolution(struct dnnl_state *s, struct primitive *p, dnnl_primitive_desc_t *pd)
{
    struct conv_dims dims = conv_dims_of(&p->key.conv);
    dnnl_primitive_attr_t attr = conv_attr(&p->key.conv);
    bool found = false;
    for (int free = p->key.conv.last ? ANY_WEIGHT : ANY_LAYOUT; !found && free <= ANY_LAYOUT; free++) {
        conv_layouts(&p->key, p->layout, dnnl_operand_type(&p->key), (enum conv_freedom)free);
        found = conv_desc(pd, s->engine, p->layout, p->key.bias, &dims, attr) == dnnl_success;
        if (found && (free == ANY_WEIGHT || p->key.narrow) && dnnl_is_reference(*pd)) {
            dnnl_primitive_desc_destroy(*pd);
            found = false;
        }
        for (int i = 0; !found && i < OPERANDS; i++)
            layout_free(&p->layout[i]);
    }
    dnnl_primitive_attr_destroy(attr);
    return found;
}

/* Runs p on the tensors; reorders operands and results whose layouts differ. */
static void convolve(struct kenv *env, void **cache, struct primitive *p, struct md_layout *given, const void *x, const struct tensor *w,
                     const float *factor, const void *bias, void *y)
{
    struct dnnl_state *s = dnnl_state_of(env);
    bool same_x = dnnl_memory_desc_equal(MD(&given[SRC]), MD(&p->layout[SRC]));
    bool same_y = dnnl_memory_desc_equal(MD(&given[DST]), MD(&p->layout[DST]));
    void *in = same_x ? NULL : kenv_room(env, ROOM_THREADS, dnnl_memory_desc_get_size(MD(&p->layout[SRC])));
    void *out = same_y ? y : kenv_room(env, ROOM_KERNEL, dnnl_memory_desc_get_size(MD(&p->layout[DST])));
    if (!same_x)
        dnnl_convert(s, &given[SRC], x, &p->layout[SRC], in);
    if (!same_y && p->key.conv.adds)
        dnnl_convert(s, &given[DST], y, &p->layout[DST], out);
    const void *data[OPERANDS] = {same_x ? x : in, dnnl_packed(env, cache, p, &given[WEIGHTS], w, factor), bias, out};
    dnnl_run(s, p, data);
    if (!same_y)
        dnnl_convert(s, &p->layout[DST], out, &given[DST], y);
}

/* With one filter per channel, the time is that of reading the data. */
static bool conv_narrows(const struct conv_shape *s)
{
    return s->in / s->groups > 1;
}

bool dnnl_convolve(struct kenv *env, void **cache, const struct conv_shape *shape, const float *x, const struct tensor *w,
                   const float *factor, const float *bias, float *y)
{
    bool narrow = dnnl_narrows_weight(env, w->dtype);
    struct dnnl_state *s = dnnl_state_of(env);
    struct primitive_key key;
    struct md_layout given[OPERANDS] = {{.set = false}};
    memset(&key, 0, sizeof key);
    key.kind = CONVOLUTION;
    key.bias = bias != NULL;
    key.narrow = narrow && conv_narrows(shape);
    key.conv = *shape;
    struct primitive *p = dnnl_primitive_of(s, &key, plan_convolution);
    if (p->missing && key.narrow) {
        key.narrow = false;
        p = dnnl_primitive_of(s, &key, plan_convolution);
    }
    if (p->missing)
        return false;
    conv_layouts(&key, given, dnnl_f32, AS_GIVEN);
    convolve(env, cache, p, given, x, w, factor, bias, y);
    for (int i = 0; i < OPERANDS; i++)
        layout_free(&given[i]);
    return true;
}
