/* fuse_kernels: what a graph becomes before it runs (src/lower/graph/lower_graph.c), in tpc-run only. */
#include "passes/pass.h"

void pass_fuse_kernels(struct compile *c)
{
    lower_graph(c->graph, &c->lower);
}
