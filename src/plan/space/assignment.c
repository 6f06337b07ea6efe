/* assignment: the splits of a node's factors that give one of its dimensions a given split.
 *
 * A dimension of one part is a product of factors. The split falls on one factor, or on several adjoining factors together, if it divides
 * by the sizes inside and outside. In a dimension of several concatenated parts, each part takes its share of the split. Factors of a group
 * split together: the others take the same fractions, a candidate that covers them, or stay replicated. */
#include "op/rule/rule.h"
#include "plan/facts/facts.h"
#include "plan/space/space.h"

#include <string.h>

struct assignment assignment_none(struct space *s, const struct rule *r)
{
    return (struct assignment){.factor = NEWN(s->tmp, const struct split *, r->nfactor + 1)};
}

static struct assignment assignment_copy(struct space *s, const struct rule *r, const struct assignment *from)
{
    struct assignment out = *from;
    out.factor = assignment_none(s, r).factor;
    memcpy(out.factor, from->factor, sizeof *out.factor * (size_t)r->nfactor);
    return out;
}

static const struct dim *product_size(struct space *s, const struct rule *r, const int *factor, int n)
{
    const struct dim *size = dim_int(s->g->alg, 1);
    for (int i = 0; i < n; i++)
        size = dim_mul(s->g->alg, size, r->factor[factor[i]].size);
    return size;
}

static bool factor_fixed(const struct factor *f)
{
    return !rule_factor_splits(f) || dim_equals(f->size, 1);
}

/* Gives the split to factors [from, to] of the part. Returns false if one of them has another split already. */
static bool assign_run(struct assignment *c, const struct rule_part *p, int from, int to, const struct split *split)
{
    require(from <= to && to < p->n && to - from < MAX_RANK);
    if (from == to) {
        if (c->factor[p->factor[from]] && c->factor[p->factor[from]] != split)
            return false;
        c->factor[p->factor[from]] = split;
        return true;
    }
    if (c->nproduct)
        return c->nproduct == to - from + 1 && c->product_split == split &&
            memcmp(c->product, p->factor + from, sizeof(int) * (size_t)c->nproduct) == 0;
    c->nproduct = to - from + 1;
    memcpy(c->product, p->factor + from, sizeof(int) * (size_t)c->nproduct);
    c->product_split = split;
    return true;
}

static bool run_fixed(const struct rule *r, const struct rule_part *p, int from, int to)
{
    for (int i = from; i <= to; i++)
        if (factor_fixed(&r->factor[p->factor[i]]))
            return true;
    return false;
}

/* Appends one assignment per run of factors that the split divides, shortest runs first; base: what the other parts have already. */
static void part_assignments(struct space *s, const struct rule *r, const struct rule_part *p, const struct split *split,
                             const struct assignment *base, struct assignments *out)
{
    for (int len = 1; len <= p->n; len++)
        for (int from = 0; from + len <= p->n; from++) {
            if (run_fixed(r, p, from, from + len - 1))
                continue;
            const struct split *q = split_divide(s->g->alg, split, product_size(s, r, p->factor, from),
                                                 product_size(s, r, p->factor + from + len, p->n - from - len));
            if (!q || q->replicated)
                continue;
            struct assignment c = assignment_copy(s, r, base);
            if (assign_run(&c, p, from, from + len - 1, q))
                VEC_PUSH(s->tmp, &out->list, c);
            if (len == 1)
                return;
        }
}

/* Whether two splits have the same fractions, or one covers the other. */
static bool shares_agree(struct space *s, const struct split *a, const struct split *b)
{
    int64_t size;
    require(dim_is_int(split_size(s->g->alg, b), &size));
    return split_rescale(s->g->alg, a, size) == b || split_fraction_within(a, b) || split_fraction_within(b, a);
}

/* A dimension of several parts: each part takes its share of the split, by the first assignment that fits. Shares of other fractions (all
 * queries here, all keys there) would be legal but useless and numerous: they give no assignment. */
static void parts_assignment(struct space *s, const struct rule *r, const struct rule_dim *rd, const struct split *split,
                             struct assignments *out)
{
    struct assignment c = assignment_none(s, r);
    const struct split *first = NULL;
    int64_t at = 0, size;
    for (int i = 0; i < rd->n; i++, at += size) {
        if (!dim_is_int(product_size(s, r, rd->part[i].factor, rd->part[i].n), &size))
            return;
        const struct split *share = split_restrict(s->g->alg, split, at, at + size);
        if (!share)
            return;
        if (share->replicated)
            continue;
        if (first && !shares_agree(s, first, share))
            return;
        first = first ? first : share;
        struct assignments one = {0};
        part_assignments(s, r, &rd->part[i], share, &c, &one);
        if (!one.list.n)
            return;
        c = one.list.at[0];
    }
    require(dim_equals(split_size(s->g->alg, split), at)); /* the parts make up the dimension */
    VEC_PUSH(s->tmp, &out->list, c);
}

/* ---- groups ------------------------------------------------------------------------------------------------------------ */

/* The candidates of a factor: those of dimensions that consist of this factor alone. */
static void factor_candidates(struct space *s, int node, int f, struct candidates *out)
{
    for (struct dim_walk w = dim_walk(node); dim_next(s->roles, &w);)
        for (int k = 0; rule_lone_factor(w.rule) == f && k < s->candidates[w.value->id][w.d].list.n; k++)
            VEC_PUSH(s->tmp, &out->list, s->candidates[w.value->id][w.d].list.at[k]);
}

