/* rule_print: factor rules as text (op/rule/rule.h). */
#include "op/rule/rule.h"

#include <inttypes.h>
#include <stdlib.h>

/* met: factors in the order of their first mention, which is the order of their notes. */
struct rule_printer {
    struct arena *arena;
    const struct rule *rule;
    const char *text;
    int nmet, *met;
};

static void print_note(struct rule_printer *p, const char *piece)
{
    p->text = arena_printf(p->arena, "%s%s", p->text, piece);
}

static void meet(struct rule_printer *p, int f)
{
    for (int i = 0; i < p->nmet; i++)
        if (p->met[i] == f)
            return;
    p->met[p->nmet++] = f;
}

static void say_factor(struct rule_printer *p, int f)
{
    meet(p, f);
    const struct factor *factor = &p->rule->factor[f];
    print_note(p, factor->flags & FACTOR_REPLICATED ? "!" : "");
    print_note(p, factor->flags & FACTOR_POSITION ? "@" : "");
    print_note(p, factor->name);
}

static void say_part(struct rule_printer *p, const struct rule_part *part)
{
    if (part->n == 0)
        print_note(p, "1");
    if (part->n > 1)
        print_note(p, "(");
    for (int i = 0; i < part->n; i++) {
        print_note(p, i ? " " : "");
        say_factor(p, part->factor[i]);
    }
    if (part->n > 1)
        print_note(p, ")");
}

static void say_dim(struct rule_printer *p, const struct rule_dim *dim)
{
    if (dim->n == 0)
        print_note(p, "1");
    for (int i = 0; i < dim->n; i++) {
        print_note(p, i ? "|" : "");
        say_part(p, &dim->part[i]);
    }
    const struct sliding *w = dim->window;
    const char *per = w && w->per != 1 ? arena_printf(p->arena, ":%" PRId64, w->per) : "";
    if (w)
        print_note(p, arena_printf(p->arena, "[%" PRId64 "/%" PRId64 "%s-%" PRId64 "]", w->reach, w->stride, per, w->pad));
}

static void say_operands(struct rule_printer *p, int n, const struct rule_operand *operand)
{
    for (int i = 0; i < n; i++) {
        if (!operand[i].present) {
            print_note(p, "-");
            continue;
        }
        print_note(p, operand[i].addend ? "+(" : "(");
        for (int d = 0; d < operand[i].rank; d++) {
            print_note(p, d ? " " : "");
            say_dim(p, &operand[i].dim[d]);
        }
        print_note(p, ")");
    }
}

/* Whether some dimension is exactly the factor, so that its size is in a type. */
static bool stands_alone(const struct rule *r, int f)
{
    for (int i = 0; i < r->nin + r->nout; i++) {
        const struct rule_operand *o = i < r->nin ? &r->in[i] : &r->out[i - r->nin];
        for (int d = 0; o->present && d < o->rank; d++)
            if (o->dim[d].n == 1 && o->dim[d].part[0].n == 1 && o->dim[d].part[0].factor[0] == f)
                return true;
    }
    return false;
}

const struct flag_name rule_flag[RULE_FLAGS] = {
    {FACTOR_CONTRACTED, "contracted"}, {FACTOR_DROPPED, "dropped"}, {FACTOR_HEADS, "heads"},
    {FACTOR_LOWERED, "lowered"},       {FACTOR_ORDERED, "ordered"},
};

static void say_note(struct rule_printer *p, int f)
{
    const struct factor *factor = &p->rule->factor[f];
    const char *note = factor->red == RED_NONE ? "" : arena_printf(p->arena, " %s", redop_name(factor->red));
    for (int i = 0; i < RULE_FLAGS; i++)
        if (factor->flags & rule_flag[i].flag)
            note = arena_printf(p->arena, "%s %s", note, rule_flag[i].name);
    if (!stands_alone(p->rule, f))
        note = arena_printf(p->arena, "%s size %s", note, dim_str(p->arena, factor->size));
    if (*note)
        print_note(p, arena_printf(p->arena, "  %s:%s", factor->name, note));
}

/* Prints the members of a set of operands, with `joint` between them. */
static void say_set(struct rule_printer *p, const char *before, uint32_t set, const char *joint)
{
    for (int k = 0; k < 32; k++)
        if (set >> k & 1) {
            print_note(p, arena_printf(p->arena, "%s%d", before, k));
            before = joint;
        }
}

static void say_passes(struct rule_printer *p)
{
    for (int i = 0; i < p->rule->nlinear; i++)
        say_set(p, i ? ", " : "  linear ", p->rule->linear[i], "+");
    if (p->rule->moves)
        print_note(p, "  moves");
    say_set(p, "  increasing ", p->rule->increasing, ", ");
    say_set(p, "  decreasing ", p->rule->decreasing, ", ");
    if (p->rule->extremal)
        say_set(p, arena_printf(p->arena, "  %s-linear ", redop_name(p->rule->extremum)), p->rule->extremal, "+");
}

static void say_names(struct rule_printer *p, const char *what, int n, const int *f)
{
    print_note(p, what);
    for (int i = 0; i < n; i++)
        print_note(p, arena_printf(p->arena, " %s", p->rule->factor[f[i]].name));
}

char *rule_str(struct arena *arena, const struct rule *r)
{
    struct rule_printer p = {.arena = arena, .rule = r, .text = "", .met = NEWN(arena, int, r->nfactor + 1)};
    say_operands(&p, r->nin, r->in);
    print_note(&p, " -> ");
    say_operands(&p, r->nout, r->out);
    for (int f = 0; f < r->nfactor; f++)
        meet(&p, f);
    for (int i = 0; i < p.nmet; i++)
        say_note(&p, p.met[i]);
    say_passes(&p);
    if (r->ngroup > 0)
        say_names(&p, "  group", r->ngroup, r->group);
    if (r->query_outer >= 0)
        say_names(&p, "  query", 2, (const int[]){r->query_outer, r->query_inner});
    for (int i = 0; i < r->nsize; i++) {
        print_note(&p, arena_printf(arena, "  %s = ", r->size[i].attr));
        say_part(&p, &r->size[i].part);
    }
    return arena_strdup(arena, p.text);
}
