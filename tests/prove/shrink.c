/* shrink: the smallest plan and the smallest graph that still fail alike. Parts are dropped in halves, quarters and so on, down to single
 * ones, and stay away where the failure stays (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002). */
#include "onnx/onnx.h"
#include "tests/printed.h"
#include "tests/prove/private.h"

#include <string.h>

struct shrinker {
    struct arena *arena;
    struct prove *prove;
    struct prove_plan plan; /* forced: what of chosen is left */
    enum proof_kind kind;
    struct named_list chosen;
};

/* Leaves a true entry of kept where the failure needs it. */
static void minimize(struct shrinker *s, int n, bool *kept, bool (*fails)(struct shrinker *, const bool *kept))
{
    bool *before = NEWN(s->arena, bool, n);
    for (int size = n > 1 ? (n + 1) / 2 : n; size > 0; size /= 2)
        for (int at = 0; at < n; at += size) {
            int end = at + size < n ? at + size : n, left = 0;
            memcpy(before, kept, (size_t)n);
            for (int i = at; i < end; i++) {
                left += kept[i];
                kept[i] = false;
            }
            if (left > 0 && !fails(s, kept))
                memcpy(kept, before, (size_t)n);
        }
}

static bool *all(struct arena *a, int n)
{
    bool *kept = NEWN(a, bool, n);
    memset(kept, 1, (size_t)n);
    return kept;
}

/* ---- the plan ---------------------------------------------------------------------------------------------------------------- */

static struct named_list chosen_of(struct shrinker *s, const bool *kept)
{
    struct named_list list = {0};
    for (int i = 0; i < s->chosen.list.n; i++)
        if (kept[i])
            VEC_PUSH(s->arena, &list.list, s->chosen.list.at[i]);
    return list;
}

static bool plan_fails(struct shrinker *s, const bool *kept)
{
    struct named_list list = chosen_of(s, kept);
    s->plan.forced = &list;
    return prove_try(s->prove, &s->plan).kind == s->kind;
}

/* ---- the graph --------------------------------------------------------------------------------------------------------------- */

/* By value id: how many of the kept nodes read it, how many of the others or outputs, and whether a kept node makes it. */
struct reading {
    int kept, others;
    bool made;
};

static struct reading *readings(struct arena *a, const struct graph *g, const bool *kept)
{
    struct reading *of = NEWN(a, struct reading, g->values.n);
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        for (int k = 0; k < n->nin; k++)
            if (n->in[k])
                *(kept[i] ? &of[n->in[k]->id].kept : &of[n->in[k]->id].others) += 1;
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                of[n->out[k]->id].made |= kept[i];
    }
    for (int i = 0; i < g->outputs.n; i++)
        of[g->outputs.at[i]->id].others++;
    return of;
}

/* In the text itself, because the model's files are not next to it. */
static struct constant *inline_constant(struct arena *a, const struct value *v)
{
    struct constant *c = NEW(a, struct constant);
    *c = *v->constant;
    c->data = constant_data(v->constant, v->name);
    c->source = (struct source){0};
    return c;
}

/* Values made only by dropped nodes become inputs; values that they read, or without readers, become outputs; everything: so do all
 * others. */
static void set_ends(struct graph *g, const struct reading *of, bool everything)
{
    g->inputs.n = 0;
    graph_clear_outputs(g);
    graph_clear_states(g);
    for (int i = 0; i < g->values.n; i++) {
        struct value *v = g->values.at[i];
        if (v->constant)
            v->constant = of[i].kept > 0 ? inline_constant(g->arena, v) : NULL;
        else if (of[i].kept > 0 && !of[i].made)
            VEC_PUSH(g->arena, &g->inputs, v);
        if (of[i].made && (everything || of[i].others > 0 || of[i].kept == 0))
            graph_add_output(g, v);
    }
}

struct part {
    const char *text;
    int nin;
    const char **in;
};

static struct part cut(struct arena *a, const struct graph *whole, const bool *kept, bool everything)
{
    const struct reading *of = readings(a, whole, kept);
    struct graph *g = graph_copy(a, whole);
    int n = 0;
    for (int i = 0; i < g->nodes.n; i++)
        if (kept[i])
            g->nodes.at[n++] = g->nodes.at[i];
    g->nodes.n = n;
    set_ends(g, of, everything);
    struct part p = {.text = graph_printed(a, g), .nin = g->inputs.n, .in = NEWN(a, const char *, g->inputs.n)};
    for (int i = 0; i < p.nin; i++)
        p.in[i] = arena_strdup(a, g->inputs.at[i]->name);
    return p;
}

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static struct tensor *inputs_of(struct arena *a, const struct prove *p, int set, const struct part *part)
{
    struct tensor *in = NEWN(a, struct tensor, part->nin);
    for (int i = 0; i < part->nin; i++) {
        int k = find_name(p->in_name, p->nin, part->in[i]);
        if (k < 0)
            fail("input '%s' of a part is not an input of the whole", part->in[i]);
        in[i] = p->sets.at[set].in[k];
    }
    return in;
}

