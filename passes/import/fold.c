/* fold: evaluates constants (src/op/canon/fold.c). */
#include "passes/pass.h"

void pass_fold(struct compile *c)
{
    canon_fold(c->graph);
}
