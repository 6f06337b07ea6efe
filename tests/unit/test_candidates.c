/* Candidates of dimensions against a plain fixpoint: on random graphs, every split of every dimension is tried at every node that has the
 * dimension, again and again until nothing new appears; nothing is remembered of what was tried. */
#include "op/op.h"
#include "tests/unit/main.h"
#include "tests/unit/space.h"

enum { MANY = 24 };

struct found {
    const struct split *split[MANY];
    int n;
};

static bool put(struct space *s, struct found (*all)[MAX_RANK], const struct value *v, struct placement p)
{
    if (p.kind != PLACE_S || p.split->replicated || s->head_size[dim_class_of(s->roles->class, v->id * MAX_RANK + p.dim)])
        return false;
    struct found *f = &all[v->id][p.dim];
    for (int i = 0; i < f->n; i++)
        if (f->split[i] == p.split)
            return false;
    ck_assert_int_lt(f->n, MANY);
    f->split[f->n++] = p.split;
    return true;
}

/* The weights of products: even splits of every dimension of two or more. */
static void seed(struct space *s, struct found (*all)[MAX_RANK])
{
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        for (int k = 0; strcmp(n->optype, "MatMul") == 0 && k < n->nin; k++)
            for (int d = 0; n->in[k]->constant && d < n->in[k]->type.rank; d++)
                put(s, all, n->in[k], placement_split(d, split_even(s->g->alg, s->ranks, n->in[k]->type.dim[d])));
    }
}

static bool put_strategy(struct space *s, struct found (*all)[MAX_RANK], const struct node *n, const struct strategy *st)
{
    bool new = false;
    for (int i = 0; i < n->nin; i++)
        new |= n->in[i] && put(s, all, n->in[i], st->in[i]);
    for (int i = 0; i < n->nout; i++)
        new |= n->out[i] && put(s, all, n->out[i], st->out[i]);
    return new;
}

/* Every assignment of the node that gives this dimension this split. */
static bool pass_split(struct space *s, struct found (*all)[MAX_RANK], int node, bool result, int i, int d, const struct split *split)
{
    struct assignments a = assignment_list(s, node, result, i, d, split);
    bool new = false;
    for (int k = 0; k < a.list.n; k++) {
        struct strategy st;
        if (strategy_projects(s, node, &a.list.at[k], false, &st, NULL))
            new |= put_strategy(s, all, s->g->nodes.at[node], &st);
    }
    return new;
}

static bool pass_node(struct space *s, struct found (*all)[MAX_RANK], int node)
{
    const struct node *n = s->g->nodes.at[node];
    bool new = false;
    for (int side = 0; s->rule[node] && side < 2; side++)
        for (int i = 0; i < (side ? n->nout : n->nin); i++) {
            const struct value *v = side ? n->out[i] : n->in[i];
            for (int d = 0; v && d < v->type.rank; d++)
                for (int k = 0; k < all[v->id][d].n; k++)
                    new |= pass_split(s, all, node, side, i, d, all[v->id][d].split[k]);
        }
    return new;
}

static bool has(const struct candidates *c, const struct split *split)
{
    for (int i = 0; i < c->list.n; i++)
        if (c->list.at[i].split == split)
            return true;
    return false;
}

static int compare(struct space *s, struct found (*all)[MAX_RANK], uint64_t number)
{
    int count = 0;
    for (int i = 0; i < s->g->values.n; i++)
        for (int d = 0; d < s->g->values.at[i]->type.rank; d++) {
            const struct candidates *c = &s->candidates[i][d];
            const char *name = s->g->values.at[i]->name;
            ck_assert_msg(c->list.n == all[i][d].n, "graph %d: '%s' has %d candidates in dimension %d, expected %d", (int)number, name,
                          c->list.n, d, all[i][d].n);
            for (int k = 0; k < all[i][d].n; k++)
                ck_assert_msg(has(c, all[i][d].split[k]), "graph %d: '%s' lacks a candidate in dimension %d", (int)number, name, d);
            count += c->list.n;
        }
    return count;
}

START_TEST(candidates_are_the_fixpoint)
{
    int count = 0;
    for (uint64_t number = 1; number <= 300; number++) {
        struct arena *a = arena_new();
        struct options o = space_options(2 + (int)(number % 3));
        struct space *s = space_of(a, random_graph(a, number), &o);
        struct found(*all)[MAX_RANK] = arena_alloc(a, sizeof *all * (size_t)(s->g->values.n + 1));
        seed(s, all);
        for (bool new = true; new;) {
            new = false;
            for (int i = 0; i < s->g->nodes.n; i++)
                new |= pass_node(s, all, i);
        }
        count += compare(s, all, number);
        arena_free(a);
    }
    ck_assert_int_gt(count, 1000); /* most graphs have some */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("candidates");
    TCase *t = unit_case(suite, "candidates", NULL, NULL);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, candidates_are_the_fixpoint);
    return unit_run(suite);
}
