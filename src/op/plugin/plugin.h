/* plugin: operators of shared libraries (--plugin): loaded, checked against their own kernels, and found like the rows of schemas/ops.def.
 *
 * Libraries are loaded only from paths on the command line: no model, folder or environment variable names one. */
#ifndef TPC_OP_PLUGIN_H
#define TPC_OP_PLUGIN_H

#include "ir/ir.h"
#include "op/plugin/tpc_plugin.h"

enum { PLUGIN_OPERANDS = 8, PLUGIN_RESULTS = 4, PLUGIN_ATTRIBUTES = 16, PLUGIN_OPS = 256 };

/* A dimension of a signature: dotted: any number of dimensions. size: for operands a symbol, multiplied by times, or an integer; for
 * results an expression, in the plug-in's interner. */
struct plugin_dim {
    bool dotted;
    const char *name; /* of dotted ones */
    const struct dim *size;
    int64_t times;  /* for operands: at least 1 */
    const char *at; /* in the text of the plug-in */
};
struct plugin_value {
    const char *name;
    enum dtype dtype;
    int n; /* dimensions as written; at most MAX_RANK */
    struct plugin_dim dim[MAX_RANK];
    const struct dim *below; /* for indices; NULL: any numbers */
    const char *below_at;    /* in the text */
};
struct plugin_signature {
    int nin, nout;
    struct plugin_value in[PLUGIN_OPERANDS], out[PLUGIN_RESULTS];
    const char *inputs, *outputs; /* the names as in a row of schemas/ops.def */
};
struct plugin_op {
    struct op op; /* first member, so that a node's row leads to the rest */
    tpc_plugin_op given;
    struct plugin_signature signature;
};
struct plugin {
    const char *name, *path;
    char digest[17]; /* of the file: XXH3, 64 bits, as text */
    int n;
    struct plugin_op *at;
    struct plugin *_Atomic next; /* threads may read the list while it grows */
};

/* load.c: loads the library at this path, checks it, and adds its ops to those that op_find finds. Fails with one sentence if it cannot be
 * used. Loading the same file again does nothing. */
void plugin_load(const char *path);
const struct plugin *plugin_first(void); /* in loading order; NULL: none */
/* Whether the graph, or a body of it, has nodes of the plug-in. */
bool plugin_is_used(const struct plugin *, const struct graph *);
/* "gate:0123456789abcdef" for those that the graph uses, separated by blanks; NULL: none. */
const char *plugin_list(struct arena *, const struct graph *);
/* Fails unless all plug-ins with which the rank file was compiled are loaded (RANK_META_PLUGINS), and no others whose operators it uses. */
void plugin_require(const struct graph *);
/* Fails unless one of that name is loaded, with which the file at the path was compiled. */
void plugin_require_name(const char *path, const char *name);
static inline const struct plugin_op *plugin_op_of(const struct node *n)
{
    return (const struct plugin_op *)(const void *)n->op;
}

/* signature.c: parses the text of an op. Fails, with `where`, if it is malformed. */
struct plugin_signature plugin_signature_parse(struct arena *, struct alg *, const char *text, const char *where);
void plugin_infer(struct graph *, struct node *);

/* run.c: the row's kernel and rule. */
struct kcall;
void plugin_kernel(struct kcall *);
struct rule *plugin_rule(struct graph *, const struct node *);

/* check.c: the self-check: whether the rule holds for the op's kernel. On small random operands, each factor is split in every way of
 * trial_splits, and each reduction that the rule passes is tried; the results of ranks must equal those of one. Fails otherwise. like: a
 * node whose attributes to use; NULL: the defaults. For a graph: with the attributes of its nodes. */
void plugin_check(const struct plugin_op *, const struct node *like, const char *where);
void plugin_check_nodes(const struct graph *);

/* trial_splits.c: ways to split a size: even, uneven, with empty ranks, strided, segmented, overlapping; returns their number. */
enum { TRIAL_RANKS = 16, TRIAL_SPLITS = 16 };
int trial_splits(struct arena *, struct alg *, const struct dim *size, const struct split *out[TRIAL_SPLITS]);

#endif
