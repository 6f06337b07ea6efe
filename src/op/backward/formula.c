/* formula: gradients as formulas (back_formula): + - * / with their usual precedence, calls of ops, comparisons and selections. */
#include "ir/text/text.h"
#include "op/backward/backward.h"

#include <string.h>

enum { MOST_NAMES = 8 };

/* A value, or a number that is untyped until an op reads it: then it has the type of operand 0. */
struct term {
    struct value *value;
    double number;
};
struct formula {
    struct backward *b;
    struct lexer lex;
    int names;
    const char *name[MOST_NAMES];
    struct term is[MOST_NAMES];
};

static struct term expression(struct formula *), sum(struct formula *);

static struct value *value_of(struct formula *f, struct term t)
{
    return t.value ? t.value : back_number(f->b, back_operand(f->b, 0), t.number);
}

static struct term made(struct value *v)
{
    return (struct term){.value = v};
}

static struct term binary(struct formula *f, const char *op, struct term x, struct term y)
{
    struct value *a = value_of(f, x);
    return made(back_binary(f->b, op, a, value_of(f, y)));
}

static struct term call(struct formula *f, const char *op)
{
    struct term x = expression(f), t;
    t = lex_accept(&f->lex, ",") ? binary(f, op, x, expression(f)) : made(back_unary(f->b, op, value_of(f, x)));
    lex_expect(&f->lex, ")");
    return t;
}

static struct term named(struct formula *f)
{
    const char *name = lex_name(&f->lex);
    if (lex_accept(&f->lex, "("))
        return call(f, name);
    for (int i = f->names; i-- > 0;)
        if (strcmp(f->name[i], name) == 0)
            return f->is[i];
    bug("%s: the formula '%s' does not say what %s is", f->lex.file, f->lex.start, name);
}

static struct term primary(struct formula *f)
{
    struct term t;
    if (lex_accept(&f->lex, "(")) {
        t = expression(f);
        lex_expect(&f->lex, ")");
        return t;
    }
    if (lex_accept(&f->lex, "@"))
        return (struct term){.number = attr_float(f->b->l.node, lex_name(&f->lex))};
    if (lex_accept(&f->lex, "-")) {
        t = primary(f);
        return t.value ? made(back_unary(f->b, "Neg", t.value)) : (struct term){.number = -t.number};
    }
    return strchr("0123456789", *f->lex.at) ? (struct term){.number = lex_float(&f->lex)} : named(f);
}

static struct term product(struct formula *f)
{
    struct term t = primary(f);
    for (;;) {
        bool times = lex_accept(&f->lex, "*");
        if (!times && !lex_accept(&f->lex, "/"))
            return t;
        struct term by = primary(f);
        if (!t.value && !by.value)
            t.number = times ? t.number * by.number : t.number / by.number;
        else
            t = binary(f, times ? "Mul" : "Div", t, by);
    }
}

static struct term sum(struct formula *f)
{
    struct term t = product(f);
    for (;;) {
        bool plus = lex_accept(&f->lex, "+");
        if (!plus && !lex_accept(&f->lex, "-"))
            return t;
        t = binary(f, plus ? "Add" : "Sub", t, product(f));
    }
}

/* a > b ? x : y */
static struct term expression(struct formula *f)
{
    struct term t = sum(f);
    bool more = lex_accept(&f->lex, ">");
    if (more || lex_accept(&f->lex, "<"))
        t = binary(f, more ? "Greater" : "Less", t, sum(f));
    if (!lex_accept(&f->lex, "?"))
        return t;
    struct value *yes = value_of(f, expression(f));
    lex_expect(&f->lex, ":");
    return made(lower_where(&f->b->l, "Where", t.value, yes, value_of(f, expression(f))));
}

static void let(struct formula *f, const char *name, struct term t)
{
    require(f->names < MOST_NAMES);
    f->name[f->names] = name;
    f->is[f->names++] = t;
}

void back_formula(struct backward *b, const char *text)
{
    struct formula f = {.b = b, .lex = {b->l.g->arena, b->l.node->optype, text, text}};
    let(&f, "x", made(back_operand(b, 0)));
    let(&f, "z", made(back_operand(b, 1)));
    let(&f, "y", made(b->l.node->out[0]));
    let(&f, "dy", made(back_dy(b)));
    while (strchr(f.lex.at, ';')) {
        const char *name = lex_name(&f.lex);
        lex_expect(&f.lex, "=");
        let(&f, name, expression(&f));
        lex_expect(&f.lex, ";");
    }
    const char *at = f.lex.at, *end;
    for (int i = 0; at; i++, at = end ? end + 1 : NULL) {
        end = strchr(at, '|');
        f.lex.at = at;
        if (!back_wants(b, i))
            continue;
        back_to(b, i, value_of(&f, expression(&f)));
        require(end ? lex_accept(&f.lex, "|") : lex_end(&f.lex));
    }
}
