/* equal_nodes: merges equal nodes; slices that tile an axis of one value become a Split.
 *
 * Nodes are equal when op, attributes and operands are (operands of a commutative op in either order); ops defined by their result type
 * (Reshape, Expand) also compare that. Keys are text, so equality is exact. */
#include "ir/rank_meta.h"
#include "op/canon/canon.h"
#include "op/infer/infer.h"
#include "op/op.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#define HASH_FUNCTION(key, bytes, hash) ((hash) = (unsigned)XXH3_64bits(key, bytes))
#include <uthash.h>

struct node_text {
    struct arena *tmp;
    char *at;
    size_t n, room;
};

static void add_bytes(struct node_text *t, const void *from, size_t n)
{
    if (n == 0)
        return;
    if (t->n + n > t->room) {
        char *wider = arena_alloc(t->tmp, t->room = 2 * (t->n + n));
        if (t->n)
            memcpy(wider, t->at, t->n);
        t->at = wider;
    }
    memcpy(t->at + t->n, from, n);
    t->n += n;
}

static char *text_copy(const struct node_text *t)
{
    return memcpy(arena_alloc(t->tmp, t->n), t->at, t->n);
}

static void add_dims(struct node_text *t, int n, const struct dim *const *dim)
{
    add_bytes(t, &n, sizeof n);
    for (int i = 0; i < n; i++)
        add_bytes(t, &dim[i]->id, sizeof dim[i]->id);
}

static void add_type(struct node_text *t, const struct type *type)
{
    add_bytes(t, &type->dtype, sizeof type->dtype);
    add_dims(t, type->rank, type->dim);
}

static void add_tensor(struct node_text *t, struct constant *c)
{
    if (!c)
        return;
    XXH128_hash_t hash = XXH3_128bits(constant_data(c, "value"), (size_t)c->bytes);
    constant_release(c);
    add_bytes(t, &c->dtype, sizeof c->dtype);
    add_bytes(t, c->dim, (size_t)c->rank * sizeof *c->dim);
    add_bytes(t, &hash, sizeof hash);
}

/* False for attribute kinds that are not compared. */
static bool add_attr(struct node_text *t, const struct attr *a)
{
    add_bytes(t, &a->set, sizeof a->set);
    if (!a->set)
        return true;
    add_bytes(t, &a->n, sizeof a->n);
    switch (a->kind) {
    case ATTR_INT: add_bytes(t, &a->i, sizeof a->i); return true;
    case ATTR_FLOAT: add_bytes(t, &a->f, sizeof a->f); return true;
    case ATTR_STRING: add_bytes(t, a->s, strlen(a->s) + 1); return true;
    case ATTR_INTS: add_bytes(t, a->ints, (size_t)a->n * sizeof *a->ints); return true;
    case ATTR_FLOATS: add_bytes(t, a->floats, (size_t)a->n * sizeof *a->floats); return true;
    case ATTR_STRINGS:
        for (int i = 0; i < a->n; i++)
            add_bytes(t, a->strings[i], strlen(a->strings[i]) + 1);
        return true;
    case ATTR_DIMS: add_dims(t, a->n, a->dims); return true;
    case ATTR_TENSOR: add_tensor(t, a->tensor); return true;
    case ATTR_GRAPH:
    case ATTR_RAW: return false;
    }
    return false;
}

static struct value *final_value(struct value *const *to, struct value *v)
{
    while (v && to[v->id])
        v = to[v->id];
    return v;
}

static void add_operands(struct node_text *t, const struct node *node, struct value *const *to)
{
    int least = INT_MAX, most = -1;
    bool commutes = (node->op->flags & OP_COMMUTES) && node->nin == 2;
    for (int i = 0; i < node->nin; i++) {
        const struct value *v = final_value(to, node->in[i]);
        int id = v ? v->id : -1;
        least = id < least ? id : least;
        most = id > most ? id : most;
        if (!commutes)
            add_bytes(t, &id, sizeof id);
    }
    add_bytes(t, &least, sizeof least);
    add_bytes(t, &most, sizeof most);
}

/* Everything that defines the node; false if it must not be merged. */
static bool node_key(struct node_text *t, const struct node *node, struct value *const *to)
{
    if (!node->op || (node->op->flags & OP_DRAWS) || op_communicates(node))
        return false;
    add_bytes(t, &node->op, sizeof node->op);
    add_bytes(t, &node->nin, sizeof node->nin);
    add_operands(t, node, to);
    for (int i = 0; i < node->nattr; i++)
        if (!add_attr(t, &node->attr[i]))
            return false;
    add_bytes(t, &node->nout, sizeof node->nout);
    for (int i = 0; i < node->nout; i++) {
        if (!node->out[i])
            return false;
        add_type(t, &node->out[i]->type);
    }
    return true;
}

