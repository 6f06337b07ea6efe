/* overlap: predicts the time saved by all-reduces that overlap with compute. */
#include "passes/pass.h"
#include "plan/cost/cost.h"

void pass_overlap(struct compile *c)
{
    plan_overlap(c->arena, c->graph, c->plan, &c->options->machine);
}
