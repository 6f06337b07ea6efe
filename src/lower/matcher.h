/* lower/matcher: finds one graph in another. */
#ifndef TPC_LOWER_MATCHER_H
#define TPC_LOWER_MATCHER_H

#include "lower/pattern.h"
#include "op/infer/infer.h"

enum { MATCH_VALUES = 32, MATCH_NODES = 48, MATCH_GOALS = 24 };

/* Current bindings, and what is still to be compared; copied for backtracking. */
struct match_state {
    int ngoal, nnode;
    struct {
        const struct value *want;
        struct value *have;
    } goal[MATCH_GOALS];
    struct value *bound[MATCH_VALUES]; /* by id of the pattern's value */
    struct node *node[MATCH_NODES];    /* matched nodes of the graph */
};
struct match_more {
    const char *name, *text;
    struct value *value;
    double number;
};
struct match {
    struct graph *g;
    const struct graph *find, *become;
    const struct uses *uses, *find_uses;
    bool shared; /* inner values may have other readers */
    int nuses;
    struct node *root;
    struct match_state s;
    int nmore;
    struct match_more more[4];
};

/* Whether the node makes the pattern's result. If so, m->s has the bindings. */
bool match_node(struct match *, struct node *root);
const char *match_text(const struct match *, const char *name);
/* attribute kind INT or DIMS: negative axes count from the end. */
int64_t match_axis(const struct node *, const char *attr, int64_t);

/* monomial.c: a product as number * value[0]^power[0] * .. from Mul in any order, Div, Reciprocal, and Pow by 2 and 3. */
enum { MOST_FACTORS = 4 };
struct monomial {
    double number;
    int n; /* above MOST_FACTORS: too many */
    struct {
        struct value *value;
        int power;
    } factor[MOST_FACTORS];
    int nnode; /* the expanded nodes */
    struct node *node[2 * MOST_FACTORS + 4];
};
bool monomial_node(const struct node *);
/* A factor with several readers is expanded only if `shared`. A factor of fewer elements than the product is not: it is computed once for
 * many. */
struct monomial monomial_of(const struct uses *, int nuses, struct value *, bool shared);
bool monomial_near(double x, double want);

#endif
