/* step_parts: the parts of the predicted step of the chosen plan: nodes and reshards in execution order, and their layers. */
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <math.h>
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

/* Adds a reshard. ends: the first reshard of a value, which may end its kernel; begins: one that another kernel reads. */
static void add_transition(struct space *s, const struct value *v, struct placement from, struct placement to, int reader, bool ends,
                           bool begins)
{
    struct step_part part = {.name = v->name, .to = placement_str(s->arena, to), .by = placement_transition(from, to).by, .node = reader};
    struct step_part *added = add_part(s, part);
    for (int w = 0; w < s->plan->workloads.n; w++)
        added->seconds[w] = cost_reshard_seconds(s, v, from, to, w) + (ends ? cost_cut_seconds(s, v, from, false, w) : 0) +
            (begins ? cost_cut_seconds(s, v, to, true, w) : 0);
}

/* The first node that reads the value in this placement or in one derived from it. */
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
    bool ended = false; /* the kernel that makes the value, by its first reshard */
    for (int i = 0; i < r.list.n; i++) {
        const struct reshard *m = &r.list.at[i];
        struct placement from = m->parent < 0 ? v->place : r.list.at[m->parent].place;
        struct reshard_path path = reshard_find(s, v, from, m->place);
        int reader = first_reader(s, v, &r, i);
        bool ends = m->parent < 0 && !ended;
        ended = ended || ends;
        if (path.has_via)
            add_transition(s, v, from, path.via, reader, ends, false);
        add_transition(s, v, path.has_via ? path.via : from, m->place, reader, ends && !path.has_via, true);
    }
    arena_free(tmp);
}

/* ---- order ------------------------------------------------------------------------------------------------------------------------- */

/* Sorts reshards before the node that reads them; otherwise keeps the order. */
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
        require(k == nodes || (step->list.at[k].node == k && !step->list.at[k].to)); /* nodes come first */
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

struct part_digest {
    uint64_t sum;
    struct arena *arena;
    VEC(const struct dim *) size; /* data-dependent sizes: each is identified by the first part that has it */
};

static void add_to_part(struct part_digest *d, const void *at, size_t bytes)
{
    add_to_digest(&d->sum, at, bytes);
}

static void add_dim(struct part_digest *d, const struct dim *x)
{
    if (!dim_has_data(x)) {
        add_to_part(d, &x->id, sizeof x->id);
        return;
    }
    int own[] = {-1, (int)x->kind, x->n, 0};
    if (x->kind == DIM_SYM) {
        while (own[3] < d->size.n && d->size.at[own[3]] != x)
            own[3]++;
        if (own[3] == d->size.n)
            VEC_PUSH(d->arena, &d->size, x);
    }
    add_to_part(d, own, sizeof own);
    for (int i = 0; i < x->n; i++)
        add_dim(d, x->arg[i]);
}

static void add_type(struct part_digest *d, const struct type *t)
{
    int own[] = {(int)t->dtype, t->rank};
    add_to_part(d, own, sizeof own);
    for (int i = 0; i < t->rank; i++)
        add_dim(d, t->dim[i]);
}

static uint64_t digest_of(const struct space *s, struct arena *tmp, const struct step_part *p)
{
    struct part_digest d = {.arena = tmp};
    const struct node *n = p->to ? NULL : s->g->nodes.at[p->node];
    const char *text = n ? s->plan->nodes.list.at[p->node].text : p->to;
    add_to_part(&d, text, strlen(text));
    if (n)
        add_to_part(&d, n->optype, strlen(n->optype));
    for (int i = 0; n && i < n->nin + n->nout; i++) {
        const struct value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
        add_type(&d, v ? &v->type : &(struct type){.dtype = DT_NONE});
    }
    return d.sum;
}

static void digest_parts(struct space *s)
{
    require(s->plan->nodes.list.n == s->g->nodes.n);
    struct arena *tmp = arena_new();
    for (int i = 0; i < s->plan->step.list.n; i++) {
        struct step_part *p = &s->plan->step.list.at[i];
        p->digest = digest_of(s, tmp, p);
    }
    arena_free(tmp);
}

/* By node, plus one entry for outputs: the layer; -1: none. */
static int *layer_of_nodes(struct space *s, const struct layers *all)
{
    int *layer = NEWN(s->arena, int, s->g->nodes.n + 1);
    for (int i = 0; i <= s->g->nodes.n; i++)
        layer[i] = -1;
    for (int k = all->list.n - 1; k >= 0; k--)
        for (int i = all->list.at[k].first; i < all->list.at[k].end && all->list.at[k].repeat > 1; i++)
            layer[i] = k;
    return layer;
}

static void find_layers(struct space *s)
{
    struct step_parts *step = &s->plan->step;
    struct layers all = layers_find(s->arena, s->g, s->roles);
    const int *layer = layer_of_nodes(s, &all);
    uint64_t *digest = NEWN(s->arena, uint64_t, all.list.n + 1); /* by layer: digest of its parts in order */
    for (int i = 0; i < step->list.n; i++) {
        struct step_part *p = &step->list.at[i];
        p->layer = layer[p->node];
        if (p->layer >= 0)
            add_to_digest(&digest[p->layer], &p->digest, sizeof p->digest);
    }
    struct name_index like = {0};
    for (int k = 0; k < all.list.n && all.list.at[k].repeat > 1; k++) {
        const char *text = arena_printf(s->arena, "%016llx", (unsigned long long)digest[k]);
        if (name_index_find(&like, text) < 0)
            name_index_put(s->arena, &like, text, k);
        VEC_PUSH(s->arena, &step->layer, name_index_find(&like, text));
    }
}

/* The parts are the whole step, as plan_predict adds it up. */
static void require_whole(const struct plan *p)
{
    for (int w = 0; w < p->workloads.n; w++) {
        double sum = 0;
        for (int i = 0; i < p->step.list.n; i++)
            sum += p->step.list.at[i].seconds[w];
        double whole = p->workloads.at[w].seconds;
        require((isinf(sum) && isinf(whole)) || fabs(sum - whole) <= 1e-9 * sum);
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
    require_whole(s->plan);
    sort_parts(s);
    digest_parts(s);
    find_layers(s);
}
