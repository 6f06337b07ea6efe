/* groups: the parts of the predicted step, folded by layers that are alike. */
#include "plan/html/html.h"

#include <string.h>

bool html_part_sends(const struct step_part *p)
{
    return p->to && p->by;
}

static int run_end(const struct plan *p, int from)
{
    int end = from;
    while (end < p->step.list.n && p->step.list.at[end].layer == p->step.list.at[from].layer)
        end++;
    return end;
}

/* The group of layers like this one; -1: none yet. Numbers of groups by first layer. */
static int group_like(const struct html_groups *all, const int *first_layer, int layer)
{
    for (int i = 0; layer >= 0 && i < all->list.n; i++)
        if (first_layer[i] == layer)
            return i;
    return -1;
}

static struct html_group new_group(struct arena *a, const struct plan *p, int first, int end)
{
    int loads = p->workloads.n;
    struct html_group g = {.first = first, .end = end, .times = 0, .folds = html_folds_find(a, p, first, end)};
    g.compute = NEWN(a, double, loads + 1);
    g.sent = NEWN(a, double, loads + 1);
    g.unsharded = NEWN(a, double, loads + 1);
    for (int i = first; i < end; i++)
        for (int w = 0; w < loads; w++) {
            const struct step_part *part = &p->step.list.at[i];
            (html_part_sends(part) ? g.sent : g.compute)[w] += part->seconds[w];
            g.unsharded[w] += part->unsharded[w];
        }
    return g;
}

/* Experts of one layer repeat, too. */
static const char *block_name(const struct plan *p, const struct html_group *g)
{
    for (int i = g->first; i < g->end; i++)
        if (!p->step.list.at[i].to && p->alternatives->node[p->step.list.at[i].node].mixes)
            return "layer";
    return "block";
}

/* Of a step of training: whether the loss depends on the node, by position. NULL: no step of training. */
static const bool *forward_nodes(struct arena *a, const struct graph *g)
{
    if (!g->trained.n)
        return NULL;
    bool *needed = NEWN(a, bool, g->values.n + 1);
    needed[g->outputs.at[0]->id] = true;
    return graph_leads_to(g, a, needed);
}

static bool has_half(const struct plan *p, const bool *forward, int first, int end, bool half)
{
    for (int i = first; i < end; i++) {
        const struct step_part *part = &p->step.list.at[i];
        if (!part->to && forward[part->node] == half)
            return true;
    }
    return false;
}

/* Layers of the forward half, where the backward half has as many, which come in the opposite order; else 0. */
static int mirrored_layers(const struct plan *p, const bool *forward)
{
    int n = p->step.layer.n, first = 0, seen = -1;
    for (int i = 0, end; forward && i < p->step.list.n; i = end) {
        end = run_end(p, i);
        int layer = p->step.list.at[i].layer;
        if (layer > seen && has_half(p, forward, i, end, true))
            first++;
        seen = layer > seen ? layer : seen;
    }
    return 2 * first == n ? first : 0;
}

/* From 1, as the model counts: of 2 n layers, those of the backward half from n down. */
static int layer_number(int layer, int mirrored)
{
    return mirrored && layer >= mirrored ? 2 * mirrored - layer : layer + 1;
}

/* "layer 1", "layers 2 to 32", "layers 1, 3, 5, 7, ...". */
static const char *layers_title(struct arena *a, const struct plan *p, const struct html_group *g, int like, int mirrored)
{
    const char *name = block_name(p, g);
    enum { MOST_LISTED = 6 };
    const char *list = "";
    int n = 0, last = like;
    bool row = true;
    for (int k = 0; k < p->step.layer.n; k++) {
        if (p->step.layer.at[k] != like)
            continue;
        row = row && (n == 0 || k == last + 1);
        last = k;
        if (++n <= MOST_LISTED)
            list = arena_printf(a, "%s%s%d", list, n > 1 ? ", " : "", layer_number(k, mirrored));
    }
    return n == 1 ? arena_printf(a, "%s %d", name, layer_number(like, mirrored))
        : row     ? arena_printf(a, "%ss %d to %d", name, layer_number(like, mirrored), layer_number(last, mirrored))
                  : arena_printf(a, "%ss %s%s", name, list, n > MOST_LISTED ? ", …" : "");
}

static const char *outside_title(const struct plan *p, int first, int end)
{
    bool any = p->step.layer.n > 0;
    return !any ? "the whole graph" : first == 0 ? "before the layers" : end == p->step.list.n ? "after the layers" : "between layers";
}

static const char *with_half(struct arena *a, const struct plan *p, const bool *forward, int first, int end, const char *title)
{
    bool before = has_half(p, forward, first, end, true), after = has_half(p, forward, first, end, false);
    return arena_printf(a, "%s, %s", !after ? "forward" : !before ? "backward" : "forward and backward", title);
}

static void note_shown(const struct html_group *g, int *shown)
{
    for (int i = g->first; i < g->end; i++)
        shown[i] = i;
    EACH (const struct html_fold, x, g->folds.list)
        for (int i = x->first; i < x->first + x->period * x->times; i++)
            shown[i] = x->first + (i - x->first) % x->period;
}

struct html_groups html_groups_of(struct arena *a, const struct plan *p)
{
    struct html_groups all = {.of_part = NEWN(a, int, p->step.list.n + 1), .shown = NEWN(a, int, p->step.list.n + 1)};
    for (int i = 0; i < p->step.list.n; i++)
        all.shown[i] = -1;
    const bool *forward = forward_nodes(a, p->alternatives->graph);
    int mirrored = mirrored_layers(p, forward);
    int *first_layer = NEWN(a, int, p->step.list.n + 1);
    for (int i = 0, end; i < p->step.list.n; i = end) {
        int layer = p->step.list.at[i].layer, like = layer < 0 ? -1 : p->step.layer.at[layer], at = group_like(&all, first_layer, like);
        end = run_end(p, i);
        if (at < 0) {
            at = all.list.n;
            VEC_PUSH(a, &all.list, new_group(a, p, i, end));
            all.list.at[at].title = like < 0 ? outside_title(p, i, end) : layers_title(a, p, &all.list.at[at], like, mirrored);
            if (forward)
                all.list.at[at].title = with_half(a, p, forward, i, end, all.list.at[at].title);
            first_layer[at] = like;
            note_shown(&all.list.at[at], all.shown);
        }
        all.list.at[at].times++;
        VEC_PUSH(a, &all.order, at);
        for (int k = i; k < end; k++)
            all.of_part[k] = at;
    }
    return all;
}
