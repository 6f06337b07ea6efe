/* adapters: low-rank adapters in the form of PEFT: adapter_model.safetensors, and adapter_config.json beside it. For a module m of a model
 * the file has "base_model.model.m.lora_A.weight", [rank, rows], and "base_model.model.m.lora_B.weight", [columns, rank]. */
#ifndef TPC_ADAPTERS_H
#define TPC_ADAPTERS_H

#include "kern/kern.h"
#include "onnx/onnx.h"
#include "plan/lora/lora.h"

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

/* read.c: of a folder, or of the file in it. What tpc can't apply is a failure with one sentence. */
struct adapters adapters_read(struct arena *, const char *path);
int64_t adapter_rank(const struct adapter *);
double adapter_factor(const struct adapters *, const struct adapter *);
/* A (which 0) as [rank, rows] or B (which 1) as [columns, rank] turned over: [rows, rank] and [rank, columns]. */
const float *adapter_turned(struct arena *, const struct adapter *, int which);

/* match.c: the adapter of each of the products, or NULL. An adapter of no product, and one of other sizes, are failures. rows, columns: of
 * the whole product. what: of whose products, for messages. */
const struct adapter **adapters_match(struct arena *, const struct adapters *, const char *what, const struct lora_products *);
/* A module whose name ends in the adapter's, behind a full stop, is meant, too: exporters wrap models. */
bool adapter_is_of(const struct adapter *, const char *module);
/* A tensor of other sizes is a failure. */
void adapter_check(const struct adapters *, const struct adapter *, const char *what, int64_t rows, int64_t columns);

/* named.c: what --lora gives: one file, or several with names of which a request of a server names one. name NULL: that one file. */
enum { ADAPTERS_MOST = 64 };
struct named_adapters {
    const char *name, *path;
};
int adapters_named(struct arena *, const struct text_list *given, struct named_adapters **);

/* apply.c: adds them to a canonical graph, of a model or of one rank. Where they have names, the graph gets an input i64[batch]: of each
 * row the number of its adapter, from 1; 0: it has none. Their A lie side by side, and their B, and a factor of 0 hides those of others. */
#define ADAPTERS_INPUT "lora_adapter_of_row"
void adapters_apply(struct graph *, const struct text_list *given);

/* merge.c: for each weight that adapters change, what it becomes; take gets a tensor that it may not keep. source: the canonical graph of
 * the model. */
void adapters_merge(struct graph *source, const struct adapters *, void (*take)(void *, const char *weight, const struct tensor *),
                    void *data);

#endif
