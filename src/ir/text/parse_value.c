/* parse_value: expressions, types, placements, values and constants of the text form. */
#include "base/half.h"
#include "ir/text/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- expressions ------------------------------------------------------------------------------------------------------- */

const struct dim *parse_dim(struct parser *p, const char *stop)
{
    const char *error = NULL;
    const struct dim *d = dim_parse(p->g->alg, lex_raw(&p->lex, stop), 1, &error);
    if (!d)
        lex_fail(&p->lex, "%s", error ? error : "not an expression");
    return d;
}

struct dim_list parse_dims(struct parser *p)
{
    VEC(const struct dim *) list = {NULL, 0, 0};
    lex_expect(&p->lex, "[");
    while (!lex_accept(&p->lex, "]")) {
        if (list.n)
            lex_expect(&p->lex, ",");
        VEC_PUSH(p->g->arena, &list, parse_dim(p, ",]"));
    }
    return (struct dim_list){list.n, list.at};
}

struct type parse_type(struct parser *p)
{
    struct type type = {.dtype = DT_NONE};
    const char *error = NULL;
    if (lex_accept(&p->lex, "?"))
        return type;
    char *text = lex_name(&p->lex);
    lex_space(&p->lex);
    if (*p->lex.at == '[') {
        p->lex.at++;
        lex_space(&p->lex);
        const char *inside = *p->lex.at == ']' ? "" : lex_raw(&p->lex, "]");
        lex_expect(&p->lex, "]");
        text = arena_printf(p->g->arena, "%s[%s]", text, inside);
    }
    if (!type_parse(p->g->alg, text, 1, &type, &error))
        lex_fail(&p->lex, "'%s' is no type: %s", text, error ? error : "malformed");
    for (int i = 0; i < type.rank; i++) {
        int64_t n;
        if (dim_is_int(type.dim[i], &n) && n < 0)
            lex_fail(&p->lex, "'%s' has dimension %d of size %" PRId64 ", expected 0 or more", text, i, n);
    }
    return type;
}

static struct placement parse_value_placement(struct parser *p)
{
    struct placement place = placement_replicated;
    const char *error = NULL;
    char *text = lex_name(&p->lex);
    if (lex_accept(&p->lex, "(")) {
        text = arena_printf(p->g->arena, "%s(%s)", text, lex_raw(&p->lex, ")"));
        lex_expect(&p->lex, ")");
    }
    if (!placement_parse(p->g->alg, text, &place, &error))
        lex_fail(&p->lex, "'%s' is no placement: %s", text, error ? error : "malformed");
    return place;
}

/* ---- values ------------------------------------------------------------------------------------------------------------ */

struct declaration parse_declaration(struct parser *p)
{
    struct declaration d = {.place = placement_replicated};
    if (lex_accept_word(&p->lex, "_")) {
        d.absent = true;
        return d;
    }
    d.name = lex_name(&p->lex);
    lex_expect(&p->lex, ":");
    d.type = parse_type(p);
    if (lex_accept(&p->lex, "@")) {
        d.place = parse_value_placement(p);
        d.placed = true;
    }
    if (lex_accept_word(&p->lex, "dims")) {
        struct dim_list list = parse_dims(p);
        d.dims = NEW(p->g->arena, struct dims_value);
        d.dims->n = list.n;
        d.dims->at = list.at;
    }
    return d;
}

struct value *parse_definition(struct parser *p, const struct declaration *d)
{
    if (d->absent)
        return NULL;
    if (graph_find(p->g, d->name))
        lex_fail(&p->lex, "value '%s' is defined twice", d->name);
    struct value *v = graph_value(p->g, *d->name ? d->name : "value", &d->type);
    if (strcmp(v->name, d->name))
        lex_fail(&p->lex, "a value has no name");
    v->place = d->place;
    v->placed = d->placed;
    v->dims = d->dims;
    return v;
}

struct value *parse_use(struct parser *p)
{
    if (lex_accept_word(&p->lex, "_"))
        return NULL;
    char *name = lex_name(&p->lex);
    struct value *v = graph_find(p->g, name);
    if (!v)
        lex_fail(&p->lex, "value '%s' is not defined here", name);
    return v;
}

/* ---- constants --------------------------------------------------------------------------------------------------------- */

static void store_float(struct parser *p, const struct constant *c, uint8_t *to)
{
    char *text = lex_number(&p->lex), *end;
    float f = strtof(text, &end);
    double d = strtod(text, NULL);
    if (end == text || *end)
        lex_fail(&p->lex, "'%s' is no number", text);
    uint16_t half = c->dtype == DT_F16 ? f32_to_f16(f) : f32_to_bf16(f);
    if (c->dtype == DT_F64)
        memcpy(to, &d, sizeof d);
    else if (c->dtype == DT_F32)
        memcpy(to, &f, sizeof f);
    else
        memcpy(to, &half, sizeof half);
}

