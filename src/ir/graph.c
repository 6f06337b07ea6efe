/* graph: making values and nodes, finding by name, rewiring, sorting.
 *
 * Nothing is ever freed or renumbered: a value keeps its id, and removed values are only unreachable. Every walk is linear in the graph;
 * passes that replace many values use one walk (graph_rewire). Names of values are unique; one hash table holds them. */
#include "ir/configuration.h"
#include "ir/ir.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#define HASH_FUNCTION(key, bytes, hash) ((hash) = (unsigned)XXH3_64bits(key, bytes))
#define uthash_malloc(bytes) arena_alloc(arena, bytes)
#define uthash_free(p, bytes) ((void)0)
#include <uthash.h>

/* ---- names ------------------------------------------------------------------------------------------------------------- */

struct name_entry {
    const char *name;
    struct value *value; /* in a table of values */
    int next;            /* next suffix to try for this name */
    UT_hash_handle hh;
};
struct names {
    struct name_entry *table;
    int known; /* number of values that it contains; those of a copy are added when a name is first looked up */
};

static struct name_entry *names_find(struct name_entry *table, const char *name)
{
    struct name_entry *e = NULL;
    HASH_FIND(hh, table, name, strlen(name), e);
    return e;
}

static struct name_entry *names_add(struct arena *arena, struct name_entry **table, const char *name, struct value *v)
{
    struct name_entry *e = NEW(arena, struct name_entry);
    e->name = name;
    e->value = v;
    e->next = 1;
    HASH_ADD_KEYPTR(hh, *table, e->name, strlen(e->name), e);
    return e;
}

/* The graph's table, with all of its values. */
static struct name_entry **names_of(const struct graph *g)
{
    struct names *names = g->names;
    for (; names->known < g->values.n; names->known++)
        names_add(g->arena, &names->table, g->values.at[names->known]->name, g->values.at[names->known]);
    return &names->table;
}

/* A similar name that the table lacks. */
static const char *names_fresh(struct arena *arena, struct name_entry *table, const char *name)
{
    struct name_entry *e = names_find(table, name);
    if (!e)
        return arena_strdup(arena, name);
    const char *fresh;
    do
        fresh = arena_printf(arena, "%s_%d", name, e->next++);
    while (names_find(table, fresh));
    return fresh;
}

/* ---- making ------------------------------------------------------------------------------------------------------------ */

struct graph *graph_new(struct arena *arena, struct alg *alg, const char *name)
{
    struct graph *g = NEW(arena, struct graph);
    g->arena = arena;
    g->alg = alg;
    g->name = arena_strdup(arena, name ? name : "");
    g->rank = -1;
    g->names = NEW(arena, struct names);
    return g;
}

static struct value *value_new(struct graph *g, const char *name)
{
    struct value *v = NEW(g->arena, struct value);
    v->name = v->first_name = name;
    v->place = placement_replicated;
    v->id = g->values.n;
    VEC_PUSH(g->arena, &g->values, v);
    return v;
}

struct value *graph_value(struct graph *g, const char *name, const struct type *type)
{
    struct value *v = value_new(g, names_fresh(g->arena, *names_of(g), name && *name ? name : "value"));
    if (type)
        v->type = *type;
    return v;
}

struct value *graph_form(struct graph *g, const struct value *of, const char *name, const struct type *type)
{
    struct value *v = graph_value(g, name, type);
    v->form_of = of->form_of ? of->form_of : of;
    return v;
}

struct value *graph_twin(struct graph *g, const struct value *of)
{
    struct value *v = value_new(g, of->name);
    require(v->id == of->id);
    v->first_name = of->first_name;
    v->type = of->type;
    return v;
}

struct value *graph_find(const struct graph *g, const char *name)
{
    struct name_entry *e = names_find(*names_of(g), name);
    return e ? e->value : NULL;
}

struct configuration *graph_configuration(const struct graph *g, const char *name)
{
    for (int i = 0; i < g->configurations.n; i++)
        if (strcmp(g->configurations.at[i]->name, name) == 0)
            return g->configurations.at[i];
    return NULL;
}

static void hand_name(struct graph *g, struct value *from, struct value *to, const char *suffix)
{
    struct name_entry *own = names_find(*names_of(g), to->name), *given = names_find(*names_of(g), from->name);
    require(own && given);
    HASH_DEL(g->names->table, own);
    given->value = to;
    to->name = from->name;
    from->name = names_fresh(g->arena, *names_of(g), arena_printf(g->arena, "%s%s", to->name, suffix));
    names_add(g->arena, names_of(g), from->name, from);
}

