/* sequence_window: rows of images and steps of audio as sequences of --sp=auto. Windows of a convolution or pool slide over them; each rank
 * computes some of the windows and gets the elements that it lacks, the halo, from its neighbours. The cost decides for each node. The
 * first workload decides which dimension is longest. */
#include "op/rule/rule.h"
#include "plan/facts/facts.h"
#include "plan/space/space.h"

/* The longest result dimension that windows slide over; -1: none. */
static int longest_slide(const struct space *s, int node)
{
    const struct rule *r = s->rule[node];
    const struct node *n = s->g->nodes.at[node];
    const struct bindings none = {0}, *dims = s->plan->workloads.n ? &s->plan->workloads.at[0].dims : &none;
    int64_t most = 0, size;
    int found = -1;
    for (int d = 0; r && r->nin > 0 && r->nout > 0 && r->in[0].present && d < r->in[0].rank; d++)
        if (r->in[0].dim[d].window && dim_eval(n->out[0]->type.dim[d], dims, &size) && size > most) {
            most = size;
            found = d;
        }
    require(found < 0 || rule_factor_at(&r->out[0], found) >= 0); /* the factor that counts windows */
    return most >= s->ranks ? found : -1;
}

bool sequence_has_windows(const struct space *s)
{
    for (int node = 0; node < s->g->nodes.n; node++)
        if (longest_slide(s, node) >= 0)
            return true;
    return false;
}

void sequence_seed_windows(struct space *s, int *up, struct sequence_rows *rows)
{
    for (int node = 0; node < s->g->nodes.n; node++) {
        int d = longest_slide(s, node);
        if (d < 0)
            continue;
        const struct value *v = s->g->nodes.at[node]->out[0];
        int class = dim_class_of(up, v->id * MAX_RANK + d);
        rows->split[class] = shares_split(s, v->type.dim[d]);
        rows->on[class] = rows->slides[class] = true;
        space_add(s, v, d, (struct candidate){rows->split[class], true, "--sp at", node});
    }
}
