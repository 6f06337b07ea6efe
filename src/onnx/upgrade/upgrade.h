/* onnx/upgrade: nodes of older opsets to the form that the rows of ops.def describe. */
#ifndef TPC_ONNX_UPGRADE_H
#define TPC_ONNX_UPGRADE_H

#include "onnx/read/read.h"

#define OPSET_OF_NUMPY_BROADCAST 7

/* ---- upgrade.c: the table of changed forms ---------------------------------------------------------------------------- */
/* Changes node in place and may import helper nodes; a form that can't be upgraded is a failure. */
void upgrade_node(struct import *, struct name_scope *, Onnx__NodeProto *, int opset);
/* The version since which op has another form than at opset, up to the form of the rows; 0: same form. */
int upgrade_form_changed(const char *op, int opset);

/* ---- edit.c, early.c: the node that is upgraded ------------------------------------------------------- */
struct upgrade {
    struct import *im;
    struct name_scope *scope;
    Onnx__NodeProto *node;
    int opset;
    const char *to; /* the op that it becomes */
    const char *where;
};
/* Takes an attribute off the node; NULL: no such attribute. Another type than given is a failure. */
Onnx__AttributeProto *upgrade_take(Onnx__NodeProto *, const char *name);
Onnx__AttributeProto *upgrade_remove(struct upgrade *, const char *name, Onnx__AttributeProto__AttributeType);
void upgrade_add_int(struct upgrade *, const char *name, int64_t);
void upgrade_add_float(struct upgrade *, const char *name, float);
void upgrade_add_text(struct upgrade *, const char *name, const char *text);
/* Sets operand number index; absent ones before it become "". */
void upgrade_set_input(struct upgrade *, size_t index, char *name);
/* The INTS attribute becomes operand index; false: no such attribute. */
bool upgrade_ints_to_input(struct upgrade *, const char *name, size_t index);
/* Training-only results are dropped; reading one is a failure. */
void upgrade_withhold_results(struct upgrade *, size_t first);
char *upgrade_display_name(struct upgrade *, const char *what);
/* A helper node with one output, imported at once. Returns the output's key. attr: one attribute, or NULL. */
char *upgrade_helper(struct upgrade *, const char *op, const char *suffix, size_t nin, char **in, const char *attr, int64_t value);
/* Forms before OPSET_OF_NUMPY_BROADCAST. */
void upgrade_early(struct upgrade *);
/* scan.c */
void upgrade_scan(struct upgrade *);

#endif
