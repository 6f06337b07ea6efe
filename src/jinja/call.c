/* Calls: binds arguments to the parameters of table rows and macros. */
#include "jinja/jinja.h"

#include <string.h>

static _Noreturn void fail_argument(struct jinja_run *r, const struct jinja_call *c, const struct jinja_string *name)
{
    jinja_fail(r, "the %s '%s' takes no argument '%.*s'", c->what, c->name, (int)(name->n < 100 ? name->n : 100), name->at);
}

/* The number of a parameter among words; -1: none. *count: their number; *open: accepts others, too. */
static int parameter(const char *words, const struct jinja_string *name, int *count, bool *open)
{
    int found = -1;
    *count = 0;
    *open = false;
    for (const char *at = words; *at;) {
        size_t n = strcspn(at, " ");
        if (*at == '*') {
            *open = true;
        } else {
            if (name && *at != '-' && name->n == n && memcmp(name->at, at, n) == 0)
                found = *count;
            ++*count;
        }
        at += n;
        at += strspn(at, " ");
    }
    return found;
}

static void bind_named(struct jinja_run *r, struct jinja_call *c, const char *words, const struct jinja_dict *named)
{
    int count;
    bool open;
    EACH (const struct jinja_pair, p, named->pairs) {
        int i = parameter(words, p->key.string, &count, &open);
        if (i >= 0 && c->arg[i].type == JINJA_ABSENT)
            c->arg[i] = p->value;
        else if (i < 0 && open)
            jinja_set(r, c->named, p->key, p->value);
        else
            fail_argument(r, c, p->key.string);
    }
}

struct jinja_value jinja_apply(struct jinja_run *r, const char *what, const struct jinja_callable *row, struct jinja_value self,
                               const struct jinja_arguments *arguments)
{
    jinja_step(r, self.type == JINJA_STRING ? self.string->n : 0);
    bool is_markup = self.type == JINJA_STRING && self.string->markup, is_filter = *what == 'f' && what[1] == 'i';
    if (is_markup && is_filter && !(row->types & JINJA_OF_MARKUP))
        jinja_fail(r, "the filter '%s' of a text of the filter 'safe' is not supported", row->name);
    struct jinja_call c = {.what = what, .name = row->name, .self = self, .named = jinja_dict(r).dict};
    int count, given = arguments->list.n;
    bool open;
    parameter(row->parameters, NULL, &count, &open);
    for (int i = 0; i < count && i < given; i++)
        c.arg[i] = arguments->list.at[i];
    if (given > count) {
        if (!open)
            jinja_fail(r, "the %s '%s' takes at most %d arguments, found %d", what, row->name, count, given);
        c.rest = arguments->list.at + count;
        c.more = given - count;
    }
    if (arguments->named)
        bind_named(r, &c, row->parameters, arguments->named);
    for (int i = 0; i < row->least; i++)
        if (c.arg[i].type == JINJA_ABSENT)
            jinja_fail(r, "the %s '%s' lacks argument %d", what, row->name, i + 1);
    return row->call(r, &c);
}

/* ---- arguments --------------------------------------------------------------------------------------------------------- */

bool jinja_given(const struct jinja_call *c, int i)
{
    return c->arg[i].type != JINJA_ABSENT && c->arg[i].type != JINJA_NONE;
}

int64_t jinja_arg_int(struct jinja_run *r, const struct jinja_call *c, int i, int64_t otherwise)
{
    if (c->arg[i].type == JINJA_ABSENT)
        return otherwise;
    if (c->arg[i].type != JINJA_INT && c->arg[i].type != JINJA_BOOL)
        jinja_fail(r, "argument %d of the %s '%s' is a %s, expected an int", i + 1, c->what, c->name, jinja_type_name(c->arg[i]));
    return c->arg[i].type == JINJA_BOOL ? c->arg[i].truth : c->arg[i].integer;
}

bool jinja_arg_truth(const struct jinja_call *c, int i, bool otherwise)
{
    return c->arg[i].type == JINJA_ABSENT ? otherwise : jinja_truth(c->arg[i]);
}

const struct jinja_string *jinja_arg_string(struct jinja_run *r, const struct jinja_call *c, int i)
{
    if (c->arg[i].type != JINJA_STRING)
        jinja_fail(r, "argument %d of the %s '%s' is a %s, expected a str", i + 1, c->what, c->name, jinja_type_name(c->arg[i]));
    return c->arg[i].string;
}

/* ---- macros ------------------------------------------------------------------------------------------------------------ */

struct binding {
    struct jinja_run *run;
    const struct jinja_macro *macro;
    const struct jinja_arguments *arguments;
    struct jinja_scope *scope;
    struct jinja_dict *left; /* named arguments without a parameter */
};

static struct jinja_value take_named(const struct binding *b, const struct jinja_string *name)
{
    EACH (struct jinja_pair, p, b->left->pairs)
        if (jinja_same(p->key.string, name)) {
            struct jinja_value v = p->value;
            memmove(p, p + 1, (size_t)(b->left->pairs.at + b->left->pairs.n - p - 1) * sizeof *p);
            b->left->pairs.n--;
            return v;
        }
    return (struct jinja_value){.type = JINJA_ABSENT};
}