static int64_t constant_size(enum dtype dtype, int rank, const int64_t *dim)
{
    int64_t n, bytes;
    if (!type_sizes_product(dim, rank, &n) || !dtype_packed_bytes(dtype, n, &bytes))
        bug("a constant of impossible size");
    return bytes;
}

enum dtype value_storage(const struct value *v)
{
    return v->stored == DT_NONE ? v->type.dtype : v->stored;
}

double value_width(const struct value *v)
{
    enum dtype t = value_storage(v);
    return v->constant ? dtype_bits(t) / 8.0 : (double)dtype_size(t);
}

struct value *graph_constant(struct graph *g, const char *name, enum dtype dtype, int rank, const int64_t *dim, const void *data)
{
    require(rank >= 0 && rank <= MAX_RANK);
    struct constant *c = NEW(g->arena, struct constant);
    struct type type = {.dtype = dtype, .rank = rank};
    c->dtype = dtype;
    c->rank = rank;
    for (int i = 0; i < rank; i++) {
        c->dim[i] = dim[i];
        type.dim[i] = dim_int(g->alg, dim[i]);
    }
    c->bytes = constant_size(dtype, rank, dim);
    void *copy = arena_alloc(g->arena, c->bytes ? (size_t)c->bytes : 1);
    if (c->bytes)
        memcpy(copy, data, (size_t)c->bytes);
    c->data = copy;
    struct value *v = graph_value(g, name, &type);
    v->constant = c;
    return v;
}

struct value *graph_ints(struct graph *g, const char *name, int n, const int64_t *at)
{
    int64_t dim = n;
    return graph_constant(g, name, DT_I64, 1, &dim, at);
}

bool value_any_untyped(int nin, struct value *const *in)
{
    for (int i = 0; i < nin; i++)
        if (in[i] && in[i]->type.dtype == DT_NONE && in[i]->producer && !in[i]->producer->op)
            return true;
    return false;
}

struct node *graph_node(struct graph *g, const struct op *op, const char *name, int nin, struct value *const *in, int nout)
{
    require(op && nin >= 0 && nout >= 0);
    struct node *n = NEW(g->arena, struct node);
    n->op = op;
    n->optype = op->name;
    n->domain = op->domain;
    n->name = arena_strdup(g->arena, name && *name ? name : op->name);
    n->nin = nin;
    n->nout = nout;
    n->in = NEWN(g->arena, struct value *, nin);
    n->out = NEWN(g->arena, struct value *, nout);
    if (nin)
        memcpy(n->in, in, (size_t)nin * sizeof *in);
    n->nattr = op->nattr;
    n->attr = NEWN(g->arena, struct attr, op->nattr);
    for (int i = 0; i < op->nattr; i++)
        n->attr[i] = op->attr[i].value;
    n->opset = *op->domain ? op->since : g->opset;
    return n;
}

struct node *graph_node_like(struct graph *g, const struct node *like, const char *name, int nin, struct value *const *in)
{
    struct node *n = graph_node(g, like->op, name, nin, in, like->nout);
    attr_copy(n, like);
    return n;
}

void node_output(struct graph *g, struct node *n, int index, struct value *v)
{
    require(index >= 0 && index < n->nout && v && v->id < g->values.n && g->values.at[v->id] == v);
    n->out[index] = v;
    v->producer = n;
    v->index = index;
}

void graph_append(struct graph *g, struct node *n)
{
    VEC_PUSH(g->arena, &g->nodes, n);
}

void graph_insert(struct graph *g, int at, struct node *n)
{
    require(at >= 0 && at <= g->nodes.n);
    VEC_PUSH(g->arena, &g->nodes, n);
    memmove(g->nodes.at + at + 1, g->nodes.at + at, (size_t)(g->nodes.n - 1 - at) * sizeof *g->nodes.at);
    g->nodes.at[at] = n;
}

void graph_insert_before_use(struct graph *g, int n, struct node *const *made)
{
    struct {
        struct node **at;
        int n, cap;
    } all = {NULL, 0, 0};
    bool *waits = NEWN(g->arena, bool, g->values.n + 1);
    for (int i = 0; i < n; i++)
        waits[made[i]->out[0]->id] = true;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *node = g->nodes.at[i];
        for (int k = 0; k < node->nin; k++)
            if (node->in[k] && waits[node->in[k]->id]) {
                waits[node->in[k]->id] = false;
                VEC_PUSH(g->arena, &all, node->in[k]->producer);
            }
        VEC_PUSH(g->arena, &all, node);
    }
    for (int i = 0; i < n; i++)
        if (waits[made[i]->out[0]->id])
            VEC_PUSH(g->arena, &all, made[i]);
    g->nodes.at = all.at;
    g->nodes.n = all.n;
    g->nodes.cap = all.cap;
}

