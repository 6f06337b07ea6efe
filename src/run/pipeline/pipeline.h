/* pipeline: the stages of a run (tpc-shard --pp), and how values get from one to another. Rank t of a stage exchanges whole values with
 * rank t of the others, each pair of stages over a communicator of its own. A stage first takes what earlier ones send, in their order, and
 * sends when it has run, in the order of the later ones: so the first stage that anyone waits for always runs. */
#ifndef TPC_RUN_PIPELINE_H
#define TPC_RUN_PIPELINE_H

#include "ir/ir.h"
#include "kern/kern.h"
#include "run/comm/comm.h"

struct pipeline;
/* Which stages send what is compared: files that do not fit together are a failure that names the value. NULL: the graph is no stage. All
 * ranks of the job call it. */
struct pipeline *pipeline_form(struct arena *, struct comm *all, struct graph *);
/* All ranks call it, after the session that uses it is freed. */
void pipeline_free(struct pipeline *);
/* The ranks of the own stage. */
struct comm *pipeline_stage(const struct pipeline *);
/* Is output i sent to another stage? */
bool pipeline_sends(const struct pipeline *, int output);
/* Sets the inputs that other stages send; they are valid until the next call. */
void pipeline_receive(struct pipeline *, struct tensor *inputs);
/* outputs: the global tensors of those that are sent. */
void pipeline_send(struct pipeline *, const struct tensor *outputs);
/* A global tensor of the first rank of a stage, on the first rank of all; elsewhere an empty one. own: of a rank of that stage. */
struct tensor pipeline_to_first(struct pipeline *, struct arena *, const char *name, int stage, const struct tensor *own);

#endif
