/* selfcheck: what its files share. A trial is one sample under way, with its own graph, kernels' environment and random operands. */
#ifndef TPC_TESTS_SELFCHECK_H
#define TPC_TESTS_SELFCHECK_H

#include "kern/core/core.h"
#include "op/rule/rule.h"

/* below: integer operands are drawn from [0, below); where there are none, floats from below - 1 to below + 1; TIES: few
 * floats, NaN among them. */
enum { TIES = -9 };
struct sample {
    const char *op, *text;
    int64_t below;
};

struct trial {
    struct arena *arena;
    const struct sample *sample;
    enum dtype type; /* of the sample's floats in this trial */
    struct graph *graph;
    struct node *node;
    struct rule *rule;
    struct bindings bind;
    struct kenv *env;
    struct tensor *in, *whole; /* global operands, results of the unsplit op */
    int tried, legal;
    const char *what; /* the choice under test, for messages */
};

/* The sample with its f32 in another type; the whole op is run. */
void trial_start(struct trial *, const struct sample *, enum dtype);
/* All splits of factor f that the rule allows; false: one is wrong, which stderr tells. */
bool trial_factor(struct trial *, int f);
/* Random addends through the node. */
bool trial_pass(struct trial *, const struct rule_pass *);
bool addends_are_floats(const struct trial *, uint32_t operands);
/* "max to min 0+1" */
char *pass_text(struct arena *, const struct rule_pass *);
double tensor_get(const struct tensor *, int64_t i);

double trial_draw(void); /* between -1 and 1 */
struct tensor trial_tensor(struct trial *, const struct type *);
void trial_set(struct tensor *, int64_t i, double);
/* A node, on tensors by value id. */
void trial_run(struct trial *, struct graph *, const struct node *, struct tensor *held);

/* backward.c: 0: the gradients of a sample are right, 1: not, 2: it has none. Rows of the table that lack one. */
int check_backward(const struct sample *, int type);
int rows_without_backward(void);

/* unclaimed.c: looks for strategies that are right and that no rule claims. Returns the number of findings without a reason. */
int search_unclaimed(const struct sample *);
/* Reasons in tests/unclaimed.def for what no search has found, and their number. */
int reasons_unused(void);

#endif