/* ---- replacing --------------------------------------------------------------------------------------------------------- */

/* The two values exchange their names. */
static void swap_names(struct graph *g, struct value *a, struct value *b)
{
    struct name_entry *ea = names_find(*names_of(g), a->name), *eb = names_find(*names_of(g), b->name);
    require(ea && eb && ea->value == a && eb->value == b);
    const char *name = a->name;
    a->name = b->name;
    b->name = name;
    ea->value = b;
    eb->value = a;
}

static void replace_output(struct graph *g, struct value *old, struct value *new_value)
{
    if (!old->output || !new_value->producer || new_value->output)
        return;
    swap_names(g, old, new_value);
    graph_set_output(g, old->output - 1, new_value);
}

void graph_move_output(struct graph *g, int output, struct value *to, const char *suffix)
{
    struct value *old = g->outputs.at[output];
    hand_name(g, old, to, suffix);
    graph_set_output(g, output, to);
}

/* The last replacement of v. Maps values on the way directly to it, so that no chain is walked twice. */
static struct value *follow_rewiring(struct value **to, int n, struct value *v)
{
    struct value *last = v, *next;
    int steps = 0;
    while (last && last->id < n && to[last->id] && to[last->id] != last) {
        if (++steps > n)
            bug("values replace each other in a circle at '%s'", last->name);
        last = to[last->id];
    }
    for (; v != last; v = next) {
        next = to[v->id];
        to[v->id] = last;
    }
    return last;
}

void graph_rewire(struct graph *g, struct value **to, bool outputs)
{
    int n = g->values.n;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *node = g->nodes.at[i];
        for (int k = 0; k < node->nin; k++)
            node->in[k] = follow_rewiring(to, n, node->in[k]);
    }
    for (int i = 0; outputs && i < g->outputs.n; i++) {
        struct value *old = g->outputs.at[i], *last = follow_rewiring(to, n, old);
        if (last != old)
            replace_output(g, old, last);
    }
}

void graph_replace(struct graph *g, struct value *old, struct value *new_value, bool outputs)
{
    require(old && new_value);
    if (old == new_value)
        return;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *node = g->nodes.at[i];
        for (int k = 0; k < node->nin; k++)
            if (node->in[k] == old)
                node->in[k] = new_value;
    }
    if (outputs)
        replace_output(g, old, new_value);
}

/* ---- order and liveness ------------------------------------------------------------------------------------------------ */

/* Scratch of the walks below: one slot per value about its producer. */
static struct arena *scratch_slots(const struct graph *g, uint8_t **mark)
{
    struct arena *tmp = arena_new();
    *mark = NEWN(tmp, uint8_t, g->values.n + 1);
    return tmp;
}

static int first_output(const struct node *n)
{
    for (int i = 0; i < n->nout; i++)
        if (n->out[i])
            return n->out[i]->id;
    return -1;
}

enum { UNSEEN, OPEN, DONE };
struct sort_visit {
    struct node *node;
    int next;
};
struct sorter {
    struct graph *g;
    bool read; /* the nodes come from a file */
    struct arena *arena;
    uint8_t *mark;
    VEC(struct sort_visit) open;
    VEC(struct node *) sorted;
};

static void open_node(struct sorter *s, struct node *n)
{
    int id = first_output(n);
    if (id < 0)
        bug("node '%s' has no output", n->name);
    if (s->mark[id] == DONE)
        return;
    if (s->mark[id] == OPEN && s->read)
        fail("%s depends on its own output: the graph has a cycle", node_where(s->g, n));
    if (s->mark[id] == OPEN)
        bug("%s depends on its own output", node_where(s->g, n));
    s->mark[id] = OPEN;
    struct sort_visit v = {n, 0};
    VEC_PUSH(s->arena, &s->open, v);
}

/* The innermost open node opens its next producer, or is finished. */
static void sort_advance(struct sorter *s)
{
    struct sort_visit *v = &s->open.at[s->open.n - 1];
    while (v->next < v->node->nin) {
        const struct value *in = v->node->in[v->next++];
        if (in && in->producer) {
            int open = s->open.n;
            open_node(s, in->producer);
            if (s->open.n != open)
                return;
        }
    }
    s->mark[first_output(v->node)] = DONE;
    VEC_PUSH(s->arena, &s->sorted, v->node);
    s->open.n--;
}