/* What the whole graph has at the inputs of a part of it. Runs the whole. */
static struct tensor *values_of(struct arena *a, struct prove *p, int set, const struct part *part)
{
    struct part whole = cut(a, prove_graph(p), all(a, prove_graph(p)->nodes.n), true);
    struct tensor *from = inputs_of(a, p, set, &whole);
    struct prove *every = prove_open_given(a, whole.text, 1, &from);
    struct tensor *in = NEWN(a, struct tensor, part->nin);
    for (int i = 0; i < part->nin; i++) {
        int made = find_name(every->out_name, every->nout, part->in[i]), given = find_name(p->in_name, p->nin, part->in[i]);
        if (made < 0 && given < 0)
            fail("'%s' has no value in the whole graph", part->in[i]);
        in[i] = made >= 0 ? every->sets.at[0].want[made] : p->sets.at[set].in[given];
    }
    prove_close(every);
    return in;
}

struct cut_trial {
    struct shrinker *shrinker;
    const struct part *part;
    const char *file;
};

/* What goes wrong before the trial leaves split at -1. */
static void try_part(void *data, struct proof *out)
{
    const struct cut_trial *t = data;
    struct arena *a = arena_new();
    out->split = -1;
    struct tensor *in = values_of(a, t->shrinker->prove, t->shrinker->plan.set, t->part);
    struct prove *p = prove_open_given(a, t->part->text, 1, &in);
    struct prove_plan plan = t->shrinker->plan;
    plan.set = 0;
    *out = prove_try(p, &plan);
    prove_close(p);
}

static bool graph_fails(struct shrinker *s, const bool *kept)
{
    struct arena *tmp = arena_new();
    struct part part = cut(tmp, prove_graph(s->prove), kept, false);
    struct proof p;
    (void)prove_apart(tmp, try_part, &(struct cut_trial){s, &part, NULL}, &p);
    arena_free(tmp);
    return p.split >= 0 && p.kind == s->kind; /* the kind that the trial found: the process that tried it ended well */
}

static void save_inputs(void *data, struct proof *out)
{
    const struct cut_trial *t = data;
    struct arena *a = arena_new();
    const struct tensor *in = values_of(a, t->shrinker->prove, t->shrinker->plan.set, t->part);
    (void)out;
    for (int i = 0; i < t->part->nin; i++)
        tensor_write_npy(arena_printf(a, "%s.%d.npy", t->file, i), &in[i]);
}

/* ---- the report -------------------------------------------------------------------------------------------------------------- */

static void print_text(FILE *to, const char *text)
{
    enum { WIDTH = 200 };
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        fprintf(to, "    %.*s%s\n", (int)(end - text < WIDTH ? end - text : WIDTH), text, end - text > WIDTH ? "..." : "");
}

static void print_replay(FILE *to, const struct shrinker *s, const char *path, int inputs)
{
    fprintf(to, "  prove %s --tp %d --plans 1 --mode %s --seed %d%s", path, s->plan.ranks,
            s->plan.sp == SP_AUTO ? "auto"
                : s->plan.sp      ? "sp"
                                  : "plain",
            2 + (s->plan.ranks + s->plan.dense) % 2, s->plan.exact ? " --exact" : "");
    for (int i = 0; i < inputs; i++)
        fprintf(to, " --input %s.%d.npy", path, i);
    for (int i = 0; i < s->plan.forced->list.n; i++)
        fprintf(to, " --force '%s=%s'", s->plan.forced->list.at[i].name, s->plan.forced->list.at[i].text);
    fputc('\n', to);
}

static void shrink_graph(FILE *to, struct shrinker *s, const char *file)
{
    const struct graph *g = prove_graph(s->prove);
    struct proof saved;
    bool *kept = all(s->arena, g->nodes.n);
    if (!graph_fails(s, kept)) {
        print_replay(to, s, prove_path(s->prove), 0);
        return;
    }
    minimize(s, g->nodes.n, kept, graph_fails);
    struct part part = cut(s->arena, g, kept, false);
    print_text(to, part.text);
    out_write_text(file, part.text);
    (void)prove_apart(s->arena, save_inputs, &(struct cut_trial){s, &part, file}, &saved);
    if (saved.kind != PROOF_EQUAL)
        fprintf(to, "  its inputs are not written: %s\n", saved.said);
    print_replay(to, s, file, saved.kind == PROOF_EQUAL ? part.nin : 0);
}

void prove_shrink(FILE *to, struct prove *p, const struct prove_plan *plan, const struct proof *found, const char *file)
{
    struct proof ignored;
    struct shrinker s = {.arena = arena_new(), .prove = p, .plan = *plan, .kind = found->kind};
    s.chosen = prove_chosen(s.arena, p, plan, &ignored);
    bool *kept = all(s.arena, s.chosen.list.n);
    if (s.chosen.list.n == 0 || !plan_fails(&s, kept)) {
        fprintf(to, "  not shrunk: the same strategies, forced, do not fail alike\n");
        arena_free(s.arena);
        return;
    }
    minimize(&s, s.chosen.list.n, kept, plan_fails);
    struct named_list left = chosen_of(&s, kept);
    s.plan.forced = &left;
    fprintf(to, "  nodes that are not whole: %d\n", left.list.n);
    for (int i = 0; i < left.list.n; i++)
        fprintf(to, "    %s: %s\n", left.list.at[i].name, left.list.at[i].text);
    shrink_graph(to, &s, file);
    arena_free(s.arena);
}
