/* trained: which constants are weights that --train trains. */
#include "plan/plan.h"

bool plan_trains(const struct options *o, const struct value *v)
{
    return o && o->train && v->constant && v->constant->origin && dtype_is_float(v->type.dtype) && constant_elements(v->constant) > 1 &&
        glob_match(o->train, v->name) && !(o->freeze && glob_match(o->freeze, v->name));
}