static void bind_name(const struct binding *b, const char *name, struct jinja_value v)
{
    const struct jinja *t = b->run->jinja;
    jinja_step(b->run, (size_t)t->symbols * 8);
    for (int i = 0; i < t->symbols; i++)
        if (strcmp(t->names[i], name) == 0)
            jinja_bind(b->run, b->scope, i, v);
}

/* A macro gets its caller as an argument of that name. */
static void bind_caller(const struct binding *b)
{
    JINJA_NODES(p, b->macro->node->list)
    if (jinja_is(&(*p)->text, "caller"))
        return;
    struct jinja_string name = jinja_literal("caller");
    struct jinja_value caller = take_named(b, &name);
    if (caller.type == JINJA_ABSENT || caller.type == JINJA_NONE)
        caller = jinja_undefined(b->run, "", jinja_literal("the macro was not called by a call block: it has no caller"));
    bind_name(b, "caller", caller);
}

static void bind_rest(const struct binding *b, int taken)
{
    const struct jinja_node *node = b->macro->node;
    if (node->caller)
        bind_caller(b);
    if (node->kwargs)
        bind_name(b, "kwargs", (struct jinja_value){.type = JINJA_DICT, .dict = b->left});
    else if (b->left->pairs.n) {
        const struct jinja_string *name = b->left->pairs.at[0].key.string;
        jinja_fail(b->run, "the macro '%.*s' takes no argument '%.*s'", (int)b->macro->name.n, b->macro->name.at,
                   (int)(name->n < 100 ? name->n : 100), name->at);
    }
    if (!node->varargs && b->arguments->list.n > taken)
        jinja_fail(b->run, "the macro '%.*s' takes at most %d arguments, found %d", (int)b->macro->name.n, b->macro->name.at, taken,
                   b->arguments->list.n);
    if (node->varargs) {
        struct jinja_value rest = jinja_list(b->run, JINJA_TUPLE);
        for (int i = taken; i < b->arguments->list.n; i++)
            jinja_append(b->run, rest, b->arguments->list.at[i]);
        bind_name(b, "varargs", rest);
    }
}

static struct jinja_value missing_parameter(struct jinja_run *r, const struct jinja_node *p)
{
    struct jinja_builder text = {.run = r};
    jinja_put_text(&text, "the argument '");
    jinja_put(&text, &p->text);
    jinja_put_text(&text, "' was not given");
    return jinja_undefined(r, "", *jinja_built(&text).string);
}

static struct jinja_value call_macro(struct jinja_run *r, const struct jinja_macro *m, const struct jinja_arguments *arguments)
{
    struct jinja_scope *outside = r->scope;
    struct binding b = {r, m, arguments, jinja_scope(r, m->scope), jinja_dict(r).dict};
    if (arguments->named)
        EACH (const struct jinja_pair, p, arguments->named->pairs)
            jinja_set(r, b.left, p->key, p->value);
    int n = m->node->list.n;
    struct jinja_value *given = jinja_take(r, (size_t)n + 1, sizeof *given);
    for (int i = 0; i < n; i++)
        given[i] = i < arguments->list.n ? arguments->list.at[i] : take_named(&b, &m->node->list.at[i]->text);
    bind_rest(&b, n);
    r->scope = b.scope;
    for (int i = 0; i < n; i++) {
        const struct jinja_node *p = m->node->list.at[i];
        if (given[i].type == JINJA_ABSENT)
            given[i] = p->left ? jinja_evaluate(r, p->left) : missing_parameter(r, p);
        jinja_bind(r, b.scope, p->symbol, given[i]);
    }
    enum jinja_flow flow;
    struct jinja_value out = jinja_capture(r, b.scope, m->node->body, &flow);
    r->scope = outside;
    return out;
}

static struct jinja_value call_joiner(struct jinja_run *r, struct jinja_cycler *j)
{
    return j->at++ ? (struct jinja_value){.type = JINJA_STRING, .string = j->joint} : jinja_string_of(r, "");
}

struct jinja_value jinja_call(struct jinja_run *r, struct jinja_value v, const struct jinja_arguments *arguments)
{
    switch (v.type) {
    case JINJA_UNDEFINED: jinja_fail_undefined(r, v);
    case JINJA_FUNCTION: return jinja_apply(r, "function", v.function, v, arguments);
    case JINJA_METHOD: jinja_refuse_markup(r, v.method->self); return jinja_apply(r, "method", v.method->row, v.method->self, arguments);
    case JINJA_MACRO: return call_macro(r, v.macro, arguments);
    case JINJA_LOOP: return jinja_loop_again(r, v.loop, arguments);
    case JINJA_JOINER: return call_joiner(r, v.cycler);
    default: jinja_fail(r, "a %s can't be called", jinja_type_name(v));
    }
}
