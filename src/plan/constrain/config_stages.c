/* config_stages: the pipeline stages of a device configuration. Stage k of T ranks has devices k T to k T + T - 1. The stage of a node is
 * its pipeline_stage, or else the stage with the devices of its sharding specs. */
#include "plan/constrain/config_stages.h"

#include <inttypes.h>
#include <string.h>

/* The stages read so far; fault: the end of a sentence, NULL: none yet. */
struct reading {
    struct arena *arena;
    const struct configuration *c;
    int ranks, stages;
    struct config_stages *to;
    const char *fault;
};

static void note(struct reading *r, const char *node, int64_t stage, const char *by)
{
    struct config_stages *all = r->to;
    int at = name_index_find(&all->index, node);
    if (at < 0) {
        name_index_put(r->arena, &all->index, node, all->list.n);
        VEC_PUSH(r->arena, &all->list, ((struct config_stage){node, (int)stage}));
    } else if (all->list.at[at].stage != stage)
        r->fault = arena_printf(r->arena, "node '%s' is in pipeline stage %d, and %s says %" PRId64, node, all->list.at[at].stage, by,
                                stage);
}

static void read_stated(struct reading *r, const struct pipeline_stage *p)
{
    if (p->stage < 0 || p->stage >= r->stages)
        r->fault = arena_printf(r->arena, "node '%s' is in pipeline stage %" PRId64 ", where %s", p->node, p->stage,
                                r->stages == 1 ? "there is one without --pp" : arena_printf(r->arena, "--pp has 0 to %d", r->stages - 1));
    else
        note(r, p->node, p->stage, "another annotation");
}

/* The stage of a spec's devices; -1: it names no devices, or there is a fault. */
static int stage_of_devices(struct reading *r, const struct sharding *s)
{
    int stage = -1;
    for (int i = 0; i < s->ndevice; i++) {
        const int64_t *device;
        int n = sharding_entry_devices(s, i, &device);
        for (int k = 0; k < n && !r->fault; k++) {
            int of = device[k] < 0 || device[k] >= r->c->devices ? -1 : (int)(device[k] / r->ranks);
            if (of < 0)
                r->fault = arena_printf(r->arena, "node '%s': sharding_spec of '%s': device %" PRId64 " is not one of %" PRId64, s->node,
                                        s->tensor, device[k], r->c->devices);
            else if (stage >= 0 && of != stage)
                r->fault = arena_printf(r->arena, "node '%s': sharding_spec of '%s' has devices of pipeline stages %d and %d", s->node,
                                        s->tensor, stage, of);
            stage = of;
        }
    }
    return r->fault ? -1 : stage;
}

static void read_spec(struct reading *r, const struct sharding *s)
{
    if (s->ndevice > PLAN_RANKS || s->ngroup > PLAN_RANKS) {
        r->fault = arena_printf(r->arena, "node '%s': sharding_spec of '%s' names %d devices and %d groups, at most %d are handled",
                                s->node, s->tensor, s->ndevice, s->ngroup, PLAN_RANKS);
        return;
    }
    int stage = stage_of_devices(r, s);
    if (stage >= 0)
        note(r, s->node, stage, arena_printf(r->arena, "the devices of its sharding_spec of '%s'", s->tensor));
}

const char *config_stages_read(struct arena *a, const struct configuration *c, int ranks, int stages, struct config_stages *to)
{
    struct reading r = {a, c, ranks, stages, to, NULL};
    for (int i = 0; i < c->stages.n && !r.fault; i++)
        read_stated(&r, &c->stages.at[i]);
    for (int i = 0; stages > 1 && i < c->shardings.n && !r.fault; i++)
        read_spec(&r, &c->shardings.at[i]);
    return r.fault;
}

int config_stages_of(const struct config_stages *all, const char *node)
{
    int at = name_index_find(&all->index, node);
    return at < 0 ? -1 : all->list.at[at].stage;
}

/* ---- the configuration of one stage ---------------------------------------------------------------------------------------------- */

/* The group of entry i of the list; -1: a device. */
static int group_of_entry(const struct sharding *s, int i)
{
    for (int k = 0; k < s->ngroup; k++)
        if (s->group[k].key == s->device[i])
            return k;
    return -1;
}

/* Device `first` becomes 0. Groups get negative keys, which are not devices. */
static struct sharding own_spec(struct arena *a, const struct sharding *s, int first)
{
    struct sharding own = *s;
    int64_t *list = NEWN(a, int64_t, s->ndevice + 1);
    struct device_group *group = NEWN(a, struct device_group, s->ngroup + 1);
    for (int i = 0; i < s->ndevice; i++) {
        int k = group_of_entry(s, i);
        list[i] = k < 0 ? s->device[i] - first : -1 - k;
    }
    for (int k = 0; k < s->ngroup; k++) {
        int64_t *device = NEWN(a, int64_t, s->group[k].n + 1);
        for (int i = 0; i < s->group[k].n; i++)
            device[i] = s->group[k].device[i] - first;
        group[k] = (struct device_group){-1 - k, s->group[k].n, device};
    }
    own.device = list;
    own.group = group;
    return own;
}

const struct configuration *config_stages_part(struct arena *a, const struct configuration *c, int ranks, int stage)
{
    struct configuration *part = NEW(a, struct configuration);
    struct config_stages none = {.list = {NULL, 0, 0}};
    struct reading r = {a, c, ranks, (int)(c->devices / ranks), &none, NULL};
    *part = (struct configuration){.name = c->name, .devices = ranks};
    for (int i = 0; i < c->shardings.n; i++) {
        int of = stage_of_devices(&r, &c->shardings.at[i]);
        if (of < 0 || of == stage)
            VEC_PUSH(a, &part->shardings, own_spec(a, &c->shardings.at[i], stage * ranks));
    }
    return part;
}
