/* fuse_kernels: rewrites a graph for execution (src/lower/graph/lower_graph.c), in tpc-run only. */
#include "passes/pass.h"

void pass_fuse_kernels(struct compile *c)
{
    lower_graph(c->graph, &c->lower);
}