static void sort_nodes(struct graph *g, bool read)
{
    struct sorter s = {.g = g, .read = read};
    s.arena = scratch_slots(g, &s.mark);
    int n = g->nodes.n;
    for (int i = 0; i < n; i++) {
        open_node(&s, g->nodes.at[i]);
        while (s.open.n)
            sort_advance(&s);
    }
    g->nodes.n = 0;
    for (int i = 0; i < s.sorted.n; i++)
        VEC_PUSH(g->arena, &g->nodes, s.sorted.at[i]);
    arena_free(s.arena);
}

void graph_sort(struct graph *g)
{
    sort_nodes(g, false);
}

void graph_sort_read(struct graph *g)
{
    sort_nodes(g, true);
}

void graph_name_nodes(struct graph *g)
{
    struct arena *tmp = arena_new();
    struct name_entry *table = NULL;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        const char *name = n->name && *n->name ? n->name : n->optype;
        if (name != n->name || names_find(table, name))
            n->name = arena_strdup(g->arena, names_fresh(tmp, table, name));
        names_add(tmp, &table, n->name, NULL);
    }
    HASH_CLEAR(hh, table);
    arena_free(tmp);
}

/* ---- uses -------------------------------------------------------------------------------------------------------------- */

static void add_use(struct uses *u, struct node *node, int index)
{
    if (u->at) {
        u->at[u->n].node = node;
        u->at[u->n].index = index;
    }
    u->n++;
}

static void walk_uses(const struct graph *g, struct uses *uses)
{
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nin; k++)
            if (g->nodes.at[i]->in[k])
                add_use(&uses[g->nodes.at[i]->in[k]->id], g->nodes.at[i], k);
    for (int i = 0; i < g->outputs.n; i++)
        add_use(&uses[g->outputs.at[i]->id], NULL, i);
}

bool *graph_leads_to(const struct graph *g, struct arena *a, bool *marked)
{
    bool *leads = NEWN(a, bool, g->nodes.n + 1);
    for (int i = g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = g->nodes.at[i];
        for (int k = 0; k < n->nout; k++)
            leads[i] = leads[i] || (n->out[k] && marked[n->out[k]->id]);
        for (int k = 0; leads[i] && k < n->nin; k++)
            if (n->in[k])
                marked[n->in[k]->id] = true;
    }
    return leads;
}

struct uses *graph_uses(const struct graph *g, struct arena *arena)
{
    struct uses *uses = NEWN(arena, struct uses, g->values.n + 1);
    walk_uses(g, uses);
    int total = 0;
    for (int i = 0; i < g->values.n; i++)
        total += uses[i].n;
    struct use *at = NEWN(arena, struct use, total + 1);
    for (int i = 0; i < g->values.n; i++) {
        uses[i].at = at;
        at += uses[i].n;
        uses[i].n = 0;
    }
    walk_uses(g, uses);
    return uses;
}

bool graph_reads_once(const struct uses *uses, int n, const struct value *v)
{
    return v->id < n && uses[v->id].n == 1;
}

/* ---- the rest ---------------------------------------------------------------------------------------------------------- */

const char *graph_meta(const struct graph *g, const char *key)
{
    int at = name_index_find(&g->meta_at, key);
    return at < 0 ? NULL : g->meta.at[at].text;
}

void graph_set_meta(struct graph *g, const char *key, const char *text)
{
    int at = name_index_find(&g->meta_at, key);
    struct meta m = {at < 0 ? arena_strdup(g->arena, key) : g->meta.at[at].key, arena_strdup(g->arena, text)};
    if (at >= 0) {
        g->meta.at[at] = m;
        return;
    }
    name_index_put(g->arena, &g->meta_at, m.key, g->meta.n);
    VEC_PUSH(g->arena, &g->meta, m);
}

const char *graph_file(const struct graph *g)
{
    return g->path ? g->path : g->name;
}

const char *node_label(const struct graph *g, const struct node *n)
{
    return arena_printf(g->arena, "node '%s' (%s)", n->name ? n->name : "", n->optype ? n->optype : "?");
}

const char *node_lookup(const struct graph *g, const struct node *n, int indices)
{
    const struct attr *lookup = attr_find(n, "lookup");
    return lookup && lookup->set ? lookup->s : arena_printf(g->arena, "%s: '%s'", node_label(g, n), n->in[indices]->name);
}

const char *node_where(const struct graph *g, const struct node *n)
{
    return g->path ? arena_printf(g->arena, "%s: %s", g->path, node_label(g, n)) : node_label(g, n);
}

static const char *say_node(const void *g, const void *n)
{
    return node_where(g, n);
}

struct diag_subject node_work_on(const struct graph *g, const struct node *n)
{
    return diag_work_on((struct diag_subject){say_node, g, n});
}
