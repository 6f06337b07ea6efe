/* kept_weights: finds constraints on tensors that change the placement of no weight: the values are only resharded after they are made, or
 * not even that, because nothing reads them in that placement. This may be the cheapest way to meet them, but not the intended one. */
#include "plan/constrain/constrain.h"
#include "plan/cost/cost.h"
#include "plan/input/input.h"

#include <string.h>

/* The weight of the product from which the value comes; NULL: none nearby. */
static const struct value *weight_of(const struct space *s, const struct value *v)
{
    enum { STEPS = 8 };
    for (int i = 0; i < STEPS && v && s->producer[v->id] >= 0; i++) {
        const struct node *n = s->g->nodes.at[s->producer[v->id]];
        const struct value *next = NULL;
        for (int k = 0; k < n->nin; k++) {
            const struct value *in = n->in[k];
            if (in && s->weight[in->id] && in->type.rank > 1)
                return in;
            next = next || !in || s->weight[in->id] ? next : in;
        }
        v = next;
    }
    return NULL;
}

/* The reshard of the value before any read; NULL: none. */
static const struct step_part *reshard_of(const struct space *s, const struct value *v)
{
    const struct placement *read = s->chosen.read[v->id];
    const char *to = read && !placement_eq(*read, v->place) ? placement_str(s->arena, *read) : NULL;
    for (int i = 0; to && i < s->plan->step.list.n; i++) {
        const struct step_part *p = &s->plan->step.list.at[i];
        if (p->to && p->by && strcmp(p->name, v->name) == 0 && strcmp(p->to, to) == 0)
            return p;
    }
    return NULL;
}

struct kept {
    int count, unread;         /* unread: values that all readers read as they are produced */
    const struct value *first; /* of these */
    enum collective by;
    const struct value *weight; /* the first of these weights */
};

/* Finds replicated or sharded values that are resharded. Partial values do not count: a placement asks for their reduction. */
static struct kept find_kept(const struct space *s, const struct constraint *c)
{
    struct kept k = {.by = COLL_NONE};
    for (int i = 0; i < s->limits.requirements.n; i++) {
        const struct requirement *d = s->limits.requirements.at[i];
        if (d->from != c || d->kind != REQUIREMENT_PLACED)
            continue;
        const struct placement *read = s->chosen.read[d->value->id];
        if (read && !placement_eq(*read, d->value->place) && !reshard_is_read(s, d->value))
            k.first = k.unread++ ? k.first : d->value;
        const struct value *weight = d->value->place.kind == PLACE_S ? weight_of(s, d->value) : NULL;
        const struct step_part *part = weight ? reshard_of(s, d->value) : NULL;
        if (!part)
            continue;
        k.weight = k.count++ ? k.weight : weight;
        k.by = part->by;
    }
    return k;
}

void constrain_note_kept(struct space *s)
{
    struct arena *a = s->arena;
    const struct plan_file *file = s->ranks > 1 ? s->options->plan_file : NULL;
    for (int i = 0; file && i < file->constraints.n; i++) {
        const struct constraint *c = file->constraints.at[i];
        struct kept k = c->on == ON_TENSORS ? find_kept(s, c) : (struct kept){0};
        if (k.count)
            VEC_PUSH(a, &s->plan->warnings,
                     arena_printf(a, "%s adds %d %s and leaves weights as they are ('%s'%s): constrain the weights to split them so",
                                  c->where, k.count, collective_name(k.by), k.weight->name, k.count > 1 ? ", .." : ""));
        if (k.unread)
            VEC_PUSH(a, &s->plan->warnings,
                     arena_printf(a, "%s reshards nothing at '%s'%s, which all readers take as %s: constrain the nodes that read it",
                                  c->where, k.first->name, k.unread > 1 ? ", .." : "", placement_str(a, k.first->place)));
    }
}
