/* Random graphs: steps until the draws say stop; values without readers are outputs. */
#include "tests/graphs/generate.h"

#include "op/op.h"
#include "tests/graphs/block.h"
#include "tests/graphs/families.h"
#include "tests/printed.h"
#include "tests/prove/prove.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 16, MOST_NODES = 30 }; /* a block more than these */
/* An output's difference is measured against its own largest number. */
static const double well_conditioned = 5e-6;

static void step(struct sketch *s)
{
    if (draw(s->draws, 6) == 5) {
        make_block(s);
        return;
    }
    const struct op **ops = NEWN(s->arena, const struct op *, op_count());
    int n = 0;
    for (int i = 0; i < op_count(); i++) {
        const struct family *f = family_of(op_at(i));
        if (f && (f->exact || !s->exact))
            ops[n++] = op_at(i);
    }
    const struct op *op = ops[draw(s->draws, (uint32_t)n)];
    family_of(op)->make(s, op);
}

/* ---- outputs ----------------------------------------------------------------------------------------------------------------- */

static double spread(const struct item *it)
{
    double most = 0;
    for (int k = 1; k < LANES; k++)
        for (int64_t i = 0; i < tensor_elements(&it->lane[0]); i++)
            most = fmax(most, fabs(sketch_get(&it->lane[0], i) - sketch_get(&it->lane[k], i)));
    return most;
}

static bool may_be_output(const struct item *it)
{
    return it->there && !it->infinite && (it->integral || spread(it) <= well_conditioned * fmax(-it->least, it->most));
}

static bool is_output(const struct graph *g, const struct value *v)
{
    for (int i = 0; i < g->outputs.n; i++)
        if (g->outputs.at[i] == v)
            return true;
    return false;
}

static void draw_outputs(struct sketch *s)
{
    for (int i = 0; i < s->items.n; i++) {
        const struct item *it = &s->items.at[i];
        struct value *v = s->g->values.at[i];
        if (v->producer && !is_output(s->g, v) && may_be_output(it) && (it->uses == 0 || draw(s->draws, 8) == 7))
            graph_add_output(s->g, v);
    }
}

/* ---- inputs ------------------------------------------------------------------------------------------------------------------ */

static bool says_symbol(const struct graph *g, const char *name)
{
    for (int i = 0; i < g->inputs.n; i++)
        for (int d = 0; d < g->inputs.at[i]->type.rank; d++)
            if (g->inputs.at[i]->type.dim[d] == dim_sym(g->alg, name, 1))
                return true;
    return false;
}

static void keep_used_inputs(struct sketch *s)
{
    struct uses *uses = graph_uses(s->g, s->arena);
    int n = 0;
    for (int i = 0; i < s->g->inputs.n; i++)
        if (uses[s->g->inputs.at[i]->id].n)
            s->g->inputs.at[n++] = s->g->inputs.at[i];
    s->g->inputs.n = n;
}

/* Only inputs say what a symbol is, but for those that data decides: they are named after a value and a dimension of it. */
static void add_missing_sizes(struct sketch *s)
{
    for (int i = 0; i < s->bind.list.n; i++) {
        const char *name = s->bind.list.at[i].name;
        struct type t = {.dtype = DT_F32, .rank = 1, .dim = {dim_sym(s->g->alg, name, 1)}};
        if (!strchr(name, '.') && !says_symbol(s->g, name))
            sketch_input(s, &t, (struct fill){INTEGERS, 0, 1});
    }
}

/* ---- the result -------------------------------------------------------------------------------------------------------------- */

static struct generated *result_of(struct sketch *s)
{
    struct generated *out = NEW(s->arena, struct generated);
    out->text = graph_printed(s->arena, s->g);
    out->nodes = s->g->nodes.n;
    out->sizes = s->bind;
    out->made = s->made;
    out->input = NEWN(s->arena, struct tensor, s->g->inputs.n + 1);
    for (int i = 0; i < s->g->inputs.n; i++)
        out->input[i] = sketch_item(s, s->g->inputs.at[i])->lane[0];
    return out;
}

struct generated *generate(struct arena *arena, struct draws *draws, bool exact)
{
    struct sketch *s = sketch_new(arena, draws, exact);
    step(s);
    for (int i = 1; i < MOST_STEPS && s->g->nodes.n < MOST_NODES && draw(draws, 8); i++)
        step(s);
    draw_outputs(s);
    graph_prune(s->g);
    keep_used_inputs(s);
    add_missing_sizes(s);
    sketch_free(s);
    return s->g->outputs.n ? result_of(s) : NULL;
}

int never_generated(FILE *to)
{
    int unexplained = 0;
    for (int i = 0; i < op_count(); i++) {
        const struct op *op = op_at(i);
        const char *why = family_reason(op);
        if (family_of(op))
            continue;
        fprintf(to, "%-24s %s\n", op->name, why ? why : "never generated: it needs a row in tests/graphs/families.c");
        unexplained += !why;
    }
    return unexplained;
}
