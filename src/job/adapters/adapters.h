/* adapters: low-rank adapters in PEFT's form: adapter_model.safetensors, with adapter_config.json. For a module m of a model the file has
 * "base_model.model.m.lora_A.weight", [rank, rows], and "base_model.model.m.lora_B.weight", [columns, rank]. */
#ifndef TPC_ADAPTERS_H
#define TPC_ADAPTERS_H

#include "kern/kern.h"
#include "onnx/onnx.h"
#include "plan/lora/lora.h"
#include "run/comm/comm.h"

#define ADAPTERS_FILE "adapter_model.safetensors"
#define ADAPTERS_CONFIG "adapter_config.json"
#define ADAPTERS_PREFIX "base_model.model."

struct adapter {
    const char *module;
    const char *name[2]; /* of the tensors of A and of B */
    const struct tensor *tensor[2];
};
struct adapters {
    const char *path; /* of the tensors */
    const struct safetensors *file;
    double alpha;
    bool by_root; /* the factor is alpha / sqrt(rank), not alpha / rank (rsLoRA) */
    VEC(struct adapter) list;
};

/* read.c: reads a folder, or the file in it. Fails with one sentence on anything that tpc cannot apply. */
struct adapters adapters_read(struct arena *, const char *path);
int64_t adapter_rank(const struct adapter *);
double adapter_factor(const struct adapters *, const struct adapter *);
/* A (which 0) as [rank, rows] or B (which 1) as [columns, rank], transposed to [rows, rank] and [rank, columns]. */
const float *adapter_turned(struct arena *, const struct adapter *, int which);

/* match.c: the adapter of each product, or NULL. Fails on an adapter of no product, or of other sizes. rows, columns: of the whole product.
 * what: owner of the products, for messages. all: the ranks of all stages, each with the products of its own; NULL: these are all products.
 */
const struct adapter **adapters_match(struct arena *, const struct adapters *, const char *what, const struct lora_products *,
                                      struct comm *all);
/* Also matches a module whose name ends in the adapter's, after a full stop: exporters wrap models. */
bool adapter_is_of(const struct adapter *, const char *module);
/* Fails on a tensor of other sizes. */
void adapter_check(const struct adapters *, const struct adapter *, const char *what, int64_t rows, int64_t columns);

/* named.c: the value of --lora: one file, or several with names from which a server's request chooses. name NULL: a single file. */
enum { ADAPTERS_MOST = 64 };
struct named_adapters {
    const char *name, *path;
};
int adapters_named(struct arena *, const struct text_list *given, struct named_adapters **);

/* apply.c: adds them to a canonical graph, of a model or of one rank. If they have names, the graph gets an input i64[batch]: the number of
 * each row's adapter, from 1; 0: none. Their A are concatenated, and their B, and a factor of 0 masks the others. all: see adapters_match;
 * an adapter is then for the stage that has its product. */
#define ADAPTERS_INPUT "lora_adapter_of_row"
void adapters_apply(struct graph *, const struct text_list *given, struct comm *all);

/* merge.c: the new value of each weight that adapters change; take gets a tensor that it may not keep. source: the canonical graph of the
 * model. */
void adapters_merge(struct graph *source, const struct adapters *, void (*take)(void *, const char *weight, const struct tensor *),
                    void *data);

#endif
