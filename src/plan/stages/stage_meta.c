/* stage_meta: what the rank files of a stage say about other stages: what it receives from them and sends them, and the model outputs of
 * all stages. */
#include "ir/rank_meta.h"
#include "op/analysis/analysis.h"
#include "plan/stages/stages.h"

#include <string.h>

static void note_other_states(struct graph *g, const struct graph *whole, const struct graph *own)
{
    int n = 0;
    EACH (const struct state, s, whole->states) {
        const struct rank_state state = rank_meta_state_of(s);
        bool here = false;
        EACH (const struct state, k, own->states) {
            const struct rank_state kept = rank_meta_state_of(k);
            here = here || (strcmp(kept.past, state.past) == 0 && strcmp(kept.present, state.present) == 0);
        }
        if (!here)
            rank_meta_set_other_state(g, n++, &state);
    }
}

/* Weights that this stage and others read, and one of them trains. */
static void write_shared_weights(struct graph *g, const struct stage_weights *all, const struct graph *own, int number)
{
    EACH (const struct stage_weight, w, all->list) {
        if (w->trains == number)
            rank_meta_set_readers(g, w->name, w->n, w->reads);
        for (int i = 0; i < w->n; i++)
            if (w->reads[i] == number) {
                const struct value *v = graph_find(own, w->name);
                rank_meta_set_sender(g, w->name, w->trains);
                rank_meta_set_value(g, RANK_INPUT, w->name, &v->type, v->place);
            }
    }
}

/* Gradients go to earlier stages. */
static void note_addends(struct graph *g, const struct stage_plan *plan, const struct graph *own, int stage)
{
    const struct graph *whole = plan->map.g;
    for (int i = whole->inputs.n; i < own->inputs.n; i++)
        if (stage_sender(plan, own->inputs.at[i]->name) > stage && plan->addend[graph_find(whole, own->inputs.at[i]->name)->id])
            rank_meta_set_addend(g, own->inputs.at[i]->name);
    for (int i = 0; i < own->outputs.n; i++) {
        const int *to;
        int n = stage_readers(g->arena, plan, own->outputs.at[i]->name, &to);
        if (n && to[n - 1] < stage && plan->addend[graph_find(whole, own->outputs.at[i]->name)->id])
            rank_meta_set_addend(g, own->outputs.at[i]->name);
    }
}

void stage_write_meta(struct graph *g, const struct stage_plan *plan, const struct graph *own, int stage)
{
    const struct graph *whole = plan->map.g;
    rank_meta_set_stage(g, stage, plan->cut.stages);
    for (int i = whole->inputs.n; i < own->inputs.n; i++) {
        int sender = stage_sender(plan, own->inputs.at[i]->name);
        require(sender >= 0 && sender != stage);
        rank_meta_set_sender(g, own->inputs.at[i]->name, sender);
    }
    for (int i = 0; i < own->outputs.n; i++) {
        const int *to;
        int n = stage_readers(g->arena, plan, own->outputs.at[i]->name, &to);
        if (n)
            rank_meta_set_readers(g, own->outputs.at[i]->name, n, to);
    }
    if (whole->trained.n)
        note_addends(g, plan, own, stage);
    write_shared_weights(g, &plan->shared, own, stage);
    op_note_whole(g, whole);
    note_other_states(g, whole, own);
    for (int i = 0; i < whole->outputs.n; i++) {
        const struct value *v = whole->outputs.at[i];
        int makes = stage_of(&plan->map, &plan->cut, v);
        rank_meta_set_result(g, i, &(struct rank_result){v->name, makes < 0 ? 0 : makes, v->type});
    }
}
