/* shape_data: removes shape arithmetic. If it is used as data, it becomes a constant, or one Dims node per vector. */
#include "op/canon/canon.h"
#include "op/infer/infer.h"
#include "op/op.h"

#include <string.h>
#include <uthash.h>

struct data_value {
    char *key;
    struct value *value;
    UT_hash_handle hh;
};
struct data_uses {
    struct graph *g;
    struct data_value *table;
    VEC(struct node *) nodes;
    bool *needed;
};

static char *vector_key(struct graph *g, const struct value *v)
{
    char *key = arena_printf(g->arena, "%d:%d", (int)v->type.dtype, v->type.rank);
    for (int i = 0; i < v->dims->n; i++)
        key = arena_printf(g->arena, "%s,%d", key, v->dims->at[i]->id);
    return key;
}

static struct value *dims_as_constant(struct graph *g, const struct value *v)
{
    struct constant *c = op_dims_constant(g, v);
    require(c);
    struct value *made = graph_value(g, v->name, &v->type);
    made->constant = c;
    op_dims(g, made);
    return made;
}

static struct value *dims_as_node(struct data_uses *u, const struct value *v)
{
    struct graph *g = u->g;
    struct node *node = graph_node(g, op_find("tpc", "Dims"), v->name, 0, NULL, 1);
    attr_set_dims(g, node, "dims", v->dims->n, v->dims->at);
    attr_set_int(node, "to", v->type.dtype);
    attr_set_int(node, "scalar", v->type.rank == 0);
    node_output(g, node, 0, graph_value(g, v->name, &v->type));
    op_infer(g, node);
    VEC_PUSH(g->arena, &u->nodes, node);
    return node->out[0];
}

/* The value that replaces shape information v. Equal vectors share one value. */
static struct value *as_data(struct data_uses *u, const struct value *v)
{
    struct data_value *m = NULL;
    char *key = vector_key(u->g, v);
    HASH_FIND_STR(u->table, key, m);
    if (!m) {
        m = NEW(u->g->arena, struct data_value);
        m->key = key;
        m->value = op_dims_are_static(v) ? dims_as_constant(u->g, v) : dims_as_node(u, v);
        HASH_ADD_KEYPTR(hh, u->table, m->key, strlen(m->key), m);
    }
    return m->value;
}

static bool *mark_outputs(const struct graph *g)
{
    bool *mark = NEWN(g->arena, bool, g->values.n + 1);
    for (int i = 0; i < g->outputs.n; i++)
        mark[g->outputs.at[i]->id] = true;
    return mark;
}

static bool is_shape_arithmetic(const struct value *v)
{
    return v->dims && v->type.rank <= 1 && v->producer && strcmp(v->producer->optype, "Dims") != 0;
}

/* A graph output gets a node of its own and keeps its name. */
static void replace_outputs(struct data_uses *u)
{
    struct graph *g = u->g;
    for (int i = 0; i < g->outputs.n; i++) {
        struct value *v = g->outputs.at[i];
        if (is_shape_arithmetic(v))
            graph_replace(g, v, dims_as_node(u, v), true);
    }
}

static bool is_live(const struct node *node, const bool *needed, int n)
{
    for (int i = 0; i < node->nout; i++)
        if (node->out[i] && node->out[i]->id < n && needed[node->out[i]->id])
            return true;
    return false;
}

/* Walks backwards from the outputs, but not through shape arithmetic: what only that reads is dead. */
static void replace_operands(struct data_uses *u, int nvalues)
{
    for (int i = u->g->nodes.n - 1; i >= 0; i--) {
        struct node *node = u->g->nodes.at[i];
        if (!is_live(node, u->needed, nvalues))
            continue;
        for (int k = 0; k < node->nin; k++) {
            if (node->in[k] && is_shape_arithmetic(node->in[k]))
                node->in[k] = as_data(u, node->in[k]);
            else if (node->in[k] && node->in[k]->id < nvalues)
                u->needed[node->in[k]->id] = true;
        }
    }
}

void canon_shape_data(struct graph *g)
{
    struct data_uses u = {.g = g, .table = NULL, .nodes = {NULL, 0, 0}};
    replace_outputs(&u);
    u.needed = mark_outputs(g);
    replace_operands(&u, g->values.n);
    graph_insert_before_use(g, u.nodes.n, u.nodes.at);
    HASH_CLEAR(hh, u.table);
}
