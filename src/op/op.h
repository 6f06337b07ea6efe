/* op: what an operation means. One row per op in schemas/ops.def; inference, rule and lowering of a family stand side by side in
 * src/op/FAMILY.c, its kernels in the twin src/kern/FAMILY.c.
 *
 * Nodes are in canonical form for rules (shape operands gone); inference and value see both forms: an operand that is there is read
 * through its dims value, an absent one through the attribute or the recorded output type. */
#ifndef TPC_OP_H
#define TPC_OP_H

#include "ir/ir.h"

enum op_flag {
    OP_PRODUCT = 1,     /* MatMul, Gemm, Conv, fused attention: sequence splits do not pass; a weight operand seeds splits */
    OP_BARRIER = 2,     /* Softmax and the like: sequence splits do not pass */
    OP_ELEMENTWISE = 4, /* fusable: costed as a third of its bytes */
    OP_VIEW = 8,        /* the output is the input's bytes: Reshape, Squeeze, Identity; no cost */
    OP_INTERNAL = 16,   /* exists only inside; has an emit expansion */
    OP_COLLECTIVE = 32, /* domain tpc */
    OP_COMMUTES = 64,   /* operands 0 and 1 may be exchanged (equal nodes merge) */
    OP_SEEDS = 128,     /* its weight operands seed splits: MatMul, Gemm, Conv, Gather */
    OP_GROWS = 256,     /* a state pair may pass: output = past + new along an axis (Concat, fused attention) */
    OP_STEPS = 512,     /* its kernel reads operands whose memory has room to grow (struct tensor) */
    OP_DECODES = 1024,  /* what it makes of a weight is the same weight (DequantizeLinear): products read it as it is stored */
    OP_BOUNDED = 2048,  /* its results are no larger than 1, or NaN, whatever it is given */
    OP_ROUTES = 4096,   /* a row goes through attribute k of the experts that dimension 0 of its weights counts */
    OP_CONTROL = 8192,  /* runs its bodies */
    OP_CHUNKS = 16384, /* its kernel makes the terms that struct share (kern/kern.h) tells of, where it sums floats over a dimension that is
                          dealt out */
    OP_SCORES = 32768  /* operand 0 are scores of classes, whose split style loss-parallel asks for */
};

/* ---- registry.c ---------------------------------------------------------------------------------------------------------- */
/* The row of an op, or NULL. Domain "" and "ai.onnx" are one. */
const struct op *op_find(const char *domain, const char *name);
int op_count(void);
const struct op *op_at(int index);
bool op_is_onnx(const struct node *, const char *op); /* of domain ai.onnx */
bool op_is_tpc(const struct node *, const char *op);  /* of domain tpc */
/* A row of the table (table/table.c), the last one without a name: everything but what is parsed from its texts. */
struct op_row {
    const char *inputs, *outputs, *attributes;
    struct op op;
};
extern const struct op_row op_rows[];

/* ---- factor rules (rule.c): design.md section 4 ------------------------------------------------------------------------
 * Every dimension of every operand and result is a sequence of factors, outer to inner, or parts laid end to end. */
