/* split_text: the text form of splits, one token without white space.
 *
 *     t4:whole(64)                         every rank holds all of it; also whole(S)
 *     t4:balanced(64)                      as even as possible: the first ranks may hold one more
 *     t4:balanced(S)                       the same, at run time
 *     t3:balanced(S:5,3,2)                 in these shares, at run time: of 100 indices 50, 30 and 20
 *     t2:balanced(8);outer=B;inner=64      with repetitions and an inner size
 *     t4:balanced(8)/4;inner=64            the groups of 4 indices that a rank touches: 2 heads of 64, each on two ranks
 *     t2:balanced(8)|balanced(4)|whole(4)  several consecutive parts
 *     t4:balanced(S/2)[3/2-1](S)           what windows of 3 with stride 2 from -1 read of S, with S/2 windows split evenly
 *     t2:16:0-4,8-10/4-8,10-16             a list: the pattern's length, then the intervals of each rank; - for nothing
 *     t2:8;outer=B;inner=S:0-1/1-8         with repetitions and an inner size
 *
 * A list is printed as parts if it has any. Any list is read. */
#include "algebra/dim/cell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- printing ---- */

/* ";KEY=SIZE" for times * size; nothing if that is 1. */
static const char *size_str(struct arena *arena, const char *key, int64_t times, const struct dim *size)
{
    const char *text = dim_str_compact(arena, size);
    if (dim_equals(size, 1))
        return times == 1 ? "" : arena_printf(arena, ";%s=%lld", key, (long long)times);
    if (times == 1)
        return arena_printf(arena, ";%s=%s", key, text);
    return arena_printf(arena, size->kind == DIM_SYM ? ";%s=%lld*%s" : ";%s=%lld*(%s)", key, (long long)times, text);
}

