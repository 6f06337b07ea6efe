/* stage_annotation: the plans of all stages as one device configuration. */
#include "plan/constrain/constrain.h"
#include "plan/space/space.h"
#include "plan/stages/stages.h"

#include <string.h>

/* Stages by name of a node, of a removed node's replacements (first and last), and of a value. */
struct stage_annotation {
    struct arena *arena;
    struct space *const *space;
    struct name_index node, part, last, made, parted;
    const char *first_parted;
};

/* The first stage that has a copied node. */
static void put_first(struct arena *a, struct name_index *index, const char *name, int stage)
{
    if (name_index_find(index, name) < 0)
        name_index_put(a, index, name, stage);
}

/* Canonicalisation names the nodes made from node N N/... */
static void put_parts(struct stage_annotation *all, const char *name, int stage)
{
    char *part = arena_strdup(all->arena, name);
    for (char *end = strrchr(part, '/'); end && end > part; end = strrchr(part, '/')) {
        *end = 0;
        const char *kept = arena_strdup(all->arena, part);
        put_first(all->arena, &all->part, kept, stage);
        name_index_put(all->arena, &all->last, kept, stage);
    }
}

static void put_node(struct stage_annotation *all, const struct node *n, int stage)
{
    put_first(all->arena, &all->node, n->name, stage);
    put_parts(all, n->name, stage);
    for (int i = 0; i < n->nout; i++)
        if (n->out[i])
            put_first(all->arena, &all->made, n->out[i]->name, stage);
}

struct stage_annotation *stage_annotation_new(struct arena *a, int stages, struct space *const *space)
{
    struct stage_annotation *all = NEW(a, struct stage_annotation);
    *all = (struct stage_annotation){.arena = a, .space = space};
    for (int k = 0; k < stages; k++)
        for (int i = 0; i < space[k]->g->nodes.n; i++)
            put_node(all, space[k]->g->nodes.at[i], k);
    return all;
}

int stage_annotation_stage(void *annotation, const char *node, const char *result)
{
    struct stage_annotation *all = annotation;
    int stage = name_index_find(&all->node, node), first = name_index_find(&all->part, node);
    if (stage >= 0)
        return stage;
    if (first != name_index_find(&all->last, node)) {
        const char *kept = arena_strdup(all->arena, node);
        all->first_parted = all->first_parted ? all->first_parted : kept;
        put_first(all->arena, &all->parted, kept, first);
        return first;
    }
    stage = name_index_find(&all->made, result);
    return stage < 0 ? first : stage;
}

int stage_annotation_parted(const struct stage_annotation *all, const char **first)
{
    *first = all->first_parted;
    return all->parted.n;
}

static const int64_t *moved(struct arena *a, int n, const int64_t *device, int by)
{
    int64_t *out = NEWN(a, int64_t, n + 1);
    for (int i = 0; i < n; i++)
        out[i] = device[i] < 0 ? device[i] : device[i] + by;
    return out;
}

static void move_devices(struct arena *a, struct sharding *s, int by)
{
    struct device_group *group = NEWN(a, struct device_group, s->ngroup + 1);
    for (int i = 0; i < s->ngroup; i++)
        group[i] = (struct device_group){s->group[i].key, s->group[i].n, moved(a, s->group[i].n, s->group[i].device, by)};
    s->device = moved(a, s->ndevice, s->device, by);
    s->group = group;
}

bool stage_annotation_of(void *annotation, struct arena *a, const char *node, const char *tensor, bool result, struct sharding *out)
{
    const struct stage_annotation *all = annotation;
    int stage = stage_annotation_stage(annotation, node, result ? tensor : "");
    if (stage < 0 || (result && name_index_find(&all->made, tensor) != stage) ||
        !onnx_annotation_of(all->space[stage], a, node, tensor, result, out))
        return false;
    move_devices(a, out, stage * all->space[stage]->ranks);
    return true;
}
