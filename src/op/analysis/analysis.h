/* analysis: properties of a graph or of a node in it: lifetimes, appends, independent rows, affine values, likely sizes, missing kernels,
 * written-out attention. */
#ifndef TPC_OP_ANALYSIS_H
#define TPC_OP_ANALYSIS_H

#include "ir/ir.h"
#include "ir/rank_meta.h"
#include "op/rule/rule.h"

/* ---- lifetime.c: shared memory and lifetimes ---- */
struct lifetimes {
    int *root; /* by value id: the value whose bytes a view shares; itself otherwise */
    int *item; /* by value id of a root: its item in the slab; -1: none */
    int nitem;
    struct slab_item *items; /* steps are node positions, the last one is after all nodes; the caller sets bytes */
};
/* The destination of gradients of nodes (graph.trained). STAY: ordinary outputs. LEAVE: each is computed in the caller's memory, outside
 * the slab. ADD: each is added there as soon as it is computed. */
enum gradients_go { GRADIENTS_STAY, GRADIENTS_LEAVE, GRADIENTS_ADD };
/* Results of nodes have items, and so do marked inputs (copied, by input number); constants and other inputs are elsewhere. Graph outputs
 * live to the end, except gradients with another destination. */
struct lifetimes lifetime_items(struct arena *, const struct graph *, const bool *copied, enum gradients_go);
/* Extends items that begin or end among these steps to all of them. */
void lifetime_stretch(struct slab_item *, int first, int last);
/* The same for all items, for many disjoint ranges of steps; ends: the items before the first extension. Steps: all nodes and the end. */
struct lifetime_ends;
struct lifetime_ends *lifetime_ends_find(struct arena *, const struct lifetimes *, int steps);
void lifetime_stretch_all(struct lifetimes *, const struct lifetime_ends *, int first, int last);

/* missing_kernels.c: the ops without a kernel, in the graph and in bodies; if every op has one, the ops whose types are unknown */
struct missing_kernel {
    const char *op, *first; /* with its domain; the name of the first node */
    int nodes;
    bool foreign; /* tpc has no operators of its domain */
};
struct missing_kernels {
    VEC(struct missing_kernel) list;
};
struct missing_kernels missing_kernels_of(struct arena *, const struct graph *);
const char *missing_kernels_text(struct arena *, const struct missing_kernels *);
/* A hint to follow such a sentence; "": none. */
const char *missing_kernels_hint(const struct missing_kernels *);

/* ---- load_time_constants.c ---- */
/* By value id: whether it follows from constants alone, and is the same in every run. */
bool *op_load_time_constants(struct arena *, const struct graph *);
/* Whether it is a constant, absent, or marked. */
bool op_is_load_time_constant(const bool *constant, const struct value *);
/* By node: whether tpc-run computes it once, at load. That is a node that computes a constant from constants, by more than moving, copying,
 * decoding or converting, or one from whose results such a constant is computed. The results that other nodes read take no more memory than
 * their sources, plus an eighth of all constants. Weights in training, and memory that a node overwrites, are no such constants. */
bool *op_folded_at_load(struct arena *, const struct graph *);

/* ---- recurrent_copy.c ---- */
/* Whether a recurrent net keeps a packed f32 copy of its constant weights in addition to their sources. */
bool op_packs_recurrent(const struct node *, const bool *constant);
/* Bytes of that copy of a weight of this type, without rounding up to whole tiles. */
int64_t op_recurrent_copy(const struct type *weight);

/* integer_conv.c: whether a Conv is of 8-bit integers with a constant filter; the DequantizeLinear that decodes a value from 8-bit
 * integers, or NULL */
bool op_integer_conv(const struct node *);
const struct node *op_byte_decoder(const struct value *);

/* ---- attention_written.c: attention written out as products and a softmax ---- */
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
    struct node *last; /* its output becomes the fused node's */
};
bool op_number(const struct value *, double *);
/* Strips multiplications and divisions by single numbers, and multiplies *scale by these. */
struct value *op_unscale(struct value *, double *scale);
bool op_transposes(const struct graph *, const struct node *, int a, int b, int c, int d);
/* Whether the value is K^T: sets K. */
bool attention_key(const struct graph *, struct value *, struct attention_match *);
/* Sets Q, K and V, before heads are repeated, and their layouts. False: their types do not match. */
bool attention_read_heads(const struct graph *, struct attention_match *);
/* Whether node n multiplies probabilities and values: the end of written-out attention, except for a transpose (m->last). */
bool attention_written(const struct attention_search *, struct node *n, struct attention_match *);

