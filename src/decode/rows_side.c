/* rows_side: the graphs that take several rows, and the side on which these are padded. */
#include "decode/decode.h"
#include "ir/rank_meta.h"

#include <string.h>

/* A graph may mix rows, so that they are no independent texts. */
static const char *dependent_rows(const struct graph *g, const char *symbol)
{
    const char *other, *why;
    for (int i = 0; rank_meta_rows(g, i, &other, &why); i++)
        if (strcmp(other, symbol) == 0)
            return why;
    return NULL;
}

/* On this rank. grows: some state does, on any. "": several rows are possible. */
static const char *find_alone(struct arena *a, const struct stage *s, bool grows, struct row_side *to)
{
    const struct type *t = session_input_type(s->session, decode_find_input(s, ROLE_TOKENS));
    const char *node = NULL;
    if (!s->keeps)
        return "it has no KV cache";
    if (t->rank != 2 || t->dim[0]->kind != DIM_SYM)
        return "its batch has a fixed size";
    to->symbol = t->dim[0]->name;
    const char *state = session_states_without_rows(s->session, to->symbol), *why = dependent_rows(s->graph, to->symbol);
    if (state)
        return arena_printf(a, "its state '%s' has no dimension of rows", state);
    if (why)
        return why;
    for (int i = 0; i < s->graph->inputs.n; i++)
        if (s->role[i] == ROLE_CONSTANT && type_uses(session_input_type(s->session, i), to->symbol))
            return arena_printf(a, "input '%s' is given for all rows", s->graph->inputs.at[i]->name);
    why = grows ? prompt_padding(s, &to->behind, &node) : "";
    return node ? arena_printf(a, "node '%s' %s", node, why) : why;
}

const char *rows_side(struct arena *a, struct comm *all, const struct stage *s, struct row_side *to)
{
    bool grows = stage_any(s, all, session_states_grow(s->session));
    const char *why = stage_first_text(a, s, all, find_alone(a, s, grows, to));
    return *why ? why : NULL;
}
