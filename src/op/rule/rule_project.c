/* rule_project: computes the placements of all operands and results from an assignment of split factors: the only code that converts a
 * factor's split to a tensor dimension's.
 *
 * A factor's split is scaled by the factors around it in its part; parts are concatenated. A product of factors split as one is first
 * reduced to a single factor if it divides ("whole groups" or "the same heads of every group"); if not, an operand must have the whole
 * product, or only its leading factors, which then take the image of the split (KV heads repeated). */
#include "op/rule/rule.h"

struct projection {
    struct graph *g;
    const struct rule *rule;
    int ranks;
    const struct split **split; /* by factor; NULL: not split */
    int nproduct;               /* 0 if the product was reduced to a factor */
    const int *product;
    const struct split *product_split;
    const char *why; /* why it is not legal; NULL: unknown */
};

static bool refused(struct projection *p, const char *why)
{
    p->why = why;
    return false;
}

static const struct split *scaled_split(const struct projection *p, const struct split *s, const struct rule_part *part, int from, int to)
{
    return split_scale(p->g->alg, s, rule_sizes(p->g, p->rule, part->factor, 0, from),
                       rule_sizes(p->g, p->rule, part->factor, to, part->n));
}

/* ---- a part ------------------------------------------------------------------------------------------------------------ */

static int part_find(const struct rule_part *part, int factor)
{
    for (int i = 0; i < part->n; i++)
        if (part->factor[i] == factor)
            return i;
    return -1;
}

/* How many leading factors of the product are adjacent in the part from position `at`. */
static int product_prefix(const struct projection *p, const struct rule_part *part, int at)
{
    int n = 0;
    while (n < p->nproduct && at + n < part->n && part->factor[at + n] == p->product[n])
        n++;
    return n;
}

static bool in_product(const struct projection *p, int factor)
{
    for (int i = 0; i < p->nproduct; i++)
        if (p->product[i] == factor)
            return true;
    return false;
}

static int product_members(const struct projection *p, const struct rule_part *part)
{
    int n = 0;
    for (int i = 0; i < part->n; i++)
        n += in_product(p, part->factor[i]);
    return n;
}

/* The product's split in a part that has members of it; false: they are not adjacent from the outermost. */
static bool product_in_part(struct projection *p, const struct rule_part *part, int members, const struct split **out)
{
    int at = part_find(part, p->product[0]);
    if (at < 0 || product_prefix(p, part, at) != members)
        return refused(p, "an operand or result has the factors split as one in several dimensions");
    const struct split *s = p->product_split;
    if (members < p->nproduct) {
        int64_t group;
        if (!dim_is_int(rule_sizes(p->g, p->rule, p->product, members, p->nproduct), &group) || group < 1)
            return refused(p, "a group of unknown size would be split");
        s = split_image(p->g->alg, s, group);
    }
    *out = s ? scaled_split(p, s, part, at, at + members) : NULL;
    return s ? true : refused(p, "its groups have no list of intervals");
}

/* *out NULL: the part is not split. False: no split of the part corresponds to the assignment. */
static bool part_split(struct projection *p, const struct rule_part *part, const struct split **out)
{
    *out = NULL;
    int members = product_members(p, part), found = members > 0;
    if (members > 0 && !product_in_part(p, part, members, out))
        return false;
    for (int i = 0; i < part->n; i++) {
        const struct split *s = p->split[part->factor[i]];
        if (!s)
            continue;
        if (found++)
            return refused(p, "two factors of one dimension would be split");
        *out = scaled_split(p, s, part, i, i + 1);
        if (!*out)
            return refused(p, "a rank would hold too many intervals");
    }
    return true;
}

/* ---- a dimension, an operand --------------------------------------------------------------------------------------------- */

static bool window_split(struct projection *p, const struct rule_dim *dim, const struct split **out)
{
    const struct split *s = p->split[dim->part[0].factor[0]];
    *out = s ? split_windows(p->g->alg, s, dim->window) : NULL;
    return !s || *out ? true : refused(p, "a rank would not read one range of elements with its windows");
}

static bool dim_split(struct projection *p, const struct rule_dim *dim, const struct split **out)
{
    *out = NULL;
    if (dim->window)
        return window_split(p, dim, out);
    if (dim->n == 1)
        return part_split(p, &dim->part[0], out);
    const struct split **part = NEWN(p->g->arena, const struct split *, dim->n + 1);
    bool any = false;
    for (int i = 0; i < dim->n; i++) {
        if (!part_split(p, &dim->part[i], &part[i]))
            return false;
        any |= part[i] != NULL;
    }
    if (!any)
        return true;
    for (int i = 0; i < dim->n; i++)
        if (!part[i])
            part[i] = split_replicated(p->g->alg, p->ranks, rule_part_size(p->g, p->rule, &dim->part[i]));
    *out = split_concat(p->g->alg, dim->n, part);
    return *out ? true : refused(p, "parts of dynamic size are concatenated");
}

