/* style_pairwise: products of style pairwise alternate along every chain. A product that reads the result of a column-parallel product,
 * through nodes that multiply no weight, is row-parallel. All others are column-parallel, so parallel products (q, k and v; gate and up)
 * all are. */
#include "plan/constrain/constrain.h"
#include "plan/input/input.h"
#include "plan/space/space.h"

/* Whether the node ends a chain: its result is not a split result of an earlier product. */
static bool is_end(const struct space *s, const bool *target, int node)
{
    return target[node] || style_applies(s, STYLE_COLWISE, NULL, node);
}

static bool any_marked(const struct space *s, int n, struct value *const *at, const bool *mark)
{
    for (int i = 0; i < n; i++)
        if (at[i] && !s->weight[at[i]->id] && mark[at[i]->id])
            return true;
    return false;
}

static void mark_all(int n, struct value *const *at, bool *mark)
{
    for (int i = 0; i < n; i++)
        if (at[i])
            mark[at[i]->id] = true;
}

static void find_rows(const struct space *s, const bool *target, bool *row)
{
    bool *column = NEWN(s->arena, bool, s->g->values.n + 1);
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        bool reads = any_marked(s, n->nin, n->in, column);
        row[i] = target[i] && reads;
        if (target[i] ? !reads : reads && !is_end(s, target, i))
            mark_all(n->nout, n->out, column);
    }
}

/* Marks column products that no row product reads as last. */
static void find_last(const struct space *s, const bool *target, const bool *row, bool *last)
{
    bool *awaited = NEWN(s->arena, bool, s->g->values.n + 1);
    for (int i = s->g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = s->g->nodes.at[i];
        bool wanted = any_marked(s, n->nout, n->out, awaited);
        last[i] = target[i] && (row[i] || !wanted);
        if (row[i] || (wanted && !is_end(s, target, i)))
            mark_all(n->nin, n->in, awaited);
    }
}

struct pairs style_pairs_find(const struct space *s, const bool *target)
{
    struct pairs p = {.row = NEWN(s->arena, bool, s->g->nodes.n + 1), .last = NEWN(s->arena, bool, s->g->nodes.n + 1)};
    find_rows(s, target, p.row);
    find_last(s, target, p.row, p.last);
    for (int i = 0; i < s->g->nodes.n; i++)
        require(target[i] || (!p.row[i] && !p.last[i]));
    return p;
}