/* ---- append.c ---- */
/* The operand past_X of a fused op whose result is present_X, both [.., rows, size]; -1: the result is no present. */
int op_past_operand(const struct node *, int result);
/* The operand to which a node appends along *axis to make this result; -1: it does not append, or appends at the front. */
int op_appends_to(const struct node *, int result, int *axis);
/* The input that an op updates for the next step, with the same number of elements, as a recurrent state; without one it starts as zeros.
 * NULL: the value is no such state. */
const struct value *op_recurrent_past(const struct value *present);

/* ---- batch_independence.c ---- */
/* For each symbol that is a dimension of an input of a canonical graph, notes in the metadata (rank_meta_set_rows) whether a row along it
 * depends on other rows or on their number, and why: a clause that names the node, input or output. */
void op_note_rows(struct graph *);

/* ---- symbol.c: occurrences of a symbol, for batch_independence.c and position_tail.c, which treat a dimension as if it were split ---- */
enum { SYMBOL_PARTS = 2 };
/* The names of the symbols in sizes of inputs. */
struct name_index symbol_of_inputs(struct arena *, const struct graph *);
/* The end of a message about a name that is no symbol of n inputs' types: "it has B, S". */
const char *symbol_list(struct arena *, int n, const struct type *const *types);
const char *symbol_list_of_inputs(struct arena *, const struct graph *);
/* The number of dimensions whose size contains the symbol; the last of them. */
int symbol_dims(struct graph *, const struct dim *symbol, const struct value *, int *dim);
bool symbol_in_type(struct graph *, const struct dim *symbol, const struct value *);
/* Whether the symbol occurs in one dimension, which is exactly the symbol. */
bool symbol_is_dim(struct graph *, const struct dim *symbol, const struct value *, int *dim);
/* Whether the symbol occurs in an attribute's size that is no dimension: a slice bound, a number used as data. */
bool symbol_in_sizes(struct graph *, const struct dim *symbol, const struct node *);
/* Assigns the split to the factor of the dimension. False: it may not be split. */
bool symbol_assign(struct graph *, const struct rule *, const struct rule_dim *, const struct split *, struct assignment *);

/* ---- position_tail.c: the nodes before an output that compute each position separately ---- */
struct position_tail {
    VEC(struct node *) nodes; /* in graph order */
    VEC(struct position_cut {
        struct value *value;
        int dim;
    })
    cuts; /* values that they read at all positions, and the position dimension of each */
};
/* The symbol counts positions. rows: the symbol of the dimension before them in every cut; NULL: any dimension. False: there are no such
 * nodes, or no product among them. */
bool position_tail_find(struct arena *, struct graph *, int output, const struct dim *symbol, const struct dim *rows,
                        struct position_tail *);

/* ---- row_segments.c: nodes that compute rows independently, with collectives in between ---- */
/* Nodes first to last, by position; the last one is a collective, except maybe in the last stage. */
struct row_stage {
    int first, last;
    bool scattered; /* its rows are one rank's */
};
struct row_segment {
    VEC(struct row_stage) stages; /* without gaps */
    bool scatters;                /* in some stages a rank holds a part of the rows */
};
/* Whether it is an AllReduce, a ReduceScatter or an AllGather. */
bool row_segment_ends_stage(const struct node *);
struct row_segments {
    VEC(struct row_segment) list; /* in graph order */
    int *rows;                    /* by value id: the number of leading row dimensions, of values made in segments; else 0 */
    struct rule **rule;           /* by node position; for nodes of segments other than views and collectives */
};
struct row_segments row_segments_find(struct arena *, struct graph *);
/* The operand or result of a collective that has the rows of all ranks. */
const struct value *row_segment_full_side(const struct node *collective);
/* Minimum rows and maximum bytes of a segment's collectives, counted on those sides; a ReduceScatter or an AllGather takes half as long as
 * an AllReduce of the same size, and counts half. */
struct row_segment_size {
    int collectives;
    int64_t rows, bytes;
};
void row_segment_count(struct row_segment_size *, const struct node *collective, int64_t rows, int64_t bytes);
/* Whether it runs in blocks. least: bytes of an AllReduce that overlaps. */
bool row_segment_runs(const struct row_segment *, struct row_segment_size, int ranks, int64_t least);
/* Extends lifetimes for running in blocks: values that a stage reads and makes live through all of it, because its nodes run once per
 * block; the operand of a collective lives through the next stage. */
