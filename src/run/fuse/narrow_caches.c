/* For --cache f16: states that grow, a KV cache's keys and values, are kept as f16, and rounded when they are appended.
 *
 * Both ends of the state become f16. An op that appends in place takes what it appends as f16, or narrows it itself; attention reads f16
 * where it lies. Every other reader gets a Cast to f32, and an end that no op appends to gets one to f16. */
#include "ir/rank_meta.h"
#include "op/analysis/analysis.h"
#include "op/op.h"
#include "run/fuse/fuse.h"

#include <string.h>

enum { KEYS = 1, VALUES };

static bool is_f32(const struct value *v)
{
    return v->type.dtype == DT_F32;
}

static struct node *cast_node(struct graph *g, struct value *v, enum dtype to)
{
    struct type type = v->type;
    type.dtype = to;
    struct node *n = graph_node(g, op_find("", "Cast"), arena_printf(g->arena, "%s/%s", v->name, dtype_name(to)), 1, &v, 1);
    attr_set_int(n, "to", to);
    node_output(g, n, 0, graph_value(g, n->name, &type));
    return n;
}

/* What the metadata says of an end, too. */
static void become_f16(struct graph *g, struct value *v, enum rank_end end)
{
    struct type type;
    struct placement place;
    v->type.dtype = DT_F16;
    if (g->rank_meta && rank_meta_value(g, end, v->name, &type, &place)) {
        type.dtype = DT_F16;
        rank_meta_set_value(g, end, v->name, &type, place);
    }
}

static bool reads_f16(const struct node *n, int operand)
{
    return op_is_tpc(n, "FusedAttention") && (operand == KEYS || operand == VALUES);
}

/* v is f16 from now on; keeps: a node that takes it as it is. */
static void widen_readers(struct graph *g, struct value *v, const struct node *keeps)
{
    struct node *cast = NULL;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        for (int k = 0; k < n->nin && n != keeps; k++) {
            if (n->in[k] != v || reads_f16(n, k))
                continue;
            cast = cast ? cast : cast_node(g, v, DT_F32);
            n->in[k] = cast->out[0];
        }
    }
    if (!cast)
        return;
    explain("%s: cache '%s' is widened for an op that can't read f16", graph_file(g), v->name);
    graph_insert_before_use(g, 1, &cast);
}

/* The op that appends rows to the past to make the present; NULL: none does, or it does more. */
static struct node *appending(const struct value *past, const struct value *present)
{
    struct node *n = past && present ? present->producer : NULL;
    int axis, operand = n ? op_appends_to(n, present->index, &axis) : -1;
    return operand >= 0 && n->in[operand] == past ? n : NULL;
}

static void append_f16(struct graph *g, struct node *n, const struct value *past)
{
    for (int k = 0; k < n->nin && op_is_onnx(n, "Concat"); k++)
        if (n->in[k] != past) {
            struct node *cast = cast_node(g, n->in[k], DT_F16);
            n->in[k] = cast->out[0];
            graph_insert_before_use(g, 1, &cast);
        }
}

static void narrow(struct graph *g, struct value *past, struct value *present)
{
    struct node *n = appending(past, present);
    if (past)
        become_f16(g, past, RANK_INPUT);
    if (n) {
        append_f16(g, n, past);
        become_f16(g, present, RANK_OUTPUT);
        widen_readers(g, present, NULL);
    } else if (present) {
        struct node *cast = cast_node(g, present, DT_F16);
        graph_move_output(g, graph_output_number(g, present), cast->out[0], "/f32");
        graph_append(g, cast);
        become_f16(g, cast->out[0], RANK_OUTPUT);
    }
    if (past)
        widen_readers(g, past, n);
}

static struct value *end_called(struct value *const *at, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (*name && strcmp(at[i]->name, name) == 0)
            return at[i];
    return NULL;
}

/* A state of floats that grows, or what attention only reads or only leaves. Other states are sums over all tokens: those stay. */
static bool narrows(const struct value *past, const struct value *present, int axis)
{
    if ((past && !is_f32(past)) || (present && !(is_f32(present) && present->producer)))
        return false;
    return past && present ? axis >= 0 : past || present;
}

int narrow_caches(struct graph *g)
{
    const struct rank_meta *m = g->rank_meta;
    int n = 0;
    for (int i = 0; i < (m ? m->nstate : g->states.n); i++) {
        struct value *past = m ? end_called(g->inputs.at, g->inputs.n, m->state[i].past) : g->states.at[i].past,
                     *present = m ? end_called(g->outputs.at, g->outputs.n, m->state[i].present) : g->states.at[i].present;
        if (!narrows(past, present, m ? m->state[i].dim : g->states.at[i].dim))
            continue;
        narrow(g, past, present);
        n++;
    }
    return n;
}
