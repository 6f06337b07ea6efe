/* lower: what a graph becomes before it runs: fused operators, completed sums for --deterministic, outputs left sharded. Rewrites by
 * example are in pattern.h. */
#ifndef TPC_LOWER_H
#define TPC_LOWER_H

#include "ir/ir.h"

/* ---- graph: the list of all steps, for tpc-run, and for tpc-shard, which prices what runs ------------------------------------------ */
struct lower_options {
    bool deterministic;                   /* fuse only what changes no bit */
    bool fast;                            /* products with quantised weights round activations to 8 bits */
    enum dtype cache;                     /* in which KV caches of f32 are kept: f16, i8; DT_NONE: as they are */
    bool split_outputs;                   /* outputs are left sharded, as the ranks hold them */
    bool tells;                           /* -v: says what is fused */
    bool (*agree)(void *ranks, uint64_t); /* whether all ranks give the same number; NULL: this is the only rank */
    void *ranks;
};
/* A canonical graph of standard ops becomes the one that runs. Values keep their ids. graph->keeps_sums says whether sums are completed. */
void lower_graph(struct graph *, const struct lower_options *);
/* Body k of a node of control flow, typed for its operands, in canonical form, with an interner of its own. */
struct graph *lower_body(struct arena *, struct graph *around, const struct node *, int k);
void lower_bodies(struct graph *, const struct lower_options *); /* all bodies of its nodes become what lower_graph makes of them */
/* One form for equal computations, of ops that have rules. */
void lower_canonical(struct graph *);

/* ---- its steps. Those that return a number: of attentions, of nodes saved, of weights ------------------------------------------------ */
int fuse_attention(struct graph *);
void fuse_attention_gradients(struct graph *); /* before fuse_attention */
void fuse_in_place(struct graph *);            /* before fuse_chains */
int fuse_expand(struct graph *);               /* before fuse_chains; the number of operands */
int fuse_chains(struct graph *);
int grow_concats(struct graph *);                      /* behind fuse_chains; the number of Concats that continue another one */
void fuse_codes(struct graph *);                       /* before channels_last */
int fuse_conv_sums(struct graph *);                    /* before channels_last; the number of sums */
void fuse_open_norms(struct graph *);                  /* before channels_last */
void fuse_convs(struct graph *);                       /* behind channels_last */
int fold_at_load(struct graph *);                      /* the number of nodes that are computed at load */
int fuse_transposed(struct graph *);                   /* before fuse_weights */
void fuse_weights(struct graph *, bool integer_convs); /* integer_convs: their filters are not decoded */
int narrow_caches(struct graph *, enum dtype);         /* behind fuse_attention; the number of states */
void fast_products(struct graph *);                    /* behind PATTERN_QUANTIZED */

/* channels_last.c. collectives: they move channels last, too. Then all ranks must have the same digest of the result. */
void channels_last(struct graph *, bool collectives);
uint64_t channels_last_digest(const struct graph *);

/* fuse_integer_conv.c: whether a Conv is one of 8-bit integers by a constant filter; such a convolution of x, its integers with channels
 * last.
 */
bool fuse_integer_conv_is(const struct node *);
struct value *fuse_integer_conv_codes(const struct node *); /* its operand, as integers */
struct node *fuse_integer_conv_node(struct graph *, const struct node *, struct value *x, struct value *bias);

/* byte_scale.c: nodes between f32 and bytes with one constant scale. */
struct byte_codes {
    double scale, zero, least; /* least: code */
};
bool byte_scale_encodes(const struct node *);                /* to bytes */
const struct node *byte_scale_decoder(const struct value *); /* the one that makes v of bytes, or NULL */
struct byte_codes byte_scale_of(const struct node *);        /* of a node of either kind */
bool byte_scale_same(const struct node *, const struct node *);

/* complete_sums.c: for --deterministic, nodes that make partial sums complete them in an order that all rank counts share. */
void complete_sums(struct graph *);
/* The first operand's dimension over which a node of a rank file sums, and how its factor is split; NULL: the node makes no partial sum. */
const struct split *complete_sums_split(struct graph *, const struct node *, int *dim);

/* axes.c: the axes that attribute `axes` names, of a tensor of so many dimensions; the first ones if it is not set. Returns their number;
 * -1: they are not known. */
int axes_named(struct graph *, const struct node *, int rank, int *axes);

/* keep_sharded.c: removes AllGathers that only make an output. */
void keep_outputs_sharded(struct graph *);

#endif
