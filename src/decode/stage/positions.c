/* positions: how many tokens a graph has rows for: in its tables of positions, and in its vocabulary. */
#include "decode/stage/stage.h"
#include "job/io/io.h"

static int64_t lesser(int64_t x, int64_t y)
{
    return x < 0 || (y >= 0 && y < x) ? y : x;
}

/* One row is that of a table whose length is not known. */
int64_t positions_of_role(const struct stage *s, const struct value_use *use, enum role role)
{
    int i = decode_find_input(s, role);
    return i < 0 || use[i].rows <= 1 ? -1 : use[i].rows;
}

int64_t positions_most(const struct stage *s, const struct value_use *use)
{
    int mask = decode_find_input(s, ROLE_MASK);
    int64_t most = lesser(positions_of_role(s, use, ROLE_POSITIONS), positions_of_role(s, use, ROLE_CACHE_POSITION));
    most = lesser(lesser(most, positions_of_role(s, use, ROLE_MASK)), op_position_tables(s->graph, NULL).rows);
    return mask < 0 ? most : lesser(most, op_position_tables(s->graph, s->graph->inputs.at[mask]).rows);
}

void positions_find(struct arena *a, struct stage *s)
{
    const struct value_use *use = job_value_uses(a, s->graph);
    s->vocabulary = positions_of_role(s, use, ROLE_TOKENS);
    s->positions = positions_most(s, use);
}

int64_t decode_vocabulary(const struct stage *s, const struct value_use *use)
{
    const struct type type = roles_type(s->graph, RANK_OUTPUT, s->graph->outputs.at[s->logits]);
    const struct type *t = &type;
    int64_t scores, rows = positions_of_role(s, use, ROLE_TOKENS);
    if (!s->chosen && t->rank > 0 && dim_is_int(t->dim[t->rank - 1], &scores) && (rows < 0 || scores < rows))
        rows = scores;
    return rows < 0 ? INT32_MAX : rows;
}