static uint64_t parse_u64(struct parser *p)
{
    char *text = lex_number(&p->lex), *end;
    errno = 0;
    unsigned long long u = strtoull(text, &end, 10);
    if (*end || errno || *text == '-')
        lex_fail(&p->lex, "'%s' is not an unsigned integer", text);
    return u;
}

static void store_integer(struct parser *p, const struct constant *c, uint8_t *to)
{
    int64_t lo = 0, hi = 1;
    if (dtype_is_integer(c->dtype))
        dtype_range(c->dtype, &lo, &hi);
    else if (c->dtype != DT_BOOL)
        lex_fail(&p->lex, "a constant of type %s is given as hex", dtype_name(c->dtype));
    uint64_t bits = c->dtype == DT_U64 ? parse_u64(p) : (uint64_t)lex_int(&p->lex, lo, hi);
    memcpy(to, &bits, dtype_size(c->dtype));
}

static int64_t parse_string(struct parser *p)
{
    const char *text = lex_quoted(&p->lex), *fault = string_fault(text, strlen(text));
    if (fault)
        lex_fail(&p->lex, "a string %s", fault);
    return string_number(text, strlen(text));
}

/* Grows with the text, not with the size that the type claims. */
static void parse_list(struct parser *p, struct constant *c)
{
    size_t size = dtype_size(c->dtype);
    VEC(uint64_t) list = {NULL, 0, 0};
    lex_expect(&p->lex, "[");
    while (!lex_accept(&p->lex, "]")) {
        uint64_t element = 0;
        if (list.n)
            lex_expect(&p->lex, ",");
        if (c->dtype == DT_STRING)
            element = (uint64_t)parse_string(p);
        else if (dtype_is_float(c->dtype))
            store_float(p, c, (uint8_t *)&element);
        else
            store_integer(p, c, (uint8_t *)&element);
        VEC_PUSH(p->g->arena, &list, element);
    }
    uint8_t *data = arena_alloc(p->g->arena, (size_t)list.n * size + 1);
    for (int i = 0; i < list.n; i++)
        memcpy(data + (size_t)i * size, &list.at[i], size);
    if (dtype_is_packed(c->dtype))
        dtype_pack(c->dtype, data, list.n, data);
    c->data = data;
    if (constant_elements(c) != list.n)
        lex_fail(&p->lex, "the type has %" PRId64 " elements, the list %d", constant_elements(c), list.n);
}

static void parse_constant_bytes(struct parser *p, struct constant *c)
{
    if (c->dtype == DT_STRING) {
        parse_list(p, c);
    } else if (lex_accept_word(&p->lex, "hex")) {
        int64_t bytes;
        c->data = lex_hex(&p->lex, &bytes);
        if (bytes != c->bytes)
            lex_fail(&p->lex, "the type takes %" PRId64 " bytes, the text has %" PRId64, c->bytes, bytes);
    } else if (lex_accept_word(&p->lex, "file")) {
        c->source.path = lex_quoted(&p->lex);
        c->source.offset = lex_int(&p->lex, 0, INT64_MAX);
        c->source.length = lex_int(&p->lex, 0, INT64_MAX);
    } else {
        parse_list(p, c);
    }
    if (lex_accept_word(&p->lex, "origin"))
        c->origin = lex_name(&p->lex);
}

struct constant *parse_constant(struct parser *p, const struct type *type)
{
    struct constant *c = NEW(p->g->arena, struct constant);
    int64_t n;
    c->dtype = type->dtype;
    c->rank = type->rank;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_int(type->dim[i], &c->dim[i]))
            lex_fail(&p->lex, "a constant has a symbolic dimension");
    if (!type_sizes_product(c->dim, c->rank, &n) || !dtype_packed_bytes(c->dtype, n, &c->bytes))
        lex_fail(&p->lex, "a constant has an unknown type or an impossible size");
    parse_constant_bytes(p, c);
    return c;
}

struct constant *parse_constant_of(struct parser *p, const struct type *declared)
{
    const char *before = p->lex.at;
    bool bytes = lex_accept_word(&p->lex, "hex") || lex_accept_word(&p->lex, "file") || lex_accept(&p->lex, "[");
    p->lex.at = before;
    struct type type = bytes ? *declared : parse_type(p);
    return parse_constant(p, &type);
}
