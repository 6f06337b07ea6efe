/* compose_text: interprets a composition's text (compositions.def), making nodes as it reads.
 *
 * A branch that is not chosen is parsed without making nodes; so is a whole text to list its ops. */
#include "ir/text/text.h"

#include "onnx/compose/compose.h"

#include <stdlib.h>
#include <string.h>

typedef Onnx__AttributeProto attribute;
#define KIND(name) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##name
enum { MOST_TERMS = 16 };

struct reading {
    struct composer *c;
    struct lexer lex;
    bool skip, left;  /* left: the node stays as it is */
    const char **ops; /* if not NULL, only list the ops here */
    int results, lists;
    const char *result[MOST_TERMS], *list[MOST_TERMS];
    int target; /* the node's result that the outermost call makes; -1: new values, `made` of them */
    size_t made;
    char *more[MOST_TERMS]; /* all its results but the first */
};
typedef struct compose_term term;
static const term absent;

static term expression(struct reading *), primary(struct reading *);

static term data(const attribute *a)
{
    return (term){.data = a};
}

/* ---- names ------------------------------------------------------------------------------------------------------------------------ */

void compose_let(struct composer *c, const char *name, term is)
{
    VEC_PUSH(c->im->tmp, &c->lets, ((struct compose_let){name, is, -1}));
}

/* The latest definition of the name; else an element type. */
static term named(struct reading *r, const char *name)
{
    for (int i = r->c->lets.n; i-- > 0;) {
        const struct compose_let *l = &r->c->lets.at[i];
        if (strcmp(l->name, name) == 0) {
            if (!r->skip && l->operand >= 0)
                (void)compose_input(r->c, (size_t)l->operand);
            return l->is;
        }
    }
    const ProtobufCEnumValue *type = protobuf_c_enum_descriptor_get_value_by_name(&onnx__tensor_proto__data_type__descriptor, name);
    if (!type && r->ops)
        return absent; /* prepare would define it */
    if (!type)
        bug("%s: a composition names '%s', which it does not say", r->lex.file, name);
    return data(compose_int(r->c, name, type->value));
}

/* ---- data ------------------------------------------------------------------------------------------------------------------------- */

static term whole(struct reading *r, int64_t i)
{
    return data(compose_int(r->c, "", i));
}

static term number(struct reading *r)
{
    char *text = lex_number(&r->lex);
    if (!strpbrk(text, ".en"))
        return whole(r, strtoll(text, NULL, 10));
    return data(compose_float(r->c, "", (float)strtod(text, NULL)));
}

/* [1, @k | 0] */
static term list(struct reading *r)
{
    int64_t at[MOST_TERMS];
    size_t n = 0;
    while (!lex_accept(&r->lex, "]")) {
        term t = expression(r);
        require(n < MOST_TERMS && (r->skip || t.data));
        at[n++] = t.data ? t.data->i : 0;
        (void)lex_accept(&r->lex, ",");
    }
    return data(compose_ints(r->c, "", n, at));
}

static bool is_true(term t)
{
    const attribute *a = t.data;
    return t.value || (a && (a->i || a->f < 0 || a->f > 0 || a->s.len || a->n_ints || a->n_floats));
}

static bool same(const attribute *a, const attribute *b)
{
    return a && b && a->i == b->i && !(a->f < b->f || a->f > b->f) && a->s.len == b->s.len &&
        (!a->s.len || memcmp(a->s.data, b->s.data, a->s.len) == 0);
}

/* The value of a term used as an operand: data become a constant. */
static char *operand(struct reading *r, term t)
{
    struct import *im = r->c->im;
    const attribute *a = t.data;
    if (!a || r->skip)
        return t.value;
    switch (decode_found_type(a)) {
    case KIND(INT): return name_scope_whole(im, r->c->scope, "number", DT_I64, a->i);
    case KIND(FLOAT): return name_scope_scalar(im, r->c->scope, "number", (double)a->f);
    case KIND(INTS): return name_scope_ints(im, r->c->scope, "numbers", a->n_ints, a->ints);
    case KIND(FLOATS): return name_scope_floats(im, r->c->scope, "numbers", a->n_floats, a->floats);
    default: fail("%s: %s gives attribute '%s' another kind than the op has", im->path, r->c->where, proto_text_or(a->name, ""));
    }
}

/* ---- attributes of the node -------------------------------------------------------------------------------------------------------- */

/* @list[k]: absent past the end. */
static term element(struct reading *r, const attribute *a)
{
    size_t k = (size_t)lex_int(&r->lex, 0, MOST_TERMS);
    lex_expect(&r->lex, "]");
    return a && k < a->n_floats ? data(compose_float(r->c, "", a->floats[k])) : absent;
}

/* @body(x): the body's result for x; x where there is no body. */
static term inlined(struct reading *r, const char *name, const attribute *a)
{
    char *x = operand(r, expression(r)), *y = x;
    lex_expect(&r->lex, ")");
    if (a)
        compose_body(r->c, name, 1, &x, 1, &y);
    return (term){.value = y};
}

