/* backward: checks the rows' gradients against their ops. On samples of the self-check and of tests/backward.def, the gradient along a
 * random direction is compared with central differences of the op's own kernel, in float64 where there is one. If the op is linear, the
 * sums of v J'g and of g Jv on integers are equal, bit by bit. A row has a gradient, or a reason for none. */
#include "op/backward/backward.h"

#include "op/op.h"
#include "tests/selfcheck.h"

#include <math.h>
#include <string.h>

enum { RIGHT = 0, SKIPPED = 2, WRONG = 3 };

/* ---- running the backward body ---------------------------------------------------------------------------------------------------- */

struct run {
    struct trial *t;
    struct gradients all;
    struct value **dy;   /* of each result, given; NULL: it is no float */
    struct tensor *held; /* by value id */
};

static bool is_free(const struct value *v)
{
    return v && !v->constant && dtype_is_float(v->type.dtype);
}

/* Writes the body once. */
static struct run write_body(struct trial *t)
{
    struct run r = {.t = t, .dy = NEWN(t->arena, struct value *, t->node->nout + 1)};
    struct node *node = t->node;
    int results = node->nout;
    for (int i = 0; i < results; i++)
        if (node->out[i] && dtype_is_float(node->out[i]->type.dtype))
            r.dy[i] = graph_value(t->graph, "dy", &node->out[i]->type);
    r.all = gradients_new(t->graph, "back");
    for (int i = 0; i < node->nin; i++)
        if (is_free(node->in[i]))
            r.all.active[node->in[i]->id] = true;
    for (int i = 0; i < results; i++)
        if (r.dy[i])
            gradients_add(&r.all, node->out[i], r.dy[i]);
    gradients_walk(&r.all, 1, &node);
    r.held = NEWN(t->arena, struct tensor, t->graph->values.n + 1);
    return r;
}

static void run_forward(struct run *r)
{
    for (int i = 0; i < r->t->node->nin; i++)
        if (r->t->node->in[i])
            r->held[r->t->node->in[i]->id] = r->t->in[i];
    trial_run(r->t, r->t->graph, r->t->node, r->held);
}

static void run_backward(struct run *r)
{
    run_forward(r);
    for (int i = 0; i < r->all.made.list.n; i++)
        trial_run(r->t, r->t->graph, r->all.made.list.at[i], r->held);
}

/* The gradient of operand i; NULL: zero. */
static const struct tensor *gradient_of(const struct run *r, int i)
{
    const struct value *v = r->all.of[r->t->node->in[i]->id];
    return v ? &r->held[v->id] : NULL;
}

static double dot(const struct tensor *x, const struct tensor *y, double *size)
{
    double sum = 0;
    for (int64_t k = 0; k < tensor_elements(x); k++) {
        double term = tensor_get(x, k) * tensor_get(y, k);
        sum += term;
        *size += fabs(term);
    }
    return sum;
}

/* What the results weigh, by their gradients. */
static double weigh_results(struct run *r, double *size)
{
    double sum = 0;
    run_forward(r);
    for (int i = 0; i < r->t->node->nout; i++)
        if (r->t->node->out[i] && r->dy[i])
            sum += dot(&r->held[r->dy[i]->id], &r->held[r->t->node->out[i]->id], size);
    return sum;
}

static void fill_dy(struct run *r, bool whole)
{
    for (int i = 0; i < r->t->node->nout; i++) {
        if (!r->dy[i])
            continue;
        struct tensor *x = &r->held[r->dy[i]->id];
        *x = trial_tensor(r->t, &r->dy[i]->type);
        for (int64_t k = 0; k < tensor_elements(x); k++)
            trial_set(x, k, whole ? floor(trial_draw() * 8) : trial_draw());
    }
}

/* ---- central differences ---------------------------------------------------------------------------------------------------------- */

static struct tensor moved(struct run *r, const struct tensor *x, const struct value *v, const struct tensor *direction, double step)
{
    struct tensor y = trial_tensor(r->t, &v->type);
    for (int64_t k = 0; k < tensor_elements(x); k++)
        trial_set(&y, k, tensor_get(x, k) + step * tensor_get(direction, k));
    return y;
}

static int differs(const struct trial *t, int i, double by_gradient, double measured)
{
    fprintf(stderr, "wrong: %s (%s): the gradient of operand %d gives %.9g, measured %.9g\n", t->sample->op, dtype_name(t->type), i,
            by_gradient, measured);
    return WRONG;
}

/* Of fourth order. */
static double measure(struct run *r, int i, const struct tensor *direction, double step, double *results)
{
    static const double factor[] = {1, -8, 0, 8, -1};
    struct trial *t = r->t;
    struct tensor at = t->in[i];
    double measured = 0;
    for (int k = -2; k <= 2; k++) {
        t->in[i] = moved(r, &at, t->node->in[i], direction, k * step);
        measured += factor[k + 2] / (12 * step) * weigh_results(r, results);
    }
    t->in[i] = at;
    return measured;
}

