/* number: integers as command lines give them. */
#include "base/base.h"

int64_t number_read(const char *what, const char *text, int64_t lo, int64_t hi)
{
    int64_t n;
    if (!i64_parse(text, lo, hi, &n))
        fail_usage("%s is '%s', expected an integer of %lld to %lld", what, text, (long long)lo, (long long)hi);
    return n;
}
