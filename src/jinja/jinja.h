/* jinja: renders chat templates like Jinja2 with the settings of Hugging Face's apply_chat_template.
 *
 * It knows nothing of models, tokenizers or servers. A template has no access to files or imports, and its steps, memory, depth and output
 * are bounded. Unknown constructs are refused by name, with line and column. https://jinja.palletsprojects.com/en/stable/templates */
#ifndef TPC_JINJA_H
#define TPC_JINJA_H

#include "base/base.h"

#include <jansson.h>
#include <setjmp.h>

struct jinja; /* a parsed template, read-only, so that threads may share it */
struct jinja_fault {
    int line, column;     /* of the template, from 1; a column counts characters */
    const char *sentence; /* without the position; in the arena of the call */
};
/* Of n bytes of UTF-8, which are copied. NULL: not a template, or unsupported. */
struct jinja *jinja_parse(struct arena *, const char *text, size_t n, struct jinja_fault *);

/* Bytes [from, to) of a text. */
struct jinja_range {
    size_t from, to;
};
/* Bytes of UTF-8, not terminated, and the ranges from untrusted variables: sorted and disjoint. */
struct jinja_text {
    const char *at;
    size_t n;
    const struct jinja_range *untrusted;
    int ranges;
};
/* The text for the members of an object. Every byte that comes from a string or key in a variable of `untrusted`, names that end with NULL,
 * is in a range of the text, wherever the template puts it. Text that a template only selects by such strings, and digits of numbers, are
 * not marked. False: a fault of the template, or raised by it. */
bool jinja_render(const struct jinja *, struct arena *, const json_t *variables, const char *const *untrusted, struct jinja_text *,
                  struct jinja_fault *);

/* ==== internal ==== */

enum {
    JINJA_SOURCE = 4 << 20,   /* bytes of a template */
    JINJA_NESTING = 100,      /* expressions and statements within each other */
    JINJA_DEPTH = 800,        /* evaluations within each other, values within each other */
    JINJA_STEPS = 20000000,   /* evaluations, items, and each 64 bytes examined */
    JINJA_MEMORY = 512 << 20, /* bytes that a rendering takes */
    JINJA_OUTPUT = 64 << 20,  /* bytes of a text */
    JINJA_RANGE = 100000      /* as of Jinja2's sandbox */
};

/* ---- render.c: faults and limits ---- */
struct jinja_trap {
    jmp_buf back;
    struct arena *arena;
    struct jinja_fault *fault;
    const char *text;
    size_t n;
};
/* Fails at a byte of the template's text. */
_Noreturn void jinja_trapped(struct jinja_trap *, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));

