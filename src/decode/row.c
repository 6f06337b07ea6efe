/* row: the tokens of a text. */
#include "decode/row.h"

#include <string.h>

static void put_token(struct row *row, int64_t token)
{
    VEC_PUSH(row->arena, &row->token, token);
}

/* Steps make these tokens again, because prompts round differently. */
static void repeat(struct row *row, const int64_t *token)
{
    const int64_t n = row->how.made;
    row->repeats = n;
    row->repeat = memcpy(NEWN(row->arena, int64_t, n + 1), token, (size_t)n * sizeof *token);
}

struct row *row_new(const int64_t *token, int64_t n, const struct row_sampling *how, struct form *form)
{
    struct arena *a = arena_new();
    struct row *row = NEW(a, struct row);
    *row = (struct row){.arena = a, .how = sampling_copy(a, how)};
    row->how.prompts = n - how->made;
    row->how.form = form;
    for (int64_t i = 0; i < (how->repeats ? row->how.prompts : n); i++)
        put_token(row, token[i]);
    for (int64_t i = row->how.prompts; form && !how->repeats && i < n; i++)
        row->form = form_take(form, &(int64_t){token[i]});
    if (how->repeats)
        repeat(row, token + row->how.prompts);
    return row;
}

void row_put_next(struct row *row, int64_t *next)
{
    if (row->repeats) {
        *next = *row->repeat++;
        row->repeats--;
    }
    if (row->how.form)
        row->form = form_take(row->how.form, next);
    put_token(row, *next);
}

void row_free(struct row *row)
{
    if (row->how.form)
        form_free(row->how.form);
    arena_free(row->arena);
}