static bool operand_has(const struct rule_operand *operand, int factor)
{
    for (int d = 0; d < operand->rank; d++)
        for (int i = 0; i < operand->dim[d].n; i++)
            if (part_find(&operand->dim[d].part[i], factor) >= 0)
                return true;
    return false;
}

/* For rows that travel, each rank knows where its own may go. */
static bool travels(const struct projection *p, const struct rule_dim *dim)
{
    int f = rule_lone_factor(dim);
    return f >= 0 && p->rule->factor[f].flags & FACTOR_TRAVELS;
}

static bool project_operand(struct projection *p, const struct rule_operand *operand, struct placement *out)
{
    *out = placement_replicated;
    if (!operand->present)
        return true;
    int dims = 0;
    for (int d = 0; d < operand->rank; d++) {
        const struct split *s;
        if (!dim_split(p, &operand->dim[d], &s))
            return false;
        if (!s || s->replicated || (dims > 0 && travels(p, &operand->dim[d])))
            continue;
        *out = placement_split(d, s);
        if (dims++ > 0)
            return refused(p, "two dimensions of one operand or result would be split");
    }
    return true;
}

/* ---- results that lack a factor ----------------------------------------------------------------- */

/* Factor f, split by s, is absent from the result at *out. */
static bool lose_factor(struct projection *p, int f, const struct split *s, struct placement *out)
{
    const struct factor *factor = &p->rule->factor[f];
    if (factor->flags & FACTOR_TRAVELS && out->kind == PLACE_S)
        return s->partition && out->split->partition ? true : refused(p, "rows that travel would be on several ranks");
    if (factor->red == RED_NONE)
        return factor->flags & FACTOR_DROPPED ? true : refused(p, "a result lacks the split factor and does not reduce over it");
    if (!(factor->red == RED_SUM || factor->red == RED_PROD ? s->partition : s->cover))
        return refused(p, "ranks hold the same elements, which a reduction would count twice");
    if (out->kind == PLACE_S || (out->kind == PLACE_P && out->op != factor->red))
        return refused(p, "a result would be sharded and partial, or partial by two reductions");
    *out = placement_partial(factor->red);
    return true;
}

/* A product that reduces to no single factor: the result may not depend on factors that it lacks. */
static bool lose_of_product(struct projection *p, const struct rule_operand *result)
{
    for (int i = 0; i < p->nproduct; i++)
        if (!operand_has(result, p->product[i]) && !(p->rule->factor[p->product[i]].flags & FACTOR_DROPPED))
            return refused(p, "a result lacks a factor of those split as one");
    return true;
}

static bool project_result(struct projection *p, const struct rule_operand *result, struct placement *out)
{
    if (!project_operand(p, result, out))
        return false;
    if (!result->present)
        return true;
    for (int f = 0; f < p->rule->nfactor; f++)
        if (p->split[f] && !operand_has(result, f) && !lose_factor(p, f, p->split[f], out))
            return false;
    return lose_of_product(p, result);
}

/* An addend counts once: it is partial if a summed factor that it lacks is split. */
static bool project_addend(struct projection *p, const struct rule_operand *term, struct placement *out)
{
    for (int f = 0; f < p->rule->nfactor; f++) {
        if (!p->split[f] || p->rule->factor[f].red == RED_NONE || operand_has(term, f))
            continue;
        if (p->rule->factor[f].red == RED_PROD || out->kind == PLACE_S)
            return refused(p, "an added operand would be sharded and partial, or partial by a product");
        if (p->rule->factor[f].red == RED_SUM)
            *out = placement_partial(RED_SUM);
    }
    return true;
}

/* ---- legal assignments ------------------------------------------------------------------------------------------ */

static bool take_factors(struct projection *p, const struct assignment *assignment)
{
    p->split = NEWN(p->g->arena, const struct split *, p->rule->nfactor + 1);
    for (int f = 0; assignment->factor && f < p->rule->nfactor; f++) {
        const struct split *s = assignment->factor[f];
        if (!s || s->replicated)
            continue;
        if (!rule_factor_splits(&p->rule->factor[f]))
            return refused(p, "the rule keeps the factor replicated");
        if (!s->cover || s->ranks != p->ranks)
            return refused(p, "the ranks do not hold every element");
        if (s->reads)
            return refused(p, "what windows read of a symbolic size is for their node alone");
        p->split[f] = s;
    }
    return true;
}

/* Reduces the product's split to one of a single factor, outermost first: then no image is needed. */
static bool reduce_product(struct projection *p, const struct assignment *assignment)
{
    for (int i = 0; i < assignment->nproduct; i++) {
        int f = assignment->product[i];
        const struct split *s = split_divide(p->g->alg, assignment->product_split, rule_sizes(p->g, p->rule, assignment->product, 0, i),
                                             rule_sizes(p->g, p->rule, assignment->product, i + 1, assignment->nproduct));
        if (!s || p->split[f])
            continue;
        p->split[f] = s->replicated ? NULL : s;
        return true;
    }
    return false;
}

