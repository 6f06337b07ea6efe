/* char_set: sets of characters, and their bytes in UTF-8. */
#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

enum { SURROGATES = 0xd800, BEHIND_SURROGATES = 0xe000 };

/* ---- sets ---- */

static void add(struct arena *a, struct grammar_chars *c, uint32_t from, uint32_t to)
{
    const struct grammar_range r = {from, to};
    if (from <= to)
        VEC_PUSH(a, &c->range, r);
}

void grammar_chars_add(struct arena *a, struct grammar_chars *c, uint32_t from, uint32_t to)
{
    add(a, c, from, to < SURROGATES ? to : SURROGATES - 1);
    add(a, c, from < BEHIND_SURROGATES ? BEHIND_SURROGATES : from, to < GRAMMAR_LAST_CHAR ? to : GRAMMAR_LAST_CHAR);
}

static int by_first(const void *x, const void *y)
{
    const struct grammar_range *a = x, *b = y;
    return a->from < b->from ? -1 : a->from > b->from;
}

void grammar_chars_sort(struct arena *a, struct grammar_chars *c)
{
    struct grammar_chars out = {0};
    if (c->range.n)
        qsort(c->range.at, (size_t)c->range.n, sizeof *c->range.at, by_first);
    for (int i = 0; i < c->range.n; i++) {
        const struct grammar_range r = c->range.at[i];
        struct grammar_range *last = out.range.n ? &out.range.at[out.range.n - 1] : NULL;
        if (!last || r.from > last->to + 1)
            VEC_PUSH(a, &out.range, r);
        else if (r.to > last->to)
            last->to = r.to;
    }
    *c = out;
}

struct grammar_chars grammar_chars_others(struct arena *a, const struct grammar_chars *c)
{
    struct grammar_chars out = {0};
    uint32_t next = 0;
    for (int i = 0; i < c->range.n; i++) {
        if (c->range.at[i].from > next)
            grammar_chars_add(a, &out, next, c->range.at[i].from - 1);
        next = c->range.at[i].to + 1;
    }
    if (next <= GRAMMAR_LAST_CHAR)
        grammar_chars_add(a, &out, next, GRAMMAR_LAST_CHAR);
    return out;
}

struct grammar_chars grammar_chars_both(struct arena *a, const struct grammar_chars *x, const struct grammar_chars *y)
{
    struct grammar_chars out = {0};
    for (int i = 0, k = 0; i < x->range.n && k < y->range.n;) {
        const struct grammar_range p = x->range.at[i], q = y->range.at[k];
        add(a, &out, p.from > q.from ? p.from : q.from, p.to < q.to ? p.to : q.to);
        if (p.to < q.to)
            i++;
        else
            k++;
    }
    return out;
}

/* ---- bytes ---- */

/* Characters of 2 to 4 bytes: the first and last one of each length. */
static const uint32_t first_of[] = {0, 0, 0x80, 0x800, 0x10000}, last_of[] = {0, 0x7f, 0x7ff, 0xffff, GRAMMAR_LAST_CHAR};

static int byte_at(uint32_t c, int n, int i)
{
    static const int lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    int shift = 6 * (n - 1 - i);
    return i == 0 ? lead[n] | (int)(c >> shift) : 0x80 | (int)(c >> shift & 0x3f);
}

static void step_range(struct grammar_build *b, int from, int first, int last, int to)
{
    struct grammar_bytes s = {{0}};
    for (int byte = first; byte <= last; byte++)
        grammar_put_byte(&s, byte);
    grammar_step(b, from, s, to);
}

/* Characters `lo` to `hi` of n bytes, from byte i on: a middle part whose later bytes are free, between two bounded parts. */
static void step_chars(struct grammar_build *b, int from, uint32_t lo, uint32_t hi, int n, int i, int to)
{
    int low = byte_at(lo, n, i), high = byte_at(hi, n, i);
    if (i == n - 1) {
        step_range(b, from, low, high, to);
        return;
    }
    uint32_t rest = (UINT32_C(1) << (6 * (n - 1 - i))) - 1;
    if (low == high) {
        int next = grammar_state(b);
        step_range(b, from, low, low, next);
        step_chars(b, next, lo, hi, n, i + 1, to);
        return;
    }
    if (lo & rest) {
        int next = grammar_state(b);
        step_range(b, from, low, low, next);
        step_chars(b, next, lo, lo | rest, n, i + 1, to);
        low++;
    }
    if ((hi & rest) != rest) {
        int next = grammar_state(b);
        step_range(b, from, high, high, next);
        step_chars(b, next, hi & ~rest, hi, n, i + 1, to);
        high--;
    }
    if (low > high)
        return;
    for (int k = i; k < n - 1; k++) {
        int next = grammar_state(b);
        step_range(b, from, k == i ? low : 0x80, k == i ? high : 0xbf, next);
        from = next;
    }
    step_range(b, from, 0x80, 0xbf, to);
}

/* A rule for characters of several bytes; equal sets share it. */
static int rule_of(struct grammar_build *b, const struct grammar_chars *several)
{
    int known = b->char_rule.n;
    int32_t number = numbered_find(&b->chars, (const int32_t *)(const void *)several->range.at, 2 * several->range.n);
    if (number < known)
        return b->char_rule.at[number];
    int rule = grammar_rule(b, "a character");
    VEC_PUSH(b->arena, &b->char_rule, rule);
    int from = grammar_rule_start(b, rule), to = grammar_rule_end(b, rule);
    for (int i = 0; i < several->range.n; i++)
        for (int n = 2; n <= 4; n++) {
            const struct grammar_range r = several->range.at[i];
            uint32_t lo = r.from > first_of[n] ? r.from : first_of[n], hi = r.to < last_of[n] ? r.to : last_of[n];
            if (lo <= hi)
                step_chars(b, from, lo, hi, n, 0, to);
        }
    return rule;
}

void grammar_chars_step(struct grammar_build *b, int from, const struct grammar_chars *c, int to)
{
    struct grammar_bytes single = {{0}};
    struct grammar_chars several = {0};
    for (int i = 0; i < c->range.n; i++) {
        const struct grammar_range r = c->range.at[i];
        for (uint32_t byte = r.from; byte <= r.to && byte < 0x80; byte++)
            grammar_put_byte(&single, (int)byte);
        add(b->arena, &several, r.from < 0x80 ? 0x80 : r.from, r.to);
    }
    grammar_step(b, from, single, to);
    if (several.range.n)
        grammar_call(b, from, rule_of(b, &several), to);
}
