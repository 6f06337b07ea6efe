/* lower: rewrites a graph before it runs: fused operators, completed sums for --deterministic, outputs left sharded. Rewrites by example
 * are in pattern.h. */
#ifndef TPC_LOWER_H
#define TPC_LOWER_H

#include "ir/ir.h"

/* ---- graph: all steps, for tpc-run, and for tpc-shard, which prices the lowered graph ------------------------------------------ */
struct lower_options {
    bool deterministic;                   /* only fusions that change no bit */
    bool fast;                            /* products with quantised weights round activations to 8 bits */
    enum dtype cache;                     /* type in which f32 KV caches are kept: f16, i8; DT_NONE: unchanged */
    bool split_outputs;                   /* outputs are left sharded */
    bool tells;                           /* -v: prints what is fused */
    bool (*agree)(void *ranks, uint64_t); /* whether all ranks give the same number; NULL: this is the only rank */
    void *ranks;
};
/* Lowers a canonical graph of standard ops. Values keep their ids. graph->keeps_sums: whether sums are completed. */
void lower_graph(struct graph *, const struct lower_options *);
/* Body k of a control-flow node, typed for its operands, in canonical form, with its own interner. */
struct graph *lower_body(struct arena *, struct graph *around, const struct node *, int k);
/* Brings equal computations to one form, of ops that have rules. */
void lower_canonical(struct graph *);

/* ---- its steps; the numbers that they return count attentions, saved nodes, weights ------------------------------------------------ */
int fuse_attention(struct graph *);
void fuse_attention_gradients(struct graph *); /* before fuse_attention */
void fuse_in_place(struct graph *);            /* before fuse_chains */
int fuse_expand(struct graph *);               /* before fuse_chains; the number of operands */
int fuse_chains(struct graph *);
int grow_concats(struct graph *);                      /* after fuse_chains; the number of Concats that continue another one */
void fuse_codes(struct graph *);                       /* before channels_last */
int fuse_conv_sums(struct graph *);                    /* before channels_last; the number of sums */
void fuse_open_norms(struct graph *);                  /* before channels_last */
void fuse_convs(struct graph *);                       /* after channels_last */
int fold_at_load(struct graph *);                      /* the number of nodes computed at load */
int fuse_transposed(struct graph *);                   /* before fuse_weights */
void fuse_weights(struct graph *, bool integer_convs); /* integer_convs: their filters are not decoded */
int narrow_caches(struct graph *, enum dtype);         /* after fuse_attention; the number of states */
void fast_products(struct graph *);                    /* after PATTERN_QUANTIZED */

/* channels_last.c. collectives: they transfer channels-last values, too; then all ranks must have the same digest of the result. */
void channels_last(struct graph *, bool collectives);
uint64_t channels_last_digest(const struct graph *);

/* fuse_integer_conv.c: whether a Conv is of 8-bit integers with a constant filter; the integer convolution of x, whose integers are
 * channels-last. */
bool fuse_integer_conv_is(const struct node *);
struct value *fuse_integer_conv_codes(const struct node *); /* its operand, as integers */
struct node *fuse_integer_conv_node(struct graph *, const struct node *, struct value *x, struct value *bias);

/* byte_scale.c: nodes between f32 and bytes with one constant scale. */
struct byte_codes {
    double scale, zero, least; /* least: code */
};
bool byte_scale_encodes(const struct node *);                /* f32 to bytes */
const struct node *byte_scale_decoder(const struct value *); /* the node that decodes bytes to v, or NULL */
struct byte_codes byte_scale_of(const struct node *);        /* of an encoder or decoder */
bool byte_scale_same(const struct node *, const struct node *);

/* complete_sums.c: for --deterministic, nodes that make partial sums complete them in an order common to all rank counts. */
void complete_sums(struct graph *);
/* The first operand's dimension over which a node of a rank file sums, and the split of its factor; NULL: the node makes no partial sum. */
const struct split *complete_sums_split(struct graph *, const struct node *, int *dim);

/* axes.c: the axes in attribute `axes` of a tensor of this rank; all leading ones if it is not set. Returns their number; -1: unknown. */
int axes_named(struct graph *, const struct node *, int rank, int *axes);

/* keep_sharded.c: removes AllGathers that only make an output. */
void keep_outputs_sharded(struct graph *);

#endif
