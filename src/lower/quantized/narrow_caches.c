/* narrow_caches: for --cache: growing f32 states, a KV cache's keys and values, are stored in fewer bytes, rounded when they are appended:
 * as f16, or as i8, whose last dimension is a row of codes and scales (src/kern/core/coded_rows.c).
 *
 * Both ends of the state become narrow. An op that appends in place gets narrow rows, or narrows them itself; attention reads the cache in
 * place. Every other reader gets a node that widens it, and an end that no op appends to gets one that narrows it. */
#include "ir/rank_meta.h"
#include "kern/core/core.h"
#include "lower/lower.h"
#include "op/analysis/analysis.h"
#include "op/op.h"

#include <string.h>

enum { KEYS = 1, VALUES };

static bool is_f32(const struct value *v)
{
    return v->type.dtype == DT_F32;
}

static struct type narrow_type(struct graph *g, struct type t, enum dtype to)
{
    int64_t n = 0;
    t.dtype = to;
    if (to != DT_I8)
        return t;
    require(dim_is_int(t.dim[t.rank - 1], &n));
    t.dim[t.rank - 1] = dim_int(g->alg, coded_rows_bytes(n));
    return t;
}

static struct node *cast_node(struct graph *g, struct value *v, const struct type *to)
{
    bool codes = v->type.dtype == DT_I8 || to->dtype == DT_I8;
    const struct op *op = !codes ? op_find("", "Cast") : op_find("tpc", to->dtype == DT_I8 ? "QuantizeRows" : "DequantizeRows");
    struct node *n = graph_node(g, op, arena_printf(g->arena, "%s/%s", v->name, dtype_name(to->dtype)), 1, &v, 1);
    if (!codes)
        attr_set_int(n, "to", to->dtype);
    node_output(g, n, 0, graph_value(g, n->name, to));
    return n;
}

/* ---- the ends of a state ----------------------------------------------------------------------------------------------------------- */

/* Also changes the metadata of an end. */
static void become_narrow(struct graph *g, struct value *v, enum rank_end end, enum dtype to)
{
    struct type type;
    struct placement place;
    v->type = narrow_type(g, v->type, to);
    if (g->rank_meta && rank_meta_value(g, end, v->name, &type, &place)) {
        type = narrow_type(g, type, to);
        rank_meta_set_value(g, end, v->name, &type, place);
    }
}

/* v is narrow now, and had the type `wide`; keeps: a node that reads it narrow. */
static void widen_readers(struct graph *g, struct value *v, const struct type *wide, const struct node *keeps)
{
    struct node *cast = NULL;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        for (int k = 0; k < n->nin && n != keeps; k++) {
            if (n->in[k] != v || (op_is_tpc(n, "FusedAttention") && (k == KEYS || k == VALUES) && op_resolved(n)))
                continue;
            cast = cast ? cast : cast_node(g, v, wide);
            n->in[k] = cast->out[0];
        }
    }
    if (!cast)
        return;
    explain("%s: cache '%s' is widened for an op that can't read %s", graph_file(g), v->name, dtype_name(v->type.dtype));
    graph_insert_before_use(g, 1, &cast);
}

/* The op that appends rows to the past to make the present; NULL: none, or it does more. */
static struct node *appending(const struct value *past, const struct value *present)
{
    struct node *n = past && present ? present->producer : NULL;
    int axis, operand = n ? op_appends_to(n, present->index, &axis) : -1;
    return operand >= 0 && n->in[operand] == past && op_resolved(n) ? n : NULL;
}

static void append_narrow(struct graph *g, struct node *n, const struct value *past, enum dtype to)
{
    for (int k = 0; k < n->nin && op_is_onnx(n, "Concat"); k++)
        if (n->in[k] != past) {
            struct type type = narrow_type(g, n->in[k]->type, to);
            struct node *cast = cast_node(g, n->in[k], &type);
            n->in[k] = cast->out[0];
            graph_insert_before_use(g, 1, &cast);
        }
}

static void narrow(struct graph *g, struct value *past, struct value *present, enum dtype to)
{
    struct node *n = appending(past, present);
    struct type wide = past ? past->type : present->type, made = present ? present->type : wide;
    if (past)
        become_narrow(g, past, RANK_INPUT, to);
    if (n) {
        append_narrow(g, n, past, to);
        become_narrow(g, present, RANK_OUTPUT, to);
        widen_readers(g, present, &made, NULL);
    } else if (present) {
        struct type type = narrow_type(g, made, to);
        struct node *cast = cast_node(g, present, &type);
        graph_move_output(g, graph_output_number(g, present), cast->out[0], "/f32");
        cast->out[0]->type = made;
        graph_append(g, cast);
        become_narrow(g, cast->out[0], RANK_OUTPUT, to);
    }
    if (past)
        widen_readers(g, past, &wide, n);
}

/* ---- which states ------------------------------------------------------------------------------------------------------------------ */

static struct value *end_called(struct value *const *at, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (*name && strcmp(at[i]->name, name) == 0)
            return at[i];
    return NULL;
}

/* Whether to narrow it: a state of floats that grows, or one that attention only reads or only makes. Other states are sums over all tokens
 * and stay. */
static bool narrows(const struct value *past, const struct value *present, int axis)
{
    if ((past && !is_f32(past)) || (present && !(is_f32(present) && present->producer)))
        return false;
    return past && present ? axis >= 0 : past || present;
}

/* The numbers of a row share scales, so each row must be whole on one rank. */
static void check_rows(struct graph *g, const struct value *v, enum rank_end end, int axis)
{
    struct placement place = {.kind = PLACE_R};
    struct type global;
    if (!v)
        return;
    if (!g->rank_meta || !rank_meta_value(g, end, v->name, &global, &place))
        global = v->type;
    int last = v->type.rank - 1;
    if (last < 0 || axis == last || global.rank != v->type.rank || !dim_is_int(v->type.dim[last], NULL) ||
        !dim_is_int(global.dim[last], NULL))
        fail("%s: cache '%s' has no last dimension of a known size beside the one that grows, so it can't be kept as int8: --cache f16 can",
             graph_file(g), v->name);
    if (place.kind == PLACE_S && place.dim == last)
        fail("%s: cache '%s' is split along its last dimension, whose numbers share scales, so it can't be kept as int8: --cache f16 can",
             graph_file(g), v->name);
}

int narrow_caches(struct graph *g, enum dtype to)
{
    const struct rank_meta *m = g->rank_meta;
    int n = 0;
    for (int i = 0; i < (m ? m->nstate : g->states.n); i++) {
        struct value *past = m ? end_called(g->inputs.at, g->inputs.n, m->state[i].past) : g->states.at[i].past,
                     *present = m ? end_called(g->outputs.at, g->outputs.n, m->state[i].present) : g->states.at[i].present;
        int axis = m ? m->state[i].dim : g->states.at[i].dim;
        if (!narrows(past, present, axis))
            continue;
        if (to == DT_I8) {
            check_rows(g, past, RANK_INPUT, axis);
            check_rows(g, present, RANK_OUTPUT, axis);
        }
        narrow(g, past, present, to);
        n++;
    }
    return n;
}
