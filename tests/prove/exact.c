/* exact: opens a model as a graph that computes in integers. */
#include "tests/printed.h"
#include "tests/prove/integral.h"
#include "tests/prove/private.h"

struct prove *prove_open_integral(struct arena *a, const char *path, const struct bindings *sizes, bool train, struct integral *report)
{
    struct prove *real = train ? prove_open_training(a, path, sizes) : prove_open(a, path, sizes);
    struct graph *g = graph_copy(a, prove_graph(real));
    struct tensor **inputs = NEWN(a, struct tensor *, real->sets.n);
    for (int i = 0; i < real->sets.n; i++)
        inputs[i] = real->sets.at[i].in;
    *report = integral_rewrite(g, real->sets.n, inputs);
    prove_close(real);
    return prove_open_given(a, graph_printed(a, g), real->sets.n, inputs);
}