/* Every touched group of g must have equally many heads on the rank, else the local op would pair heads with the wrong group. */
static bool uniform_groups(const struct split *s, int rank, int64_t g)
{
    int64_t group = -1, held = 0, first = -1;
    for (int i = 0; i < s->count[rank]; i++)
        for (int64_t at = s->list[rank][i].lo, hi = s->list[rank][i].hi; at < hi;) {
            int64_t end = (at / g + 1) * g < hi ? (at / g + 1) * g : hi;
            if (at / g != group) {
                if (group >= 0 && first >= 0 && held != first)
                    return false;
                first = group >= 0 ? held : first;
                group = at / g;
                held = 0;
            }
            held += end - at;
            at = end;
        }
    return first < 0 || held == first;
}

/* An attribute that counts only the outer factors cannot give their number if one of them is cut. */
static bool product_fits(struct projection *p)
{
    for (int i = 0; i < p->rule->nsize; i++) {
        int members = product_members(p, &p->rule->size[i].part);
        if (members > 0 && members < p->nproduct)
            return refused(p, "an attribute counts only some of the factors split as one");
    }
    return true;
}

static bool query_groups_fit(struct projection *p)
{
    const struct rule *r = p->rule;
    if (r->query_outer < 0 || p->nproduct != 2 || p->product[0] != r->query_outer || p->product[1] != r->query_inner)
        return product_fits(p);
    int64_t g;
    const struct split *s = p->product_split;
    if (s->balanced || !dim_is_int(r->factor[r->query_inner].size, &g) || g < 1 || !dim_equals(s->outer, 1) || !dim_equals(s->inner, 1))
        return refused(p, "heads and their groups have no list of intervals");
    for (int rank = 0; rank < p->ranks; rank++)
        if (!uniform_groups(s, rank, g))
            return refused(p, "a rank would hold unequal numbers of heads of several groups");
    return true;
}

static bool take_product(struct projection *p, const struct assignment *assignment)
{
    if (assignment->nproduct == 0 || !assignment->product_split || assignment->product_split->replicated)
        return true;
    const struct split *s = assignment->product_split;
    if (!s->cover || s->ranks != p->ranks ||
        split_size(p->g->alg, s) != rule_sizes(p->g, p->rule, assignment->product, 0, assignment->nproduct))
        return refused(p, "the ranks do not hold every element");
    for (int i = 0; i < assignment->nproduct; i++)
        if (!rule_factor_splits(&p->rule->factor[assignment->product[i]]))
            return refused(p, "the rule keeps a factor replicated");
    if (reduce_product(p, assignment))
        return true;
    p->nproduct = assignment->nproduct;
    p->product = assignment->product;
    p->product_split = s;
    return query_groups_fit(p);
}

static bool projection_start(struct projection *p, struct graph *g, const struct rule *r, int ranks, const struct assignment *assignment)
{
    *p = (struct projection){.g = g, .rule = r, .ranks = ranks};
    return take_factors(p, assignment) && take_product(p, assignment);
}

/* ---- entry points ------------------------------------------------------------------------------------------------------------- */

static bool project_all(struct projection *p, struct placement *in, struct placement *out)
{
    const struct rule *r = p->rule;
    for (int i = 0; i < r->nin; i++)
        if (!project_operand(p, &r->in[i], &in[i]) || (r->in[i].addend && !project_addend(p, &r->in[i], &in[i])))
            return false;
    for (int i = 0; i < r->nout; i++)
        if (!project_result(p, &r->out[i], &out[i]))
            return false;
    return true;
}

bool rule_project(struct graph *g, const struct rule *r, int ranks, const struct assignment *assignment, struct placement *in,
                  struct placement *out, const char **why)
{
    struct projection p;
    bool legal = projection_start(&p, g, r, ranks, assignment) && project_all(&p, in, out);
    require(legal || p.why);
    if (why)
        *why = legal ? NULL : p.why;
    return legal;
}

bool rule_travels(const struct rule *r, const struct assignment *c)
{
    int to = 0, split = 0;
    for (int f = 0; c->factor && f < r->nfactor; f++)
        if (c->factor[f] && !c->factor[f]->replicated) {
            split++;
            to += (r->factor[f].flags & FACTOR_TRAVELS) != 0;
        }
    return to > 0 && split > to;
}

const struct split *rule_part_split(struct graph *g, const struct rule *r, int ranks, const struct assignment *assignment,
                                    const struct rule_part *part)
{
    struct projection p;
    const struct split *s = NULL;
    if (!projection_start(&p, g, r, ranks, assignment) || !part_split(&p, part, &s))
        bug("a size attribute has no extent under the assignment (rule %s)", rule_str(g->arena, r));
    return s && !s->replicated ? s : NULL;
}
