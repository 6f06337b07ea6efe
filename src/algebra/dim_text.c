/* dim_text.c: the text form of dimension expressions.
 *
 *     sum     = ["-"] product { ("+" | "-") product }
 *     product = factor { ("*" | "/" | "%") factor }          left to right; / is floor division
 *     factor  = number | "-" factor | name | ("min" | "max") "(" sum { "," sum } ")" | "(" sum ")"
 *
 * A name holds letters, digits (not first), _ . $ and bytes above 127; dim_parse also takes others that are not in the grammar.
 * Any name at all can stand in backquotes, where \xx is the byte of that hexadecimal number. What dim_str writes contains no white
 * space inside of names, and parses back to the same pointer. Parsing builds with the constructors, so it canonicalises.
 */
#include "algebra/cell.h"

#include <ctype.h>
#include <string.h>

enum { MAX_NESTING = 200, MAX_NAME = 4096 };

/* ---- printing ---- */

struct text {
    struct arena *arena;
    VEC(char) s;
    bool compact;
};

static void put_char(struct text *t, char c)
{
    VEC_PUSH(t->arena, &t->s, c);
}

static void put(struct text *t, const char *s)
{
    for (; *s; s++)
        if (!(t->compact && *s == ' '))
            put_char(t, *s);
}

static bool plain_char(unsigned char c)
{
    return isalnum(c) || c == '_' || c == '.' || c == '$' || c >= 0x80;
}

static bool plain_name(const char *name)
{
    if (!*name || isdigit((unsigned char)*name) || strcmp(name, "min") == 0 || strcmp(name, "max") == 0)
        return false;
    for (; *name; name++)
        if (!plain_char((unsigned char)*name))
            return false;
    return true;
}

static void put_name(struct text *t, const char *name)
{
    if (plain_name(name)) {
        put(t, name);
        return;
    }
    put_char(t, '`');
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;
        char hex[8];
        (void)snprintf(hex, sizeof hex, "\\%02x", c);
        if (c <= ' ' || c == '`' || c == '\\' || c == 0x7f || c == '"')
            put(t, hex);
        else
            put_char(t, (char)c);
    }
    put_char(t, '`');
}

static void put_i64(struct text *t, int64_t k)
{
    char digits[32];
    (void)snprintf(digits, sizeof digits, "%lld", (long long)k);
    put(t, digits);
}

static void put_sum(struct text *, const struct dim *);

/* As an operand of * and /. */
static void put_factor(struct text *t, const struct dim *d)
{
    bool call = d->kind == DIM_MIN || d->kind == DIM_MAX;
    bool bare = d->kind == DIM_SYM || (d->kind == DIM_INT && d->k >= 0) || call;
    if (!bare)
        put_char(t, '(');
    put_sum(t, d);
    if (!bare)
        put_char(t, ')');
}

static void put_call(struct text *t, const struct dim *d)
{
    put(t, d->kind == DIM_MIN ? "min(" : "max(");
    for (int i = 0; i < d->n; i++) {
        put(t, i ? ", " : "");
        put_sum(t, d->arg[i]);
    }
    put_char(t, ')');
}

static void put_mono(struct text *t, const struct dim *mono, bool alone)
{
    const struct dim *const *atom;
    int n = poly_mono_atoms(mono, &atom);
    if (n == 1 && alone) {
        put_sum(t, mono);
        return;
    }
    for (int i = 0; i < n; i++) {
        put(t, i ? "*" : "");
        put_factor(t, atom[i]);
    }
}

/* The absolute value of a term. INT64_MIN has none: it is never a coefficient that the sign was taken off. */
static void put_magnitude(struct text *t, const struct dim *d)
{
    const struct cell *c = cell_of(d);
    uint64_t k = c->coef < 0 ? 0 - (uint64_t)c->coef : (uint64_t)c->coef;
    char digits[32];
    (void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)k);
    if (!c->mono || k != 1)
        put(t, digits);
    if (c->mono && k != 1)
        put_char(t, '*');
    if (c->mono)
        put_mono(t, c->mono, k == 1);
}

static void put_signed(struct text *t, const struct dim *term, bool first)
{
    bool minus = cell_of(term)->coef < 0;
    put(t, first ? (minus ? "-" : "") : minus ? " - " : " + ");
    put_magnitude(t, term);
}