enum factor_flag {
    FACTOR_WHOLE = 1,      /* ! never split */
    FACTOR_POSITION = 2,   /* @ the index means something: acts as ! unless a lowering uses the start of the split */
    FACTOR_CONTRACTED = 4, /* summed or attended over (also when whole): how a sequence dimension is recognised */
    FACTOR_DROPPED = 8,    /* absent from the results because it is cut away (Slice, unused part): no reduction needed */
    FACTOR_HEADS = 16,     /* seeded: outer factor of a Reshape that splits or merges, head factors of attention, Repeat's result */
    FACTOR_LOWERED = 32,   /* split only by the row's lowering; red tells what its result is (Gather from a split table: sum) */
    FACTOR_ORDERED = 64    /* beside LOWERED: only where ranks hold one interval each, in ascending order (running sums) */
};
struct factor {
    char name[12];
    const struct dim *size;
    unsigned flags;
    enum redop red;
}; /* red: absent from results, reduced by */
struct rule_part {
    int n;
    int factor[MAX_RANK];
}; /* a product, outer to inner; n == 0: size 1 (broadcast) */
struct rule_dim {
    int n, cap;
    struct rule_part *part;
}; /* parts laid end to end; n == 1 mostly; cap 0: no room for more */
struct rule_operand {
    bool present;
    bool term;
    int rank;
    struct rule_dim dim[MAX_RANK];
}; /* term: + counts once: P when a sum factor is split */
/* An attribute that states a size: localize writes the local extent of the product. */
struct rule_size {
    const char *attr;
    struct rule_part part;
};
struct rule {
    int nfactor, factor_cap;
    struct factor *factor;
    int nin, nout;
    struct rule_operand *in, *out;
    int nlinear; /* sets of operands, as bit masks, in which the op is jointly linear while the others are whole */
    uint32_t linear[8];
    bool moves;            /* only moves elements: passes every reduction in these sets, not just sum, and max and min in each operand */
    uint32_t rises, falls; /* operands, one element of which makes a result, and greater (less) where it is greater: passes max and min */
                           /* alone, or exchanges them */
    uint32_t joined;       /* operands of whose elements results are the reduction `joins` (max, min): passes it in all of them */
    enum redop joins;
    int nsize;
    struct rule_size size[4];
    int ngroup, group[8];         /* factors that split together: the parts of a |; several factors, one group per rule */
    int query_outer, query_inner; /* (hk g): a rank holds whole groups or heads of one group; -1: no such product */
};

/* May it be split at all, by itself or by a lowering? */
bool factor_splits(const struct factor *);
/* Building a rule. Factors are numbered from 0; names are for printing only. */
struct rule *rule_new(struct graph *, const struct node *); /* operands present as in the node, ranks set, dims empty */
int rule_factor(struct graph *, struct rule *, const char *name, const struct dim *size, unsigned flags);
/* The same, named by a stem and a number. */
int rule_numbered(struct graph *, struct rule *, const char *stem, int number, const struct dim *size, unsigned flags);
/* Appends factor f as the innermost of part p of dimension d (creating parts up to p). */
void rule_put(struct graph *, struct rule_operand *, int d, int part, int f);
void rule_linear(struct rule *, uint32_t operands);
/* Operand i is added to the result: a term, through which max and min pass. */
void rule_term(struct rule *, int i);
/* For data (operand 0), indices and updates (2) with attribute reduction: what passes through both, or through data alone. */
void rule_scatter(struct rule *, const struct node *);
/* One way terms pass: where these operands are terms of `from` and the others whole, all results are terms of `to`. */
struct rule_pass {
    uint32_t operands;
    enum redop from, to;
};
/* All ways of a rule, none twice, into an array of MOST_PASSES; returns their number. */
enum { MOST_PASSES = 256 };
int rule_passes(const struct rule *, struct rule_pass *);
/* "(b.. m k)(k n) -> (b.. m n)  k: sum  linear 0, 1"; prints and parses (parse: for fixed rules and for tests). */
char *rule_str(struct arena *, const struct rule *);
/* Sizes and the number of dims behind ".." come from the node's types; a text that does not fit them is a bug(). */
struct rule *rule_parse(struct graph *, const struct node *, const char *text);
/* The rule of a node: by its row; NULL when it has none (kept whole), or when equations do not
 * show its sizes to be the types'. Checks the rule against the types (product of sizes). */
struct rule *rule_of(struct graph *, const struct node *);

/* An assignment: splits given to factors (split[f], over the factor's own size) or to one product of adjoining factors. */
struct assignment {
    const struct split **factor;     /* by factor, NULL: whole */
    int nproduct, product[MAX_RANK]; /* adjoining factors, outer to inner, split as one */
    const struct split *product_split;
};
/* Placements of all operands and results under an assignment. An operand that lacks the inner factors of a product takes the image of
 * the split; a result that lacks a split factor is P(red); a term is P. False: no legal strategy (a whole factor would be cut, two
 * dims of one operand split, a factor lost without reduction, a sum over an overlapping split, groups not uniform). */
