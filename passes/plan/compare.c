/* compare: makes alternative plans of the same graph (--compare), for the same workloads, machine and byte price, up to the memory of their
 * ranks. Names of states in a plan file are ignored, because the graph's states are known. */
#include "passes/pass.h"
#include "plan/cost/cost.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/report/report.h"

#include <string.h>

const int compare_tried[COMPARE_TRIED] = {1, 2, 4, 8, 16};

/* The plan of --compare none: every node replicated. */
static const struct plan_file *replicated_plan(struct arena *a)
{
    struct plan_file *file = NEW(a, struct plan_file);
    struct constraint *all = NEW(a, struct constraint);
    *all = (struct constraint){.where = "--compare none", .on = ON_NODES, .glob = "*", .styles = 1u << STYLE_REPLICATE};
    file->path = "none";
    VEC_PUSH(a, &file->constraints, all);
    return file;
}

/* The user's constraints, without what an emitted plan has chosen. */
static const struct plan_file *open_plan(struct arena *a, const struct plan_file *given)
{
    struct plan_file *file = NEW(a, struct plan_file);
    *file = given ? *given : (struct plan_file){.path = ""};
    file->emitted = NULL;
    return file;
}

/* A plan.json contributes its choices only; sizes, machine and weight types are those of this compilation. */
static struct options options_of(struct arena *a, const struct options *ours, const char *what)
{
    struct options o = *ours;
    o.strict = STRICT_OFF;
    o.solver_first = strcmp(what, "first") == 0;
    if (o.solver_first) {
        o.plan_file = open_plan(a, ours->plan_file);
        return o;
    }
    o.plan_file = strcmp(what, "none") == 0 ? replicated_plan(a) : plan_file_read(a, what);
    const struct emitted *e = o.plan_file->emitted;
    if (!e)
        return o;
    if (e->ranks != ours->ranks)
        fail("%s: is a plan for %d ranks, but this one is for %d", what, e->ranks, ours->ranks);
    o.sp = e->sp;
    o.sp_symbol = e->sp_symbol;
    return o;
}

static struct compared compare_plan(const struct compile *original, const char *what)
{
    struct arena *tmp = arena_new(), *a = original->arena;
    struct options options = options_of(a, original->options, what);
    struct plan plan = {.ranks = options.ranks, .byte_price = original->plan->byte_price};
    if (options.plan_file->emitted)
        plan.memory_share = options.plan_file->emitted->memory_share;
    if (options.solver_first)
        plan.configuration = original->plan->configuration;
    struct compile c = keep_source_copy(original, tmp, &options, &plan);
    pass_run(&c, "weight_dtype", "choose", NULL);
    pass_run(&c, "insert", "memory", NULL);
    struct compared out = plan_compared(a, what, c.graph, &options, &plan);
    out.choices = differences_choices(a, c.graph, &plan);
    arena_free(tmp);
    return out;
}

/* limited: at the price that keeps --memory. */
static struct compared plan_for_ranks(const struct compile *first, const struct options *options, bool limited)
{
    struct arena *tmp = arena_new();
    struct plan plan = {.ranks = options->ranks};
    struct compile c = keep_source_copy(first, tmp, options, &plan);
    c.properties |= PROP_LIMITED; /* by the price found here */
    if (limited)
        (void)memory_price(&c);
    pass_run(&c, "weight_dtype", "choose", NULL);
    memory_measure(&c, options->ranks <= EXACT_RANKS);
    struct compared out = plan_compared(first->arena, options->sp == SP_AUTO ? "--sp=auto" : "", c.graph, options, &plan);
    arena_free(tmp);
    return out;
}

/* The fastest plan; if it does not keep --memory, the best one found that does, else the one with the least memory. */
static struct compared best_plan(const struct compile *first, const struct options *options)
{
    struct compared fastest = plan_for_ranks(first, options, false);
    return fastest.fits ? fastest : plan_for_ranks(first, options, true);
}

struct compared compare_ranks(const struct compile *first, int ranks, enum sp_mode sp)
{
    struct options options = *first->options;
    options.ranks = ranks;
    options.sp = sp;
    options.sp_symbol = NULL;
    options.strict = STRICT_OFF;
    options.solver_first = false;
    options.plan_file = NULL;
    options.state_from = NULL;
    return best_plan(first, &options);
}

static void fill_ranks(const struct compile *c, int ranks)
{
    struct compared plain = compare_ranks(c, ranks, SP_OFF), other;
    VEC_PUSH(c->arena, &c->plan->others.list, ((struct other_ranks){ranks, plain}));
    if (ranks == 1)
        return;
    other = compare_ranks(c, ranks, SP_AUTO);
    if (other.seconds < plain.seconds || other.memory < plain.memory)
        VEC_PUSH(c->arena, &c->plan->others.list, ((struct other_ranks){ranks, other}));
}

/* For the HTML report; each takes as much work as the plan itself. */
static void fill_others(const struct compile *c)
{
    enum { MOST_NODES = 16384 };
    int own = c->options->ranks, most = machine_most_ranks(&c->options->machine);
    if (c->graph->nodes.n > MOST_NODES)
        return;
    for (int i = 0; i < COMPARE_TRIED && compare_tried[i] <= most; i++) {
        if (own < compare_tried[i] && (i == 0 || own > compare_tried[i - 1]))
            fill_ranks(c, own);
        fill_ranks(c, compare_tried[i]);
    }
    if (own > compare_tried[COMPARE_TRIED - 1])
        fill_ranks(c, own);
}

/* The best plan if unequal ranks are treated as equal. */
static struct compared equal_plan(const struct compile *original)
{
    struct options options = *original->options;
    options.strict = STRICT_OFF;
    options.equal_shares = true;
    options.plan_file = open_plan(original->arena, options.plan_file);
    return best_plan(original, &options);
}

void pass_compare(struct compile *c)
{
    struct compared *equal = NEW(c->arena, struct compared);
    if (c->options->compare_equal) {
        *equal = equal_plan(c);
        c->plan->equal = equal;
    }
    if (c->options->price)
        fill_others(c);
    for (int i = 0; i < c->options->compare.n; i++)
        VEC_PUSH(c->arena, &c->compared.list, compare_plan(c, c->options->compare.at[i]));
}
