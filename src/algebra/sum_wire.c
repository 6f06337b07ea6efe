/* sum_wire: types of float addends in messages between machines. */
#include "algebra/algebra.h"

#include <string.h>

static const char *const names[] = {[WIRE_F32] = "f32", [WIRE_BF16] = "bf16", [WIRE_Q8] = "q8"};

const char *sum_wire_name(enum wire wire)
{
    require(wire >= WIRE_F32 && wire < WIRES);
    return names[wire];
}

bool sum_wire_parse(const char *name, enum wire *wire)
{
    for (int i = 0; i < WIRES; i++)
        if (strcmp(name, names[i]) == 0) {
            *wire = (enum wire)i;
            return true;
        }
    return false;
}

int64_t sum_wire_bytes(enum wire wire, int64_t n)
{
    int64_t scales = (n + SUM_WIRE_BLOCK - 1) / SUM_WIRE_BLOCK;
    return wire == WIRE_F32 ? (int64_t)sizeof(float) * n : wire == WIRE_BF16 ? 2 * n : 2 * scales + n;
}
