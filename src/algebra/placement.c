/* placement: the placement of a value on the ranks: replicated, sharded along a dimension, or partial. */
#include "algebra/dim/cell.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

const struct placement placement_replicated = {PLACE_R, 0, NULL, RED_NONE};

static const char *const redop_names[] = {
    [RED_NONE] = "none", [RED_SUM] = "sum", [RED_MAX] = "max", [RED_MIN] = "min", [RED_PROD] = "prod",
};

enum { REDOPS = (int)(sizeof redop_names / sizeof redop_names[0]) };

const char *redop_name(enum redop op)
{
    require((int)op >= 0 && (int)op < REDOPS);
    return redop_names[op];
}

enum redop redop_parse(const char *name)
{
    for (int i = 0; i < REDOPS; i++)
        if (strcmp(name, redop_names[i]) == 0)
            return (enum redop)i;
    return RED_NONE;
}

struct placement placement_split(int dim, const struct split *s)
{
    return s->replicated ? placement_replicated : (struct placement){PLACE_S, dim, s, RED_NONE};
}

struct placement placement_partial(enum redop op)
{
    return (struct placement){PLACE_P, 0, NULL, op};
}

bool placement_eq(struct placement a, struct placement b)
{
    return a.kind == b.kind && a.dim == b.dim && a.split == b.split && a.op == b.op;
}

char *placement_str(struct arena *arena, struct placement p)
{
    switch (p.kind) {
    case PLACE_R: return arena_strdup(arena, "R");
    case PLACE_S: return arena_printf(arena, "S(%d; %s)", p.dim, split_str(arena, p.split));
    case PLACE_P: return arena_printf(arena, "P(%s)", redop_name(p.op));
    default: bug("placement kind %d", (int)p.kind);
    }
}

/* The part between the first ( and the last ) of a text that ends in it, else NULL. */
static char *inside_brackets(struct arena *arena, const char *text)
{
    size_t n = strlen(text);
    return n >= 3 && text[1] == '(' && text[n - 1] == ')' ? arena_strndup(arena, text + 2, n - 3) : NULL;
}

static bool parse_partial(const char *name, struct placement *out, const char **error)
{
    enum redop op = redop_parse(name);
    *out = placement_partial(op);
    *error = "a reduction is none of sum, max, min, prod";
    return op != RED_NONE;
}

static bool parse_split(struct alg *alg, const char *text, struct placement *out, const char **error)
{
    char *end;
    long dim = strtol(text, &end, 10);
    *error = "a split placement does not start with a dimension and ;";
    if (end == text || dim < 0 || dim >= MAX_RANK || *end != ';')
        return false;
    const struct split *s = split_parse(alg, end + 1 + strspn(end + 1, " "), error);
    if (s)
        *out = placement_split((int)dim, s);
    return s != NULL;
}

bool placement_parse(struct alg *alg, const char *text, struct placement *out, const char **error)
{
    const char *why = "a placement is none of R, S(dimension; split), P(reduction)";
    const char *body = inside_brackets(alg_arena(alg), text);
    bool ok = false;
    if (strcmp(text, "R") == 0) {
        *out = placement_replicated;
        ok = true;
    } else if (body && text[0] == 'P')
        ok = parse_partial(body, out, &why);
    else if (body && text[0] == 'S')
        ok = parse_split(alg, body, out, &why);
    if (!ok && error)
        *error = why;
    return ok;
}

/* The end of the bracketed part that starts here. */
static const char *bracket_end(const char *at)
{
    for (int open = 1; *at; at++)
        if ((open += (*at == '(') - (*at == ')')) == 0)
            break;
    return at;
}

char *placement_texts(struct alg *alg, const char *text)
{
    struct arena *a = alg_arena(alg);
    const char *out = "", *from = text, *split;
    while ((split = strchr(from, ';'))) {
        const char *at = split + 1 + strspn(split + 1, " "), *end = bracket_end(at);
        const struct split *s = split_parse(alg, arena_strndup(a, at, (size_t)(end - at)), NULL);
        out = arena_printf(a, "%s%.*s", out, (int)(at - from), from);
        out = s ? arena_printf(a, "%s%s", out, split_str(a, s)) : arena_printf(a, "%s%.*s", out, (int)(end - at), at);
        from = end;
    }
    return arena_printf(a, "%s%s", out, from);
}

char *placement_outlines(struct arena *a, const char *text)
{
    const char *out = "", *from = text, *split;
    for (; (split = strchr(from, ';')); from = bracket_end(split))
        out = arena_printf(a, "%s%.*s", out, (int)(split - from), from);
    return arena_printf(a, "%s%s", out, from);
}

struct type placement_local(struct alg *alg, const struct type *t, struct placement p, int rank)
{
    struct type local = *t;
    if (p.kind == PLACE_S) {
        require(p.dim >= 0 && p.dim < t->rank);
        local.dim[p.dim] = split_extent(alg, p.split, rank);
    }
    return local;
}
