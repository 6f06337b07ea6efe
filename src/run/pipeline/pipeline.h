/* pipeline: the stages of a run (tpc-shard --pp), and the values sent between them. Rank t of a stage exchanges whole values with rank t of
 * other stages, by messages that do not block: a stage that has sent its values starts its next run while later stages compute. All stages
 * make the same runs in the same order. In training, a run waits in the middle for the gradients of later stages; other runs may start
 * meanwhile. */
#ifndef TPC_RUN_PIPELINE_H
#define TPC_RUN_PIPELINE_H

#include "ir/ir.h"
#include "kern/kern.h"
#include "run/comm/comm.h"

struct pipeline;
/* Makes the stages' communicators. Compares what stages send: files that do not fit together fail with the value's name. NULL: the graph is
 * no stage. All ranks of the job call it. */
struct pipeline *pipeline_form(struct arena *, struct comm *all, struct graph *);
/* All ranks call it, after freeing the session that uses it. */
void pipeline_free(struct pipeline *);
/* The ranks of this stage; its number. */
struct comm *pipeline_stage(const struct pipeline *);
int pipeline_number(const struct pipeline *);
int pipeline_stages(const struct pipeline *);
/* A rank that waits for another stage keeps its core busy. */
bool pipeline_polls(const struct pipeline *);
/* Whether input i comes from a later stage, as gradients do. */
bool pipeline_receives_later(const struct pipeline *, int input);
/* Whether output i is sent to a later stage, or to an earlier one. */
bool pipeline_sends(const struct pipeline *, bool later, int output);
/* The values of one run that other stages send. */
struct pipeline_values *pipeline_values_new(struct arena *, const struct pipeline *);
void pipeline_values_free(struct pipeline_values *); /* accepts NULL */
/* Whether input or output i is only added to gradients, so that the sum of several runs may be sent. The rank where an output's addends are
 * summed. */
bool pipeline_adds(const struct pipeline *, bool received, int i);
struct buffer *pipeline_sum(struct pipeline *, int output);
/* Sets the inputs that earlier or later stages send; they are valid until the next receive into these values. sums: also those that are
 * only added. */
void pipeline_receive(struct pipeline *, bool later, bool sums, struct pipeline_values *, struct tensor *inputs);
/* outputs: the global tensors of outputs sent to earlier or later stages. They may change afterwards. */
void pipeline_send(struct pipeline *, bool later, bool sums, const struct tensor *outputs);
/* Bytes of the values that runs have sent and received so far, with their sizes. */
struct pipeline_traffic {
    int64_t sent, received;
};
struct pipeline_traffic pipeline_traffic(const struct pipeline *);
/* Sends or receives a whole tensor between two runs, between ranks of the same index in two stages; valid until the next call, strings in
 * the arena. */
void pipeline_send_tensor(struct pipeline *, int stage, const struct tensor *);
struct tensor pipeline_take_tensor(struct pipeline *, int stage, const char *name, struct arena *);
/* Broadcasts bytes from each rank of one stage to the ranks of the same index in all other stages. */
void pipeline_tell(struct pipeline *, const void *at, int64_t bytes);
void pipeline_hear(struct pipeline *, int stage, void *at, int64_t bytes);
/* After runs that may have failed and been abandoned in some stage: drops messages in flight. Until then a stage fails if it waits for one
 * that has abandoned its runs. Every rank calls it. */
void pipeline_settle(struct pipeline *);
/* A global tensor of the first rank of a stage, on the first rank of all; elsewhere an empty one. own: this rank is in that stage. */
struct tensor pipeline_to_first(struct pipeline *, struct arena *, const char *name, int stage, const struct tensor *own);

#endif