/* Positive terms, a positive constant if there are none, negative terms, the constant. */
static void put_terms(struct text *t, const struct dim *d)
{
    const struct dim *last = d->arg[d->n - 1], *constant = last->kind == DIM_INT ? last : NULL;
    bool first = true;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1 && first && constant && constant->k > 0) {
            put_signed(t, constant, true);
            constant = NULL;
            first = false;
        }
        for (int i = 0; i < d->n; i++)
            if (d->arg[i]->kind != DIM_INT && (cell_of(d->arg[i])->coef < 0) == (pass == 1)) {
                put_signed(t, d->arg[i], first);
                first = false;
            }
    }
    if (constant)
        put_signed(t, constant, first);
}

static void put_sum(struct text *t, const struct dim *d)
{
    switch (d->kind) {
    case DIM_INT: put_i64(t, d->k); break;
    case DIM_SYM: put_name(t, d->name); break;
    case DIM_ADD: put_terms(t, d); break;
    case DIM_MUL: put_signed(t, d, true); break;
    case DIM_DIV:
    case DIM_MOD:
        put_factor(t, d->arg[0]);
        put_char(t, d->kind == DIM_DIV ? '/' : '%');
        put_factor(t, d->arg[1]);
        break;
    case DIM_MIN:
    case DIM_MAX: put_call(t, d); break;
    default: bug("kind %d of a dimension", (int)d->kind);
    }
}

static char *print(struct arena *arena, const struct dim *d, bool compact)
{
    struct text t = {.arena = arena, .compact = compact};
    put_sum(&t, d);
    put_char(&t, 0);
    return t.s.at;
}

char *dim_str(struct arena *arena, const struct dim *d)
{
    return print(arena, d, false);
}

char *dim_str_compact(struct arena *arena, const struct dim *d)
{
    return print(arena, d, true);
}

/* ---- parsing ---- */

struct parser {
    struct alg *alg;
    const char *at;
    int64_t sym_lo;
    const char *error;
    bool lenient;
    int nesting;
};

static const struct dim *parse_sum(struct parser *);

static const struct dim *wrong(struct parser *p, const char *what)
{
    if (!p->error)
        p->error = what;
    return NULL;
}

