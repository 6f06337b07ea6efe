/* concat: concatenates strings. */
#include "kern/string/string.h"

#include <string.h>

struct concat {
    const struct walk *walk;
    const int64_t *x, *y;
    int64_t *z;
    struct arena *tmp;
};

static int64_t joined(struct concat *c, int64_t x, int64_t y)
{
    if (!x || !y)
        return x + y;
    const char *first = string_text(x), *second = string_text(y);
    size_t a = strlen(first), b = strlen(second);
    char *both = arena_alloc(c->tmp, a + b);
    memcpy(both, first, a);
    memcpy(both + a, second, b);
    int64_t number = string_number(both, a + b);
    arena_reset(c->tmp);
    return number;
}

static void concat_row(void *data, const int64_t *offset, int64_t n)
{
    struct concat *c = data;
    int last = c->walk->rank - 1;
    for (int64_t i = 0; i < n; i++)
        c->z[offset[0] + i] = joined(c, c->x[offset[1] + i * c->walk->stride[1][last]], c->y[offset[2] + i * c->walk->stride[2][last]]);
}

/* On one thread, because all results go into one table. */
void kern_StringConcat(struct kcall *call)
{
    const struct tensor *in[2] = {&call->in[0], &call->in[1]};
    struct walk w;
    struct concat c = {&w, in[0]->data, in[1]->data, call->out[0].data, arena_new()};
    walk_broadcast(call, &w, &call->out[0], 2, in);
    walk_run(call->env, &w, 0, concat_row, &c);
    arena_free(c.tmp);
}
