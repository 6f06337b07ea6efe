/* grid: tpc-shard --ranks N: ways to divide N ranks into tensor parallel ranks, pipeline stages and replicas. */
#include "cli/shard.h"
#include "plan/facts/facts.h"
#include "plan/report/report.h"
#include "run/comm/launch.h"

/* N = tp pp groups. */
struct way {
    int tp, groups;
    struct grid_point at;
    double rate; /* steps of a text per second, with a text for each stage of each replica */
    bool fits;   /* within --memory */
};
struct ways {
    VEC(struct way) list;
    const struct way *text, *many; /* the fastest way for one text, and for many; NULL: none fits */
};

static void print_head(const struct compile *c, int ranks)
{
    const struct machine *m = &c->options->machine;
    printf("%s on %d rank%s, machine %s\n", c->options->model, ranks, ranks == 1 ? "" : "s", m->name);
    report_workloads(stdout, c->plan);
    printf("%6s%8s%10s%20s%18s%16s%18s\n", "--tp", "--pp", "--groups", "memory each, about", "step of one text", "slowest stage",
           "steps/s of many");
}

static void print_way(struct arena *a, const struct way *w)
{
    printf("%6d%8d%10d%20s%18s%16s%18.4g%s\n", w->tp, w->at.pp, w->groups, units_bytes(a, w->at.memory), units_seconds(a, w->at.text),
           units_seconds(a, w->at.slowest), w->rate, w->fits ? "" : "  over --memory");
    streams_flush();
}

/* Each replica has one group of rows in flight per stage, and finishes one per time of its slowest stage. */
static void try_tensor(struct compile *c, int ranks, int tp, struct ways *all)
{
    struct arena *tmp = arena_new();
    struct grid_point *at = NEWN(tmp, struct grid_point, ranks / tp);
    int n = 0;
    for (int pp = 1; pp <= ranks / tp; pp++)
        if (ranks / tp % pp == 0)
            at[n++].pp = pp;
    stages_price(c, tp, n, at);
    for (int i = 0; i < n; i++) {
        int groups = ranks / tp / at[i].pp;
        bool fits = !c->options->memory || at[i].memory <= (double)c->options->memory;
        struct way w = {tp, groups, at[i], (double)groups / at[i].slowest, fits};
        print_way(tmp, &w);
        VEC_PUSH(c->arena, &all->list, w);
    }
    arena_free(tmp);
}

/* Of equally fast ways the first: with the fewest tensor parallel ranks, then the fewest stages. */
static void choose(struct ways *all)
{
    EACH (const struct way, w, all->list) {
        if (w->fits && (!all->text || w->at.text < all->text->at.text * (1 - PLAN_NEAR)))
            all->text = w;
        if (w->fits && (!all->many || w->rate > all->many->rate * (1 + PLAN_NEAR)))
            all->many = w;
    }
}

static const struct way *smallest(const struct ways *all)
{
    const struct way *best = &all->list.at[0];
    EACH (const struct way, w, all->list)
        best = w->at.memory < best->at.memory ? w : best;
    return best;
}

static void print_next(struct arena *a, const struct way *w, const char *what, const char *given)
{
    const char *stages = w->at.pp > 1 ? arena_printf(a, " --pp %d", w->at.pp) : "";
    const char *groups = w->groups > 1 ? arena_printf(a, ", then %s --groups %d", launch_beside(a, "tpc-run"), w->groups) : "";
    printf("%s: %s %s --tp %d%s%s\n", what, launch_beside(a, "tpc-shard"), given, w->tp, stages, groups);
}

void grid_print(struct compile *c, int ranks, const char *given)
{
    struct ways all = {.text = NULL};
    pass_run(c, "load", "keep_source", NULL);
    print_head(c, ranks);
    for (int tp = 1; tp <= ranks; tp++)
        if (ranks % tp == 0)
            try_tensor(c, ranks, tp, &all);
    choose(&all);
    if (!all.text) {
        const struct way *w = smallest(&all);
        fail("by these estimates none of the ways of %d ranks fits into --memory: --tp %d --pp %d, which takes least, may fit as a plan "
             "for less memory",
             ranks, w->tp, w->at.pp);
    }
    print_next(c->arena, all.text, "for one text", given);
    print_next(c->arena, all.many, "for many texts", given);
    if (c->options->memory)
        printf("memory is an estimate here, of the fastest plan of each way: with --tp and --pp tpc-shard counts exactly, and plans for "
               "less if it must\n");
}
