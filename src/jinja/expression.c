/* Parser of expressions: the grammar and the precedence of Jinja2, one function for each level. Unknown filters, tests and methods are
 * refused here. */
#include "jinja/jinja.h"

#include <string.h>

/* ---- nodes ------------------------------------------------------------------------------------------------------------- */

struct jinja_node *jinja_node(struct jinja_parser *p, enum jinja_kind kind, size_t at)
{
    struct jinja_node *node = NEW(p->arena, struct jinja_node);
    node->kind = kind;
    node->at = at;
    return node;
}

int jinja_symbol(struct jinja_parser *p, const struct jinja_string *name)
{
    const char *text = arena_strndup(p->arena, name->at, name->n);
    int known = name_index_find(&p->symbols, text);
    if (known >= 0)
        return known;
    name_index_put(p->arena, &p->symbols, text, p->names.n);
    VEC_PUSH(p->arena, &p->names, text);
    return p->names.n - 1;
}

struct jinja_node *jinja_parse_name(struct jinja_parser *p)
{
    static const char *const constants[] = {"true", "True", "false", "False", "none", "None"};
    struct jinja_node *node = jinja_node(p, JINJA_E_NAME, jinja_peek(p)->from);
    node->text = jinja_expect_name(p);
    for (int i = 0; i < 6; i++)
        if (jinja_is(&node->text, constants[i])) {
            node->kind = JINJA_E_CONSTANT;
            node->value = i < 4 ? jinja_bool(i < 2) : JINJA_VALUE_NONE;
            return node;
        }
    if (jinja_is(&node->text, "lipsum"))
        jinja_refuse(p, node->at, "the function 'lipsum' is not supported");
    p->sees_varargs = p->sees_varargs || jinja_is(&node->text, "varargs");
    p->sees_kwargs = p->sees_kwargs || jinja_is(&node->text, "kwargs");
    p->sees_caller = p->sees_caller || jinja_is(&node->text, "caller");
    node->symbol = jinja_symbol(p, &node->text);
    return node;
}

static struct jinja_node *parse_list(struct jinja_parser *p, size_t at)
{
    struct jinja_node *node = jinja_node(p, JINJA_E_LIST, at);
    while (!jinja_peek_sign(p, "]")) {
        if (node->list.n)
            jinja_expect_sign(p, ",");
        if (jinja_peek_sign(p, "]"))
            break;
        VEC_PUSH(p->arena, &node->list, jinja_parse_expression(p, true));
    }
    jinja_expect_sign(p, "]");
    return node;
}

static struct jinja_node *parse_dict(struct jinja_parser *p, size_t at)
{
    struct jinja_node *node = jinja_node(p, JINJA_E_DICT, at);
    while (!jinja_peek_sign(p, "}")) {
        if (node->list.n)
            jinja_expect_sign(p, ",");
        if (jinja_peek_sign(p, "}"))
            break;
        VEC_PUSH(p->arena, &node->list, jinja_parse_expression(p, true));
        jinja_expect_sign(p, ":");
        VEC_PUSH(p->arena, &node->list, jinja_parse_expression(p, true));
    }
    jinja_expect_sign(p, "}");
    return node;
}

/* members: a name with a dot and another is an attribute of a namespace. */
static struct jinja_node *parse_primary(struct jinja_parser *p, bool members);

/* What parse_tuple reads: items of a target, or expressions. */
struct tuple {
    bool target, members, conditional, parentheses;
};

static bool tuple_ends(const struct jinja_parser *p)
{
    enum jinja_token_type type = jinja_peek(p)->type;
    return type == JINJA_VARIABLE_END || type == JINJA_BLOCK_END || jinja_peek_sign(p, ")");
}

static struct jinja_node *parse_tuple(struct jinja_parser *p, struct tuple how)
{
    struct jinja_node *node = jinja_node(p, JINJA_E_TUPLE, jinja_peek(p)->from);
    bool is_tuple = false;
    for (;;) {
        if (node->list.n)
            jinja_expect_sign(p, ",");
        if (tuple_ends(p))
            break;
        VEC_PUSH(p->arena, &node->list, how.target ? parse_primary(p, how.members) : jinja_parse_expression(p, how.conditional));
        if (!jinja_peek_sign(p, ","))
            break;
        is_tuple = true;
    }
    if (!is_tuple && node->list.n)
        return node->list.at[0];
    if (!is_tuple && !how.parentheses)
        jinja_refuse(p, jinja_peek(p)->from, "expected an expression, found %s", jinja_shown(p, jinja_peek(p)));
    return node;
}

