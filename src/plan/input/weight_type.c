/* weight_type: the types that --weights stores weights in, by name. */
#include "plan/input/input.h"

#include <string.h>

static const struct {
    const char *name;
    enum dtype dtype;
} weight_types[] = {{"f32", DT_F32}, {"f16", DT_F16}, {"bf16", DT_BF16}, {"int8", DT_I8}, {"int4", DT_I4}};

const char *weight_type_name(enum dtype dtype)
{
    for (size_t i = 0; i < sizeof weight_types / sizeof *weight_types; i++)
        if (weight_types[i].dtype == dtype)
            return weight_types[i].name;
    bug("no weights are stored in %s", dtype_name(dtype));
}

enum dtype weight_type_parse(const char *name)
{
    int i = NAMED_ROW(weight_types, name);
    return i < 0 ? DT_NONE : weight_types[i].dtype;
}
