/* onnx/compose: ops that become a few others at load, and sequences, which become tensors. */
#ifndef TPC_ONNX_COMPOSE_H
#define TPC_ONNX_COMPOSE_H

#include "onnx/read/read.h"

/* ---- compose.c, table.c: ops that are compositions of others --------------------------------------------------- */
struct composition;
/* What a name in a text stands for: a value, or data, which become a constant where an operand is expected. Neither: absent. */
struct compose_term {
    char *value;
    const Onnx__AttributeProto *data;
};
struct compose_let {
    const char *name;
    struct compose_term is;
    int operand; /* the required operand that is absent; else -1 */
};
struct composer {
    struct import *im;
    struct name_scope *scope;
    Onnx__NodeProto *node;
    const struct composition *row;
    const char *where;
    VEC(struct compose_let) lets;
};
/* A row has either a text, before which prepare may run (false: the node stays unchanged), or run. The node becomes the last op of the
 * composition; the others are imported. If it does not, it has no row and is replicated. */
struct composition {
    const char *domain, *op;
    int since;
    const char *of; /* all ops that run may make */
    void (*run)(struct composer *);
    bool (*prepare)(struct composer *);
    const char *text;
};
extern const struct composition compose_list_sequence[]; /* ends with a row without op */
void compose_node(struct import *, struct name_scope *, Onnx__NodeProto *);
bool compose_has(const Onnx__NodeProto *, size_t operand);
bool compose_gives(const Onnx__NodeProto *, size_t result);
/* The name of an operand; an absent one is a failure. */
char *compose_input(struct composer *, size_t);
/* The name of an operand, or NULL. */
char *compose_optional(struct composer *, size_t);
int64_t compose_int_of(const Onnx__NodeProto *, const char *name, int64_t otherwise);
Onnx__AttributeProto *compose_int(struct composer *, const char *name, int64_t);
Onnx__AttributeProto *compose_truth(struct composer *, const char *name, bool);
Onnx__AttributeProto *compose_ints(struct composer *, const char *name, size_t n, const int64_t *);
Onnx__AttributeProto *compose_float(struct composer *, const char *name, float);
Onnx__AttributeProto *compose_string(struct composer *, const char *name, const char *);
/* A helper whose results are new values. NULL operands are absent, NULL attributes left out. Returns the first result; more: room for
 * the others. */
char *compose_node_of(struct composer *, const char *op, size_t nin, char *const *in, size_t nattr, Onnx__AttributeProto *const *attr,
                      size_t nout, char **more);
/* A helper with one or two operands, without attributes. */
char *compose_op(struct composer *, const char *op, char *a, char *b);
/* The node itself becomes op: its attributes are dropped, its results kept. */
void compose_become(struct composer *, const char *op, size_t nin, char *const *in);
void compose_become_with(struct composer *, const char *op, size_t nin, char *const *in, size_t nattr, Onnx__AttributeProto *const *attr);
/* Another result, if the node has it, is made by op and removed from the node. Call it for later results first. */
void compose_also(struct composer *, size_t result, const char *op, size_t nin, char *const *in);
/* text.c: the composition that the text of the row says. */
void compose_let(struct composer *, const char *name, struct compose_term);
void compose_text(struct composer *);
/* All ops that it may consist of, as struct composition has them. */
const char *compose_text_ops(struct arena *, const struct composition *);
bool compose_lists(const char *ops, const char *op);
/* counted.c: what compositions.def names. */
bool compose_head_counts(struct composer *);
bool compose_streams(struct composer *);
bool compose_known_rank(struct composer *);
bool compose_heads(struct composer *);
void compose_mean(struct composer *);
void compose_quantized_concat(struct composer *);
/* sequence_ends.c: what a value that is a sequence or an optional holds. */
struct sequence {
    enum { SEQUENCE_LIST, SEQUENCE_STACK, SEQUENCE_PARTS, SEQUENCE_ABSENT } kind;
    size_t n;            /* LIST: length */
    struct value **at;   /* the elements; STACK, PARTS: the tensor */
    int64_t axis, chunk; /* PARTS: indices per part */
};
void compose_sequence_note(struct import *, const struct value *, struct sequence);
/* NULL: not a known sequence of the graph being imported. */
const struct sequence *compose_sequence_find(const struct import *, const struct value *);
/* Sequences that enter the main graph, and, once all its nodes are read, those that leave it. */
bool sequence_is_type(const Onnx__TypeProto *);
void sequence_enter(struct import *, struct name_scope *, const Onnx__ValueInfoProto *);
void sequence_leave(struct import *);
/* An input that must be known now becomes a constant if --bind or the inputs of the run tell its value. */
bool sequence_bind_input(struct import *, struct value *);
/* sequence_unroll.c: a Loop (false: it stays one), and an If. */
bool sequence_unroll(struct composer *);
void sequence_branch(struct composer *);
/* sequence_loop.c: a sequence that a Loop begins empty and appends one tensor to in each iteration becomes a scan output; result k becomes
 * the stacked tensor of all elements. */
bool sequence_is_appended(const Onnx__NodeProto *loop, size_t state, char **element);
void sequence_to_scan(struct composer *, size_t state, const char *element, char *stack);
/* body.c: the nodes of the body that the attribute holds, read here; in: its inputs; out: its results. */
void compose_body(struct composer *, const char *attribute, size_t nin, char *const *in, size_t nout, char **out);

#endif