/* Splits that factor f of the group may take together with `split`, best first: the same fractions, covers of them, replicated (NULL). */
static struct candidates group_options(struct space *s, int node, int f, const struct split *split)
{
    struct candidates all = {0}, out = {0};
    int64_t size;
    if (dim_is_int(s->rule[node]->factor[f].size, &size)) {
        const struct split *same = split_rescale(s->g->alg, split, size);
        if (same)
            VEC_PUSH(s->tmp, &out.list, ((struct candidate){.split = same}));
    }
    factor_candidates(s, node, f, &all);
    for (int i = 0; i < all.list.n; i++)
        if (!all.list.at[i].split->balanced && !split->balanced && split_fraction_within(split, all.list.at[i].split))
            VEC_PUSH(s->tmp, &out.list, all.list.at[i]);
    VEC_PUSH(s->tmp, &out.list, ((struct candidate){.split = NULL}));
    return out;
}

static bool factor_in_group(const struct rule *r, int f)
{
    for (int i = 0; i < r->ngroup; i++)
        if (r->group[i] == f)
            return true;
    return false;
}

/* The assignment splits one factor of a group: appends assignments that also split the other factors, with the k-th option of each. */
static void complete_group(struct space *s, int node, const struct assignment *c, int given, struct assignments *out)
{
    const struct rule *r = s->rule[node];
    struct candidates option[8];
    int most = 1;
    require(r->ngroup <= 8 && c->factor[given]);
    for (int i = 0; i < r->ngroup; i++) {
        option[i] = (struct candidates){0};
        if (r->group[i] != given)
            option[i] = group_options(s, node, r->group[i], c->factor[given]);
        if (option[i].list.n > most)
            most = option[i].list.n;
    }
    for (int k = 0; k < most; k++) {
        struct assignment made = assignment_copy(s, r, c);
        for (int i = 0; i < r->ngroup; i++)
            if (r->group[i] != given && !factor_fixed(&r->factor[r->group[i]]))
                made.factor[r->group[i]] = option[i].list.at[k < option[i].list.n ? k : option[i].list.n - 1].split;
        VEC_PUSH(s->tmp, &out->list, made);
    }
}

static int lone_group_factor(const struct rule *r, const struct assignment *c)
{
    int found = -1, count = 0;
    for (int f = 0; f < r->nfactor; f++)
        if (c->factor[f] && factor_in_group(r, f)) {
            found = f;
            count++;
        }
    return count == 1 && r->ngroup > 1 ? found : -1;
}

/* If the assignment splits only rows, and rows can be dispatched: adds an assignment for each split of what they are dispatched to. */
static void add_travelling(struct space *s, int node, const struct assignment *c, struct assignments *out)
{
    const struct rule *r = s->rule[node];
    for (int f = 0; f < r->nfactor; f++) {
        struct candidates to = {0};
        if (!(r->factor[f].flags & FACTOR_TRAVELS) || c->factor[f])
            continue;
        factor_candidates(s, node, f, &to);
        for (int i = 0; i < to.list.n; i++) {
            struct assignment made = assignment_copy(s, r, c);
            made.factor[f] = to.list.at[i].split;
            VEC_PUSH(s->tmp, &out->list, made);
        }
    }
}

struct assignments assignment_list(struct space *s, int node, bool result, int i, int d, const struct split *split)
{
    const struct rule *r = s->rule[node];
    require(r && split->ranks == s->ranks);
    require(i >= 0 && i < (result ? r->nout : r->nin));
    const struct rule_operand *o = result ? &r->out[i] : &r->in[i];
    struct assignments found = {0}, out = {0};
    if (!o->present || d >= o->rank || o->dim[d].n == 0)
        return out;
    const struct rule_dim *rd = &o->dim[d];
    if (rd->window)
        return out; /* a split of windows determines what they read, not the reverse */
    struct assignment none = assignment_none(s, r);
    if (rd->n == 1)
        part_assignments(s, r, &rd->part[0], split, &none, &found);
    else
        parts_assignment(s, r, rd, split, &found);
    for (int k = 0; k < found.list.n; k++) {
        int lone = rd->n == 1 ? lone_group_factor(r, &found.list.at[k]) : -1;
        if (lone >= 0)
            complete_group(s, node, &found.list.at[k], lone, &out);
        else
            VEC_PUSH(s->tmp, &out.list, found.list.at[k]);
        add_travelling(s, node, &found.list.at[k], &out);
    }
    return out;
}

static bool same_assignment(const struct rule *r, const struct assignment *a, const struct assignment *b)
{
    if (a->nproduct != b->nproduct || a->product_split != b->product_split)
        return false;
    for (int i = 0; i < a->nproduct; i++)
        if (a->product[i] != b->product[i])
            return false;
    for (int f = 0; f < r->nfactor; f++)
        if (a->factor[f] != b->factor[f])
            return false;
    return true;
}

bool assignment_is_new(struct space *s, int node, struct tried *tried, const struct assignment *c, bool sequence)
{
    struct assignments *list = &tried->by_sequence[sequence];
    for (int i = 0; i < list->list.n; i++)
        if (same_assignment(s->rule[node], &list->list.at[i], c))
            return false;
    VEC_PUSH(s->tmp, &list->list, *c);
    return true;
}