void row_segment_extend(const struct graph *, const struct row_segment *, const struct lifetime_ends *, struct lifetimes *);
/* The number of blocks of a segment; the least rows of a block. */
enum { ROW_BLOCKS = 2, ROW_BLOCK_LEAST = 32 };

/* ---- size_guess.c ---- */
/* The size that a plan assumes for data-dependent dimension d of result i: if a node finds the rows of a class, each row is in one class;
 * and all other results together have as many elements as operand 0. */
const struct dim *op_guess_size(struct graph *, const struct node *, int i, int d);

/* ---- routes.c ---- */
/* A node that finds the rows of one class: NonZero of a mask of choices, or Range between two running counts. It finds the fraction of the
 * rows that its class has among all comparisons. False: it does no such thing. */
struct routes {
    const struct dim *entries, *rows, *compared;
    const struct value *choices; /* the classes of all rows, from which rows of the other classes are found, too */
};
bool op_routes_rows(struct graph *, const struct node *, struct routes *);

/* index_limits.c: lookups whose largest index follows from sizes, masks (by input: all ones) and other inputs' integers: a separate symbol
 * stands for the largest integer of input i */
struct index_limits {
    VEC(struct index_limit) list;
};
struct index_limits index_limits_find(struct arena *, struct graph *, const bool *mask);
const char *index_limits_symbol(struct arena *, int input);
bool index_limits_is_value(const char *symbol);
/* False: for these sizes an index exceeds its table, and *broken is the limit. Limits that cannot be evaluated hold. */
bool index_limits_hold(const struct index_limits *, const struct bindings *, const struct index_limit **broken);
/* The number of rows that operand k indexes, 1 if unknown; -1: it is no index. */
int64_t op_rows_chosen(const struct node *, int k);
/* The exact limits that depend on sizes alone; masks as in op_value_uses. */
struct index_limits op_size_limits(struct arena *, struct graph *);

/* ---- input_use.c: how a graph uses an input ---- */
/* How a graph reads a key mask: to hide keys anywhere, or to count those of each row, which then come first. For a stage, the metadata
 * tells this about the whole graph, and likewise about tables. */
enum mask_use { MASK_UNREAD, MASK_KEYS, MASK_LENGTHS };
enum mask_use op_mask_use(const struct graph *, const struct value *mask);
/* Position tables that no index reads: rotary tables of fused ops, and those that are sliced to the length of a text. rows: of the
 * shortest; -1: none. by_place: the name of a node that reads a position table, by index or slice, from this input and sizes alone (NULL:
 * from sizes alone, so by position, whatever the tokens are); NULL: none. */
struct position_tables {
    int64_t rows;
    const char *by_place;
};
struct position_tables op_position_tables(const struct graph *, const struct value *input);

/* Notes both, for the whole graph, in the metadata of one of its stages. */
void op_note_whole(struct graph *to, const struct graph *whole);

/* The integers that an input may hold: less than rows, so that all indices derived from them are within their tables; nonzero, if it is a
 * mask. */
struct value_use {
    int64_t rows; /* -1: it indexes no table; 1: the table has an unknown number of rows */
    bool mask;
};
struct value_use *op_value_uses(struct arena *, struct graph *); /* by input */
/* Notes both kinds of limits in the metadata of a graph: of inputs of g, and op_size_limits. */
void op_note_inputs(struct arena *, struct graph *to, struct graph *g);
/* Of n inputs, the one that indexes the longest table, as tokens of a vocabulary do; -1: none. */
int op_tokens_input(const struct value_use *, int n);

/* ---- affine.c: integer values whose elements are an affine function of their index, such as positions and row numbers ---- */
/* The element at index i is base + the sum of step[d] * i[d]; step[d] is 0 where the dimension is 1. */
struct affine {
    const struct dim *base, *step[MAX_RANK];
};
/* What is known of a value: one form for all elements (n == 1), or one for each index of the last dimension, along which steps do not count
 * (n > 1, index tuples). NULL: entry unknown; n == 0: nothing known. */
struct affines {
    int n;
    const struct affine **at;
};

/* Of the only result of a node in canonical form, from what is known of its operands (by value id). If the result is known, it depends on
 * nothing else of these operands. */
struct affines affine_of(struct graph *, const struct node *, const struct affines *known);
/* Whether the first element is at least 0 and the last one less than k, ignoring the step along one dimension. */
bool affine_within(struct graph *, const struct affine *, const struct type *, int but, const struct dim *k);

#endif
