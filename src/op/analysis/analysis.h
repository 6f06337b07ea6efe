/* analysis: what holds of a whole graph or of a node in it: lifetimes, appends, independent rows, affine values, likely sizes,
 * missing kernels, attention that is written out. */
#ifndef TPC_OP_ANALYSIS_H
#define TPC_OP_ANALYSIS_H

#include "ir/ir.h"
#include "ir/rank_meta.h"
#include "op/rule/rule.h"

/* ---- lifetime.c: what shares memory, and from which node to which it is needed ---- */
struct lifetimes {
    int *root; /* by value id: the value whose bytes a view shares; itself otherwise */
    int *item; /* by value id of a root: its item in the slab; -1: it has none */
    int nitem;
    struct slab_item *items; /* steps are node positions, the last one is after all nodes; bytes are the caller's to set */
};
/* Where gradients of nodes (graph.trained) go. STAY: they are outputs like others. LEAVE: each is made where the caller says, outside the
 * slab. ADD: each is added there as soon as it is made. */
enum gradients_go { GRADIENTS_STAY, GRADIENTS_LEAVE, GRADIENTS_ADD };
/* Results of nodes have items, and inputs that are marked (copied, by input number); constants and other inputs are elsewhere. Graph
 * outputs live to the end, but for gradients that go elsewhere. */
struct lifetimes lifetime_items(struct arena *, const struct graph *, const bool *copied, enum gradients_go);
/* What begins or ends among these steps lives through all of them. */
void lifetime_stretch(struct slab_item *, int first, int last);
/* The same of all items, for many ranges of which none has a step of another; ends: as the items were before the first. Steps: all nodes
 * and the end. */
struct lifetime_ends;
struct lifetime_ends *lifetime_ends_find(struct arena *, const struct lifetimes *, int steps);
void lifetime_stretch_all(struct lifetimes *, const struct lifetime_ends *, int first, int last);

/* missing_kernels.c: ops that tpc-run can't compute, in the graph and in bodies; those that only lack types if there are no others */
struct missing_kernel {
    const char *op, *first; /* with its domain; a node's name */
    int nodes;
    bool foreign; /* of a domain that tpc has no operators of */
};
struct missing_kernels {
    VEC(struct missing_kernel) list;
};
struct missing_kernels missing_kernels_of(struct arena *, const struct graph *);
const char *missing_kernels_text(struct arena *, const struct missing_kernels *);
/* What follows such a sentence; "": nothing does. */
const char *missing_kernels_hint(const struct missing_kernels *);

/* ---- load_time_constants.c ---- */
/* By value id: it follows from constants alone, and is the same at every run. */
bool *op_load_time_constants(struct arena *, const struct graph *);
/* A constant, absent, or marked so. */
bool op_is_load_time_constant(const bool *constant, const struct value *);
/* By node: tpc-run computes it once, at load. It makes a constant of constants, by more than moving, copying, decoding or converting these,
 * or such a constant is made of it. What other nodes read of it takes no more memory than what it is made of, but for an eighth of all
 * constants. Weights that are trained, and memory that a node makes its result in, are no such constants. */
bool *op_folded_at_load(struct arena *, const struct graph *);

/* ---- recurrent_copy.c ---- */
/* A recurrent net whose weights are constant keeps them packed, in f32, beside what they were made from. */
bool op_packs_recurrent(const struct node *, const bool *constant);
/* Bytes of that copy of a weight of this type, but for the rounding up to whole tiles. */
int64_t op_recurrent_copy(const struct type *weight);

/* integer_conv.c: whether a Conv multiplies 8-bit integers by such a constant filter; the DequantizeLinear that makes a value of 8-bit
 * integers, or NULL */
bool op_integer_conv(const struct node *);
const struct node *op_byte_decoder(const struct value *);

/* ---- attention_written.c: attention that an exporter wrote out as products and a softmax ---- */
struct attention_search {
    struct graph *graph;
    const struct uses *uses; /* graph_uses, of the first nvalues values */
    int nvalues;
};
enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_MASK, ATTENTION_Y };
struct attention_match {
    struct value *in[4];
    bool rows_first[5]; /* Q, K, V, -, Y: [batch, rows, heads, size] */
    double scale;
    bool guarded;
    struct node *last; /* whose output the fused node takes over */
};
bool op_number(const struct value *, double *);
/* Strips products with and quotients by single numbers, which *scale is multiplied by. */
struct value *op_unscale(struct value *, double *scale);
bool op_transposes(const struct graph *, const struct node *, int a, int b, int c, int d);
/* The value is K^T: sets K. */
bool attention_key(const struct graph *, struct value *, struct attention_match *);
/* Q, K and V are set: they are read before heads are repeated, and where they lie. False: their types do not fit. */
bool attention_read_heads(const struct graph *, struct attention_match *);
/* Node n multiplies probabilities and values: the end of written attention, but for a transpose (m->last). */
bool attention_written(const struct attention_search *, struct node *n, struct attention_match *);