struct jinja_node *jinja_parse_tuple(struct jinja_parser *p, bool conditional)
{
    return parse_tuple(p, (struct tuple){.conditional = conditional});
}

static void check_target(struct jinja_parser *p, const struct jinja_node *node)
{
    if (node->kind == JINJA_E_TUPLE) {
        JINJA_NODES(item, node->list)
        check_target(p, *item);
    } else if (node->kind != JINJA_E_NAME && node->kind != JINJA_E_MEMBER) {
        jinja_refuse(p, node->at, "expected a name to assign to, found another expression");
    }
}

struct jinja_node *jinja_parse_target(struct jinja_parser *p, bool members)
{
    struct jinja_node *node = parse_tuple(p, (struct tuple){.target = true, .members = members});
    check_target(p, node);
    return node;
}

static struct jinja_node *parse_primary(struct jinja_parser *p, bool members)
{
    const struct jinja_token *t = jinja_peek(p);
    struct jinja_node *node;
    if (t->type == JINJA_NAME) {
        node = jinja_parse_name(p);
        if (members && node->kind == JINJA_E_NAME && jinja_skip_sign(p, ".")) {
            struct jinja_node *member = jinja_node(p, JINJA_E_MEMBER, t->from);
            member->left = node;
            member->text = jinja_expect_name(p);
            VEC_PUSH(p->arena, &p->members, member->text);
            return member;
        }
        return node;
    }
    if (t->type == JINJA_QUOTED || t->type == JINJA_INTEGER || t->type == JINJA_DECIMALS) {
        node = jinja_node(p, JINJA_E_CONSTANT, t->from);
        node->value = jinja_literal_value(p);
        return node;
    }
    if (jinja_skip_sign(p, "(")) {
        node = parse_tuple(p, (struct tuple){.conditional = true, .parentheses = true});
        jinja_expect_sign(p, ")");
        return node;
    }
    if (jinja_skip_sign(p, "["))
        return parse_list(p, t->from);
    if (jinja_skip_sign(p, "{"))
        return parse_dict(p, t->from);
    jinja_refuse(p, t->from, "expected an expression, found %s", jinja_shown(p, t));
}

/* ---- what follows an operand --------------------------------------------------------------------------------------------- */

static bool ends_bound(const struct jinja_parser *p)
{
    return jinja_peek_sign(p, ":") || jinja_peek_sign(p, "]") || jinja_peek_sign(p, ",");
}

static struct jinja_node *parse_subscript(struct jinja_parser *p)
{
    size_t at = jinja_peek(p)->from;
    struct jinja_node *from = ends_bound(p) ? NULL : jinja_parse_expression(p, true);
    if (from && !jinja_peek_sign(p, ":"))
        return from;
    struct jinja_node *slice = jinja_node(p, JINJA_E_SLICE, at);
    slice->left = from;
    jinja_expect_sign(p, ":");
    if (!ends_bound(p))
        slice->right = jinja_parse_expression(p, true);
    if (jinja_skip_sign(p, ":") && !ends_bound(p))
        slice->otherwise = jinja_parse_expression(p, true);
    return slice;
}

static struct jinja_node *parse_item(struct jinja_parser *p, struct jinja_node *of, size_t at)
{
    struct jinja_node *node = jinja_node(p, JINJA_E_ITEM, at), *all = jinja_node(p, JINJA_E_TUPLE, at);
    node->left = of;
    while (!jinja_peek_sign(p, "]")) {
        if (all->list.n)
            jinja_expect_sign(p, ",");
        VEC_PUSH(p->arena, &all->list, parse_subscript(p));
    }
    jinja_expect_sign(p, "]");
    node->right = all->list.n == 1 ? all->list.at[0] : all;
    for (int i = 0; i < all->list.n && all->list.n > 1; i++)
        if (all->list.at[i]->kind == JINJA_E_SLICE)
            jinja_refuse(p, at, "a slice beside other subscripts is not supported");
    return node;
}

static struct jinja_node *parse_attribute(struct jinja_parser *p, struct jinja_node *of, size_t at)
{
    const struct jinja_token *t = jinja_peek(p);
    struct jinja_node *node = jinja_node(p, t->type == JINJA_INTEGER ? JINJA_E_ITEM : JINJA_E_ATTRIBUTE, at);
    node->left = of;
    if (t->type == JINJA_INTEGER) {
        node->right = parse_primary(p, false);
        return node;
    }
    node->text = jinja_expect_name(p);
    if (node->text.n > 1 && memcmp(node->text.at, "__", 2) == 0)
        jinja_refuse(p, t->from, "the attribute '%.*s' is not supported", (int)node->text.n, node->text.at);
    return node;
}

