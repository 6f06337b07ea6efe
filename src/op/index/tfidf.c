/* tfidf: TfIdfVectorizer: (b !n) -> (b !o): how often each n-gram of a pool occurs in each row. */
#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

/* One more than the last column of any n-gram. */
static int64_t column_count(const struct graph *g, const struct node *node)
{
    const int64_t *at = NULL;
    int64_t most = -1;
    int n = attr_is_set(node, "ngram_indexes") ? attr_ints(g, node, "ngram_indexes", &at) : 0;
    for (int i = 0; i < n; i++) {
        if (at[i] < 0 || at[i] >= INT32_MAX)
            fail("%s: attribute 'ngram_indexes' has an entry %lld, which is out of range", node_where(g, node), (long long)at[i]);
        most = at[i] > most ? at[i] : most;
    }
    if (n == 0)
        fail("%s: attribute 'ngram_indexes' has no entries", node_where(g, node));
    return most + 1;
}

void infer_tfidf(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 1, 2);
    const struct type *x = op_operand(g, node, 0);
    if (x->dtype != DT_I64 && x->dtype != DT_I32 && x->dtype != DT_STRING)
        fail("%s: the tokens '%s' are %s, expected i32, i64 or string", node_where(g, node), node->in[0]->name, dtype_name(x->dtype));
    const struct dim *dim[2] = {x->dim[0]};
    dim[x->rank - 1] = dim_int(g->alg, column_count(g, node));
    op_result(g, node, 0, DT_F32, x->rank, dim);
}