static term attribute_of_node(struct reading *r)
{
    const char *name = lex_name(&r->lex);
    const attribute *a = r->skip ? NULL : proto_attribute(r->c->node, name);
    if (lex_accept(&r->lex, "["))
        return element(r, a);
    if (lex_accept(&r->lex, "("))
        return inlined(r, name, a);
    return data(a);
}

/* given @attribute, given result */
static term given(struct reading *r)
{
    if (lex_accept(&r->lex, "@"))
        return whole(r, attribute_of_node(r).data != NULL);
    int k = NAMED_AT(r->result, r->results, lex_name(&r->lex));
    require(k >= 0);
    return whole(r, compose_gives(r->c->node, (size_t)k));
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------------- */

/* <axis = 1, @group>: absent attributes are left out. */
static size_t attributes(struct reading *r, attribute **at)
{
    size_t n = 0;
    while (!lex_accept(&r->lex, ">")) {
        bool own = lex_accept(&r->lex, "@");
        char *name = lex_name(&r->lex);
        if (!own)
            lex_expect(&r->lex, "=");
        const attribute *a = own ? proto_attribute(r->c->node, name) : expression(r).data;
        require(n < MOST_TERMS);
        if (a) {
            at[n] = NEW(r->c->im->tmp, attribute);
            *at[n] = *a;
            at[n++]->name = name;
        }
        (void)lex_accept(&r->lex, ",");
    }
    return n;
}

static void note_op(struct reading *r, const char *op)
{
    if (r->ops && !compose_lists(*r->ops, op))
        *r->ops = **r->ops ? arena_printf(r->c->im->tmp, "%s, %s", *r->ops, op) : op;
}

static term call(struct reading *r, const char *op)
{
    attribute *attr[MOST_TERMS];
    char *in[MOST_TERMS];
    size_t nin = 0, nattr, made = r->made;
    int target = r->target;
    r->target = -1;
    r->made = 1;
    nattr = lex_accept(&r->lex, "<") ? attributes(r, attr) : 0;
    lex_expect(&r->lex, "(");
    while (!lex_accept(&r->lex, ")")) {
        require(nin < MOST_TERMS);
        in[nin++] = operand(r, expression(r));
        (void)lex_accept(&r->lex, ",");
    }
    note_op(r, op);
    if (r->skip)
        return absent;
    if (target < 0)
        return (term){.value = compose_node_of(r->c, op, nin, in, nattr, attr, made, r->more)};
    if (target > 0)
        compose_also(r->c, (size_t)target, op, nin, in);
    else
        compose_become_with(r->c, op, nin, in, nattr, attr);
    return absent;
}

/* ---- expressions ------------------------------------------------------------------------------------------------------------------- */

static term leave(struct reading *r)
{
    r->left = r->left || !r->skip;
    r->skip = true;
    return absent;
}

static term refuse(struct reading *r)
{
    const attribute *a = primary(r).data;
    if (!r->skip)
        fail("%s: %s has activation '%.*s', which tpc does not handle", r->c->im->path, r->c->where, a ? (int)a->s.len : 0,
             a ? (const char *)a->s.data : "");
    return absent;
}

/* An integer where an op needs a float. */
static term as_float(struct reading *r)
{
    const attribute *a = primary(r).data;
    return a ? data(compose_float(r->c, "", (float)a->i)) : absent;
}

static const struct {
    const char *word;
    term (*read)(struct reading *);
} words[] = {{"float", as_float}, {"given", given}, {"leave", leave}, {"refuse", refuse}};

static term word(struct reading *r)
{
    const char *name = lex_name(&r->lex);
    int i = NAMED_ROW(words, name);
    if (i >= 0)
        return words[i].read(r);
    lex_space(&r->lex);
    return *r->lex.at == '(' || *r->lex.at == '<' ? call(r, name) : named(r, name);
}

static term primary(struct reading *r)
{
    if (lex_accept(&r->lex, "@"))
        return attribute_of_node(r);
    if (lex_accept(&r->lex, "["))
        return list(r);
    if (lex_at_quote(&r->lex))
        return data(compose_string(r->c, "", lex_quoted(&r->lex)));
    return strchr("-.0123456789", *r->lex.at) ? number(r) : word(r);
}

/* The next expression; makes nodes only if due. */
static term when(struct reading *r, bool due, term (*next)(struct reading *))
{
    const struct reading before = *r;
    r->skip = before.skip || !due;
    term t = next(r);
    r->skip = before.skip || r->left;
    if (due)
        return t;
    r->target = before.target;
    r->made = before.made;
    return absent;
}

/* a | b: a if present, else b. */
static term either(struct reading *r)
{
    term t = primary(r);
    bool there = t.value || t.data;
    if (!lex_accept(&r->lex, "|"))
        return t;
    term other = when(r, !there, either);
    return there ? t : other;
}

static term compared(struct reading *r)
{
    term t = either(r);
    if (lex_accept(&r->lex, "=="))
        return whole(r, same(t.data, either(r).data));
    if (lex_accept(&r->lex, "!="))
        return whole(r, !same(t.data, either(r).data));
    if (!lex_accept(&r->lex, "<"))
        return t;
    const attribute *most = either(r).data;
    return whole(r, t.data && most && t.data->i < most->i);
}

/* condition ? a : b; without b it is absent. */
static term expression(struct reading *r)
{
    term t = compared(r), chosen, other = absent;
    if (!lex_accept(&r->lex, "?"))
        return t;
    bool is = is_true(t);
    chosen = when(r, is, expression);
    if (lex_accept(&r->lex, ":"))
        other = when(r, !is, expression);
    return is ? chosen : other;
}

/* ---- statements -------------------------------------------------------------------------------------------------------------------- */

/* leave if a or b */
static void guard(struct reading *r)
{
    bool any = false;
    do
        any = is_true(expression(r)) || any;
    while (lex_accept_word(&r->lex, "or"));
    if (any)
        (void)leave(r);
}

/* The node's results are made once, later ones first; with lists they are ordinary values. A result that the node lacks is not made. */
static void statement(struct reading *r)
{
    const char *name[MOST_TERMS];
    bool skip = r->skip;
    size_t n = 0;
    if (lex_accept(&r->lex, "leave if")) {
        guard(r);
        return;
    }
    do
        name[n++] = lex_name(&r->lex);
    while (n < MOST_TERMS && lex_accept(&r->lex, ","));
    lex_expect(&r->lex, "=");
    r->made = n;
    r->target = r->lists ? -1 : NAMED_AT(r->result, r->results, name[0]);
    r->skip = skip || (r->target > 0 && !compose_gives(r->c->node, (size_t)r->target));
    memset(r->more, 0, sizeof r->more);
    compose_let(r->c, name[0], expression(r));
    require(r->target != 0 || r->skip); /* the node became something */
    for (size_t i = 1; i < n; i++)
        compose_let(r->c, name[i], (term){.value = r->more[i - 1]});
    r->skip = skip || r->left;
}

/* Binds the text's name to operand i. */
static void bind(struct composer *c, const char *name, size_t i, bool optional)
{
    compose_let(c, name, (term){.value = compose_optional(c, i)});
    c->lets.at[c->lets.n - 1].operand = optional || compose_has(c->node, i) ? -1 : (int)i;
}

/* (a, b?, list*); returns how many are not lists. */
static size_t operands(struct reading *r)
{
    size_t n = 0;
    lex_expect(&r->lex, "(");
    do {
        const char *name = lex_name(&r->lex);
        require(r->lists < MOST_TERMS);
        if (lex_accept(&r->lex, "*"))
            r->list[r->lists++] = name;
        else
            bind(r->c, name, n++, lex_accept(&r->lex, "?"));
    } while (lex_accept(&r->lex, ","));
    lex_expect(&r->lex, ")");
    return n;
}

static void results(struct reading *r)
{
    lex_expect(&r->lex, "->");
    do {
        require(r->results < MOST_TERMS);
        r->result[r->results++] = lex_name(&r->lex);
    } while (lex_accept(&r->lex, ","));
    lex_expect(&r->lex, ":");
}

static void statements(struct reading *r)
{
    while (!lex_end(&r->lex))
        statement(r);
}

/* The statements for each element of the lists, which are the operands from `first` on. */
static void repeat(struct reading *r, size_t first)
{
    struct composer *c = r->c;
    const char *start = r->lex.at;
    size_t lists = (size_t)r->lists, results = (size_t)r->results, n = c->node->n_input < first ? 0 : (c->node->n_input - first) / lists;
    if (n == 0 || c->node->n_input != first + n * lists || c->node->n_output != n * results)
        fail("%s: %s has %zu operands and %zu results, expected lists of one length", c->im->path, c->where, c->node->n_input,
             c->node->n_output);
    char **made = NEWN(c->im->tmp, char *, n *results);
    for (size_t i = 0; i < n; i++) {
        r->lex.at = start;
        for (size_t k = 0; k < lists; k++)
            bind(c, r->list[k], first + k * n + i, false);
        statements(r);
        for (size_t k = 0; k < results; k++)
            made[k * n + i] = named(r, r->result[k]).value;
    }
    for (size_t k = n * results; k-- > 1;)
        compose_also(c, k, "Identity", 1, &made[k]);
    compose_become(c, "Identity", 1, made);
}

static void read_row(struct composer *c, const char **ops)
{
    struct reading r = {.c = c, .lex = {c->im->tmp, c->row->op, c->row->text, c->row->text}, .skip = ops != NULL, .ops = ops};
    size_t first = operands(&r);
    results(&r);
    if (r.lists && !ops)
        repeat(&r, first);
    else
        statements(&r);
    if (r.lists)
        note_op(&r, "Identity");
}

void compose_text(struct composer *c)
{
    read_row(c, NULL);
}

const char *compose_text_ops(struct arena *a, const struct composition *row)
{
    struct import im = {.tmp = a};
    Onnx__NodeProto node = ONNX__NODE_PROTO__INIT;
    const char *ops = "";
    read_row(&(struct composer){.im = &im, .node = &node, .row = row}, &ops);
    return ops;
}