bool rule_project(struct graph *, const struct rule *, int ranks, const struct assignment *, struct placement *in, struct placement *out);
/* How a node is to run on the ranks; node->strategy after choose. */
struct strategy {
    struct placement *in, *out;   /* what the node wants of each operand, how it leaves each result */
    struct assignment assignment; /* the split factors; none: whole or partial */
    bool lowered;                 /* the assignment needs the row's lowering */
    struct space *body;           /* the lowering, made when its price is asked for (src/plan/cost/lowering.c) */
};
/* How a product of factors, as in rule_size, is split under a legal assignment; NULL: whole. */
const struct split *rule_part_split(struct graph *, const struct rule *, int ranks, const struct assignment *, const struct rule_part *);
/* The gathered axis of a table (operand 0; operand 1 are indices, others belong to the table): split by the lowering of Gather, unless
 * elements share bytes. */
int op_table_factor(struct graph *, struct rule *, const struct node *);
/* Product of the sizes of factors list[from .. to); 1 for none. Of a part: of all its factors. */
const struct dim *rule_sizes(struct graph *, const struct rule *, const int *list, int from, int to);
const struct dim *rule_part_size(struct graph *, const struct rule *, const struct rule_part *);
/* The one factor that a dimension is; -1: none or several. The same of dimension d of an operand or result. */
int rule_lone_factor(const struct rule_dim *);
int rule_factor_at(const struct rule_operand *, int d);
/* Puts dimension d of an operand that is broadcast, right-aligned, into factors of the result's dimensions (factor[rank]; -1: the
 * result's dimension is 1). An extent of 1 against a larger result is left empty. */
void rule_broadcast(struct graph *, const struct rule *, struct rule_operand *, const struct type *, int rank, const int *factor);

/* ---- helpers of inference (infer.c), shared by the families --------------------------------------------------------------- */
/* Type of operand i; absent or untyped is a failure naming it. */
const struct type *op_operand(const struct graph *, const struct node *, int i);
/* Sets the type of output i where the node has it. */
void op_result(struct graph *, struct node *, int i, enum dtype, int rank, const struct dim *const *dim);
/* The one size of two dims that must agree. Different symbolic ones are equated; a contradiction is a failure. what: "the inner
 * dimensions of A and B" ... */
const struct dim *op_same_dim(struct graph *, const struct node *, const struct dim *a, const struct dim *b, const char *what);
/* One dimension of a broadcast: 1 gives way, else they must agree. */
const struct dim *op_broadcast_dim(struct graph *, const struct node *, const struct dim *a, const struct dim *b, const char *what);
/* Right-aligned broadcast of n types; dtype is that of the first. */
struct type op_broadcast(struct graph *, const struct node *, int n, const struct type *const *type);
/* Types whose elements share bytes are those of weights: a graph input or output of such a type is a failure. */
void op_check_interface(const struct graph *);
/* Operands a and b must have one element type. */
void op_same_dtype(const struct graph *, const struct node *, int a, int b);
/* Operand i must have least to most dimensions. */
void op_need_rank(const struct graph *, const struct node *, int i, int least, int most);
/* Operand i must hold indices: i32 or i64. */
void op_index_type(const struct graph *, const struct node *, int i);
/* An axis in [-rank, rank) as [0, rank); anything else is a failure. */
int op_axis(const struct graph *, const struct node *, int64_t axis, int rank);
/* Entries of a vector of shape information; longer ones are data. */
enum { MOST_ENTRIES = 4096 };
/* Shape information of a value: its dims, or those of a small integer or boolean constant (remembered); NULL when there is none. */
const struct dims_value *op_dims(struct graph *, struct value *);
/* The same of a value of up to 2 dimensions, row by row: pads of one exporter are a table of pairs that is turned around. Only ops that
 * move elements read and make such tables. */
const struct dims_value *op_entries(struct graph *, struct value *);
/* Gives output 0 of the node its shape information: room for n expressions, to be filled. */
const struct dim **op_set_dims(struct graph *, struct node *, int n);
/* The expressions that say sizes: of shape operand i when the node still has it, else of the folded DIMS attribute. Returns the
 * count; -1: present but not known; -2: neither. */
