/* pipeline: the stages of a run (tpc-shard --pp), and how values get from one to another. Rank t of a stage exchanges whole values with
 * rank t of the others, by messages that wait for nobody: a stage that has sent its values begins its next run while later stages compute.
 * All stages make the same runs in the same order. Of a step of
 * training a run waits in the middle for the gradients of later stages, and others may begin meanwhile. */
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
/* The ranks of the own stage; its number. */
struct comm *pipeline_stage(const struct pipeline *);
int pipeline_number(const struct pipeline *);
int pipeline_stages(const struct pipeline *);
/* A rank that waits for another stage keeps its core busy. */
bool pipeline_polls(const struct pipeline *);
/* Does input i come from a later stage, as gradients do? */
bool pipeline_receives_later(const struct pipeline *, int input);
/* Is output i sent to a later stage, or to an earlier one? */
bool pipeline_sends(const struct pipeline *, bool later, int output);
/* Where the values of one run lie that other stages send. */
struct pipeline_values *pipeline_values_new(struct arena *, const struct pipeline *);
void pipeline_values_free(struct pipeline_values *); /* also NULL */
/* Is input or output i only added to gradients, so that the sum of several runs may be sent? And where the rank adds those of an output. */
bool pipeline_adds(const struct pipeline *, bool received, int i);
struct buffer *pipeline_sum(struct pipeline *, int output);
/* Sets the inputs that earlier or later stages send; they are valid until these values are received into again. sums: those that are only
 * added, too. */
void pipeline_receive(struct pipeline *, bool later, bool sums, struct pipeline_values *, struct tensor *inputs);
/* outputs: the global tensors of those that are sent to earlier or later stages. They may change afterwards. */
void pipeline_send(struct pipeline *, bool later, bool sums, const struct tensor *outputs);
/* A whole tensor between two runs, to and from the rank of the same index in another stage; valid until the next call, strings in the
 * arena. */
void pipeline_send_tensor(struct pipeline *, int stage, const struct tensor *);
struct tensor pipeline_take_tensor(struct pipeline *, int stage, const char *name, struct arena *);
/* What each rank of a stage has, as many bytes, for the rank of the same index in every other stage: that stage tells, all others hear. */
void pipeline_tell(struct pipeline *, const void *at, int64_t bytes);
void pipeline_hear(struct pipeline *, int stage, void *at, int64_t bytes);
/* After runs that may have failed in some stage, and so have been given up there: what is on its way is dropped. Until then a stage that
 * waits for one that has given up fails. Every rank calls it. */
void pipeline_settle(struct pipeline *);
/* A global tensor of the first rank of a stage, on the first rank of all; elsewhere an empty one. own: of a rank of that stage. */
struct tensor pipeline_to_first(struct pipeline *, struct arena *, const char *name, int stage, const struct tensor *own);

#endif
