/* ir/text: the text form of a graph: printer, parser, and the lexer under them. Parsing what was printed prints the same text again.
 *
 *     graph NAME {
 *       ir 10  opset 23  properties 3  ranks 4  rank 0          each only where it is not the default
 *       import DOMAIN VERSION      meta KEY TEXT
 *       dim P >= 0                 the fact of a symbol
 *       dim S/4                    made before what follows: canonical forms are sorted by age
 *       assume min(S, 64) = S "why"
 *       input NAME: TYPE @PLACEMENT dims [S, 64]                @, dims: where there are any
 *       const NAME: TYPE = BYTES                                [1, 2] | hex "00ff" | file "path" offset length, then origin NAME;
 *                                                               its own type before the bytes where it differs
 *       node NAME: OUT: TYPE @PLACEMENT, ... = DOMAIN::OP(IN, _) opset 5 scope "model.layers.0" {axis = 1, dims = [S, 64]}
 *       output NAME
 *       state PAST -> PRESENT dim 2
 *       configuration NAME 4                                    with as many devices; of it say the lines that follow
 *       shard NODE reads TENSOR on [-1, 2] group -1 [0, 1] axis 1 [3:1, H:2, :1]     makes TENSOR: a result; SIZE:SHARDS
 *       shard NODE keeps TENSOR                                 reads it as it is left
 *       stage NODE 1
 *     }
 *
 * A body is an attribute in the same form: {then_branch = graph then { ir 0  opset 23  captures 1 ... }}. captures: how many of its inputs,
 * the last ones, are operands of the node.
 *
 * A name is bare when it is plain (lex_is_plain), else quoted. `_` is an absent value, `?` a type that is not known. White space separates;
 * # starts a comment. Attributes of an op without a row name their kind: alpha: f = 1, x: raw = hex "0a". */
#ifndef TPC_IR_TEXT_H
#define TPC_IR_TEXT_H

#include "ir/ir.h"

/* ---- print.c, parse.c -------------------------------------------------------------------------------------------------- */
void graph_print(const struct graph *, FILE *);
/* The content of a file that holds the text form; NULL: another format. The text form starts with a comment or with the word graph, which
 * no model's message does. */
char *graph_text(struct arena *, const char *path);
/* A malformed text is a failure with line and column. */
struct graph *graph_parse(struct arena *, struct alg *, const char *text, const char *file, op_lookup *);

/* ---- lex.c ------------------------------------------------------------------------------------------------------------- */
struct lexer {
    struct arena *arena;
    const char *file, *start, *at;
};
/* Ends with the lexer's line and column. */
_Noreturn void lex_fail(struct lexer *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lex_space(struct lexer *);
bool lex_end(struct lexer *);
bool lex_accept(struct lexer *, const char *symbol);
void lex_expect(struct lexer *, const char *symbol);
/* The word follows, as a whole. */
bool lex_accept_word(struct lexer *, const char *word);
char *lex_name(struct lexer *); /* plain or quoted */
char *lex_quoted(struct lexer *);
bool lex_at_quote(struct lexer *);
int64_t lex_int(struct lexer *, int64_t lo, int64_t hi);
/* A C number of any kind (also nan, inf), as text. */
char *lex_number(struct lexer *);
double lex_float(struct lexer *);
/* hex "00ff": the bytes. */
uint8_t *lex_hex(struct lexer *, int64_t *bytes);
/* Raw text up to one of the stop characters outside of brackets and backquotes; not empty. */
char *lex_raw(struct lexer *, const char *stop);
/* Prints a name, plain or quoted, as lex_name reads it. */
void lex_put_name(FILE *, const char *name);
void lex_put_quoted(FILE *, const char *text);

/* ---- shardings.c: multi-device annotations ------------------------------------------------------------------------------ */
void shardings_print(const struct graph *, FILE *, int indent);
/* What follows the words configuration, shard and stage. */
void shardings_parse_configuration(struct lexer *, struct graph *);
void shardings_parse_shard(struct lexer *, struct graph *);
void shardings_parse_stage(struct lexer *, struct graph *);

/* ---- parse_value.c ------------------------------------------------------------------------------------------------------- */
struct parser {
    struct lexer lex;
    struct graph *g;
    op_lookup *find;
    VEC(struct equation) equations;
    int depth; /* of the bodies around it */
};
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
/* After "=": bytes of the declared type, or another type and its bytes. */
struct constant *parse_constant_of(struct parser *, const struct type *declared);

#endif