/* ---- append.c ---- */
/* The operand past_X of a fused op whose result is its present_X, both [.., rows, size]; -1: the result is no present. */
int op_past_operand(const struct node *, int result);
/* The operand to which a node appends along *axis what becomes this result; -1: it is not of that kind, or appends in front. */
int op_appends_to(const struct node *, int result, int *axis);
/* The input that an op turns into the same number of elements for the next step, as the state of a recurrence; without one it begins with
 * zeros. NULL: the value is no such state. */
const struct value *op_recurrent_past(const struct value *present);

/* ---- batch_independence.c ---- */
/* Notes in the metadata (rank_meta_set_rows), for each symbol that is a dimension of an input of a canonical graph, whether a row along it
 * depends on other rows or on their number, and why: a clause that names the node, input or output. */
void op_note_rows(struct graph *);

/* ---- symbol.c: where a symbol is, as batch_independence.c and position_tail.c ask: they treat a dimension as if it were split ---- */
enum { SYMBOL_PARTS = 2 };
/* The names of the symbols in sizes of inputs. */
struct name_index symbol_of_inputs(struct arena *, const struct graph *);
/* The end of a message about a name that is none of the symbols in the types of n inputs: "it has B, S". */
const char *symbol_list(struct arena *, int n, const struct type *const *types);
const char *symbol_list_of_inputs(struct arena *, const struct graph *);
/* How many dimensions have the symbol in their size; the last of them. */
int symbol_dims(struct graph *, const struct dim *symbol, const struct value *, int *dim);
bool symbol_in_type(struct graph *, const struct dim *symbol, const struct value *);
/* The only dimension that has the symbol is the symbol. */
bool symbol_is_dim(struct graph *, const struct dim *symbol, const struct value *, int *dim);
/* A size that an attribute states is no dimension: a bound of a slice, a number that is data. */
bool symbol_in_sizes(struct graph *, const struct dim *symbol, const struct node *);
/* The factor of the dimension on which the split falls gets it. False: it may not be split. */
bool symbol_assign(struct graph *, const struct rule *, const struct rule_dim *, const struct split *, struct assignment *);

/* ---- position_tail.c: the nodes before an output that treat positions one by one, and make nothing else ---- */
struct position_tail {
    VEC(struct node *) nodes; /* in order of the graph */
    VEC(struct position_cut {
        struct value *value;
        int dim;
    })
    cuts; /* what they read of all positions, and the dimension that counts these */
};
/* The symbol counts positions. rows: the symbol of the dimension before them in every cut; NULL: they may be any dimension. False: there
 * are no such nodes, or no product is among them. */
bool position_tail_find(struct arena *, struct graph *, int output, const struct dim *symbol, const struct dim *rows,
                        struct position_tail *);

/* ---- row_segments.c: nodes that compute rows one by one, with collectives between them ---- */
/* Nodes first to last, by position; the last one is a collective, but perhaps in the last stage. */
struct row_stage {
    int first, last;
    bool scattered; /* its rows are those of one rank */
};
struct row_segment {
    VEC(struct row_stage) stages; /* without gaps */
    bool scatters;                /* a rank holds some of the rows in some stages */
};
/* An AllReduce, a ReduceScatter or an AllGather. */
bool row_segment_ends_stage(const struct node *);
struct row_segments {
    VEC(struct row_segment) list; /* in order of the graph */
    int *rows;                    /* by value id: how many leading dimensions count rows, of what segments make; else 0 */
    struct rule **rule;           /* by node position; of what a segment has but views and collectives */
};
struct row_segments row_segments_find(struct arena *, struct graph *);
/* The side of a collective that has the rows of all ranks. */
const struct value *row_segment_full_side(const struct node *collective);
/* Of the collectives of a segment, by those sides: the fewest rows, and the most bytes; a ReduceScatter and an AllGather take half as long
 * as an AllReduce of as many, and count half. */
struct row_segment_size {
    int collectives;
    int64_t rows, bytes;
};
void row_segment_count(struct row_segment_size *, const struct node *collective, int64_t rows, int64_t bytes);
/* Does it run in blocks? least: bytes of an AllReduce that overlaps. */
bool row_segment_runs(const struct row_segment *, struct row_segment_size, int ranks, int64_t least);
/* Lifetimes where it runs in blocks: what a stage reads and makes lives through all of it, for its nodes run once for each block; the
 * operand of a collective lives through the stage behind it. */
