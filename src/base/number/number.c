/* number: numbers as command lines give them. */
#include "base/base.h"

#include <stdlib.h>

int64_t number_read(const char *what, const char *text, int64_t lo, int64_t hi)
{
    int64_t n;
    if (!i64_parse(text, lo, hi, &n))
        fail_usage("%s is '%s', expected an integer of %lld to %lld", what, text, (long long)lo, (long long)hi);
    return n;
}

int number_list(const char *what, const char *text, const char *each, int most, double *to)
{
    int n = 0;
    for (const char *at = text;; n++) {
        char *end;
        if (n == most)
            fail_usage("%s has more than %d numbers", what, most);
        to[n] = strtod(at, &end);
        if (end == at || (*end && *end != ','))
            fail_usage("%s is '%s', expected a number for each %s: 1,1,0.5", what, text, each);
        if (!*end)
            return n + 1;
        at = end + 1;
    }
}