static struct jinja_node *parse_argument(struct jinja_parser *p)
{
    const struct jinja_token *t = jinja_peek(p);
    struct jinja_node *node;
    if (jinja_skip_sign(p, "*")) {
        node = jinja_node(p, JINJA_E_SPREAD, t->from);
    } else if (jinja_skip_sign(p, "**")) {
        node = jinja_node(p, JINJA_E_SPREAD2, t->from);
    } else if (t->type == JINJA_NAME && jinja_is_token(p, t + 1, JINJA_SIGN, "=")) {
        node = jinja_node(p, JINJA_E_KEYWORD, t->from);
        node->text = jinja_expect_name(p);
        VEC_PUSH(p->arena, &p->members, node->text);
        p->next++;
    } else {
        return jinja_parse_expression(p, true);
    }
    node->left = jinja_parse_expression(p, true);
    return node;
}

/* In Python's order: positional ones, named ones, *, **. */
static void check_order(struct jinja_parser *p, const struct jinja_node *call)
{
    int rank = 0;
    JINJA_NODES(a, call->list)
    {
        enum jinja_kind kind = (*a)->kind;
        int own = kind == JINJA_E_SPREAD2 ? 3 : kind == JINJA_E_SPREAD ? 2 : kind == JINJA_E_KEYWORD ? 1 : 0;
        bool fits = own == 1 ? rank < 3 : own == 0 ? rank == 0 : own > rank;
        if (!fits)
            jinja_refuse(p, (*a)->at, "an argument stands behind those that it has to precede");
        rank = own > rank ? own : rank;
    }
}

static void parse_arguments(struct jinja_parser *p, struct jinja_node *to)
{
    jinja_expect_sign(p, "(");
    while (!jinja_peek_sign(p, ")")) {
        if (to->list.n)
            jinja_expect_sign(p, ",");
        if (jinja_peek_sign(p, ")"))
            break;
        VEC_PUSH(p->arena, &to->list, parse_argument(p));
    }
    jinja_expect_sign(p, ")");
    check_order(p, to);
}

static struct jinja_node *parse_call(struct jinja_parser *p, struct jinja_node *of)
{
    struct jinja_node *node = jinja_node(p, JINJA_E_CALL,
                                         of->kind == JINJA_E_ATTRIBUTE || of->kind == JINJA_E_NAME ? of->at : jinja_peek(p)->from);
    node->left = of;
    if (of->kind == JINJA_E_ATTRIBUTE && !jinja_method(JINJA_ABSENT, &of->text)) {
        if (p->calls.n == 10 * JINJA_NESTING)
            jinja_refuse(p, of->at, "more than %d methods are called that no type has", p->calls.n);
        VEC_PUSH(p->arena, &p->calls, of);
    }
    parse_arguments(p, node);
    return node;
}

static struct jinja_node *parse_postfix(struct jinja_parser *p, struct jinja_node *node)
{
    for (int chain = 0;; chain++) {
        size_t at = jinja_peek(p)->from;
        if (chain > JINJA_NESTING)
            jinja_refuse(p, at, "more than %d attributes, items and calls follow each other", JINJA_NESTING);
        if (jinja_skip_sign(p, "."))
            node = parse_attribute(p, node, at + 1);
        else if (jinja_skip_sign(p, "["))
            node = parse_item(p, node, at);
        else if (jinja_peek_sign(p, "("))
            node = parse_call(p, node);
        else
            return node;
    }
}

/* ---- filters and tests --------------------------------------------------------------------------------------------------- */

static struct jinja_string dotted_name(struct jinja_parser *p)
{
    struct jinja_string name = jinja_expect_name(p);
    while (jinja_skip_sign(p, ".")) {
        struct jinja_string more = jinja_expect_name(p);
        name.n = (size_t)(more.at + more.n - name.at);
    }
    return name;
}

static const struct jinja_callable *known(struct jinja_parser *p, size_t at, const char *what, const struct jinja_string *name)
{
    const struct jinja_callable *row = *what == 'f' ? jinja_filter(name) : jinja_test(name);
    if (!row)
        jinja_refuse(p, at, "the %s '%.*s' is not supported", what, (int)jinja_offset(name, 100), name->at);
    return row;
}

