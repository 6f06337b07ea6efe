/* ort: the collectives of rank files as custom ops of ONNX Runtime. Each process of an MPI job opens one rank's file there. */
#ifndef TPC_ORT_H
#define TPC_ORT_H

#include "run/collective/collective.h"

#include <onnxruntime_c_api.h>

/* ---- ranks.c: this process as a rank of the job ------------------------------------------------------------------------- */
/* Joins the job, once; MPI is started if the program has not. False: see ranks_error. */
bool ranks_join(void);
/* Does work(data), one thread at a time. False: it failed, or another rank did, now or before. */
bool ranks_do(void (*work)(struct comm *, void *), void *data);
const char *ranks_error(void);
struct rank_of {
    int rank, size;
};
struct rank_of ranks_own(void); /* after ranks_join */
struct buffer *ranks_scratch(void);
/* A number for a step that all ranks run for the first time. Ranks whose lines differ fail with both. */
int64_t ranks_agree(struct comm *, struct arena *, const char *line);

/* ---- sizes.c ---------------------------------------------------------------------------------------------------------------- */
/* A split of a dimension of this size, which determines the one open symbol. NULL and *why: impossible. */
const struct split *sizes_split(struct alg *, const struct split *, const struct bindings *, int64_t total, const char **why);

/* ---- member.c: a collective of a graph -------------------------------------------------------------------------------------- */
struct member_text { /* as in its node; -1 and NULL: not given */
    const char *name, *op, *red, *from, *to;
    int64_t axis, split_axis, concat_axis, root, rank, ranks;
};
struct member;
/* Lives as long as this thread's scope. own: this process's rank. */
struct member *member_new(const struct member_text *, struct rank_of own);
/* The result's type and sizes, without data. extent: n global sizes, for splits that need them. */
struct tensor member_result(struct member *, const struct comm *, const struct tensor *x, const int64_t *extent, int n);
/* After member_result for these sizes. */
void member_run(struct member *, struct comm *, const struct tensor *x, struct tensor *y);

/* ---- custom_ops.c: what ONNX Runtime calls ------------------------------------------------------------------------------------ */
enum { ORT_VERSION = 17 }; /* of its API, the first that lets custom ops infer shapes */
struct custom_op {
    OrtCustomOp base;
    enum collective kind;
};
extern const OrtApi *ort_api;
/* result_shape.c */
OrtStatus *result_shape(const OrtCustomOp *, OrtShapeInferContext *);

#endif
