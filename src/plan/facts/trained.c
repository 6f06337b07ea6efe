/* trained: finds the weights that --train trains, and those of them that several modules share. */
#include "op/backward/backward.h"
#include "plan/facts/facts.h"

#include <string.h>

struct weight_count trained_plus(struct weight_count c, const struct value *v)
{
    return (struct weight_count){c.weights + 1, c.numbers + (double)constant_elements(v->constant)};
}

static void mark(const struct graph *g, const struct names *n, const struct name_search *s, const char *globs, bool trained)
{
    struct name_matches found = names_find(n, s, globs);
    for (int i = 0; i < found.at.n; i++)
        g->values.at[found.at.at[i]]->constant->trained = trained;
}

void trained_mark(struct graph *g, const struct options *o, struct plan *p)
{
    bool *may_be = NEWN(g->arena, bool, g->values.n + 1);
    const bool *reaches = gradients_reach(g, g->outputs.n, (const struct value *const *)g->outputs.at);
    for (int i = 0; i < g->values.n; i++) {
        may_be[i] = reaches[i] && g->values.at[i]->constant && g->values.at[i]->constant->origin &&
            dtype_is_float(g->values.at[i]->type.dtype) && constant_elements(g->values.at[i]->constant) > 1;
        if (may_be[i])
            p->trainable = trained_plus(p->trainable, g->values.at[i]);
    }
    const struct names *names = names_new(g->arena, g);
    struct name_search s = {.what = "weight that can be trained", .kind = NAMED_WEIGHTS, .among = may_be};
    s.where = arena_printf(g->arena, "%s: --train", graph_file(g));
    if (o->lora.rank)
        return;
    mark(g, names, &s, o->train, true);
    s.where = arena_printf(g->arena, "%s: --freeze", graph_file(g));
    if (o->freeze)
        mark(g, names, &s, o->freeze, false);
}

/* Notes shared weights: exporters merge equal weights of a new model, as of all norms, so modules that should learn different ones share
 * one. */
static void note_shared(struct arena *a, struct plan *p, const struct value *v, const struct label_list *readers)
{
    const char *const *at = readers->list.at;
    VEC_PUSH(a, &p->warnings,
             arena_printf(a, "weight '%s' is read by %d nodes of %d modules ('%s', '%s'%s) and trained as one", v->name, readers->nodes,
                          readers->list.n, at[0], at[1], readers->list.n > 2 ? ", .." : ""));
}

void trained_note_shared(const struct graph *g, struct plan *p)
{
    enum { MOST_NAMED = 4 };
    const struct uses *uses = graph_uses(g, g->arena);
    int shared = 0;
    for (int i = 0; i < g->values.n; i++) {
        const struct value *v = g->values.at[i];
        if (!v->constant || !v->constant->trained)
            continue;
        struct label_list readers = label_readers(g->arena, g, uses, v);
        if (readers.list.n > 1 && ++shared <= MOST_NAMED)
            note_shared(g->arena, p, v, &readers);
    }
    if (shared > MOST_NAMED)
        VEC_PUSH(g->arena, &p->warnings,
                 arena_printf(g->arena, "%d more weights are read by several modules each, and trained as one", shared - MOST_NAMED));
}

void trained_tell(const struct graph *g, int n, struct value *const *weight)
{
    const struct uses *uses = graph_uses(g, g->arena);
    for (int i = 0; i < n; i++)
        explain("trains '%s', %s", label_both(g->arena, g, uses, weight[i]), type_str(g->arena, &weight[i]->type));
}