int op_size_operand(struct graph *, const struct node *, int i, const char *attr, const struct dim *const **out);
/* The number in a constant of one element; a whole number in one, which no rounding of floats has made so. False: there is none. */
#define OP_LARGEST_WHOLE 1e15
bool op_constant_number(const struct value *, double *out);
bool op_whole_constant(const struct value *, int64_t *out);
/* Every element of a float constant has a magnitude between lo and hi; `absent` where its file is missing (a dry run needs no weights). */
bool op_constant_within(struct constant *, const char *name, double lo, double hi, bool absent);

/* Dimension d of output i cannot be expressed: an opaque symbol, the same one at every inference. */
const struct dim *op_unknown_dim(struct graph *, const struct node *, int i, int d);
/* What a plan takes an opaque dimension d of result i for: of a mask that routes rows, NonZero finds each row in one class; other results
 * hold together as much as operand 0. */
const struct dim *op_guess_size(struct graph *, const struct node *, int i, int d);
/* No operand that only says sizes is left: the node is in canonical form and its rule applies. Otherwise it stays whole. */
bool op_resolved(const struct node *);
/* One sliced axis of a Slice: bounds counted from 0 and clamped to the dimension; for a negative step, stop may be -1. size is the
 * resulting extent. start NULL: the bounds are not known. */
struct slice {
    int axis;
    const struct dim *start, *stop, *size;
    int64_t step;
};
/* The sliced axes of a Slice node; -1 when an operand is not known. */
int op_slices(struct graph *, const struct node *, struct slice out[MAX_RANK]);
/* ---- window.c: windows that slide over n spatial dimensions; partial: ceil_mode, a last place may reach over the end */
#define MOST_SPATIAL (MAX_RANK - 2)
struct window {
    int n;
    bool partial;
    int64_t kernel[MOST_SPATIAL], stride[MOST_SPATIAL], dilation[MOST_SPATIAL], pad[2 * MOST_SPATIAL];
};
/* From attributes strides, dilations and pads; unfit ones are a failure. */
struct window window_read(const struct graph *, const struct node *, int n, const int64_t *kernel);
/* Places along spatial dimension i of this extent; auto_pad as the node has it. */
const struct dim *window_result(struct graph *, const struct node *, const struct window *, int i, const struct dim *extent);
/* Rewrites a typed node to canonical form: size operands whose content is known go into attributes or the output type (all of them or
 * none), axes are made nonnegative, defaults that depend on the rank are written out. */
void op_canonical(struct graph *, struct node *);
/* resize.c: the part of that for a Resize: sizes name only the dimensions that change, operands that say nothing go. */
void op_write_resize(struct graph *, struct node *);
/* Runs the node's kernel at compile time when every operand is a constant (or shape information that is all integers): its outputs
 * become constants and the node loses them (nout 0: the caller drops it). False, and nothing changed, when that can't be done. */
bool op_evaluate(struct graph *, struct node *);
/* The constant made of integer shape information; its dtype and rank are the value's. NULL when an entry is symbolic. */
struct constant *op_dims_constant(struct graph *, const struct value *);

/* ---- lifetime.c: what shares memory, and from which node to which it is needed ---------------------------------------------------- */
struct lifetimes {
    int *root; /* by value id: the value whose bytes a view shares; itself otherwise */
    int *item; /* by value id of a root: its item in the slab; -1: it has none */
    int nitem;
    struct slab_item *items; /* steps are node positions, the last one is after all nodes; bytes are the caller's to set */
};
/* Results of nodes have items, and inputs that are marked (copied, by input number); constants and other inputs lie elsewhere. Graph
 * outputs live to the end. */
struct lifetimes lifetimes_of(struct arena *, const struct graph *, const bool *copied);

/* ---- collective.c: large tensors go strip by strip where a dimension before the split one can be cut, so that blocks stay small ---- */
#define STRIP_BYTES ((int64_t)4 << 20) /* of the whole tensor, at a time */
bool op_goes_in_strips(const struct node *);

