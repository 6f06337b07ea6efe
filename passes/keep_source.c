/* keep_source: a copy of the canonical graph. Memory and time are compared with it, other plans are made from it, and plan.json names its
 * values. */
#include "passes/pass.h"

void pass_keep_source(struct compile *c)
{
    c->source = graph_copy(c->arena, c->graph);
}
