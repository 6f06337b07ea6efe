/* splitmix: random bits from the caller's state. */
#include "base/base.h"

uint64_t splitmix(uint64_t state)
{
    uint64_t z = state + SPLITMIX_STEP;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
