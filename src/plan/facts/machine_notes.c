/* machine_notes: warns of links that a profile lacks for the machines that ranks need, and of numbers that look like other units. */
#include "plan/facts/facts.h"
#include "plan/plan.h"

/* Whether ranks use several machines and the profile has no link between these. */
static bool lacks_network(const struct machine *m, int ranks)
{
    return m->machine_ranks > 1 && ranks > m->machine_ranks && m->levels == 1;
}

static void note_slow(struct plan *plan, struct arena *a, const char *where, const char *key, double bandwidth)
{
    const double least = 1e6;
    if (bandwidth < least)
        VEC_PUSH(a, &plan->warnings, arena_printf(a, "%s'%s' is below 1 MB/s: expected bytes per second, found %g", where, key, bandwidth));
}

static void note_units(struct plan *plan, struct arena *a, const struct machine *m, int level)
{
    const double most = 1; /* seconds */
    const struct link *link = &m->level[level];
    const char *where = level ? arena_printf(a, "machine %s: levels[%d]: ", m->name, level - 1) : arena_printf(a, "machine %s: ", m->name);
    if (link->latency > most)
        VEC_PUSH(a, &plan->warnings, arena_printf(a, "%s'hop_latency' is above 1 s: expected seconds, found %g", where, link->latency));
    note_slow(plan, a, where, "link_bandwidth", link->bandwidth);
    note_slow(plan, a, where, "unit_bandwidth", link->unit_bandwidth);
}

void plan_note_machine(struct graph *g, const struct options *o, struct plan *plan)
{
    const struct machine *m = &o->machine;
    if (lacks_network(m, o->ranks))
        VEC_PUSH(g->arena, &plan->warnings,
                 arena_printf(g->arena,
                              "machine %s has no link between machines of %g ranks, so that within one is taken: add 'levels' "
                              "(docs/calibrate.md#levels), or run tpc-run --calibrate over all hosts",
                              m->name, m->machine_ranks));
    for (int i = 0; i < m->levels; i++)
        note_units(plan, g->arena, m, i);
}
