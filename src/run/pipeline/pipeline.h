/* pipeline: the stages of a run (tpc-shard --pp), and how values get from one to another. Rank t of a stage exchanges whole values with
 * rank t of the others, by messages that wait for nobody: a stage that has sent its values begins its next run while later stages compute.
 * All stages make the same runs in the same order. */
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
/* Is output i sent to another stage? */
bool pipeline_sends(const struct pipeline *, int output);
/* Sets the inputs that other stages send; they are valid until the next call. */
void pipeline_receive(struct pipeline *, struct tensor *inputs);
/* outputs: the global tensors of those that are sent. They may change afterwards. */
void pipeline_send(struct pipeline *, const struct tensor *outputs);
/* What each rank of a stage has, as many bytes, for the rank of the same index in every other stage: that stage tells, all others hear. */
void pipeline_tell(struct pipeline *, const void *at, int64_t bytes);
void pipeline_hear(struct pipeline *, int stage, void *at, int64_t bytes);
/* After runs that may have failed in some stage, and so have been given up there: what is on its way is dropped. Until then a stage that
 * waits for one that has given up fails. Every rank calls it. */
void pipeline_settle(struct pipeline *);
/* A global tensor of the first rank of a stage, on the first rank of all; elsewhere an empty one. own: of a rank of that stage. */
struct tensor pipeline_to_first(struct pipeline *, struct arena *, const char *name, int stage, const struct tensor *own);

#endif
