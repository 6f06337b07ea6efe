/* canon: gives the same computation the same form (src/lower/graph/canonical.c), and finds the state that only attention shows
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