/* ---- append.c ---------------------------------------------------------------------------------------------------------------------- */
/* The operand past_X of a fused op whose result is its present_X, both [.., rows, size]; -1: the result is no present. */
int op_past_operand(const struct node *, int result);
/* The operand to which a node appends along *axis what becomes this result; -1: it is not of that kind, or appends in front. */
int op_appends_to(const struct node *, int result, int *axis);

/* ---- subgraph.c: a body made ready for the operands of its node -----------------------------------------------------------------------
 */
/* A copy with an interner of its own, in which a size that is no integer is a symbol; it stands for a size of the graph around, or for
 * nothing known there: the sizes of what a Loop carries may change from turn to turn. */
struct ready {
    struct graph *graph; /* inputs have types; captured constants are constants */
    struct graph *around;
    const struct node *node;
    VEC(const struct dim *) inside, outside; /* by position: a symbol, and what it stands for */
};
struct ready ready_new(struct arena *, struct graph *around, const struct node *, int body);
/* The size of a graph around, inside. */
const struct dim *ready_enter(struct ready *, const struct dim *);
/* The size of the body, in the graph around; NULL: it can't be told there. */
const struct dim *ready_leave(const struct ready *, const struct dim *);
/* A type of the graph around, inside. */
struct type ready_type(struct ready *, const struct type *);

/* ---- control.c ------------------------------------------------------------------------------------------------------------------------
 */
/* The body of a typed node, itself typed: sizes hold in every turn. */
struct graph *op_ready_body(struct arena *, struct graph *, const struct node *, int body);
/* How many operands, the first ones, say which branch or how many turns. */
int op_steering(const struct node *);
/* How often a body runs; NULL: not known, or at most once. */
const struct dim *op_turns(struct graph *, const struct node *);
/* A size of a result that the types leave open: of an If the larger one of its branches, of what is carried its first. NULL: nothing tells.
 */
const struct dim *op_control_guess(struct graph *, const struct node *, int result, int d);
/* Of a Scan: how many of its operands before the captures it scans; the axis that an attribute states, 0 by default; the direction. */
int op_scan_inputs(const struct graph *, const struct node *);
int op_scan_axis(const struct graph *, const struct node *, const char *attr, int i, int rank);
bool op_scan_backwards(const struct graph *, const struct node *, const char *attr, int i);
/* Puts the nodes of the branch that an If of known condition takes in its place: appended to *out, they make its results. False: another
 * node, or it is not known. */
bool op_take_branch(struct graph *, struct node *, struct nodes *out);

/* ---- batch_independence.c: metadata OP_ROWS SYMBOL for each symbol that is a dimension of an input of a canonical graph, in the order of
 * the inputs --- */
/* OP_ROWS_INDEPENDENT: what is computed of a row along the symbol does not depend on other rows, nor on how many there are. Else why not:
 * a clause that names the node, input or output. */
#define OP_ROWS "tpc.rows."
#define OP_ROWS_INDEPENDENT "independent"
void op_note_rows(struct graph *);

/* ---- bind_input.c: graph inputs fixed to constants (--bind), as texts NAME=VALUE[,VALUE...]
 * ------------------------------------------------ */
struct fixed {
    VEC(const char *) list;
};
/* The input becomes a constant, and the metadata says so. Wrong names, types and counts are failures. */
void op_fix_input(struct graph *, const char *text);
/* Inputs that nothing reads are inputs no more; the metadata names them. */
void op_drop_unread(struct graph *);
/* The elements of a list of values, and their number. */
const void *op_fixed_data(struct arena *, const char *name, enum dtype, const char *values, int64_t *n);
/* What an input was fixed to; NULL: it was not. */
const char *op_fixed_value(const struct graph *, const char *name);
bool op_is_unread(const struct graph *, const char *name);
struct fixed op_fixed_inputs(const struct graph *);

/* ---- infer_fixpoint.c
 * -------------------------------------------------------------------------------------------------------------------------- */
/* Known shape information that is all integers. */
bool op_dims_static(const struct value *);
/* Infers until no new equation is met; an If whose condition is known becomes its branch, and small nodes on static values are run. */
void op_infer_all(struct graph *);

