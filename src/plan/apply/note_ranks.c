/* note_ranks: notes in a collective's node what a runtime needs that does not see the graph's metadata: its ranks, and the sizes that its
 * splits leave open. */
#include "op/op.h"
#include "plan/apply/apply.h"

#include <string.h>

static int splits_of(struct graph *g, const struct node *n, const struct split *out[2])
{
    int count = 0;
    for (int i = 0; i < n->nattr; i++) {
        const char *name = n->attr[i].name;
        if (!n->attr[i].set || (strcmp(name, "from") != 0 && strcmp(name, "to") != 0))
            continue;
        require(count < 2);
        out[count] = split_parse(g->alg, attr_string(n, name), NULL);
        require(out[count++]);
    }
    return count;
}

/* The dimension's global size determines one size of a split. If a split has several, notes all symbols before it. */
static void note_symbols(struct graph *g, struct node *n)
{
    const struct split *split[2];
    const struct dim *const *symbol, **extent;
    int splits = splits_of(g, n, split), open = 0;
    for (int i = 0; i < splits; i++)
        open = split_open_sizes(split[i]) > open ? split_open_sizes(split[i]) : open;
    if (open < 2)
        return;
    int symbols = split_symbols(g->arena, splits, split, &symbol), extents = attr_dims(n, "extent", &extent);
    const struct dim **all = NEWN(g->arena, const struct dim *, symbols + extents);
    for (int i = 0; i < symbols; i++)
        all[i] = symbol[i];
    for (int i = 0; i < extents; i++)
        all[symbols + i] = extent[i];
    attr_set_dims(g, n, "extent", symbols + extents, all);
}

void plan_note_ranks(struct graph *g)
{
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        if (!n->op || !(n->op->flags & OP_COLLECTIVE))
            continue;
        attr_set_int(n, "rank", g->rank);
        attr_set_int(n, "ranks", g->ranks);
        note_symbols(g, n);
    }
}
