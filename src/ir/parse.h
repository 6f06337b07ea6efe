/* ir/parse: what the files of the parser share. Internal to src/ir. */
#ifndef TPC_IR_PARSE_H
#define TPC_IR_PARSE_H

#include "ir/text.h"

struct parser {
    struct lexer lex;
    struct graph *g;
    op_lookup *find;
    VEC(struct equation) equations;
    int depth;
}; /* depth: of the bodies around it */

/* ---- parse.c ----------------------------------------------------------------------------------------------------------- */
/* Up to and with the closing brace, into p->g. */
void parse_graph(struct parser *);

/* ---- parse_value.c ------------------------------------------------------------------------------------------------------- */
struct dim_list {
    int n;
    const struct dim **at;
};
struct declaration {
    bool absent, placed;
    char *name;
    struct type type;
    struct placement place;
    struct dims_value *dims;
};
const struct dim *parse_dim(struct parser *, const char *stop); /* stop: the characters that may follow it */
struct dim_list parse_dims(struct parser *);
/* "f32[B, S]", "f32" or "?". */
struct type parse_type(struct parser *);
struct declaration parse_declaration(struct parser *);
/* NULL: an absent one. */
struct value *parse_definition(struct parser *, const struct declaration *);
struct value *parse_use(struct parser *);
struct constant *parse_constant(struct parser *, const struct type *);
/* Behind "=": bytes of the declared type, or another type and its bytes. */
struct constant *parse_constant_of(struct parser *, const struct type *declared);

/* ---- parse_node.c -------------------------------------------------------------------------------------------------------- */
void parse_node(struct parser *);

#endif
