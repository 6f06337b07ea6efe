/* step_parts: what the predicted step of the chosen plan is made of: nodes and reshards in the order of time, and the layers they are of.
 */
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <string.h>

static struct step_part *add_part(struct space *s, struct step_part part)
{
    int w = s->plan->workloads.n;
    part.seconds = NEWN(s->arena, double, w + 1);
    part.unsharded = NEWN(s->arena, double, w + 1);
    VEC_PUSH(s->arena, &s->plan->step.list, part);
    return &s->plan->step.list.at[s->plan->step.list.n - 1];
}

/* ---- nodes and reshards ----------------------------------------------------------------------------------------------------------- */

static void add_node(struct space *s, int i)
{
    const struct node *n = s->g->nodes.at[i];
    const struct strategies *all = &s->offered[i];
    struct step_part *part = add_part(s, (struct step_part){.name = n->name, .into = fused_into(s, n), .node = i});
    for (int w = 0; w < s->plan->workloads.n; w++) {
        part->seconds[w] = cost_node_seconds(s, n, s->rule[i], n->strategy, w, s->ranks);
        part->unsharded[w] = cost_node_seconds(s, n, s->rule[i], all->list.at[all->list.n - 1], w, 1);
    }
}

/* ends: the first of a value, where its kernel may end; begins: to where a kernel reads it. */
static void add_transition(struct space *s, const struct value *v, struct placement from, struct placement to, int reader, bool ends,
                           bool begins)
{
    struct step_part part = {.name = v->name, .to = placement_str(s->arena, to), .by = placement_transition(from, to).by, .node = reader};
    struct step_part *added = add_part(s, part);
    for (int w = 0; w < s->plan->workloads.n; w++)
        added->seconds[w] = cost_reshard_seconds(s, v, from, to, w) + (ends ? cost_cut_seconds(s, v, from, false, w) : 0) +
            (begins ? cost_cut_seconds(s, v, to, true, w) : 0);
}

/* The first node that reads the value there, or what is made from there. */
static int first_reader(const struct space *s, const struct value *v, const struct reshards *r, int which)
{
    int first = s->g->nodes.n;
    const struct place_uses *uses = &s->uses[v->id];
    for (int i = 0; i < uses->list.n; i++)
        if (uses->list.at[i].node >= 0 && uses->list.at[i].node < first &&
            placement_eq(space_read_as(s, uses->list.at[i]), r->list.at[which].place))
            first = uses->list.at[i].node;
    for (int i = 0; i < r->list.n; i++)
        if (r->list.at[i].parent == which && i != which) {
            int below = first_reader(s, v, r, i);
            first = below < first ? below : first;
        }
    return first;
}

static void add_reshards(struct space *s, const struct value *v)
{
    struct arena *tmp = arena_new();
    struct reshards r = reshard_chosen(s, tmp, v);
    for (int i = 0; i < r.list.n; i++) {
        const struct reshard *m = &r.list.at[i];
        struct placement from = m->parent < 0 ? v->place : r.list.at[m->parent].place;
        struct reshard_path path = reshard_find(s, v, from, m->place);
        int reader = first_reader(s, v, &r, i);
        if (path.has_via)
            add_transition(s, v, from, path.via, reader, i == 0, false);
        add_transition(s, v, path.has_via ? path.via : from, m->place, reader, i == 0 && !path.has_via, true);
    }
    arena_free(tmp);
}

/* ---- order ------------------------------------------------------------------------------------------------------------------------- */

/* Reshards before the node that reads them, in the order in which they were added. */
static void sort_parts(struct space *s)
{
    struct step_parts *step = &s->plan->step, sorted = {.list = {NULL, 0, 0}};
    int nodes = s->g->nodes.n, *next = NEWN(s->arena, int, step->list.n + 1), *head = NEWN(s->arena, int, nodes + 2);
    for (int k = 0; k <= nodes; k++)
        head[k] = -1;
    for (int i = step->list.n - 1; i >= nodes; i--) {
        next[i] = head[step->list.at[i].node];
        head[step->list.at[i].node] = i;
    }
    for (int k = 0; k <= nodes; k++) {
        for (int i = head[k]; i >= 0; i = next[i])
            VEC_PUSH(s->arena, &sorted.list, step->list.at[i]);
        if (k < nodes)
            VEC_PUSH(s->arena, &sorted.list, step->list.at[k]);
    }
    require(sorted.list.n == step->list.n);
    *step = sorted;
}

/* ---- layers ------------------------------------------------------------------------------------------------------------------------ */

static void add_to_digest(uint64_t *digest, const void *at, size_t bytes)
{
    const uint64_t both[] = {*digest, digest_bytes(at, bytes)};
    *digest = digest_bytes(both, sizeof both);
}

static void digest_type(uint64_t *digest, const struct type *t)
{
    int each[MAX_RANK + 1] = {(int)t->dtype};
    for (int d = 0; d < t->rank; d++)
        each[d + 1] = t->dim[d]->id;
    add_to_digest(digest, each, sizeof *each * (size_t)(t->rank + 1));
}

static void digest_part(const struct space *s, uint64_t *digest, const struct step_part *p)
{
    const struct node *n = p->to ? NULL : s->g->nodes.at[p->node];
    const char *text = n ? s->plan->nodes.list.at[p->node].text : p->to;
    add_to_digest(digest, text, strlen(text));
    if (n)
        add_to_digest(digest, n->optype, strlen(n->optype));
    for (int i = 0; n && i < n->nin + n->nout; i++) {
        const struct value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
        digest_type(digest, v ? &v->type : &(struct type){.dtype = DT_NONE});
    }
}

/* Of each layer, a digest of its parts in order. */
static uint64_t *layer_digests(struct space *s, int n)
{
    uint64_t *digest = NEWN(s->arena, uint64_t, n + 1);
    const struct step_parts *step = &s->plan->step;
    for (int i = 0; i < step->list.n; i++)
        if (step->list.at[i].layer >= 0)
            digest_part(s, &digest[step->list.at[i].layer], &step->list.at[i]);
    return digest;
}

static int layer_at(const struct layers *all, int node)
{
    for (int k = 0; k < all->list.n; k++)
        if (all->list.at[k].repeat > 1 && node >= all->list.at[k].first && node < all->list.at[k].end)
            return k;
    return -1;
}

static void find_layers(struct space *s)
{
    struct step_parts *step = &s->plan->step;
    struct layers all = layers_find(s->arena, s->g, s->roles);
    for (int i = 0; i < step->list.n; i++)
        step->list.at[i].layer = layer_at(&all, step->list.at[i].node);
    uint64_t *digest = layer_digests(s, all.list.n);
    for (int k = 0; k < all.list.n && all.list.at[k].repeat > 1; k++) {
        int like = 0;
        while (digest[like] != digest[k])
            like++;
        VEC_PUSH(s->arena, &step->layer, like);
    }
}

void plan_note_step(struct space *s)
{
    s->plan->step = (struct step_parts){.list = {NULL, 0, 0}};
    for (int i = 0; i < s->g->nodes.n; i++)
        add_node(s, i);
    for (int i = 0; i < s->g->values.n; i++)
        if (s->uses[i].list.n && s->g->values.at[i]->placed)
            add_reshards(s, s->g->values.at[i]);
    sort_parts(s);
    find_layers(s);
}
