/* overlap: predicts what is saved by sums of all ranks that go on while they compute. */
#include "passes/pass.h"
#include "plan/cost/cost.h"

void pass_overlap(struct compile *c)
{
    plan_overlap(c->arena, c->graph, c->plan, &c->options->machine);
}