void row_segment_extend(const struct graph *, const struct row_segment *, const struct lifetime_ends *, struct lifetimes *);
/* A segment runs in so many blocks, each of at least so many rows. */
enum { ROW_BLOCKS = 2, ROW_BLOCK_LEAST = 32 };

/* ---- size_guess.c ---- */
/* The size that a plan assumes for data-dependent dimension d of result i. It assumes that a node which finds the rows of a class finds
 * each row in one, and that all other results together have as many elements as operand 0. */
const struct dim *op_guess_size(struct graph *, const struct node *, int i, int d);

/* ---- routes.c ---- */
/* A node finds the rows of one class: NonZero in a mask of choices, Range between two running counts of them. Of so many entries, a share
 * as large as the rows' of all comparisons has the class. False: it does not. */
struct routes {
    const struct dim *entries, *rows, *compared;
    const struct value *choices; /* the classes of all rows, which those of the other classes are found in, too */
};
bool op_routes_rows(struct graph *, const struct node *, struct routes *);

/* index_limits.c: the lookups of a graph whose largest index follows from sizes, masks (by input: all ones) and the integers that other
 * inputs hold: a symbol of its own stands for the largest one of input i */
struct index_limits {
    VEC(struct index_limit) list;
};
struct index_limits index_limits_find(struct arena *, struct graph *, const bool *mask);
const char *index_limits_symbol(struct arena *, int input);
bool index_limits_is_value(const char *symbol);
/* False: under these sizes an index is beyond its table, and *broken is the limit. What can't be evaluated holds. */
bool index_limits_hold(const struct index_limits *, const struct bindings *, const struct index_limit **broken);
/* Rows among which operand k chooses, 1 if their number is not known; -1: it chooses none. */
int64_t op_rows_chosen(const struct node *, int k);
/* The exact limits of sizes alone, masks as op_value_uses finds them. */
struct index_limits op_size_limits(struct arena *, struct graph *);

/* ---- input_use.c: what a graph does with an input ---- */
/* How a graph reads a mask of keys: to hide them, wherever they are, or to count those of each row, which then come first. Of a stage,
 * what its metadata say of the whole graph; so do those of tables. */
enum mask_use { MASK_UNREAD, MASK_KEYS, MASK_LENGTHS };
enum mask_use op_mask_use(const struct graph *, const struct value *mask);
/* The tables of positions that no index reads: rotary ones of fused ops, and those that are cut to the length of a text. rows: those of the
 * shortest one; -1: there is none. by_place: the name of a node that reads a table of positions, by index or cut, by this input and sizes
 * alone (NULL: by sizes alone, so by place, whatever the tokens are); NULL: none does. */
struct position_tables {
    int64_t rows;
    const char *by_place;
};
struct position_tables op_position_tables(const struct graph *, const struct value *input);

/* Notes both of the whole graph in the metadata of one of its stages. */
void op_note_whole(struct graph *to, const struct graph *whole);

/* The integers that an input may hold: less than rows, so that the indices that follow from it are within their tables; nonzero, if it is a
 * mask. */
struct value_use {
    int64_t rows; /* -1: it indexes no table; 1: the table has an unknown number of rows */
    bool mask;
};
struct value_use *op_value_uses(struct arena *, struct graph *); /* by input */
/* Notes both kinds of limits in the metadata of a graph: what inputs of g hold, and op_size_limits. */
void op_note_inputs(struct arena *, struct graph *to, struct graph *g);
/* Of n inputs, the one that chooses rows of the longest table, as tokens of a vocabulary do; -1: none chooses any. */
int op_tokens_input(const struct value_use *, int n);

/* ---- affine.c: integer values whose elements are an affine function of their index, such as positions and row numbers ---- */
/* The element at index i is base + the sum of step[d] * i[d]; step[d] is 0 where the dimension is 1. */
struct affine {
    const struct dim *base, *step[MAX_RANK];
};
/* What is known of a value: of all its elements (n == 1), or of those at each index of the last dimension, along which no step counts
 * (n > 1, index tuples). A NULL entry is not known; n == 0: nothing is. */
struct affines {
    int n;
    const struct affine **at;
};

/* Of the only result of a node in canonical form, from what is known of its operands (by value id). An operand that is known counts: where
 * the result is known, nothing else of it reaches the result. */
struct affines affine_of(struct graph *, const struct node *, const struct affines *known);
/* The last element counts less than k, the first at least 0, not counting the step along one dimension. */
bool affine_within(struct graph *, const struct affine *, const struct type *, int but, const struct dim *k);

#endif
