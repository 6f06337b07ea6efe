/* Python's arithmetic on 64-bit integers; overflow is refused. */
#include "jinja/jinja.h"

#include <math.h>
#include <string.h>

static int64_t whole(struct jinja_value v)
{
    return v.type == JINJA_BOOL ? v.truth : v.integer;
}

static _Noreturn void too_large(struct jinja_run *r, const char *sign)
{
    jinja_fail(r, "the result of '%s' is beyond integers of 64 bits", sign);
}

static int64_t integer_power(struct jinja_run *r, int64_t base, int64_t power)
{
    int64_t out = 1;
    while (power > 0) {
        if (power & 1 && !i64_mul(out, base, &out))
            too_large(r, "**");
        power >>= 1;
        if (power && !i64_mul(base, base, &base))
            too_large(r, "**");
    }
    return out;
}

static void refuse_zero(struct jinja_run *r, bool zero)
{
    if (zero)
        jinja_fail(r, "division by zero");
}

static struct jinja_value power(struct jinja_run *r, double a, double b)
{
    if (a == 0 && b < 0)
        jinja_fail(r, "division by zero");
    if (a < 0 && b != floor(b) && isfinite(a) && isfinite(b))
        jinja_fail(r, "complex numbers are not supported");
    double out = pow(a, b);
    if (isinf(out) && isfinite(a) && isfinite(b))
        jinja_fail(r, "the result of '**' is too large");
    return jinja_float(out);
}

static struct jinja_value of_integers(struct jinja_run *r, const char *sign, int64_t a, int64_t b)
{
    int64_t out = 0;
    const int64_t exact = (int64_t)1 << 53;
    if (strcmp(sign, "/") == 0) {
        refuse_zero(r, b == 0);
        if (a > exact || a < -exact || b > exact || b < -exact)
            jinja_fail(r, "'/' of integers beyond 53 bits is not supported");
        return jinja_float((double)a / (double)b);
    }
    if (strcmp(sign, "**") == 0)
        return b < 0 ? power(r, (double)a, (double)b) : jinja_int(integer_power(r, a, b));
    bool divides = strcmp(sign, "//") == 0 || strcmp(sign, "%") == 0;
    refuse_zero(r, divides && b == 0);
    if (divides && b == -1)
        return *sign == '%' ? jinja_int(0) : jinja_negative(r, jinja_int(a), true);
    if (divides)
        return jinja_int(*sign == '%' ? i64_floor_mod(a, b) : i64_floor_div(a, b));
    bool fits = *sign == '+' ? i64_add(a, b, &out) : *sign == '-' ? i64_sub(a, b, &out) : i64_mul(a, b, &out);
    if (!fits)
        too_large(r, sign);
    return jinja_int(out);
}

/* Floor division and its remainder, which has the divisor's sign. */
static struct jinja_value float_division(struct jinja_run *r, double a, double b, bool rest)
{
    refuse_zero(r, b == 0);
    double mod = fmod(a, b), div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) {
        mod += b;
        div -= 1;
    } else if (mod == 0) {
        mod = copysign(0, b);
    }
    if (rest)
        return jinja_float(mod);
    if (div == 0)
        return jinja_float(copysign(0, a / b));
    double down = floor(div);
    return jinja_float(div - down > 0.5 ? down + 1 : down);
}

static struct jinja_value of_floats(struct jinja_run *r, const char *sign, double a, double b)
{
    if (strcmp(sign, "**") == 0)
        return power(r, a, b);
    if (strcmp(sign, "//") == 0 || *sign == '%')
        return float_division(r, a, b, *sign == '%');
    switch (*sign) {
    case '+': return jinja_float(a + b);
    case '-': return jinja_float(a - b);
    case '*': return jinja_float(a * b);
    default: refuse_zero(r, b == 0); return jinja_float(a / b);
    }
}

static struct jinja_value repeated(struct jinja_run *r, struct jinja_value v, int64_t times)
{
    if (v.type == JINJA_STRING) {
        struct jinja_builder b = {.run = r};
        jinja_put_times(&b, v.string, times);
        return jinja_built(&b);
    }
    struct jinja_value out = jinja_list(r, v.type);
    for (int64_t i = 0; i < times && v.list->items.n; i++)
        EACH (const struct jinja_value, item, v.list->items)
            jinja_append(r, out, *item);
    return out;
}