/* The filter or test that a filter takes by name, where that is a literal. */
static void check_inner(struct jinja_parser *p, const struct jinja_node *filter)
{
    const char *name = filter->row->name;
    bool of_attribute = strcmp(name, "selectattr") == 0 || strcmp(name, "rejectattr") == 0;
    bool is_map = strcmp(name, "map") == 0;
    int i = of_attribute ? 1 : 0;
    if (!of_attribute && !is_map && strcmp(name, "select") != 0 && strcmp(name, "reject") != 0)
        return;
    if (i < filter->list.n && filter->list.at[i]->kind == JINJA_E_CONSTANT && filter->list.at[i]->value.type == JINJA_STRING)
        known(p, filter->list.at[i]->at, is_map ? "filter" : "test", filter->list.at[i]->value.string);
}

static struct jinja_node *parse_filter(struct jinja_parser *p, struct jinja_node *of)
{
    size_t at = jinja_peek(p)->from;
    struct jinja_node *node = jinja_node(p, JINJA_E_FILTER, at);
    node->left = of;
    node->text = dotted_name(p);
    node->row = known(p, at, "filter", &node->text);
    if (jinja_peek_sign(p, "("))
        parse_arguments(p, node);
    check_inner(p, node);
    return node;
}

struct jinja_node *jinja_parse_filters(struct jinja_parser *p, struct jinja_node *node, bool first)
{
    for (int chain = 0; first || jinja_skip_sign(p, "|"); first = false, chain++) {
        if (chain > JINJA_NESTING)
            jinja_refuse(p, jinja_peek(p)->from, "more than %d filters follow each other", JINJA_NESTING);
        node = parse_filter(p, node);
    }
    return node;
}

/* An argument of a test may lack parentheses. */
static bool has_bare_argument(struct jinja_parser *p)
{
    enum jinja_token_type type = jinja_peek(p)->type;
    if (type == JINJA_NAME)
        return !jinja_peek_word(p, "else") && !jinja_peek_word(p, "or") && !jinja_peek_word(p, "and");
    return type == JINJA_QUOTED || type == JINJA_INTEGER || type == JINJA_DECIMALS || jinja_peek_sign(p, "[") || jinja_peek_sign(p, "{");
}

static struct jinja_node *parse_test(struct jinja_parser *p, struct jinja_node *of)
{
    bool negated = jinja_skip_word(p, "not");
    size_t at = jinja_peek(p)->from;
    struct jinja_node *node = jinja_node(p, JINJA_E_TEST, at);
    node->left = of;
    node->text = dotted_name(p);
    node->row = known(p, at, "test", &node->text);
    if (jinja_peek_sign(p, "(")) {
        parse_arguments(p, node);
    } else if (has_bare_argument(p)) {
        if (jinja_peek_word(p, "is"))
            jinja_refuse(p, jinja_peek(p)->from, "tests with 'is' can't be chained");
        VEC_PUSH(p->arena, &node->list, parse_postfix(p, parse_primary(p, false)));
    }
    if (!negated)
        return node;
    struct jinja_node *not = jinja_node(p, JINJA_E_NOT, at);
    not ->left = node;
    return not ;
}

static struct jinja_node *parse_applied(struct jinja_parser *p, struct jinja_node *node)
{
    for (int chain = 0;; chain++) {
        if (chain > JINJA_NESTING)
            jinja_refuse(p, jinja_peek(p)->from, "more than %d filters and tests follow each other", JINJA_NESTING);
        if (jinja_peek_sign(p, "|"))
            node = jinja_parse_filters(p, node, false);
        else if (jinja_skip_word(p, "is"))
            node = parse_test(p, node);
        else if (jinja_peek_sign(p, "("))
            node = parse_call(p, node);
        else
            return node;
    }
}

/* ---- operators, from the highest precedence to the lowest --------------------------------------------------------------------------- */

static void deeper(struct jinja_parser *p)
{
    if (++p->nesting > JINJA_NESTING)
        jinja_refuse(p, jinja_peek(p)->from, "expressions and blocks are nested more than %d deep", JINJA_NESTING);
}

static struct jinja_node *parse_unary(struct jinja_parser *p, bool filters)
{
    size_t at = jinja_peek(p)->from;
    bool minus = jinja_peek_sign(p, "-");
    struct jinja_node *node;
    if (minus || jinja_peek_sign(p, "+")) {
        p->next++;
        node = jinja_node(p, minus ? JINJA_E_MINUS : JINJA_E_PLUS, at);
        deeper(p);
        node->left = parse_unary(p, false);
        p->nesting--;
    } else {
        node = parse_primary(p, false);
    }
    node = parse_postfix(p, node);
    return filters ? parse_applied(p, node) : node;
}