/* A kink may lie within the step, but hardly within a sixteenth of it, too. */
static int check_operand(struct run *r, int i)
{
    struct trial *t = r->t;
    bool wide = t->type == DT_F64;
    double step = wide ? 1e-5 : 1e-2, tolerance = wide ? 1e-6 : 2e-3, size = 0, measured = 0;
    struct tensor direction = trial_tensor(t, &t->node->in[i]->type);
    for (int64_t k = 0; k < tensor_elements(&direction); k++)
        trial_set(&direction, k, trial_draw());
    const struct tensor *dx = gradient_of(r, i);
    double by_gradient = dx ? dot(dx, &direction, &size) : 0;
    for (int part = 1; part <= 16; part *= 4) {
        double results = 0;
        measured = measure(r, i, &direction, step / part, &results);
        if (!isfinite(measured) || fabs(measured - by_gradient) <= tolerance * (size + 0.02 * results))
            return RIGHT;
    }
    return differs(t, i, by_gradient, measured);
}

/* A value that is two operands is moved as the last of them. */
static bool is_again(const struct node *node, int i)
{
    for (int k = i + 1; k < node->nin; k++)
        if (node->in[k] == node->in[i])
            return true;
    return false;
}

/* ---- linear ops -------------------------------------------------------------------------------------------------------------------- */

static bool all_whole(const struct tensor *x)
{
    for (int64_t k = 0; k < tensor_elements(x); k++)
        if (tensor_get(x, k) != floor(tensor_get(x, k)))
            return false;
    return true;
}

static void fill_whole(struct run *r)
{
    for (int i = 0; i < r->t->node->nin; i++)
        for (int64_t k = 0; is_free(r->t->node->in[i]) && k < tensor_elements(&r->t->in[i]); k++)
            trial_set(&r->t->in[i], k, floor(trial_draw() * 8));
}

/* The op is linear in these operands together. */
static int check_adjoint(struct run *r, uint32_t operands)
{
    struct trial *t = r->t;
    double size = 0, inner = 0;
    bool whole = true;
    fill_whole(r);
    fill_dy(r, true);
    run_backward(r);
    for (int i = 0; i < t->node->nin; i++) {
        if (!(operands >> i & 1) || !is_free(t->node->in[i]) || !gradient_of(r, i))
            continue;
        inner += dot(gradient_of(r, i), &t->in[i], &size);
        whole = whole && all_whole(gradient_of(r, i));
    }
    double outer = weigh_results(r, &size);
    for (int i = 0; i < t->node->nout; i++)
        whole = whole && (!r->dy[i] || all_whole(&r->held[t->node->out[i]->id]));
    if (!(fabs(outer - inner) <= (whole ? 0 : t->type == DT_F64 ? 1e-9 : 1e-5) * size))
        return differs(t, -1, inner, outer);
    return RIGHT;
}

/* ---- samples ------------------------------------------------------------------------------------------------------------------------- */

static bool has_constant_sum(const struct trial *t, uint32_t operands)
{
    for (int i = 0; i < t->node->nin; i++)
        if ((operands >> i & 1) && t->node->in[i] && t->node->in[i]->constant)
            return true;
    return false;
}

int check_backward(const struct sample *sample, int type)
{
    struct trial t;
    trial_start(&t, sample, (enum dtype)type);
    bool overwrites = strncmp(sample->op, "Scatter", 7) == 0 && strcmp(attr_string(t.node, "reduction"), "none") == 0;
    if (!t.node->op->backward || sample->below == TIES || (overwrites && !t.node->in[1]->constant)) /* one place is written twice */
        return SKIPPED;
    struct run r = write_body(&t);
    int answer = RIGHT, operands = 0;
    fill_dy(&r, false);
    run_backward(&r);
    for (int i = 0; i < t.node->nin; i++)
        if (is_free(t.node->in[i]) && !is_again(t.node, i)) {
            answer |= check_operand(&r, i);
            operands++;
        }
    struct rule_pass pass[MOST_PASSES];
    int n = t.rule ? rule_passes(t.rule, pass) : 0;
    for (int k = 0; k < n; k++)
        if (pass[k].from == RED_SUM && addends_are_floats(&t, pass[k].operands) && !has_constant_sum(&t, pass[k].operands))
            answer |= check_adjoint(&r, pass[k].operands);
    printf("%-36s %-4s %d operands, %d nodes\n", sample->op, dtype_name(t.type), operands, r.all.made.list.n);
    return answer;
}

/* ---- rows --------------------------------------------------------------------------------------------------------------------------- */

int rows_without_backward(void)
{
    int wrong = 0, written = 0, zero = 0, refused = 0;
    for (int i = 0; i < op_count(); i++) {
        const struct op *op = op_at(i);
        zero += strcmp(op->backward_name, "zero") == 0;
        written += op->backward != NULL;
        refused += op->no_backward != NULL;
        if ((op->backward != NULL) != (op->no_backward != NULL))
            continue;
        printf("%-36s has %s BACKWARD %s NO_BACKWARD\n", op->name, op->backward ? "both" : "neither", op->backward ? "and" : "nor");
        wrong++;
    }
    printf("%d rows: %d gradients, %d zero, %d refused\n", op_count(), written - zero, zero, refused);
    return wrong;
}