static const char *scale_str(struct arena *arena, const struct split *s)
{
    return arena_printf(arena, "%s%s", size_str(arena, "outer", 1, s->outer), size_str(arena, "inner", 1, s->inner));
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

static const char *part_str(struct arena *arena, const struct split *s, const struct split_part *e, int64_t times)
{
    if (e->whole)
        return arena_printf(arena, "whole(%lld)", (long long)e->n);
    const char *group = e->group == 1 ? "" : arena_printf(arena, "/%lld", (long long)e->group);
    return arena_printf(arena, "balanced(%lld)%s%s%s", (long long)e->n, group, size_str(arena, "outer", times, s->outer),
                        size_str(arena, "inner", e->inner, s->inner));
}

/* The parts; NULL: none, or with symbolic sizes that their text cannot express. */
static char *parts_str(struct arena *arena, const struct split *s)
{
    bool scaled = !dim_equals(s->outer, 1) || !dim_equals(s->inner, 1);
    if (s->parts == 0 || (scaled && (s->parts > 1 || s->part[0].whole)))
        return NULL;
    const char *text = part_str(arena, s, &s->part[0], s->times);
    for (int i = 1; i < s->parts; i++)
        text = arena_printf(arena, "%s|%s", text, part_str(arena, s, &s->part[i], 1));
    return arena_printf(arena, "t%d:%s", s->ranks, text);
}

/* ":5,3,2"; nothing for equal shares. */
static const char *shares_str(struct arena *arena, const struct shares *s)
{
    struct line l = {.arena = arena};
    for (int r = 0; s && r < s->ranks; r++) {
        write_word(&l, r ? "," : ":");
        write_index(&l, s->from[r + 1] - s->from[r]);
    }
    VEC_PUSH(arena, &l.s, 0);
    return l.s.at;
}

char *split_str(struct arena *arena, const struct split *s)
{
    const char *n = dim_str_compact(arena, s->n), *shares = shares_str(arena, s->shares);
    if (s->replicated)
        return arena_printf(arena, "t%d:whole(%s)", s->ranks, dim_str_compact(arena, dim_equals(s->inner, 1) ? s->n : s->inner));
    if (s->reads)
        return arena_printf(arena, "t%d:balanced(%s%s)[%lld/%lld-%lld](%s)", s->ranks, n, shares, (long long)s->reads->reach,
                            (long long)s->reads->stride, (long long)s->reads->pad, dim_str_compact(arena, s->reads->size));
    if (s->balanced)
        return arena_printf(arena, "t%d:balanced(%s%s)%s", s->ranks, n, shares, scale_str(arena, s));
    char *parts = parts_str(arena, s);
    return parts ? parts : arena_printf(arena, "t%d:%s%s:%s", s->ranks, n, scale_str(arena, s), list_str(arena, s));
}

/* ---- parsing ---- */

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

/* After "[". Numbers of 31 bits, so that products with sizes fit. */
static const struct split *read_windows(struct split_reader *r, const struct split *windows)
{
    struct sliding w = {.per = 1};
    if (!read_i64(r, &w.reach) || !take_word(r, "/") || !read_i64(r, &w.stride) || !take_word(r, "-") || !read_i64(r, &w.pad) ||
        !take_word(r, "](") || !(w.size = read_size(r)) || !take_word(r, ")"))
        return NULL;
    if (w.reach < 1 || w.stride < 1 || w.reach > INT32_MAX || w.stride > INT32_MAX || w.pad > INT32_MAX) {
        (void)split_error(r, "windows of a split are out of range");
        return NULL;
    }
    return split_windows(r->alg, windows, &w);
}

/* "/GROUP": the groups that each rank touches. */
static const struct split *read_groups(struct split_reader *r, const struct split *s)
{
    int64_t group;
    if (!take_word(r, "/"))
        return s;
    return read_i64(r, &group) ? split_image(r->alg, s, group) : NULL;
}

/* ":5,3,2", optional. */
static bool read_shares(struct split_reader *r, int ranks, const struct shares **out)
{
    int64_t *share = NEWN(r->alg->arena, int64_t, ranks), sum = 0;
    *out = NULL;
    if (!take_word(r, ":"))
        return true;
    for (int i = 0; i < ranks; i++) {
        if ((i > 0 && !take_word(r, ",")) || !read_i64(r, &share[i]) || share[i] > SHARES_SUM)
            return split_error(r, "shares of a split are not a whole number for each rank, at most 1048576");
        sum += share[i];
    }
    if (*r->at == ',')
        return split_error(r, "a split has more shares than ranks");
    if (sum < 1 || sum > SHARES_SUM)
        return split_error(r, "shares of a split are all 0, or too large");
    *out = alg_shares(r->alg, ranks, share);
    return true;
}

static const struct split *read_balanced(struct split_reader *r, int ranks)
{
    const struct dim *n = read_size(r), *outer, *inner;
    const struct shares *shares;
    if (!n || !read_shares(r, ranks, &shares) || !take_word(r, ")"))
        return NULL;
    const struct split *whole = split_shared(r->alg, ranks, shares, n);
    if (take_word(r, "["))
        return read_windows(r, whole);
    const struct split *s = read_groups(r, whole);
    if (!s || !read_scale(r, &outer, &inner))
        return NULL;
    return split_scale(r->alg, s, outer, inner);
}

static const struct split *read_part(struct split_reader *r, int ranks)
{
    return take_word(r, "whole(") ? read_replicated(r, ranks) : take_word(r, "balanced(") ? read_balanced(r, ranks) : NULL;
}

static const struct split *read_parts(struct split_reader *r, int ranks)
{
    const struct split *part[SPLIT_PARTS];
    int n = 0;
    do {
        if (n == SPLIT_PARTS) {
            (void)split_error(r, "a split has too many parts");
            return NULL;
        }
        if (!(part[n++] = read_part(r, ranks)))
            return NULL;
    } while (take_word(r, "|"));
    return n == 1 ? part[0] : split_concat(r->alg, n, part);
}

static const struct split *read_pattern(struct split_reader *r)
{
    int64_t ranks;
    if (!take_word(r, "t") || !read_i64(r, &ranks) || ranks < 1 || ranks > PLAN_RANKS || !take_word(r, ":")) {
        (void)split_error(r, "a split does not start with its number of ranks, as t4:");
        return NULL;
    }
    return isdigit((unsigned char)*r->at) ? read_list(r, (int)ranks) : read_parts(r, (int)ranks);
}

static const struct split *read_split(struct alg *alg, const char *text, const char **error)
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

/* After a further equation, the text may mean another split. */
struct split_text {
    const char *text;
    const struct split *split;
    int epoch;
    UT_hash_handle hh;
};

const struct split *split_parse(struct alg *alg, const char *text, const char **error)
{
    struct split_text *known;
    HASH_FIND(hh, alg->texts, text, strlen(text), known);
    if (known && known->epoch == alg->epoch)
        return known->split;
    const struct split *s = read_split(alg, text, error);
    if (!s)
        return NULL;
    if (!known) {
        known = NEW(alg->arena, struct split_text);
        known->text = arena_strdup(alg->arena, text);
        HASH_ADD_KEYPTR(hh, alg->texts, known->text, strlen(text), known);
    }
    known->split = s;
    known->epoch = alg->epoch;
    return s;
}
