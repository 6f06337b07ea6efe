/* evaluate: executes one node at compile time, by its kernel.
 *
 * Used where shape arithmetic passes through floating point (Sqrt of a head size, Cast back) and by constant folding. Operands are
 * constants, or shape information all of whose entries are integers; results become constants. */
#include "ir/rank_meta.h"
#include "kern/kern.h"
#include "op/infer/infer.h"
#include "op/op.h"

#include <string.h>

static void store_int(enum dtype dtype, void *at, int64_t i, int64_t k)
{
    switch (dtype) {
    case DT_I64: ((int64_t *)at)[i] = k; break;
    case DT_I32: ((int32_t *)at)[i] = (int32_t)k; break;
    case DT_BOOL: ((uint8_t *)at)[i] = k != 0; break;
    default: bug("shape information of type %s", dtype_name(dtype));
    }
}

static struct constant *evaluated_constant(struct graph *g, const struct type *type)
{
    struct constant *c = NEW(g->arena, struct constant);
    int64_t n = 1;
    c->dtype = type->dtype;
    c->rank = type->rank;
    for (int d = 0; d < type->rank; d++)
        if (!dim_is_int(type->dim[d], &c->dim[d]) || c->dim[d] < 0 || !i64_mul(n, c->dim[d], &n))
            return NULL;
    if (!dtype_packed_bytes(type->dtype, n, &c->bytes))
        return NULL;
    return c;
}

struct constant *op_dims_constant(struct graph *g, const struct value *value)
{
    if (!value->dims)
        return NULL;
    for (int i = 0; i < value->dims->n; i++)
        if (!dim_is_int(value->dims->at[i], NULL))
            return NULL;
    struct constant *c = evaluated_constant(g, &value->type);
    if (!c || constant_elements(c) != value->dims->n)
        return NULL;
    void *data = arena_alloc(g->arena, (size_t)c->bytes);
    for (int i = 0; i < value->dims->n; i++)
        store_int(c->dtype, data, i, value->dims->at[i]->k);
    c->data = data;
    return c;
}

static struct tensor constant_tensor(struct constant *c, const char *name)
{
    struct tensor t = {.dtype = c->dtype, .rank = c->rank, .packed = dtype_is_packed(c->dtype)};
    memcpy(t.dim, c->dim, sizeof t.dim);
    union {
        const void *from;
        void *to;
    } data = {.from = constant_data(c, name)};
    t.data = data.to;
    return t;
}

/* Static operands of a set as tensors in an arena; false if one is not static, or its file is missing. */
static bool static_operands(struct arena *a, struct graph *g, const struct node *node, uint32_t operands, struct tensor *in)
{
    for (int i = 0; i < node->nin; i++) {
        struct value *value = node->in[i];
        if (!value || (i < 32 && !(operands >> i & 1)))
            continue;
        struct constant *c = value->constant ? value->constant : op_dims_constant(g, value);
        if (!c || !constant_present(c))
            return false;
        in[i] = constant_tensor(c, value->name);
        /* kernels read aligned data; an empty tensor is still present */
        void *copy = arena_alloc(a, c->bytes ? (size_t)c->bytes : 1);
        if (c->bytes)
            memcpy(copy, in[i].data, (size_t)c->bytes);
        in[i].data = copy;
        if (!(node->op->flags & OP_PACKED))
            in[i] = tensor_unpacked(a, &in[i]);
    }
    return true;
}

/* Constants for the results, and tensors of these, both without bytes; false: a size is unknown. */
static bool static_results(struct graph *g, const struct node *node, struct constant **made, struct tensor *out)
{
    for (int i = 0; i < node->nout; i++) {
        if (!node->out[i])
            continue;
        made[i] = evaluated_constant(g, &node->out[i]->type);
        if (!made[i])
            return false;
        out[i] = (struct tensor){.dtype = made[i]->dtype, .rank = made[i]->rank};
        memcpy(out[i].dim, made[i]->dim, sizeof out[i].dim);
    }
    return true;
}

/* Size attributes must be integers, too: no symbol is bound at compile time. */
static bool static_attributes(const struct node *node)
{
    for (int i = 0; i < node->nattr; i++) {
        const struct attr *a = &node->attr[i];
        for (int k = 0; a->kind == ATTR_DIMS && a->set && k < a->n; k++)
            if (!dim_is_int(a->dims[k], NULL))
                return false;
    }
    return true;
}

static void become_constants(struct graph *g, struct node *node, struct constant **made, const struct tensor *out)
{
    for (int i = 0; i < node->nout; i++) {
        struct value *value = node->out[i];
        if (!value)
            continue;
        if (dtype_is_packed(made[i]->dtype))
            dtype_pack(made[i]->dtype, out[i].data, tensor_elements(&out[i]), out[i].data);
        value->constant = made[i];
        value->producer = NULL;
        value->index = 0;
        value->dims = NULL;
        op_dims(g, value);
    }
    node->nout = 0;
}

static void run_alone(struct graph *g, const struct node *node, struct tensor *in, struct tensor *out)
{
    struct bindings none = {0};
    struct kenv *env = kenv_new(1, true);
    struct kcall call = {.node = node, .graph = g, .nin = node->nin, .nout = node->nout, .in = in, .out = out, .bind = &none, .env = env};
    require(node->op->kernel);
    kern_run(&call);
    kenv_free(env);
}

