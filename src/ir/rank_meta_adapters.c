/* rank_meta_adapters: low-rank adapters in rank files: those trained, and the splits of the products to which a run may add adapters. */
#include "ir/rank_meta.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double rank_meta_adapters(const struct graph *g)
{
    const char *text = graph_meta(g, RANK_META_ADAPTERS);
    double alpha = text ? strtod(text, NULL) : 0;
    if (text && !(alpha > 0 && isfinite(alpha)))
        fail("%s: metadata '" RANK_META_ADAPTERS "' is '%s', expected a number above 0", graph_file(g), text);
    return alpha;
}

void rank_meta_set_adapters(struct graph *g, double alpha)
{
    graph_set_meta(g, RANK_META_ADAPTERS, arena_printf(g->arena, "%.17g", alpha));
}

static const char *key_of(const struct graph *g, const char *node)
{
    return arena_printf(g->arena, RANK_META_PRODUCT "%s", node);
}

/* A split, or "-". */
static const struct split *split_or_none(struct graph *g, const struct node *n, const char *text)
{
    const char *error = NULL;
    const struct split *s = strcmp(text, "-") == 0 ? NULL : split_parse(g->alg, text, &error);
    if (error)
        fail("%s: metadata of its weight is '%s': %s", node_where(g, n), text, error);
    return s;
}

struct rank_product rank_meta_product(struct graph *g, const struct node *n)
{
    const char *text = graph_meta(g, key_of(g, n->name));
    const char *space = text ? strchr(text, ' ') : NULL;
    if (!text)
        fail("%s: no metadata tells how its weight is split: compile the folder again, for an older tpc-shard wrote it", node_where(g, n));
    if (!space)
        fail("%s: metadata of its weight is '%s', expected two splits", node_where(g, n), text);
    return (struct rank_product){split_or_none(g, n, arena_strndup(g->arena, text, (size_t)(space - text))),
                                 split_or_none(g, n, space + 1)};
}

void rank_meta_set_product(struct graph *g, const char *node, const struct rank_product *p)
{
    const char *rows = p->rows ? split_str(g->arena, p->rows) : "-", *columns = p->columns ? split_str(g->arena, p->columns) : "-";
    graph_set_meta(g, key_of(g, node), arena_printf(g->arena, "%s %s", rows, columns));
}
