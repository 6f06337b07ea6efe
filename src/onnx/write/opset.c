/* opset: the version of each domain that a file imports. */
#include "onnx/write/write.h"

#include <stdlib.h>
#include <string.h>

/* A composition's ops may be newer than the file. */
static int64_t standard_version(const struct graph *g, int64_t version)
{
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        if (!*n->domain && n->op && n->op->since > version)
            version = n->op->since;
        for (int k = 0; k < node_bodies(n); k++)
            version = standard_version(node_body(n, k)->graph, version);
    }
    return version;
}

int64_t opset_version(const struct graph *g, const char *domain)
{
    if (!*domain)
        return standard_version(g, g->opset ? g->opset : FORM_OPSET);
    int i = NAMED_AT(g->opsets.at, g->opsets.n, domain);
    return i < 0 ? 1 : strtoll(g->opsets.at[i].text, NULL, 10);
}
