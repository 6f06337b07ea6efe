/* dim_eval: symbols of expressions, bindings, evaluation.
 *
 * Evaluation is exact or fails: an unbound symbol, an overflow or a division by zero gives false, never a number. */
#include "algebra/dim/cell.h"

#include <string.h>

bool dim_uses(const struct dim *d, const char *symbol)
{
    if (d->kind == DIM_SYM)
        return strcmp(d->name, symbol) == 0;
    for (int i = 0; i < d->n; i++)
        if (dim_uses(d->arg[i], symbol))
            return true;
    return false;
}

void dim_each_symbol(const struct dim *d, void (*note)(void *data, const struct dim *symbol), void *data)
{
    if (d->kind == DIM_SYM)
        note(data, d);
    for (int i = 0; i < d->n; i++)
        dim_each_symbol(d->arg[i], note, data);
}

struct symbol_list {
    const char **name;
    int n, max;
};

static void list_symbol(void *data, const struct dim *symbol)
{
    struct symbol_list *list = data;
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->name[i], symbol->name) == 0)
            return;
    if (list->n < list->max)
        list->name[list->n++] = symbol->name;
}

int dim_symbols(const struct dim *d, const char **out, int max)
{
    struct symbol_list list = {out, 0, max};
    dim_each_symbol(d, list_symbol, &list);
    return list.n;
}

static void note_data(void *found, const struct dim *symbol)
{
    *(bool *)found |= symbol->data;
}

bool dim_has_data(const struct dim *d)
{
    bool found = false;
    dim_each_symbol(d, note_data, &found);
    return found;
}

/* The list may have been shortened since. */
static struct binding *binding_find(const struct bindings *b, const char *name)
{
    int at = name_index_find(&b->index, name);
    return at >= 0 && at < b->list.n && strcmp(b->list.at[at].name, name) == 0 ? &b->list.at[at] : NULL;
}

const int64_t *bindings_get(const struct bindings *b, const char *name)
{
    const struct binding *found = binding_find(b, name);
    return found ? &found->value : NULL;
}

void bindings_set(struct arena *arena, struct bindings *b, const char *name, int64_t value)
{
    struct binding *found = binding_find(b, name);
    if (found)
        found->value = value;
    else {
        name_index_put(arena, &b->index, name, b->list.n);
        VEC_PUSH(arena, &b->list, ((struct binding){name, value}));
    }
}

void bindings_clear(struct bindings *b)
{
    b->list.n = 0;
    name_index_clear(&b->index);
}

bool binding_parse(struct arena *arena, const char *text, struct binding *out)
{
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text || !i64_parse(equals + 1, 0, INT64_MAX, &out->value))
        return false;
    out->name = arena_strndup(arena, text, (size_t)(equals - text));
    return true;
}

static bool eval_operation(enum dim_kind kind, int64_t a, int64_t b, int64_t *out)
{
    switch (kind) {
    case DIM_ADD: return i64_add(a, b, out);
    case DIM_MUL: return i64_mul(a, b, out);
    case DIM_MIN: *out = a < b ? a : b; return true;
    case DIM_MAX: *out = a > b ? a : b; return true;
    case DIM_DIV:
        if (b == 0 || (a == INT64_MIN && b == -1))
            return false;
        *out = i64_floor_div(a, b);
        return true;
    case DIM_MOD:
        if (b == 0)
            return false;
        *out = i64_floor_mod(a, b);
        return true;
    case DIM_INT:
    case DIM_SYM:
    default: bug("kind %d of a composite dimension", (int)kind);
    }
}

static bool eval_symbol(const struct dim *d, const struct bindings *b, int64_t *out)
{
    const int64_t *value = bindings_get(b, d->name);
    if (value)
        *out = *value;
    return value != NULL;
}

bool dim_eval(const struct dim *d, const struct bindings *b, int64_t *out)
{
    int64_t value, next;
    if (d->kind == DIM_SYM)
        return eval_symbol(d, b, out);
    if (d->kind == DIM_INT) {
        *out = d->k;
        return true;
    }
    if (!dim_eval(d->arg[0], b, &value))
        return false;
    for (int i = 1; i < d->n; i++)
        if (!dim_eval(d->arg[i], b, &next) || !eval_operation(d->kind, value, next, &value))
            return false;
    *out = value;
    return true;
}