static void skip_space(struct parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool take(struct parser *p, char c)
{
    skip_space(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static bool name_char(const struct parser *p, char c)
{
    return plain_char((unsigned char)c) || (p->lenient && (unsigned char)c > ' ' && c != 0x7f && !strchr("+-*/%(),`", c));
}

static const struct dim *parse_number(struct parser *p)
{
    int64_t k = 0;
    for (; isdigit((unsigned char)*p->at); p->at++)
        if (!i64_mul(k, 10, &k) || !i64_add(k, *p->at - '0', &k))
            return wrong(p, "a number does not fit 64 bits");
    if (name_char(p, *p->at))
        return wrong(p, "a name starts with a digit");
    return dim_int(p->alg, k);
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const struct dim *parse_quoted(struct parser *p)
{
    char name[MAX_NAME];
    size_t n = 0;
    for (p->at++; *p->at && *p->at != '`'; p->at++) {
        char c = *p->at;
        if (c == '\\') {
            int high = hex_value(p->at[1]), low = high < 0 ? -1 : hex_value(p->at[2]);
            if (low < 0 || 16 * high + low == 0)
                return wrong(p, "a \\ in a name is not followed by two hexadecimal digits");
            c = (char)(16 * high + low);
            p->at += 2;
        }
        if (n + 1 == sizeof name)
            return wrong(p, "a name is too long");
        name[n++] = c;
    }
    name[n] = 0;
    if (*p->at != '`')
        return wrong(p, "a name in backquotes does not end");
    p->at++;
    return dim_sym(p->alg, name, p->sym_lo);
}

static const struct dim *parse_choice(struct parser *p, const struct dim *(*make)(struct alg *, const struct dim *, const struct dim *))
{
    const struct dim *d = parse_sum(p);
    while (d && take(p, ',')) {
        const struct dim *next = parse_sum(p);
        d = next ? make(p->alg, d, next) : NULL;
    }
    return d && !take(p, ')') ? wrong(p, "a call is not closed by )") : d;
}

/* The name of a function, also with a capital, as sympy writes it. */
static bool is_call(const char *start, size_t n, const char *name, const char *capital)
{
    return n == strlen(name) && (memcmp(start, name, n) == 0 || memcmp(start, capital, n) == 0);
}

static const struct dim *parse_name(struct parser *p)
{
    const char *start = p->at;
    while (name_char(p, *p->at))
        p->at++;
    size_t n = (size_t)(p->at - start);
    if (n == 0)
        return wrong(p, "a number, a name or ( is missing");
    if (*p->at == '(') {
        bool min = is_call(start, n, "min", "Min"), max = is_call(start, n, "max", "Max");
        if (!min && !max)
            return wrong(p, "a function is neither min nor max");
        p->at++;
        return parse_choice(p, min ? dim_min : dim_max);
    }
    if (n >= MAX_NAME)
        return wrong(p, "a name is too long");
    return dim_sym(p->alg, arena_strndup(p->alg->arena, start, n), p->sym_lo);
}

static const struct dim *parse_factor(struct parser *p)
{
    const struct dim *d;
    if (++p->nesting > MAX_NESTING)
        return wrong(p, "the expression nests too deep");
    skip_space(p);
    if (isdigit((unsigned char)*p->at))
        d = parse_number(p);
    else if (*p->at == '`')
        d = parse_quoted(p);
    else if (take(p, '-')) {
        d = parse_factor(p);
        d = d ? dim_neg(p->alg, d) : NULL;
    } else if (take(p, '(')) {
        d = parse_sum(p);
        d = d && !take(p, ')') ? wrong(p, "a ( is not closed") : d;
    } else
        d = parse_name(p);
    p->nesting--;
    return d;
}

static const struct dim *parse_product(struct parser *p)
{
    const struct dim *d = parse_factor(p);
    while (d) {
        char op = take(p, '*') ? '*' : take(p, '/') ? '/' : take(p, '%') ? '%' : 0;
        if (!op)
            return d;
        const struct dim *next = parse_factor(p);
        if (!next)
            return NULL;
        if (op != '*' && dim_equals(next, 0))
            return wrong(p, "it divides by zero");
        d = op == '*' ? dim_mul(p->alg, d, next) : op == '/' ? dim_div(p->alg, d, next) : dim_mod(p->alg, d, next);
    }
    return NULL;
}

static const struct dim *parse_sum(struct parser *p)
{
    bool minus = take(p, '-');
    const struct dim *d = parse_product(p);
    d = d && minus ? dim_neg(p->alg, d) : d;
    while (d) {
        char op = take(p, '+') ? '+' : take(p, '-') ? '-' : 0;
        if (!op)
            return d;
        const struct dim *next = parse_product(p);
        d = !next ? NULL : op == '+' ? dim_add(p->alg, d, next) : dim_sub(p->alg, d, next);
    }
    return NULL;
}

const struct dim *dim_parse_at(struct alg *alg, const char **at, int64_t sym_lo, const char **error)
{
    struct parser p = {.alg = alg, .at = *at, .sym_lo = sym_lo};
    const struct dim *d = parse_sum(&p);
    if (!d)
        *error = p.error;
    *at = p.at;
    return d;
}

const struct dim *dim_parse(struct alg *alg, const char *text, int64_t sym_lo, const char **error)
{
    struct parser p = {.alg = alg, .at = text, .sym_lo = sym_lo, .lenient = true};
    const struct dim *d = parse_sum(&p);
    skip_space(&p);
    if (d && *p.at)
        d = wrong(&p, "something follows the expression");
    if (!d && error)
        *error = p.error;
    return d;
}

const struct dim *dim_copy(struct alg *alg, const struct dim *d)
{
    const char *error = NULL;
    if (d->kind == DIM_INT)
        return dim_int(alg, d->k);
    if (d->kind == DIM_SYM)
        return dim_sym(alg, d->name, d->lo);
    const struct dim *copy = dim_parse(alg, dim_str(alg_arena(alg), d), 1, &error);
    if (!copy)
        bug("a dimension does not parse back: %s", error);
    return copy;
}
