/* canon: brings equal computations to one form (src/lower/graph/canonical.c), and finds state that is visible only in attention
 * (src/plan/facts/state.c). */
#include "passes/pass.h"
#include "plan/facts/facts.h"

void pass_canon(struct compile *c)
{
    lower_canonical(c->graph);
    plan_find_unpaired_states(c->graph);
    if (c->fixed && c->fixed->list.n)
        op_drop_unread(c->graph);
}
