/* layer: one layer of the planned graph, as rows of a picture: a layer of the largest block that is split like most of its layers. */
#include "op/op.h"
#include "plan/report/report.h"

#include <string.h>

struct finder {
    struct arena *arena;
    const struct graph *g;
    const struct dim_roles *roles;
};

static const struct node *finder_node(const struct finder *f, int i)
{
    require(i >= 0 && i < f->g->nodes.n);
    return f->g->nodes.at[i];
}

static bool is_attention(const struct finder *f, const struct node *n)
{
    return n->op && dim_node_multiplies_activations(f->roles, n) && !weight_is_used(f->roles->weight, n);
}

/* ---- rows --------------------------------------------------------------------------------------------------------------------- */

/* Whether to show the node: it computes with floats and does not only move them. */
static bool is_shown(const struct finder *f, int i)
{
    const struct node *n = finder_node(f, i);
    bool moves = f->roles->rule[i] && f->roles->rule[i]->moves && n->op && !(n->op->flags & OP_APPENDS);
    return n->op && !moves && node_result(n, 0) && dtype_is_float(n->out[0]->type.dtype) && n->nin > 0 && !(n->op->flags & OP_VIEW);
}

static void add_layer_row(struct finder *f, struct layer *l, enum layer_row_kind kind, const struct node *n)
{
    VEC_PUSH(f->arena, &l->rows, ((struct layer_row){.kind = kind}));
    VEC_PUSH(f->arena, &l->rows.at[l->rows.n - 1].nodes, n);
}

static void add_other(struct finder *f, struct layer *l, const struct node *n)
{
    struct layer_row *last = l->rows.n ? &l->rows.at[l->rows.n - 1] : NULL;
    enum layer_row_kind kind = is_attention(f, n) ? ROW_ATTENTION : ROW_OTHER;
    if (last && (last->kind == ROW_OTHER || last->kind == ROW_ATTENTION)) {
        last->kind = kind == ROW_ATTENTION ? kind : last->kind;
        VEC_PUSH(f->arena, &last->nodes, n);
    } else {
        add_layer_row(f, l, kind, n);
    }
}

static struct layer rows_between(struct finder *f, int from, int to)
{
    struct layer l = {0};
    int products = -1; /* the row of the last product */
    for (int i = from; i < to; i++) {
        const struct node *n = finder_node(f, i);
        if (n->op && (n->op->flags & OP_COLLECTIVE)) {
            add_layer_row(f, &l, ROW_COLLECTIVE, n);
        } else if (layers_is_product(f->roles, i) && products >= 0 && l.rows.at[products].nodes.at[0]->in[0] == n->in[0]) {
            VEC_PUSH(f->arena, &l.rows.at[products].nodes, n);
        } else if (layers_is_product(f->roles, i)) {
            add_layer_row(f, &l, ROW_PRODUCTS, n);
            products = l.rows.n - 1;
        } else if (is_shown(f, i) && !f->roles->weight[n->out[0]->id]) {
            add_other(f, &l, n);
        }
    }
    return l;
}

/* ---- which repetition --------------------------------------------------------------------------------------------------------- */

static const char *place_letter(struct arena *a, struct placement p)
{
    return p.kind == PLACE_S ? arena_printf(a, "S%d", p.dim) : p.kind == PLACE_P ? "P" : "R";
}

/* The splits of products, attention and collectives, as text. */
static const char *layer_text(struct finder *f, const struct layer *l)
{
    const char *text = "";
    EACH (const struct layer_row, r, l->rows) {
        for (int k = 0; r->kind != ROW_OTHER && k < r->nodes.n; k++)
            if (r->nodes.at[k]->op->flags & (OP_PRODUCT | OP_COLLECTIVE))
                text = arena_printf(f->arena, "%s %s:%s", text, r->nodes.at[k]->optype,
                                    place_letter(f->arena, r->nodes.at[k]->out[0]->place));
    }
    return text;
}

/* The last layer of the most frequent kind: the first layers of a model may read its inputs differently. */
static struct layer most_frequent(struct finder *f, int n, const struct layer_span *span)
{
    struct layer best = {.alike = 0}, *all = NEWN(f->arena, struct layer, n);
    int *like = NEWN(f->arena, int, n), *count = NEWN(f->arena, int, n); /* the first of each kind, and its number */
    struct name_index kinds = {0};
    for (int k = 0; k < n; k++) {
        all[k] = rows_between(f, span[k].first, span[k].end);
        all[k].number = k + 1;
        all[k].repeat = n;
        const char *text = layer_text(f, &all[k]);
        if (name_index_find(&kinds, text) < 0)
            name_index_put(f->arena, &kinds, text, k);
        like[k] = name_index_find(&kinds, text);
        count[like[k]]++;
    }
    for (int k = 0; k < n; k++) {
        all[k].alike = count[like[k]];
        if (all[k].alike >= best.alike)
            best = all[k];
    }
    return best;
}

struct layer layer_find(struct arena *a, const struct graph *g, const struct dim_roles *roles)
{
    struct finder f = {.arena = a, .g = g, .roles = roles};
    struct layers all = layers_find(a, g, roles);
    return all.list.n ? most_frequent(&f, all.list.at[0].repeat, all.list.at) : (struct layer){0};
}
