/* compose: what the tables of ops that are a few other ops share. A function turns its node into the last op it stands for and imports the
 * ones before as helpers; one that returns without doing so leaves the node alone: it then has no row and is kept whole. */
#ifndef TPC_ONNX_COMPOSE_H
#define TPC_ONNX_COMPOSE_H

#include "onnx/private.h"

struct composer {
    struct import *im;
    struct scope *scope;
    Onnx__NodeProto *node;
    const char *where;
};
struct composition {
    const char *domain, *op;
    void (*run)(struct composer *);
};
/* Ends with a row without op. */
extern const struct composition composed_onnx[], composed_microsoft[], composed_integers[];

/* ---- reading the node: operands, results and attributes --------------------------------------------------------------------------- */
bool compose_has(const Onnx__NodeProto *, size_t operand);
bool compose_gives(const Onnx__NodeProto *, size_t result);
/* The name of an operand; an absent one is a failure. */
char *compose_input(struct composer *, size_t);
/* The name of an operand, or NULL. */
char *compose_optional(struct composer *, size_t);
int64_t compose_int_of(const Onnx__NodeProto *, const char *name, int64_t otherwise);
float compose_float_of(const Onnx__NodeProto *, const char *name, float otherwise);

/* ---- making nodes ------------------------------------------------------------------------------------------------------------------ */
Onnx__AttributeProto *compose_int(struct composer *, const char *name, int64_t);
Onnx__AttributeProto *compose_float(struct composer *, const char *name, float);
Onnx__AttributeProto *compose_string(struct composer *, const char *name, const char *);
/* A helper; its results are new values. NULL operands are absent, NULL attributes left out. Returns the first result; more: room for
 * the others. */
char *compose_node_of(struct composer *, const char *op, size_t nin, char *const *in, size_t nattr, Onnx__AttributeProto *const *attr,
                      size_t nout, char **more);
/* One of one or two operands, without attributes. */
char *compose_op(struct composer *, const char *op, char *a, char *b);
char *compose_cast(struct composer *, char *x, int64_t data_type);
/* A number of x's type. */
char *compose_number_like(struct composer *, double, char *x);
/* The node itself becomes op: its attributes are dropped, its results kept. */
void compose_become(struct composer *, const char *op, size_t nin, char *const *in);
void compose_become_with(struct composer *, const char *op, size_t nin, char *const *in, size_t nattr, Onnx__AttributeProto *const *attr);
/* Another result of the node, where it is asked for, is made by op; the node has it no more. Later results first. */
void compose_also(struct composer *, size_t result, const char *op, size_t nin, char *const *in);

#endif
