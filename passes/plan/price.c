/* price: computes what every strategy of every node costs per step, for the HTML report (src/plan/report/alternatives.c). */
#include "passes/pass.h"
#include "plan/report/report.h"

void pass_price(struct compile *c)
{
    if (c->options->price)
        plan_price(c->plan->space);
}
