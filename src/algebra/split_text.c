/* split_text: the text form of splits, one token without white space.
 *
 *     t4:whole(64)                         every rank holds all of it; also whole(S)
 *     t4:balanced(S)                       as even as possible, at run time
 *     t4:balanced(S/2)[3/2-1](S)           what windows of 3, sliding by 2 from -1, read of S, where S/2 windows are split so
 *     t2:16:0-4,8-10/4-8,10-16             a list: the pattern's length, then the intervals of each rank; - for nothing
 *     t2:8;outer=B;inner=S:0-4/4-8         with repetitions and an inner size (balanced(S);outer=B;inner=64 too)
 */
#include "algebra/cell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- printing ---- */

static const char *scale_str(struct arena *arena, const struct split *s)
{
    const char *outer = "", *inner = "";
    if (!dim_equals(s->outer, 1))
        outer = arena_printf(arena, ";outer=%s", dim_str_compact(arena, s->outer));
    if (!dim_equals(s->inner, 1))
        inner = arena_printf(arena, ";inner=%s", dim_str_compact(arena, s->inner));
    return arena_printf(arena, "%s%s", outer, inner);
}

struct line {
    struct arena *arena;
    VEC(char) s;
};

static void write_word(struct line *l, const char *s)
{
    for (; *s; s++)
        VEC_PUSH(l->arena, &l->s, *s);
}

static void write_index(struct line *l, int64_t index)
{
    char text[24], *at = text + sizeof text - 1;
    for (*at = 0; index >= 10; index /= 10)
        *--at = (char)('0' + index % 10);
    *--at = (char)('0' + index);
    write_word(l, at);
}

static void put_interval(struct line *l, struct interval v, bool first)
{
    write_word(l, first ? "" : ",");
    write_index(l, v.lo);
    write_word(l, "-");
    write_index(l, v.hi);
}

static const char *list_str(struct arena *arena, const struct split *s)
{
    struct line l = {.arena = arena};
    for (int r = 0; r < s->ranks; r++) {
        write_word(&l, r ? "/" : "");
        write_word(&l, s->count[r] ? "" : "-");
        for (int i = 0; i < s->count[r]; i++)
            put_interval(&l, s->list[r][i], i == 0);
    }
    VEC_PUSH(arena, &l.s, 0);
    return l.s.at;
}

char *split_str(struct arena *arena, const struct split *s)
{
    const char *n = dim_str_compact(arena, s->n);
    if (s->replicated)
        return arena_printf(arena, "t%d:whole(%s)", s->ranks, dim_str_compact(arena, dim_equals(s->inner, 1) ? s->n : s->inner));
    if (s->reads)
        return arena_printf(arena, "t%d:balanced(%s)[%lld/%lld-%lld](%s)", s->ranks, n, (long long)s->reads->reach,
                            (long long)s->reads->stride, (long long)s->reads->pad, dim_str_compact(arena, s->reads->size));
    if (s->balanced)
        return arena_printf(arena, "t%d:balanced(%s)%s", s->ranks, n, scale_str(arena, s));
    return arena_printf(arena, "t%d:%s%s:%s", s->ranks, n, scale_str(arena, s), list_str(arena, s));
}

/* ---- parsing ---- */

enum { MOST_RANKS = 1 << 16 };

struct split_reader {
    struct alg *alg;
    const char *at;
    const char *error;
};

static bool split_error(struct split_reader *r, const char *what)
{
    if (!r->error)
        r->error = what;
    return false;
}