struct jinja_run {
    struct jinja_trap trap;
    const struct jinja *jinja;
    struct arena *arena;
    size_t at; /* the template position being evaluated */
    int depth;
    int64_t steps;
    size_t memory;
    struct jinja_builder *out;
    struct jinja_scope *scope;
    const struct jinja_value *variable; /* by symbol; absent: undefined */
    const struct jinja_value *filtered; /* the text of a block whose filters have no operand */
};
_Noreturn void jinja_fail(struct jinja_run *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void jinja_step(struct jinja_run *, size_t bytes);   /* one step, plus the cost of this many bytes */
void jinja_charge(struct jinja_run *, size_t bytes); /* of memory */
void *jinja_take(struct jinja_run *, size_t count, size_t size);
void jinja_deeper(struct jinja_run *); /* to be undone by --depth */

/* ---- string.c: strings whose bytes are marked where they are untrusted ---- */
struct jinja_string {
    const char *at;
    size_t n;
    const unsigned char *mark; /* of each byte; NULL: all trusted */
    bool markup;               /* the filter safe made it */
};
struct jinja_builder {
    struct jinja_run *run;
    char *at;
    unsigned char *mark;
    size_t n, room;
    bool marked;
};
void jinja_put(struct jinja_builder *, const struct jinja_string *);
void jinja_put_bytes(struct jinja_builder *, const char *, size_t, bool marked);
void jinja_put_text(struct jinja_builder *, const char *);
void jinja_put_char(struct jinja_builder *, int32_t, bool marked);
void jinja_put_times(struct jinja_builder *, const struct jinja_string *, int64_t times);
struct jinja_value jinja_built(struct jinja_builder *);
struct jinja_string jinja_piece(const struct jinja_string *, size_t from, size_t to);
struct jinja_string jinja_literal(const char *);
/* Fails for a result of the filter safe: not everything that Jinja2 does with it is supported. */
void jinja_refuse_markup(struct jinja_run *, struct jinja_value);
bool jinja_same(const struct jinja_string *, const struct jinja_string *);
bool jinja_is(const struct jinja_string *, const char *);
int jinja_order(const struct jinja_string *, const struct jinja_string *);
size_t jinja_length(const struct jinja_string *); /* characters */
/* The character at *i, which moves past it; before *i, which moves to its start. */
int32_t jinja_next(const struct jinja_string *, size_t *i);
int32_t jinja_before(const struct jinja_string *, size_t *i);
size_t jinja_offset(const struct jinja_string *, int64_t chars); /* the byte of a character */
/* The first match at or after from, the last that ends at or before to; SIZE_MAX: none. */
size_t jinja_find(struct jinja_run *, const struct jinja_string *, const struct jinja_string *sought, size_t from);
size_t jinja_find_last(struct jinja_run *, const struct jinja_string *, const struct jinja_string *sought, size_t to);
bool jinja_has_at(const struct jinja_string *, const struct jinja_string *sought, size_t at);
/* Without characters at its ends; chars NULL: without white space. */
struct jinja_string jinja_strip(const struct jinja_string *, const struct jinja_string *chars, bool left, bool right);

/* ---- unicode.c: characters as in Python's str ---- */
bool jinja_char_is_space(int32_t);
bool jinja_char_is_printable(int32_t);
enum jinja_class { JINJA_ALPHA, JINJA_DIGIT, JINJA_DECIMAL, JINJA_ALNUM, JINJA_SPACE, JINJA_PRINTABLE, JINJA_ASCII };
/* str.isalpha and similar methods. */
bool jinja_all(const struct jinja_string *, enum jinja_class);
bool jinja_is_cased(const struct jinja_string *, bool upper); /* isupper, islower */
bool jinja_is_title(const struct jinja_string *);
enum jinja_case { JINJA_UPPER, JINJA_LOWER, JINJA_TITLE, JINJA_SWAP };
void jinja_put_case(struct jinja_builder *, const struct jinja_string *, enum jinja_case);
void jinja_put_capitalized(struct jinja_builder *, const struct jinja_string *);

/* ---- value.c: values, and operations on all types ---- */
enum jinja_type {
    JINJA_ABSENT, /* an argument that was not given */
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INT,
    JINJA_FLOAT,
    JINJA_STRING,
    JINJA_LIST,
    JINJA_TUPLE,
    JINJA_DICT,
    JINJA_RANGE_OF, /* a list made by range */
    JINJA_VIEW,     /* a view of a dict */
    JINJA_ITERATOR, /* a list for one pass */
    JINJA_NAMESPACE,
    JINJA_MACRO,
    JINJA_LOOP,
    JINJA_FUNCTION,
    JINJA_METHOD,
    JINJA_CYCLER,
    JINJA_JOINER
};
struct jinja_value {
    enum jinja_type type;
    union {
        const struct jinja_undefined *undefined; /* NULL: an unnamed one */
        bool truth;
        int64_t integer;
        double number;
        const struct jinja_string *string;
        struct jinja_list *list;
        struct jinja_dict *dict;
        const struct jinja_macro *macro;
        struct jinja_loop *loop;
        const struct jinja_callable *function;
        const struct jinja_method *method;
        struct jinja_cycler *cycler;
    };
};
struct jinja_undefined {
    const char *of; /* the type that lacks it; NULL: a variable; "": name is the sentence */
    struct jinja_string name;
};
struct jinja_list {
    VEC(struct jinja_value) items;
    int from;            /* of an iterator: the next one */
    const char *name;    /* of a view: its type; of a tuple: it is a group */
    int64_t first, last; /* of a range, with its step */
    int64_t step;
};
struct jinja_pair {
    struct jinja_value key, value;
};
struct jinja_dict {
    VEC(struct jinja_pair) pairs;
};
struct jinja_cycler {
    struct jinja_list *items;
    int at;
    const struct jinja_string *joint; /* of a joiner */
};
#define JINJA_VALUE_NONE ((struct jinja_value){.type = JINJA_NONE})
struct jinja_value jinja_bool(bool);
struct jinja_value jinja_int(int64_t);
struct jinja_value jinja_float(double);
struct jinja_value jinja_string(struct jinja_run *, struct jinja_string);
struct jinja_value jinja_string_of(struct jinja_run *, const char *);
struct jinja_value jinja_list(struct jinja_run *, enum jinja_type);
void jinja_append(struct jinja_run *, struct jinja_value list, struct jinja_value);
struct jinja_value jinja_tuple2(struct jinja_run *, struct jinja_value, struct jinja_value);
struct jinja_value jinja_dict(struct jinja_run *);
void jinja_set(struct jinja_run *, struct jinja_dict *, struct jinja_value key, struct jinja_value);
/* The same for a key that is not in the dict yet. */
void jinja_append_pair(struct jinja_run *, struct jinja_value dict, struct jinja_value key, struct jinja_value);
/* NULL: none. A key may be of any type. */
const struct jinja_value *jinja_get(struct jinja_run *, const struct jinja_dict *, struct jinja_value key);
const struct jinja_value *jinja_get_named(struct jinja_run *, const struct jinja_dict *, const struct jinja_string *);
/* An undefined value: see struct jinja_undefined. */
struct jinja_value jinja_undefined(struct jinja_run *, const char *of, struct jinja_string name);
_Noreturn void jinja_fail_undefined(struct jinja_run *, struct jinja_value);
const char *jinja_type_name(struct jinja_value); /* Python's name */
bool jinja_truth(struct jinja_value);
bool jinja_is_number(struct jinja_value); /* or a bool */
double jinja_number(struct jinja_value);
bool jinja_hashable(struct jinja_run *, struct jinja_value);
bool jinja_equal(struct jinja_run *, struct jinja_value, struct jinja_value);
/* Below 0, 0, above 0; values without an order are a failure that names the operator. */
int jinja_compare(struct jinja_run *, struct jinja_value, struct jinja_value, const char *sign);
bool jinja_contains(struct jinja_run *, struct jinja_value in, struct jinja_value sought);
/* -1: no length. */
int64_t jinja_size(struct jinja_value);
bool jinja_iterable(struct jinja_value);
/* All remaining items of an iterable, as a read-only list; an iterator is then exhausted. */
const struct jinja_list *jinja_items(struct jinja_run *, struct jinja_value);

/* ---- access.c: attributes, items, slices ---- */
struct jinja_value jinja_attribute(struct jinja_run *, struct jinja_value, const struct jinja_string *name);
struct jinja_value jinja_item(struct jinja_run *, struct jinja_value, struct jinja_value key);
struct jinja_value jinja_slice(struct jinja_run *, struct jinja_value, const struct jinja_value bound[3]);
/* The attribute only, not an item of that name. */
bool jinja_own_attribute(struct jinja_run *, struct jinja_value, const struct jinja_string *name, struct jinja_value *);
/* A path of attributes and positions, as filters take it: "a.0.b". */
struct jinja_value jinja_path(struct jinja_run *, struct jinja_value, struct jinja_value path, struct jinja_value otherwise);

/* ---- operator.c ---- */
struct jinja_value jinja_operate(struct jinja_run *, const char *sign, struct jinja_value, struct jinja_value);
struct jinja_value jinja_negative(struct jinja_run *, struct jinja_value, bool minus);
struct jinja_value jinja_concatenate(struct jinja_run *, const struct jinja_value *, int n);

/* ---- write.c: str, repr and json.dumps of Python ---- */
struct jinja_call;
void jinja_write(struct jinja_builder *, struct jinja_value);
void jinja_write_repr(struct jinja_builder *, struct jinja_value);
void jinja_write_float(struct jinja_builder *, double);
const struct jinja_string *jinja_text_of(struct jinja_run *, struct jinja_value); /* str(value) */
struct jinja_value jinja_tojson(struct jinja_run *, const struct jinja_call *);

/* ---- format.c: the operator % and the method format of strings ---- */
struct jinja_value jinja_percent(struct jinja_run *, const struct jinja_string *, struct jinja_value arguments);
struct jinja_value jinja_format(struct jinja_run *, const struct jinja_call *);

/* ---- call.c: callables and their arguments ---- */
enum { JINJA_PARAMETERS = 5 };
struct jinja_call {
    const char *what; /* "filter", "method", ... */
    const char *name;
    struct jinja_value self;
    struct jinja_value arg[JINJA_PARAMETERS]; /* by parameter; absent: not given */
    const struct jinja_value *rest;           /* after them */
    int more;
    struct jinja_dict *named; /* without a parameter */
};
/* A filter that accepts a result of the filter safe: others would have to escape their additions. */
#define JINJA_OF_MARKUP 1u
/* A row of a table. Parameters are names separated by blanks, "-" for none; "*" at the end takes all others. */
struct jinja_callable {
    const char *name;
    const char *parameters;
    int least; /* parameters that must be given */
    struct jinja_value (*call)(struct jinja_run *, const struct jinja_call *);
    unsigned types; /* of a method: a bit for each jinja_type; without a call it is known and refused. Of a filter: JINJA_OF_MARKUP */
};
struct jinja_arguments {
    VEC(struct jinja_value) list;
    struct jinja_dict *named; /* NULL: none */
};
struct jinja_value jinja_apply(struct jinja_run *, const char *what, const struct jinja_callable *, struct jinja_value self,
                               const struct jinja_arguments *);
struct jinja_value jinja_call(struct jinja_run *, struct jinja_value, const struct jinja_arguments *);
struct jinja_method {
    const struct jinja_callable *row;
    struct jinja_value self;
};
struct jinja_macro {
    const struct jinja_node *node; /* its parameters and its body */
    struct jinja_scope *scope;     /* the scope of its definition */
    struct jinja_string name;
};
/* The value of an argument, or a default if it is not given. */
int64_t jinja_arg_int(struct jinja_run *, const struct jinja_call *, int i, int64_t otherwise);
bool jinja_arg_truth(const struct jinja_call *, int i, bool otherwise);
const struct jinja_string *jinja_arg_string(struct jinja_run *, const struct jinja_call *, int i);
bool jinja_given(const struct jinja_call *, int i);

/* ---- the tables: filters.c, tests.c, functions.c. NULL: no such row ---- */
const struct jinja_callable *jinja_filter(const struct jinja_string *name);
const struct jinja_callable *jinja_test(const struct jinja_string *name);
const struct jinja_callable *jinja_function(const struct jinja_string *name);
/* Of a type; of any type, if type is JINJA_ABSENT. */
const struct jinja_callable *jinja_method(enum jinja_type, const struct jinja_string *name);
/* sequence.c: the filters of iterables. methods.c: the methods of strings. */
extern const struct jinja_callable jinja_sequence_filters[], jinja_string_methods[];
extern const int jinja_sequence_filter_count, jinja_string_method_count;
const struct jinja_callable *jinja_row(const struct jinja_callable *, int n, const struct jinja_string *name);
/* Used by others than their table. */
const int *jinja_sorted(struct jinja_run *, const struct jinja_list *keys, bool reverse); /* sorted positions */
struct jinja_value jinja_replace(struct jinja_run *, const struct jinja_string *, const struct jinja_string *old,
                                 const struct jinja_string *by, int64_t count);
struct jinja_value jinja_split_lines(struct jinja_run *, const struct jinja_string *, bool ends);
void jinja_put_centered(struct jinja_builder *, const struct jinja_string *, int64_t width, struct jinja_string with);

/* ---- loop.c ---- */
struct jinja_loop {
    const struct jinja_node *node;
    struct jinja_scope *scope;       /* around it */
    const struct jinja_list *source; /* the iterated list */
    int at;                          /* its next item, not yet tested by the condition */
    VEC(struct jinja_value) items;   /* that passed the condition */
    int index;                       /* the current item */
    int depth;
    struct jinja_value changed; /* the last arguments of loop.changed; absent: none */
};
enum jinja_flow { JINJA_ON, JINJA_BREAK, JINJA_CONTINUE };
enum jinja_flow jinja_for(struct jinja_run *, const struct jinja_node *);
struct jinja_value jinja_loop_again(struct jinja_run *, const struct jinja_loop *, const struct jinja_arguments *);
bool jinja_loop_attribute(struct jinja_run *, struct jinja_loop *, const struct jinja_string *name, struct jinja_value *);

/* ---- execute.c: statements, and the variables they see ---- */
struct jinja_scope {
    struct jinja_scope *parent;
    VEC(struct jinja_binding {
        int symbol;
        struct jinja_value value;
    })
    bindings;
};
enum jinja_flow jinja_execute(struct jinja_run *, const struct jinja_node *body);
/* The text of a body, in a new scope within another. */
struct jinja_value jinja_capture(struct jinja_run *, struct jinja_scope *within, const struct jinja_node *body, enum jinja_flow *);
struct jinja_scope *jinja_scope(struct jinja_run *, struct jinja_scope *parent);
void jinja_bind(struct jinja_run *, struct jinja_scope *, int symbol, struct jinja_value);
struct jinja_value jinja_look_up(struct jinja_run *, const struct jinja_node *name);
void jinja_assign(struct jinja_run *, const struct jinja_node *target, struct jinja_value);

/* ---- evaluate.c ---- */
struct jinja_value jinja_evaluate(struct jinja_run *, const struct jinja_node *);
void jinja_evaluate_arguments(struct jinja_run *, const struct jinja_node *call, struct jinja_arguments *);

/* ---- lexer.c ---- */
enum jinja_token_type {
    JINJA_DATA,
    JINJA_VARIABLE_BEGIN,
    JINJA_VARIABLE_END,
    JINJA_BLOCK_BEGIN,
    JINJA_BLOCK_END,
    JINJA_NAME,
    JINJA_QUOTED,
    JINJA_INTEGER,
    JINJA_DECIMALS,
    JINJA_SIGN, /* an operator, bracket or comma */
    JINJA_END
};
struct jinja_token {
    enum jinja_token_type type;
    size_t from, to;
};
struct jinja_tokens {
    VEC(struct jinja_token) list;
};
/* All tokens of a trap's text. */
struct jinja_tokens jinja_lex(struct jinja_trap *);
/* The value of a number, or of one or more adjacent strings, which are skipped. */
struct jinja_parser;
struct jinja_value jinja_literal_value(struct jinja_parser *);
/* A text whose line breaks are all \n, without the last one. */
char *jinja_lines(struct arena *, const char *, size_t *n);

/* ---- the parser: expression.c, statement.c ---- */
enum jinja_kind {
    JINJA_E_CONSTANT,
    JINJA_E_NAME,
    JINJA_E_TUPLE,
    JINJA_E_LIST,
    JINJA_E_DICT, /* alternating keys and values */
    JINJA_E_ATTRIBUTE,
    JINJA_E_ITEM,
    JINJA_E_SLICE,
    JINJA_E_CALL,
    JINJA_E_FILTER,
    JINJA_E_TEST,
    JINJA_E_NOT,
    JINJA_E_MINUS,
    JINJA_E_PLUS,
    JINJA_E_OPERATE,
    JINJA_E_CONCATENATE,
    JINJA_E_COMPARE, /* left, and its list: right sides, each with its sign */
    JINJA_E_AND,
    JINJA_E_OR,
    JINJA_E_IF,      /* left if test else right */
    JINJA_E_MEMBER,  /* a target: an attribute of a namespace */
    JINJA_E_KEYWORD, /* an argument with a name, a parameter with its default */
    JINJA_E_SPREAD,  /* *left */
    JINJA_E_SPREAD2, /* **left */
    JINJA_S_BODY,
    JINJA_S_DATA,
    JINJA_S_PRINT,
    JINJA_S_IF,
    JINJA_S_FOR,
    JINJA_S_SET,
    JINJA_S_SET_BLOCK,
    JINJA_S_WITH,
    JINJA_S_MACRO,
    JINJA_S_CALL,
    JINJA_S_FILTER,
    JINJA_S_GENERATION,
    JINJA_S_BREAK,
    JINJA_S_CONTINUE
};
/* evaluate.c and execute.c document the members of each kind. */
struct jinja_node {
    enum jinja_kind kind;
    size_t at;
    int symbol;                       /* of a name */
    bool recursive;                   /* of a loop */
    bool varargs, kwargs, caller;     /* of a macro: it reads them */
    const char *sign;                 /* of an operator */
    struct jinja_string text;         /* a name or data */
    struct jinja_value value;         /* a constant */
    const struct jinja_callable *row; /* of a filter or test */
    struct jinja_node *left, *right, *test, *body, *otherwise;
    VEC(struct jinja_node *) list;
};
/* Like EACH, for a node's list. */
#define JINJA_NODES(item, nodes) for (struct jinja_node *const *item = (nodes).at; item < (nodes).at + (nodes).n; item++)
struct jinja_parser {
    struct jinja_trap trap;
    struct arena *arena;
    struct jinja_tokens tokens;
    int next, nesting, loops;
    bool sees_varargs, sees_kwargs, sees_caller; /* in the current macro */
    struct name_index symbols;
    VEC(const char *) names;
    VEC(struct jinja_node *) calls;   /* of attributes that only a namespace can have */
    VEC(struct jinja_string) members; /* names that a namespace may have */
};
int jinja_symbol(struct jinja_parser *, const struct jinja_string *name);
_Noreturn void jinja_refuse(struct jinja_parser *, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* lexer.c: the next token; consuming it. */
const struct jinja_token *jinja_peek(const struct jinja_parser *);
bool jinja_peek_sign(const struct jinja_parser *, const char *);
bool jinja_peek_word(const struct jinja_parser *, const char *);
bool jinja_skip_sign(struct jinja_parser *, const char *);
bool jinja_skip_word(struct jinja_parser *, const char *);
void jinja_expect_sign(struct jinja_parser *, const char *);
void jinja_expect_type(struct jinja_parser *, enum jinja_token_type, const char *what);
struct jinja_string jinja_expect_name(struct jinja_parser *);
struct jinja_string jinja_token_text(const struct jinja_parser *, const struct jinja_token *);
const char *jinja_shown(const struct jinja_parser *, const struct jinja_token *);
bool jinja_is_token(const struct jinja_parser *, const struct jinja_token *, enum jinja_token_type, const char *text);
struct jinja_node *jinja_node(struct jinja_parser *, enum jinja_kind, size_t at);
struct jinja_node *jinja_parse_expression(struct jinja_parser *, bool conditional);
/* One expression, or a tuple without parentheses. */
struct jinja_node *jinja_parse_tuple(struct jinja_parser *, bool conditional);
/* A target of set and for; members: attributes of a namespace, too. */
struct jinja_node *jinja_parse_target(struct jinja_parser *, bool members);
struct jinja_node *jinja_parse_name(struct jinja_parser *);
/* The filters after an expression, which may be NULL; first: the first one without its bar. */
struct jinja_node *jinja_parse_filters(struct jinja_parser *, struct jinja_node *, bool first);
struct jinja_node *jinja_parse_template(struct jinja_parser *);

struct jinja {
    const char *text; /* of the template, for positions of faults */
    size_t n;
    const struct jinja_node *body;
    int symbols;
    const char *const *names;
};

#endif