/* ---- node-making helpers for passes and lowerings (make_node.c): infer the result, append to the graph's pending list -------- */
/* A node with one output, typed by its op's inference; not inserted. Where an attribute without default is still to be set, or the
 * output type is to be given (Reshape, Expand), the caller does that and calls op_infer. */
struct node *op_node(struct graph *, const char *domain, const char *op, const char *name, int nin, struct value *const *in);
/* Runs the row's inference (and value); unknown ops keep declared output types. */
void op_infer(struct graph *, struct node *);

/* ---- lower.c: the split form of a node as a body of other nodes ----------------------------------------------------------------
 * A row's lowering writes the node's results by ordinary ops, on whole values: what it computes is the same unsplit. Placements of the
 * body follow from those of the operands by the ordinary rules (src/plan/cost/lowering.c): reductions over the split axis come out partial,
 * and communication appears where they are read. A node that each rank runs on what it has, against its rule, is told so: on_ranks. */
struct lowering {
    struct graph *g;
    struct node *node;
    const char *name;
    VEC(struct node *) nodes;
};
/* One more node, named after the lowered one, with one untyped result; inferred unless something is still to be said (op_node). */
struct node *lower_node(struct lowering *, const char *domain, const char *op, const char *part, int nin, struct value *const *in);
/* The lowered node with other operands, and results of its own. */
struct node *lower_copy(struct lowering *, const char *part, int nin, struct value *const *in);
/* Results of nodes of domain ai.onnx. */
struct value *lower_unary(struct lowering *, const char *op, const char *part, struct value *);
struct value *lower_binary(struct lowering *, const char *op, const char *part, struct value *, struct value *);
struct value *lower_where(struct lowering *, const char *part, struct value *condition, struct value *, struct value *);
struct value *lower_cast(struct lowering *, const char *part, struct value *, enum dtype);
/* At least float32, to compute in. */
struct value *lower_float(struct lowering *, const char *part, struct value *);
/* n dimensions of 1 before dimension axis (n 0: as it is); without dimension axis, of 1. */
struct value *lower_unsqueeze(struct lowering *, const char *part, struct value *, int axis, int n);
struct value *lower_squeeze(struct lowering *, const char *part, struct value *, int axis);
struct value *lower_concat(struct lowering *, const char *part, int n, struct value *const *in, int axis);
/* A Split with n results of these sizes; of size 1. */
struct node *lower_split(struct lowering *, const char *part, struct value *, int axis, int n, const struct dim *const *size);
struct node *lower_apart(struct lowering *, const char *part, struct value *, int axis, int n);
/* Values of one type with a size of 1 along the axis, whole, by one collective. */
void lower_together(struct lowering *, int axis, int n, struct value *const *in, struct value **out);
/* Over dimensions from to to - 1, which are kept as ones. */
struct value *lower_reduce(struct lowering *, const char *op, const char *part, struct value *, int from, int to);
/* A scalar; of a global size; of the product of dimensions from to to - 1. */
struct value *lower_scalar(struct lowering *, const char *part, enum dtype, double);
struct value *lower_size(struct lowering *, const char *part, const struct dim *, enum dtype);
struct value *lower_extent(struct lowering *, const char *part, const struct type *, int from, int to, enum dtype);
/* Can the lowering of a factor (FACTOR_LOWERED) do with this split? Every index is held once; one that counts positions (FACTOR_POSITION,
 * too) knows no splits inside a symbolic size. */
bool op_lowers(const struct rule *, int factor, const struct split *);
/* Result i of the lowered node is this value. */
void lower_result(struct lowering *, int i, struct value *);
/* Each rank runs the node on what it has: in, out: placements of all operands and results, with global types set. */
void lower_on_ranks(struct lowering *, struct node *, const struct placement *in, const struct placement *out);
/* The same on operands as they are placed (or whole); all results are left as out. */
void lower_on_own(struct lowering *, struct node *, struct placement out);

/* table_lookup.c: lowerings of lookups in a split dimension. */
/* Where some rank may hold nothing, or always, every rank has a spare element of zeros behind what it holds; a value that is split along
 * axis with that. */
