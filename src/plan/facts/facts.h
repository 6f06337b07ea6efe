/* facts: what a model is before any plan: its workloads, its state, the bytes of its weights. */
#ifndef TPC_FACTS_H
#define TPC_FACTS_H

#include "plan/plan.h"

/* workload.c: what is planned for. The texts of --workload, or the default: a prompt of 512 and 256 single steps at context 1024, where
 * roles of symbols are derived from states and contracted dimensions. Every symbol of the graph gets a value; the equations hold. */
void plan_workloads(struct graph *, const struct options *, struct plan *);

/* kv_origin.c: keys and values that attention reads in a canonical graph, as the values that they are moved, repeated or scaled from; dim
 * is the dimension attended over there, -1 where moves hide it. */
struct origin {
    struct value *value;
    int dim;
};
struct attended {
    struct origin key, value;
};
struct attended_list {
    VEC(struct attended) list;
};
struct attended_list plan_attended(struct graph *, struct arena *);
/* What dimension d of v is moved, repeated or scaled from; d may be -1. */
struct origin plan_origin(struct graph *, struct value *, int d);

/* state.c: what a decode loop carries. Pairs, before types are known; then, in a canonical graph, read-only state (past only, dim -1)
 * and born state (present only). Graphs of one rank have what their files say. */
void plan_find_states(struct graph *);
void plan_find_kept_states(struct graph *);

/* state_from.c: the state of another plan of the model (--state-from). */
struct other_state {
    struct handed end;
    bool made;
    const char *placement;
}; /* made: its end is an output, which a later graph takes */
struct other_plan {
    const char *path;
    VEC(struct other_state) states;
};
/* state_from.c: dir/plan.json, which must be for as many ranks. plan_match_states: which of its states each state of the graph is, by name
 * (handover_match); what placement the plan demands of it; what it comes from. */
struct other_plan *state_from_read(struct arena *, const char *dir, int ranks);
void plan_match_states(struct graph *, const struct options *, struct plan *);

/* weight_bytes.c: a rank's part of a constant: outer times, the intervals of size rows of row bytes each. The same as byte ranges of the
 * source tensor, in order, merged where they adjoin. */
struct weight_layout {
    int64_t outer, size, row;
    int n;
    struct interval *interval;
};
struct weight_layout weight_layout(struct arena *, const struct constant *, struct placement, int rank);
int weight_ranges(struct arena *, const struct constant *, struct placement, int rank, const struct byte_range **out);
bool weights_converted(const struct options *); /* --weights gives f32 weights another type */
/* False where a placement takes apart bytes that hold two elements: then it is not offered. Only constants of such types are split. */
bool weight_divides(const struct value *, struct placement);
int64_t weight_bytes(const struct value *); /* of a value's type, which is static, as it is stored */

#endif