bool op_evaluate(struct graph *g, struct node *node)
{
    if (!node->op || !node->op->kernel || (node->op->flags & OP_DRAWS) || op_communicates(node) || !static_attributes(node) ||
        rank_meta_has_sum(g, node))
        return false;
    struct tensor *in = NEWN(g->arena, struct tensor, node->nin);
    struct tensor *out = NEWN(g->arena, struct tensor, node->nout);
    struct constant **made = NEWN(g->arena, struct constant *, node->nout);
    if (!static_operands(g->arena, g, node, UINT32_MAX, in) || !static_results(g, node, made, out))
        return false;
    for (int i = 0; i < node->nout; i++)
        if (made[i])
            made[i]->data = out[i].data = arena_alloc(g->arena, tensor_bytes(&out[i]) + 1);
    run_alone(g, node, in, out);
    become_constants(g, node, made, out);
    return true;
}

int64_t op_counted(struct graph *g, const struct node *node, uint32_t operands, int64_t (*count)(struct kcall *))
{
    struct tensor *in = NEWN(g->arena, struct tensor, node->nin);
    if (!static_operands(g->arena, g, node, operands, in))
        return -1;
    struct kenv *env = kenv_new(1, true);
    struct kcall call = {.node = node, .graph = g, .nin = node->nin, .in = in, .env = env};
    int64_t n = count(&call);
    kenv_free(env);
    return n;
}

const struct dim *op_counted_dim(struct graph *g, const struct node *node, int d, uint32_t operands, int64_t (*count)(struct kcall *))
{
    const struct dim *unknown = op_unknown_dim(g, node, 0, d);
    const struct type *had = &node->out[0]->type;
    int64_t n = had->rank > d && had->dim[d] == unknown ? -1 : op_counted(g, node, operands, count);
    return n < 0 ? unknown : dim_int(g->alg, n);
}

const bool *op_decoded_filters(struct arena *tmp, const struct graph *g)
{
    bool *is_filter = NEWN(tmp, bool, g->values.n + 1);
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i], *d = op_is_onnx(n, "Conv") && node_operand(n, 1) ? n->in[1]->producer : NULL;
        if (d && op_is_onnx(d, "DequantizeLinear") && d->in[0] && dtype_is_byte(d->in[0]->type.dtype))
            is_filter[n->in[1]->id] = true;
    }
    return is_filter;
}

/* ---- on demand ------------------------------------------------------------------------------------------------------------ */

struct delayed {
    struct graph *graph;
    struct node node;
    int result;         /* of this constant */
    struct tensor *out; /* of all */
};

static void make_delayed(const struct made *m, const void *from, void *to)
{
    const struct delayed *d = m->how;
    struct arena *tmp = arena_new();
    struct tensor *in = NEWN(tmp, struct tensor, d->node.nin), *out = NEWN(tmp, struct tensor, d->node.nout);
    (void)from;
    if (!static_operands(tmp, d->graph, &d->node, UINT32_MAX, in))
        bug("%s: an operand is no constant", d->node.name);
    for (int k = 0; k < d->node.nout; k++) {
        out[k] = d->out[k];
        if (d->node.out[k])
            out[k].data = k == d->result ? to : arena_alloc(tmp, tensor_bytes(&out[k]) + 1);
    }
    run_alone(d->graph, &d->node, in, out);
    arena_free(tmp);
    for (int i = 0; i < d->node.nin; i++)
        if (d->node.in[i])
            digest_check(d->node.in[i]->constant, d->node.in[i]->name, true); /* its bytes were just read */
}

static struct made *delayed(struct graph *g, const struct node *node, int result, struct tensor *out)
{
    struct delayed *d = NEW(g->arena, struct delayed);
    struct made *m = NEW(g->arena, struct made);
    *d = (struct delayed){g, *node, result, out};
    *m = (struct made){.make = make_delayed, .how = d, .arena = g->arena, .operand = NEWN(g->arena, struct constant *, node->nin)};
    for (int i = 0; i < node->nin; i++)
        if (node->in[i])
            m->operand[m->noperands++] = node->in[i]->constant;
    return m;
}

static bool has_operands(const struct node *node)
{
    int n = 0;
    for (int i = 0; i < node->nin; i++) {
        if (node->in[i] && !node->in[i]->constant)
            return false;
        n += node->in[i] != NULL;
    }
    return n > 0;
}

bool op_evaluate_later(struct graph *g, struct node *node)
{
    struct constant **c = NEWN(g->arena, struct constant *, node->nout);
    struct tensor *out = NEWN(g->arena, struct tensor, node->nout);
    if (!has_operands(node) || !node->op->kernel || !static_results(g, node, c, out))
        return false;
    for (int k = 0; k < node->nout; k++)
        if (node->out[k])
            c[k]->made = delayed(g, node, k, out);
    for (int k = 0; k < node->nout; k++)
        if (node->out[k]) {
            node->out[k]->constant = c[k];
            node->out[k]->producer = NULL;
        }
    node->nout = 0;
    return true;
}
