/* number: numbers within limits, digit by digit. */
#include "grammar/grammar.h"

#include <string.h>

enum { DIGITS = 16 };
static const int64_t largest = 9999999999999999; /* of 16 digits */

static void step_digits(struct grammar_build *b, int from, int low, int high, int to)
{
    struct grammar_bytes s = {{0}};
    for (int digit = low; digit <= high; digit++)
        grammar_put_byte(&s, '0' + digit);
    grammar_step(b, from, s, to);
}

static int free_digits(struct grammar_build *b, int from, size_t n)
{
    for (; n; n--) {
        int to = grammar_state(b);
        step_digits(b, from, 0, 9, to);
        from = to;
    }
    return from;
}

/* Texts of equal length: digits from `low` to `high`. */
static void step_between(struct grammar_build *b, int from, const char *low, const char *high, int to)
{
    size_t n = strlen(low);
    if (strspn(low, "0") == n && strspn(high, "9") == n) {
        grammar_skip(b, free_digits(b, from, n), to);
        return;
    }
    char rest[24];
    int first = low[0] - '0', last = high[0] - '0', next = grammar_state(b);
    step_digits(b, from, first, first, next);
    if (first == last) {
        step_between(b, next, low + 1, high + 1, to);
        return;
    }
    memset(rest, '9', n - 1);
    rest[n - 1] = 0;
    step_between(b, next, low + 1, rest, to);
    if (last - first > 1) {
        next = grammar_state(b);
        step_digits(b, from, first + 1, last - 1, next);
        grammar_skip(b, free_digits(b, next, n - 1), to);
    }
    next = grammar_state(b);
    step_digits(b, from, last, last, next);
    memset(rest, '0', n - 1);
    step_between(b, next, rest, high + 1, to);
}

/* Not negative: those of each length. */
static void step_range(struct grammar_build *b, int from, int64_t low, int64_t high, int to)
{
    while (low <= high) {
        char first[24], last[24];
        int64_t end = high;
        int n = snprintf(first, sizeof first, "%lld", (long long)low);
        memset(last, '9', (size_t)n);
        last[n] = 0;
        if (!i64_parse(last, 0, high, &end))
            (void)snprintf(last, sizeof last, "%lld", (long long)high);
        step_between(b, from, first, last, to);
        if (end == high)
            return;
        low = end + 1;
    }
}

static int literal(struct grammar_build *b, int from, const char *text)
{
    return grammar_literal(b, from, text, strlen(text));
}

/* ---- integers ---- */

bool grammar_integer(struct grammar_build *b, int from, struct grammar_limits l, int to)
{
    int64_t least = l.has_least ? l.least : l.has_most && l.most < -largest ? -INT64_MAX : -largest;
    int64_t most = l.has_most ? l.most : l.has_least && l.least > largest ? INT64_MAX : largest;
    if ((l.above && !i64_add(least, 1, &least)) || (l.below && !i64_sub(most, 1, &most)))
        return false;
    least = least < -INT64_MAX ? -INT64_MAX : least;
    if (least > most)
        return false;
    if (most >= 0)
        step_range(b, from, least > 0 ? least : 0, most, to);
    if (least < 0)
        step_range(b, literal(b, from, "-"), most < 0 ? -most : 1, -least, to);
    return true;
}

/* ---- decimals ---- */

/* Up to 16 digits after the point; some: at least one is not 0. */
static void step_places(struct grammar_build *b, int from, bool some, int to)
{
    int at = literal(b, from, ".");
    for (int i = 0; i < DIGITS; i++) {
        int next = grammar_state(b);
        step_digits(b, at, some ? 1 : 0, 9, to);
        step_digits(b, at, 0, 9, next);
        at = next;
    }
}

/* Numbers from low to high, neither negative; above, below: excluding the limit. */
static bool step_reals(struct grammar_build *b, int from, int64_t low, bool above, int64_t high, bool below, int to)
{
    if (low > high || (low == high && (above || below)))
        return false;
    int whole = grammar_state(b), first = grammar_state(b);
    step_range(b, from, low, low, first);
    if (low < high) {
        step_range(b, from, low + 1, high - 1, whole);
        grammar_skip(b, whole, to);
        step_places(b, whole, false, to);
        step_places(b, first, above, to);
    }
    if (!above)
        grammar_skip(b, first, to);
    if (!below && low < high)
        step_range(b, from, high, high, to);
    return true;
}

bool grammar_number(struct grammar_build *b, int from, struct grammar_limits l, int to)
{
    int64_t least = l.has_least ? l.least : l.has_most && l.most < -largest ? -INT64_MAX : -largest;
    int64_t most = l.has_most ? l.most : l.has_least && l.least > largest ? INT64_MAX : largest;
    bool above = l.has_least && l.above, below = l.has_most && l.below, some = false;
    least = least < -INT64_MAX ? -INT64_MAX : least;
    if (most >= 0)
        some |= step_reals(b, from, least > 0 ? least : 0, above && least >= 0, most, below, to);
    if (least < 0)
        some |= step_reals(b, literal(b, from, "-"), most < 0 ? -most : 0, below && most <= 0, -least, above, to);
    return some;
}