/* Operands of one level of operators, which associate to the left. */
static struct jinja_node *parse_level(struct jinja_parser *p, int level)
{
    static const char *const signs[][5] = {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};
    if (level == 4)
        return parse_unary(p, true);
    struct jinja_node *left = parse_level(p, level + 1);
    for (int chain = 0;; chain++) {
        const char *sign = NULL;
        size_t at = jinja_peek(p)->from;
        for (int i = 0; signs[level][i] && !sign; i++)
            if (jinja_skip_sign(p, signs[level][i]))
                sign = signs[level][i];
        if (!sign)
            return left;
        if (chain > 4 * JINJA_NESTING)
            jinja_refuse(p, at, "more than %d operators follow each other", 4 * JINJA_NESTING);
        if (*sign == '~' && left->kind == JINJA_E_CONCATENATE && chain) {
            VEC_PUSH(p->arena, &left->list, parse_level(p, level + 1));
            continue;
        }
        struct jinja_node *node = jinja_node(p, *sign == '~' ? JINJA_E_CONCATENATE : JINJA_E_OPERATE, at);
        node->sign = sign;
        node->left = left;
        node->right = parse_level(p, level + 1);
        if (*sign == '~') {
            VEC_PUSH(p->arena, &node->list, node->left);
            VEC_PUSH(p->arena, &node->list, node->right);
        }
        left = node;
    }
}

static const char *skip_comparison(struct jinja_parser *p)
{
    static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (int i = 0; i < 6; i++)
        if (jinja_skip_sign(p, signs[i]))
            return signs[i];
    if (jinja_skip_word(p, "in"))
        return "in";
    if (!jinja_peek_word(p, "not") || !jinja_is_token(p, jinja_peek(p) + 1, JINJA_NAME, "in"))
        return NULL;
    p->next += 2;
    return "not in";
}

static struct jinja_node *parse_compare(struct jinja_parser *p)
{
    struct jinja_node *first = parse_level(p, 0), *node = NULL;
    for (;;) {
        size_t at = jinja_peek(p)->from;
        const char *sign = skip_comparison(p);
        if (!sign)
            return node ? node : first;
        if (!node) {
            node = jinja_node(p, JINJA_E_COMPARE, at);
            node->left = first;
        }
        struct jinja_node *right = jinja_node(p, JINJA_E_COMPARE, at);
        right->sign = sign;
        right->left = parse_level(p, 0);
        VEC_PUSH(p->arena, &node->list, right);
    }
}

static struct jinja_node *parse_not(struct jinja_parser *p)
{
    size_t at = jinja_peek(p)->from;
    if (!jinja_skip_word(p, "not"))
        return parse_compare(p);
    struct jinja_node *node = jinja_node(p, JINJA_E_NOT, at);
    deeper(p);
    node->left = parse_not(p);
    p->nesting--;
    return node;
}

static struct jinja_node *parse_either(struct jinja_parser *p, bool or)
{
    struct jinja_node *left = or ? parse_either(p, false) : parse_not(p);
    for (int chain = 0; jinja_peek_word(p, or ? "or" : "and"); chain++) {
        struct jinja_node *node = jinja_node(p, or ? JINJA_E_OR : JINJA_E_AND, jinja_peek(p)->from);
        if (chain > 4 * JINJA_NESTING)
            jinja_refuse(p, node->at, "more than %d operators follow each other", 4 * JINJA_NESTING);
        p->next++;
        node->left = left;
        node->right = or ? parse_either(p, false) : parse_not(p);
        left = node;
    }
    return left;
}

struct jinja_node *jinja_parse_expression(struct jinja_parser *p, bool conditional)
{
    deeper(p);
    struct jinja_node *value = parse_either(p, true);
    for (int chain = 0; conditional && jinja_peek_word(p, "if"); chain++) {
        struct jinja_node *node = jinja_node(p, JINJA_E_IF, jinja_peek(p)->from);
        if (chain > JINJA_NESTING)
            jinja_refuse(p, node->at, "more than %d conditions follow each other", JINJA_NESTING);
        p->next++;
        node->left = value;
        node->test = parse_either(p, true);
        if (jinja_skip_word(p, "else"))
            node->right = jinja_parse_expression(p, true);
        value = node;
    }
    p->nesting--;
    return value;
}
