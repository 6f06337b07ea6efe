/* dim_text: the text form of dimension expressions.
 *
 *     sum     = ["-"] product { ("+" | "-") product }
 *     product = factor { ("*" | "/" | "%") factor }          left to right; / is floor division
 *     factor  = number | "-" factor | name | ("min" | "max") "(" sum { "," sum } ")" | "(" sum ")"
 *
 * A name holds letters, digits (not first), _ . $ and bytes above 127; dim_parse also takes others that are not in the grammar. Any name
 * can be written in backquotes, where \xx is the byte of that hexadecimal number. The output of dim_str has no white space inside names,
 * and parses back to the same pointer. Parsing uses the constructors, so it canonicalises. */
#include "algebra/dim/cell.h"

#include <ctype.h>
#include <string.h>

enum { MAX_NESTING = 200, MAX_NAME = 4096 };

/* ---- printing ---- */

struct dim_writer {
    struct arena *arena;
    VEC(char) s;
    bool compact;
};

static void put_char(struct dim_writer *t, char c)
{
    VEC_PUSH(t->arena, &t->s, c);
}

static void write_str(struct dim_writer *t, const char *s)
{
    for (; *s; s++)
        if (!(t->compact && *s == ' '))
            put_char(t, *s);
}

static bool symbol_char(unsigned char c)
{
    return isalnum(c) || c == '_' || c == '.' || c == '$' || c >= 0x80;
}

static bool plain_name(const char *name)
{
    if (!*name || isdigit((unsigned char)*name) || strcmp(name, "min") == 0 || strcmp(name, "max") == 0)
        return false;
    for (; *name; name++)
        if (!symbol_char((unsigned char)*name))
            return false;
    return true;
}

static void write_symbol(struct dim_writer *t, const char *name)
{
    if (plain_name(name)) {
        write_str(t, name);
        return;
    }
    put_char(t, '`');
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;
        char hex[8];
        (void)snprintf(hex, sizeof hex, "\\%02x", c);
        if (c <= ' ' || c == '`' || c == '\\' || c == 0x7f || c == '"')
            write_str(t, hex);
        else
            put_char(t, (char)c);
    }
    put_char(t, '`');
}

static void put_i64(struct dim_writer *t, int64_t k)
{
    char digits[32];
    (void)snprintf(digits, sizeof digits, "%lld", (long long)k);
    write_str(t, digits);
}

static void put_sum(struct dim_writer *, const struct dim *);

/* As an operand of * and /. */
static void put_factor(struct dim_writer *t, const struct dim *d)
{
    bool call = d->kind == DIM_MIN || d->kind == DIM_MAX;
    bool bare = d->kind == DIM_SYM || (d->kind == DIM_INT && d->k >= 0) || call;
    if (!bare)
        put_char(t, '(');
    put_sum(t, d);
    if (!bare)
        put_char(t, ')');
}

static void put_call(struct dim_writer *t, const struct dim *d)
{
    write_str(t, d->kind == DIM_MIN ? "min(" : "max(");
    for (int i = 0; i < d->n; i++) {
        write_str(t, i ? ", " : "");
        put_sum(t, d->arg[i]);
    }
    put_char(t, ')');
}

static void put_mono(struct dim_writer *t, const struct dim *mono, bool alone)
{
    const struct dim *const *atom;
    int n = poly_mono_atoms(mono, &atom);
    if (n == 1 && alone) {
        put_sum(t, mono);
        return;
    }
    for (int i = 0; i < n; i++) {
        write_str(t, i ? "*" : "");
        put_factor(t, atom[i]);
    }
}

/* The absolute value of a term. INT64_MIN has none: it is never a coefficient whose sign was removed. */
static void put_magnitude(struct dim_writer *t, const struct dim *d)
{
    const struct cell *c = cell_of(d);
    uint64_t k = c->coef < 0 ? 0 - (uint64_t)c->coef : (uint64_t)c->coef;
    char digits[32];
    (void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)k);
    if (!c->mono || k != 1)
        write_str(t, digits);
    if (c->mono && k != 1)
        put_char(t, '*');
    if (c->mono)
        put_mono(t, c->mono, k == 1);
}

static void put_signed(struct dim_writer *t, const struct dim *term, bool first)
{
    bool minus = cell_of(term)->coef < 0;
    write_str(t, first ? (minus ? "-" : "") : minus ? " - " : " + ");
    put_magnitude(t, term);
}

/* Positive terms, a positive constant if there are none, negative terms, the constant. */
static void put_terms(struct dim_writer *t, const struct dim *d)
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