struct seen {
    struct node *node;
    UT_hash_handle hh;
};

void canon_merge_equal_nodes(struct graph *g)
{
    struct arena *tmp = arena_new();
    struct value **to = NEWN(tmp, struct value *, g->values.n);
    struct seen *table = NULL, *s;
    struct node_text t = {.tmp = tmp};
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *node = g->nodes.at[i];
        t.n = 0;
        if (rank_meta_has_sum(g, node) || !node_key(&t, node, to))
            continue;
        HASH_FIND(hh, table, t.at, (unsigned)t.n, s);
        if (s) {
            for (int k = 0; k < node->nout; k++)
                to[node->out[k]->id] = s->node->out[k];
            continue;
        }
        s = NEW(tmp, struct seen);
        s->node = node;
        HASH_ADD_KEYPTR(hh, table, text_copy(&t), (unsigned)t.n, s);
    }
    HASH_CLEAR(hh, table);
    graph_rewire(g, to, true);
    arena_free(tmp);
}

/* ---- Slices -> Split -------------------------------------------------------------------------------------------------------- */

/* A Slice of one axis at integer bounds, step 1. */
struct slice_cut {
    struct node *node;
    int order, axis;
    int64_t lo, hi;
};

static bool read_cut(struct node *node, struct slice_cut *c)
{
    const struct dim **start, **end, **axis, **step;
    int64_t k;
    if (!op_is_onnx(node, "Slice") || !op_resolved(node) || node->in[0]->constant || attr_dims(node, "axes", &axis) != 1)
        return false;
    attr_dims(node, "starts", &start);
    attr_dims(node, "ends", &end);
    attr_dims(node, "steps", &step);
    if (!dim_equals(step[0], 1) || !dim_is_int(start[0], &c->lo) || !dim_is_int(end[0], &c->hi) || !dim_is_int(axis[0], &k))
        return false;
    c->node = node;
    c->axis = (int)k;
    return c->lo < c->hi;
}

static int by_place(const void *pa, const void *pb)
{
    const struct slice_cut *a = pa, *b = pb;
    int da = a->node->in[0]->id, db = b->node->in[0]->id;
    if (da != db)
        return da < db ? -1 : 1;
    if (a->axis != b->axis)
        return a->axis < b->axis ? -1 : 1;
    if (a->lo != b->lo)
        return a->lo < b->lo ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static bool tiles(int n, const struct slice_cut *cut)
{
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        if (cut[i].lo != at)
            return false;
        at = cut[i].hi;
    }
    return n > 1 && dim_equals(cut[0].node->in[0]->type.dim[cut[0].axis], at);
}

/* The Split that makes the results of all the slices. */
static struct node *make_split(struct graph *g, int n, const struct slice_cut *cut)
{
    const struct node *first = cut[0].node;
    struct node *split = graph_node(g, op_find("", "Split"), arena_printf(g->arena, "%s/Split", first->name), 1, &first->in[0], n);
    const struct dim **size = NEWN(g->arena, const struct dim *, n);
    for (int i = 0; i < n; i++) {
        size[i] = dim_int(g->alg, cut[i].hi - cut[i].lo);
        node_output(g, split, i, cut[i].node->out[0]);
    }
    attr_set_int(split, "axis", cut[0].axis);
    attr_set_dims(g, split, "split", n, size);
    return split;
}

/* place[i]: the node at the position of node i; the Split takes the position of the first slice. */
static void place_split(struct graph *g, int n, const struct slice_cut *cut, struct node **place)
{
    int first = cut[0].order;
    for (int i = 0; i < n; i++) {
        place[cut[i].order] = NULL;
        first = cut[i].order < first ? cut[i].order : first;
    }
    place[first] = make_split(g, n, cut);
}

bool canon_slices_to_splits(struct graph *g)
{
    struct arena *tmp = arena_new();
    struct slice_cut *cut = NEWN(tmp, struct slice_cut, g->nodes.n + 1);
    int n = 0, kept = 0, splits = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        cut[n].order = i;
        n += read_cut(g->nodes.at[i], &cut[n]);
    }
    qsort(cut, (size_t)n, sizeof *cut, by_place);
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && cut[i].node->in[0] == cut[end].node->in[0] && cut[i].axis == cut[end].axis;)
            end++;
        if (!tiles(end - i, cut + i))
            continue;
        place_split(g, end - i, cut + i, g->nodes.at);
        splits++;
    }
    for (int i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i])
            g->nodes.at[kept++] = g->nodes.at[i];
    g->nodes.n = kept;
    arena_free(tmp);
    return splits > 0;
}
