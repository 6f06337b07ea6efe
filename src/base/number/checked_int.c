/* checked_int: checked 64-bit arithmetic and numbers in texts, for sizes that come from files we don't trust, and division that rounds
 * down.
 *
 * Every checked function returns false on overflow and leaves its result alone, so a caller can't use a partial result. */
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>

#define CHECKED(name, overflows)                  \
    bool name(int64_t a, int64_t b, int64_t *out) \
    {                                             \
        int64_t r;                                \
        if (overflows(a, b, &r))                  \
            return false;                         \
        *out = r;                                 \
        return true;                              \
    }
CHECKED(i64_add, __builtin_add_overflow)
CHECKED(i64_sub, __builtin_sub_overflow)
CHECKED(i64_mul, __builtin_mul_overflow)

/* INT64_MIN / -1 overflows; it saturates instead of trapping. */
int64_t i64_floor_div(int64_t a, int64_t b)
{
    require(b != 0);
    if (b == -1)
        return a == INT64_MIN ? INT64_MAX : -a;
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t i64_floor_mod(int64_t a, int64_t b)
{
    require(b != 0);
    if (b == -1)
        return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int64_t i64_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

bool i64_parse(const char *text, int64_t lo, int64_t hi, int64_t *out)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (end == text || *end || errno || n < lo || n > hi)
        return false;
    *out = n;
    return true;
}