struct value *lower_with_spare(struct lowering *, struct value *, int axis, bool always);
/* Indices counted within what each rank holds, and whether they lie in it. Those outside point at the spare element, or else at any. */
struct value *lower_local_index(struct lowering *, struct value *indices, const struct split *, bool always, struct value **inside);
/* Result 0 of the lowered node run again, by each rank on other operands: its own parts of those that are split. */
struct value *lower_again(struct lowering *, const char *part, struct value *const *in);
/* Result 0 of the lowered node is the sum of terms: what each rank has found where it is inside, else zero. */
void lower_terms(struct lowering *, struct value *inside, struct value *found);
/* Result 0 of the lowered node, a scatter into operand 0, by each rank on its own part of that: what lies outside of it goes to a spare
 * element, which is cut off. index: local ones with a spare. */
void lower_scattered(struct lowering *, struct value *index);

/* position.c: positions 0 to n - 1 of a dimension, i64[n]; each rank its own part of them. */
struct value *lower_count(struct lowering *, const char *part, const struct dim *n);
struct value *lower_positions(struct lowering *, const char *part, const struct split *);
/* start + position * step */
struct value *lower_progression(struct lowering *, struct value *positions, const struct dim *start, const struct dim *step);
/* Those of dimension axis of such a type, to be broadcast; split NULL: all. */
struct value *lower_positions_along(struct lowering *, const char *part, const struct type *, int axis, const struct split *);

/* ---- shape_tensor.c, expand*.c: at emit, sizes become tensors again and what exists only inside becomes standard ops -------------
 * Everything appends to g->nodes in any order; graph_sort puts it right. Rank graphs get the same nodes and names: where sizes differ
 * from rank to rank, only a constant does. */
/* Integers or expressions as an i64[n] tensor; each expression is computed once per graph from Shape of graph inputs. */
struct value *dims_tensor(struct graph *, int n, const struct dim *const *);
/* The same for one of several ranks: dims[r] are the n expressions of rank r; the result is this rank's. */
struct value *dims_tensor_of_rank(struct graph *, int ranks, int rank, int n, const struct dim *const *const *dims);
/* An i64[n] tensor in another dtype, or (n = 1) as a scalar. */
struct value *dims_tensor_as(struct graph *, struct value *, enum dtype, bool scalar);
/* Replaces nodes by their rows' expansions: nodes of ops that stay are kept, and those of ops with one of the flags `but`. */
void expand_nodes(struct graph *, unsigned but);
/* peers[r]: the same node in the graph of rank r, in canonical form. Returns the rank's node with its size operands made again (peers
 * themselves are not changed); the caller appends it. */
struct node *expand_operands(struct graph *, int ranks, int rank, struct node *const *peers);

/* ---- rewrites of the canon pass (rewrite.c, norm_pattern.c, equal_nodes.c)
 * ----------------------------------------------------------------- */
/* The list of nodes being written. A rewrite looks at one node; true: nodes pushed since then stand for it, the last one with its result.
 */
struct rewrite {
    struct graph *g;
    VEC(struct node *) nodes;
};
void rewrite_all(struct graph *, bool (*)(struct rewrite *, struct node *));
/* A new node with one result still to be set, named after the node it replaces. */
struct node *rewrite_node(struct rewrite *, const char *domain, const char *op, const struct node *root, int nin, struct value *const *in);
/* Gives it a result of its own and infers; type: for ops whose result type is given (NULL otherwise). */
struct value *rewrite_value(struct rewrite *, struct node *, const struct type *);
void remove_noops(struct graph *);
void merge_equal_nodes(struct graph *);
void slices_to_splits(struct graph *);
bool merge_reshapes(struct rewrite *, struct node *);
bool gather_to_slice(struct rewrite *, struct node *);
bool tile_to_expand(struct rewrite *, struct node *);
bool find_repeat(struct rewrite *, struct node *);
bool unflatten_product(struct rewrite *, struct node *);
bool write_einsum(struct rewrite *, struct node *);
bool write_microsoft_attention(struct rewrite *, struct node *);
bool find_norm(struct rewrite *, struct node *);
bool find_norm_bias(struct rewrite *, struct node *);
bool lay_scales_in_rows(struct rewrite *, struct node *);

#endif