static bool take_word(struct split_reader *r, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static bool read_i64(struct split_reader *r, int64_t *out)
{
    int64_t k = 0;
    if (!isdigit((unsigned char)*r->at))
        return split_error(r, "a split lacks a number");
    for (; isdigit((unsigned char)*r->at); r->at++)
        if (!i64_mul(k, 10, &k) || !i64_add(k, *r->at - '0', &k))
            return split_error(r, "a number in a split does not fit 64 bits");
    *out = k;
    return true;
}

static const struct dim *read_size(struct split_reader *r)
{
    const struct dim *d = dim_parse_at(r->alg, &r->at, 1, &r->error);
    if (d && d->hi < 0)
        (void)split_error(r, "a size in a split is negative");
    return d && d->hi >= 0 ? d : NULL;
}

/* ";outer=..", ";inner=..", each optional. */
static bool read_scale(struct split_reader *r, const struct dim **outer, const struct dim **inner)
{
    *outer = *inner = dim_int(r->alg, 1);
    if (take_word(r, ";outer="))
        *outer = read_size(r);
    if (*outer && take_word(r, ";inner="))
        *inner = read_size(r);
    return *outer && *inner;
}

struct interval_list {
    VEC(struct interval) list;
};

static bool read_intervals(struct split_reader *r, int64_t n, struct interval_list *held)
{
    struct interval v;
    if (take_word(r, "-"))
        return true;
    do {
        if (!read_i64(r, &v.lo) || !(take_word(r, "-") || split_error(r, "an interval lacks -")) || !read_i64(r, &v.hi))
            return false;
        if (v.lo >= v.hi || v.hi > n)
            return split_error(r, "an interval is empty or ends after the pattern");
        VEC_PUSH(r->alg->arena, &held->list, v);
    } while (take_word(r, ","));
    return true;
}

static const struct split *read_list(struct split_reader *r, int ranks)
{
    int64_t n;
    const struct dim *outer, *inner;
    int *count = NEWN(r->alg->arena, int, ranks);
    const struct interval **list = NEWN(r->alg->arena, const struct interval *, ranks);
    if (!read_i64(r, &n) || !read_scale(r, &outer, &inner))
        return NULL;
    for (int i = 0; i < ranks; i++) {
        struct interval_list held = {0};
        if (!take_word(r, i ? "/" : ":")) {
            (void)split_error(r, "a split has too few ranks");
            return NULL;
        }
        if (!read_intervals(r, n, &held))
            return NULL;
        count[i] = held.list.n;
        list[i] = held.list.at;
    }
    return split_scale(r->alg, split_list(r->alg, ranks, n, count, list), outer, inner);
}

static const struct split *read_replicated(struct split_reader *r, int ranks)
{
    const struct dim *n = read_size(r);
    if (!n || !take_word(r, ")"))
        return NULL;
    return split_replicated(r->alg, ranks, n);
}

/* Behind "[". Numbers of 31 bits, so that products with sizes fit. */
static const struct split *read_windows(struct split_reader *r, int ranks, const struct dim *n)
{
    struct sliding w = {.per = 1};
    if (!read_i64(r, &w.reach) || !take_word(r, "/") || !read_i64(r, &w.stride) || !take_word(r, "-") || !read_i64(r, &w.pad) ||
        !take_word(r, "](") || !(w.size = read_size(r)) || !take_word(r, ")"))
        return NULL;
    if (w.reach < 1 || w.stride < 1 || w.reach > INT32_MAX || w.stride > INT32_MAX || w.pad > INT32_MAX) {
        (void)split_error(r, "windows of a split are out of range");
        return NULL;
    }
    return split_windows(r->alg, split_even(r->alg, ranks, n), &w);
}

static const struct split *read_balanced(struct split_reader *r, int ranks)
{
    const struct dim *n = read_size(r), *outer, *inner;
    if (!n || !take_word(r, ")"))
        return NULL;
    if (take_word(r, "["))
        return read_windows(r, ranks, n);
    if (!read_scale(r, &outer, &inner))
        return NULL;
    return split_scale(r->alg, split_even(r->alg, ranks, n), outer, inner);
}

static const struct split *read_pattern(struct split_reader *r)
{
    int64_t ranks;
    if (!take_word(r, "t") || !read_i64(r, &ranks) || ranks < 1 || ranks > MOST_RANKS || !take_word(r, ":")) {
        (void)split_error(r, "a split does not start with its number of ranks, as t4:");
        return NULL;
    }
    return take_word(r, "whole(")   ? read_replicated(r, (int)ranks)
        : take_word(r, "balanced(") ? read_balanced(r, (int)ranks)
                                    : read_list(r, (int)ranks);
}

const struct split *split_parse(struct alg *alg, const char *text, const char **error)
{
    struct split_reader r = {.alg = alg, .at = text};
    const struct split *s = read_pattern(&r);
    if (!s)
        (void)split_error(&r, "a split is not well formed");
    else if (*r.at) {
        (void)split_error(&r, "something follows the split");
        s = NULL;
    }
    if (!s && error)
        *error = r.error;
    return s;
}
