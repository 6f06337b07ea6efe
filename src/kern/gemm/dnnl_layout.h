/* dnnl_layout: differences between oneDNN 2.x and 3.x. A memory descriptor is a struct in 2.x and an owned pointer in 3.x. For dnnl*.c. */
#ifndef TPC_KERN_DNNL_LAYOUT_H
#define TPC_KERN_DNNL_LAYOUT_H

#include "kern/gemm/gemm.h"

#include <dnnl.h>

static inline void dims_fill(dnnl_dims_t to, const int64_t *from, int n)
{
    for (int i = 0; i < DNNL_MAX_NDIMS; i++)
        to[i] = i < n ? from[i] : 0;
}

/* A convolution's numbers for the library: strides, dilation - 1, padding before and after. */
struct conv_dims {
    dnnl_dims_t stride, dilation, before, after;
};

static inline struct conv_dims conv_dims_of(const struct conv_shape *s)
{
    struct conv_dims c;
    dims_fill(c.stride, s->stride, s->spatial);
    dims_fill(c.dilation, s->dilation, s->spatial);
    dims_fill(c.before, s->before, s->spatial);
    dims_fill(c.after, s->after, s->spatial);
    for (int d = 0; d < s->spatial; d++)
        c.dilation[d]--;
    return c;
}

struct md_layout {
    dnnl_memory_desc_t d;
    bool set;
};

#if DNNL_VERSION_MAJOR >= 3
#define MD(l) ((l)->d)
#define INIT_BY_TAG dnnl_memory_desc_create_with_tag

static inline void layout_free(struct md_layout *l)
{
    if (l->set)
        dnnl_memory_desc_destroy(l->d);
    l->set = false;
}

static inline void layout_copy(struct md_layout *to, const_dnnl_memory_desc_t from)
{
    layout_free(to);
    require(dnnl_memory_desc_clone(&to->d, from) == dnnl_success);
    to->set = true;
}

static inline void layout_query(struct md_layout *to, const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    layout_copy(to, dnnl_primitive_desc_query_md(pd, what, 0));
}

static inline void layout_assign(struct md_layout *to, const struct md_layout *from)
{
    layout_copy(to, from->d);
}

static inline dnnl_status_t product_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, const struct md_layout *l, bool bias)
{
    return dnnl_matmul_primitive_desc_create(pd, engine, l[0].d, l[1].d, bias ? l[2].d : NULL, l[3].d, NULL);
}

static inline dnnl_status_t conv_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, const struct md_layout *l, bool bias,
                                      const struct conv_dims *c, const_dnnl_primitive_attr_t attr)
{
    return dnnl_convolution_forward_primitive_desc_create(pd, engine, dnnl_forward_inference, dnnl_convolution_direct, l[0].d, l[1].d,
                                                          bias ? l[2].d : NULL, l[3].d, c->stride, c->dilation, c->before, c->after, attr);
}

#define APPEND_ELTWISE(ops, kind, alpha, beta) dnnl_post_ops_append_eltwise(ops, kind, alpha, beta)
#define APPEND_SUM(ops) dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef)
#else
#define MD(l) (&(l)->d)
#define INIT_BY_TAG dnnl_memory_desc_init_by_tag

static inline void layout_free(struct md_layout *l)
{
    l->set = false;
}

static inline void layout_query(struct md_layout *to, const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    to->d = *dnnl_primitive_desc_query_md(pd, what, 0);
    to->set = true;
}

static inline void layout_assign(struct md_layout *to, const struct md_layout *from)
{
    *to = *from;
}

static inline dnnl_status_t product_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, const struct md_layout *l, bool bias)
{
    dnnl_matmul_desc_t desc;
    dnnl_status_t status = dnnl_matmul_desc_init(&desc, MD(&l[0]), MD(&l[1]), bias ? MD(&l[2]) : NULL, MD(&l[3]));
    return status != dnnl_success ? status : dnnl_primitive_desc_create(pd, &desc, NULL, engine, NULL);
}

#define APPEND_ELTWISE(ops, kind, alpha, beta) dnnl_post_ops_append_eltwise(ops, 1, kind, alpha, beta)
#define APPEND_SUM(ops) dnnl_post_ops_append_sum(ops, 1)

static inline dnnl_status_t conv_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, const struct md_layout *l, bool bias,
                                      const struct conv_dims *c, const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t desc;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_convolution_direct, MD(&l[0]),
                                                                      MD(&l[1]), bias ? MD(&l[2]) : NULL, MD(&l[3]), c->stride, c->dilation,
                                                                      c->before, c->after);
    return status != dnnl_success ? status : dnnl_primitive_desc_create(pd, &desc, attr, engine, NULL);
}
#endif

static inline void layout_make(struct md_layout *l, int n, const int64_t *dim, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_dims_t dims;
    dims_fill(dims, dim, n);
    require(INIT_BY_TAG(&l->d, n, dims, type, tag) == dnnl_success);
    l->set = true;
}

#endif
