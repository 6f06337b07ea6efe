/* positions: how many tokens a graph takes: by its tables of positions, its vocabulary, and the configuration beside it. */
#include "decode/stage/stage.h"
#include "job/io/io.h"

static int64_t lesser(int64_t x, int64_t y)
{
    return x < 0 || (y >= 0 && y < x) ? y : x;
}

/* Rows of tables that the input of a role chooses from. One row is that of a table whose length is not known. */
static int64_t rows_of_role(const struct stage *s, const struct value_use *use, enum role role)
{
    int i = decode_find_input(s, role);
    return i < 0 || use[i].rows <= 1 ? -1 : use[i].rows;
}

static int64_t rows_of_positions(const struct stage *s, const struct value_use *use)
{
    int mask = decode_find_input(s, ROLE_MASK);
    int64_t most = lesser(rows_of_role(s, use, ROLE_POSITIONS), rows_of_role(s, use, ROLE_CACHE_POSITION));
    most = lesser(lesser(most, rows_of_role(s, use, ROLE_MASK)), op_position_tables(s->graph, NULL).rows);
    return mask < 0 ? most : lesser(most, op_position_tables(s->graph, s->graph->inputs.at[mask]).rows);
}

/* As rank 0 reads it. */
struct stated_limit {
    int64_t tokens;
    char says[512];
};

static void read_limit(struct arena *a, const struct job_options *o, const struct stage *s, struct stated_limit *limit)
{
    const struct config_limit c = config_beside_limit(a, o, s->path, s->logits < 0 ? CONFIG_ENCODER : CONFIG_DECODER);
    if (c.note)
        diag_tell("note: %s", c.note);
    limit->tokens = c.tokens;
    (void)snprintf(limit->says, sizeof limit->says, "%s", c.says ? c.says : "");
}

void positions_find(struct arena *a, struct comm *all, const struct job_options *o, struct stage *s)
{
    const struct value_use *use = job_value_uses(a, s->graph);
    struct stated_limit stated = {.tokens = -1};
    s->vocabulary = rows_of_role(s, use, ROLE_TOKENS);
    s->positions = rows_of_positions(s, use);
    s->limit = "";
    if (all->rank == 0 && decode_find_input(s, ROLE_TOKENS) >= 0)
        read_limit(a, o, s, &stated);
    comm_from_first(all, "the longest text", &stated, sizeof stated);
    if (stated.tokens < 1 || (s->positions > 0 && s->positions <= stated.tokens))
        return;
    s->positions = stated.tokens;
    s->limit = arena_printf(a, " (%s)", stated.says);
}

int64_t decode_vocabulary(struct arena *a, const struct stage *s)
{
    const struct type type = roles_type(s->graph, RANK_OUTPUT, s->graph->outputs.at[s->logits]);
    const struct type *t = &type;
    int64_t scores, rows = rows_of_role(s, job_value_uses(a, s->graph), ROLE_TOKENS);
    if (!s->chosen && t->rank > 0 && dim_is_int(t->dim[t->rank - 1], &scores) && (rows < 0 || scores < rows))
        rows = scores;
    return rows < 0 ? INT32_MAX : rows;
}