static bool repeats(struct jinja_value v, struct jinja_value times)
{
    return (v.type == JINJA_STRING || v.type == JINJA_LIST || v.type == JINJA_TUPLE) &&
        (times.type == JINJA_INT || times.type == JINJA_BOOL);
}

/* A result of the filter safe stays one: joined texts are escaped. */
static void put_escaped(struct jinja_builder *b, const struct jinja_string *s)
{
    static const char from[] = "&<>'\"", *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    for (size_t i = 0; i < s->n; i++) {
        const char *known = s->at[i] ? strchr(from, s->at[i]) : NULL;
        struct jinja_string one = jinja_piece(s, i, i + 1);
        if (known && !s->markup)
            jinja_put_bytes(b, to[known - from], strlen(to[known - from]), s->mark && s->mark[i]);
        else
            jinja_put(b, &one);
    }
}

static struct jinja_value joined_markup(struct jinja_run *r, const struct jinja_string *a, const struct jinja_string *c)
{
    struct jinja_builder b = {.run = r};
    put_escaped(&b, a);
    put_escaped(&b, c);
    struct jinja_string out = *jinja_built(&b).string;
    out.markup = true;
    return jinja_string(r, out);
}

static struct jinja_value joined(struct jinja_run *r, struct jinja_value a, struct jinja_value b)
{
    if (a.type == JINJA_STRING)
        return a.string->markup || b.string->markup ? joined_markup(r, a.string, b.string)
                                                    : jinja_concatenate(r, (struct jinja_value[]){a, b}, 2);
    struct jinja_value out = jinja_list(r, a.type);
    EACH (const struct jinja_value, item, a.list->items)
        jinja_append(r, out, *item);
    EACH (const struct jinja_value, item, b.list->items)
        jinja_append(r, out, *item);
    return out;
}

static _Noreturn void undefined_between(struct jinja_run *r, const char *sign, struct jinja_value a, struct jinja_value b)
{
    jinja_fail(r, "'%s' is not defined between a %s and a %s", sign, jinja_type_name(a), jinja_type_name(b));
}

struct jinja_value jinja_operate(struct jinja_run *r, const char *sign, struct jinja_value a, struct jinja_value b)
{
    if (*sign != '+')
        jinja_refuse_markup(r, a);
    if (*sign == '%' && a.type == JINJA_STRING)
        return jinja_percent(r, a.string, b);
    if (a.type == JINJA_UNDEFINED || b.type == JINJA_UNDEFINED)
        jinja_fail_undefined(r, a.type == JINJA_UNDEFINED ? a : b);
    if (jinja_is_number(a) && jinja_is_number(b)) {
        if (a.type != JINJA_FLOAT && b.type != JINJA_FLOAT)
            return of_integers(r, sign, whole(a), whole(b));
        return of_floats(r, sign, jinja_number(a), jinja_number(b));
    }
    if (strcmp(sign, "*") == 0 && repeats(a, b))
        return repeated(r, a, whole(b));
    if (*sign != '+')
        jinja_refuse_markup(r, b);
    if (strcmp(sign, "*") == 0 && repeats(b, a))
        return repeated(r, b, whole(a));
    if (*sign == '+' && a.type == b.type && (a.type == JINJA_STRING || a.type == JINJA_LIST || a.type == JINJA_TUPLE))
        return joined(r, a, b);
    undefined_between(r, sign, a, b);
}

struct jinja_value jinja_negative(struct jinja_run *r, struct jinja_value v, bool minus)
{
    if (v.type == JINJA_UNDEFINED)
        jinja_fail_undefined(r, v);
    if (!jinja_is_number(v))
        jinja_fail(r, "'%s' is not defined for a %s", minus ? "-" : "+", jinja_type_name(v));
    if (v.type == JINJA_FLOAT)
        return jinja_float(minus ? -v.number : v.number);
    int64_t out = whole(v);
    if (minus && !i64_sub(0, out, &out))
        too_large(r, "-");
    return jinja_int(out);
}

struct jinja_value jinja_concatenate(struct jinja_run *r, const struct jinja_value *v, int n)
{
    struct jinja_builder b = {.run = r};
    for (int i = 0; i < n; i++)
        jinja_write(&b, v[i]);
    return jinja_built(&b);
}