static void put_sum(struct dim_writer *t, const struct dim *d)
{
    switch (d->kind) {
    case DIM_INT: put_i64(t, d->k); break;
    case DIM_SYM: write_symbol(t, d->name); break;
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
    struct dim_writer t = {.arena = arena, .compact = compact};
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

struct dim_reader {
    struct alg *alg;
    const char *at;
    int64_t usual;
    const char *error;
    bool lenient;
    int nesting;
};

static const struct dim *parse_sum(struct dim_reader *);

static const struct dim *dim_error(struct dim_reader *p, const char *what)
{
    if (!p->error)
        p->error = what;
    return NULL;
}

static void skip_blanks(struct dim_reader *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool take_char(struct dim_reader *p, char c)
{
    skip_blanks(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static bool name_char(const struct dim_reader *p, char c)
{
    return symbol_char((unsigned char)c) || (p->lenient && (unsigned char)c > ' ' && c != 0x7f && !strchr("+-*/%(),`", c));
}

static const struct dim *parse_number(struct dim_reader *p)
{
    int64_t k = 0;
    for (; isdigit((unsigned char)*p->at); p->at++)
        if (!i64_mul(k, 10, &k) || !i64_add(k, *p->at - '0', &k))
            return dim_error(p, "a number does not fit 64 bits");
    if (name_char(p, *p->at))
        return dim_error(p, "a name starts with a digit");
    return dim_int(p->alg, k);
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const struct dim *parse_quoted(struct dim_reader *p)
{
    char name[MAX_NAME];
    size_t n = 0;
    for (p->at++; *p->at && *p->at != '`'; p->at++) {
        char c = *p->at;
        if (c == '\\') {
            int high = hex_value(p->at[1]), low = high < 0 ? -1 : hex_value(p->at[2]);
            if (low < 0 || 16 * high + low == 0)
                return dim_error(p, "a \\ in a name is not followed by two hexadecimal digits");
            c = (char)(16 * high + low);
            p->at += 2;
        }
        if (n + 1 == sizeof name)
            return dim_error(p, "a name is too long");
        name[n++] = c;
    }
    name[n] = 0;
    if (*p->at != '`')
        return dim_error(p, "a name in backquotes does not end");
    p->at++;
    return dim_sym(p->alg, name, p->usual);
}

static const struct dim *parse_choice(struct dim_reader *p, const struct dim *(*make)(struct alg *, const struct dim *, const struct dim *))
{
    const struct dim *d = parse_sum(p);
    while (d && take_char(p, ',')) {
        const struct dim *next = parse_sum(p);
        d = next ? make(p->alg, d, next) : NULL;
    }
    return d && !take_char(p, ')') ? dim_error(p, "a call is not closed by )") : d;
}

/* The name of a function, also capitalised, as in sympy. */
static bool is_call(const char *start, size_t n, const char *name, const char *capital)
{
    return n == strlen(name) && (memcmp(start, name, n) == 0 || memcmp(start, capital, n) == 0);
}

static const struct dim *parse_name(struct dim_reader *p)
{
    const char *start = p->at;
    while (name_char(p, *p->at))
        p->at++;
    size_t n = (size_t)(p->at - start);
    if (n == 0)
        return dim_error(p, "a number, a name or ( is missing");
    if (*p->at == '(') {
        bool min = is_call(start, n, "min", "Min"), max = is_call(start, n, "max", "Max");
        if (!min && !max)
            return dim_error(p, "a function is neither min nor max");
        p->at++;
        return parse_choice(p, min ? dim_min : dim_max);
    }
    if (n >= MAX_NAME)
        return dim_error(p, "a name is too long");
    return dim_sym(p->alg, arena_strndup(p->alg->arena, start, n), p->usual);
}

static const struct dim *parse_factor(struct dim_reader *p)
{
    const struct dim *d;
    if (++p->nesting > MAX_NESTING)
        return dim_error(p, "the expression nests too deep");
    skip_blanks(p);
    if (isdigit((unsigned char)*p->at))
        d = parse_number(p);
    else if (*p->at == '`')
        d = parse_quoted(p);
    else if (take_char(p, '-')) {
        d = parse_factor(p);
        d = d ? dim_neg(p->alg, d) : NULL;
    } else if (take_char(p, '(')) {
        d = parse_sum(p);
        d = d && !take_char(p, ')') ? dim_error(p, "a ( is not closed") : d;
    } else
        d = parse_name(p);
    p->nesting--;
    return d;
}

static const struct dim *parse_product(struct dim_reader *p)
{
    const struct dim *d = parse_factor(p);
    while (d) {
        char op = take_char(p, '*') ? '*' : take_char(p, '/') ? '/' : take_char(p, '%') ? '%' : 0;
        if (!op)
            return d;
        const struct dim *next = parse_factor(p);
        if (!next)
            return NULL;
        if (op != '*' && dim_equals(next, 0))
            return dim_error(p, "it divides by zero");
        d = op == '*' ? dim_mul(p->alg, d, next) : op == '/' ? dim_div(p->alg, d, next) : dim_mod(p->alg, d, next);
    }
    return NULL;
}

static const struct dim *parse_sum(struct dim_reader *p)
{
    bool minus = take_char(p, '-');
    const struct dim *d = parse_product(p);
    d = d && minus ? dim_neg(p->alg, d) : d;
    while (d) {
        char op = take_char(p, '+') ? '+' : take_char(p, '-') ? '-' : 0;
        if (!op)
            return d;
        const struct dim *next = parse_product(p);
        d = !next ? NULL : op == '+' ? dim_add(p->alg, d, next) : dim_sub(p->alg, d, next);
    }
    return NULL;
}

const struct dim *dim_parse_at(struct alg *alg, const char **at, int64_t usual, const char **error)
{
    struct dim_reader p = {.alg = alg, .at = *at, .usual = usual};
    const struct dim *d = parse_sum(&p);
    if (!d)
        *error = p.error;
    *at = p.at;
    return d;
}

const struct dim *dim_parse(struct alg *alg, const char *text, int64_t usual, const char **error)
{
    struct dim_reader p = {.alg = alg, .at = text, .usual = usual, .lenient = true};
    const struct dim *d = parse_sum(&p);
    skip_blanks(&p);
    if (d && *p.at)
        d = dim_error(&p, "something follows the expression");
    if (!d && error)
        *error = p.error;
    return d;
}
