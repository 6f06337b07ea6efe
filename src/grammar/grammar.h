/* grammar: the form that a text must have. A grammar is a set of rules over bytes, from GBNF or a JSON schema; a pushdown automaton reads
 * texts and tells which tokens may come next.
 *
 * It knows nothing of models and servers. Grammars may be hostile: their size, depth and states are bounded, and a grammar beyond the
 * bounds is refused with a sentence. */
#ifndef TPC_GRAMMAR_H
#define TPC_GRAMMAR_H

#include "base/base.h"

#include <jansson.h>

/* ---- build.c: a grammar under construction: rules, each from its first to its last state ---- */
/* Every text that a rule matches leads from its start to its end. A step takes a byte of a set, a text of another rule, or nothing. */
struct grammar_build;
/* In the arena, like the sentences of its faults. */
struct grammar_build *grammar_begin(struct arena *);
/* The first fault; NULL: none. */
const char *grammar_fault(const struct grammar_build *);
void grammar_refuse(struct grammar_build *, const char *sentence);
struct arena *grammar_arena(const struct grammar_build *);
/* Adds a rule that matches no text yet. name: for faults; in the arena. */
int grammar_rule(struct grammar_build *, const char *name);
int grammar_rule_start(const struct grammar_build *, int rule);
int grammar_rule_end(const struct grammar_build *, int rule);
/* Adds a state. After a fault, such as too many states, returns any state. */
int grammar_state(struct grammar_build *);
struct grammar_bytes {
    uint64_t bit[4];
};
void grammar_put_byte(struct grammar_bytes *, int byte);
/* Steps between two states. */
void grammar_step(struct grammar_build *, int from, struct grammar_bytes, int to);
void grammar_skip(struct grammar_build *, int from, int to);
void grammar_call(struct grammar_build *, int from, int rule, int to);
/* The state after these bytes. */
int grammar_literal(struct grammar_build *, int from, const char *, size_t n);
/* The rule's text, `least` to `most` times (most < 0: any number). Returns the state after them. */
int grammar_repeat(struct grammar_build *, int from, int rule, int64_t least, int64_t most);

/* ---- char_set.c: one character of a set, as bytes of UTF-8 ---- */
struct grammar_range {
    uint32_t from, to;
};
struct grammar_chars {
    VEC(struct grammar_range) range;
};
enum { GRAMMAR_LAST_CHAR = 0x10ffff };
void grammar_chars_add(struct arena *, struct grammar_chars *, uint32_t from, uint32_t to);
/* Sorted and disjoint; without surrogates, which UTF-8 lacks. */
void grammar_chars_sort(struct arena *, struct grammar_chars *);
/* The complement of a sorted set. */
struct grammar_chars grammar_chars_others(struct arena *, const struct grammar_chars *);
/* The intersection of sorted sets. */
struct grammar_chars grammar_chars_both(struct arena *, const struct grammar_chars *, const struct grammar_chars *);
/* A step by one of a sorted set. */
void grammar_chars_step(struct grammar_build *, int from, const struct grammar_chars *, int to);

/* ---- compile.c: the automaton's form; one block of memory, which may be copied to other processes ---- */
struct grammar;
/* All texts of a rule. NULL: see grammar_fault. In the arena. */
const struct grammar *grammar_compile(struct grammar_build *, int root);
size_t grammar_size(const struct grammar *); /* bytes */

/* ---- gbnf.c: https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md ---- */
/* The rule `root` of the text; -1: it is not GBNF. */
int grammar_gbnf(struct grammar_build *, const char *text, size_t n);

/* ---- json.c: values of JSON ---- */
enum { JSON_LEVELS = 64 }; /* nesting of lists and objects that a schema leaves open */
struct grammar_json {
    struct grammar_build *build;
    struct arena *arena;
    int space, character, string, number, value[JSON_LEVELS + 1], object[JSON_LEVELS], array[JSON_LEVELS]; /* rules; -1: not made yet */
};
struct grammar_json grammar_json_new(struct grammar_build *);
/* Rules, each made once: any value, this many levels below the first; an object; a list. */
int grammar_json_value(struct grammar_json *, int level);
int grammar_json_object(struct grammar_json *, int level);
int grammar_json_array(struct grammar_json *, int level);
int grammar_json_string(struct grammar_json *);
int grammar_json_number(struct grammar_json *);
/* Blanks that may stand between the parts of a value: few, so that a text ends. */
int grammar_json_space(struct grammar_json *);
/* One character of a string, as itself or escaped. */
int grammar_json_character(struct grammar_json *);
/* The state after a rule; after bytes and blanks. */
int grammar_json_part(struct grammar_json *, int from, int rule);
int grammar_json_sign(struct grammar_json *, int from, const char *sign);
/* A step by one of these characters, as written in a string. */
void grammar_json_chars(struct grammar_json *, int from, struct grammar_chars, int to);
/* The JSON text of a value; terminated. */
const char *grammar_json_text(struct arena *, const json_t *value);

/* ---- number.c: numbers within limits ---- */
struct grammar_limits {
    bool has_least, has_most; /* false: no such limit */
    int64_t least, most;
    bool above, below; /* the limit itself is excluded */
};
/* Steps for integers of up to 16 digits; false: there are none. */
bool grammar_integer(struct grammar_build *, int from, struct grammar_limits, int to);
/* Numbers with up to 16 places and no exponent. */
bool grammar_number(struct grammar_build *, int from, struct grammar_limits, int to);

/* ---- regex.c: the patterns of JSON schemas ---- */
/* The content of a string whose text matches somewhere, or from ^ to $. Returns NULL, or the unsupported part. */
const char *grammar_regex(struct grammar_json *, int from, const char *pattern, int to);
/* The pattern of a format of JSON schemas, such as "date"; NULL: not supported. */
const char *grammar_format(const char *name);

/* ---- words.c: the texts of a list, with shared prefixes ---- */
struct word_next {
    uint32_t unit;
    int node;
};
struct word_node {
    bool ends;
    int state; /* of the grammar */
    VEC(struct word_next) next;
};
struct grammar_words {
    struct arena *arena;
    VEC(struct word_node) node;
};
/* Units: bytes or characters. */
void grammar_words_add(struct grammar_words *, const uint32_t *unit, size_t n);
/* Steps by one of the words, whose units are bytes. */
void grammar_words_step(struct grammar_build *, int from, struct grammar_words *, int to);
/* By a JSON string that is none of the words, whose units are characters; without escapes. */
void grammar_words_other(struct grammar_json *, int from, struct grammar_words *, int to);

/* ---- schema.c, schema_object.c, schema_array.c: https://json-schema.org/draft/2020-12 ---- */
/* The rule for values that are valid by a schema in the subset of docs/serving.md; -1: not in the subset. */
int grammar_schema(struct grammar_json *, const json_t *schema);

/* ---- tag.c ---- */
/* Steps by any text up to a tag, the tag, and a few blanks. */
void grammar_until(struct grammar_build *, int from, const char *tag, int to);
/* Any text up to a tag leads to the state `behind`; any text without the tag to another state. */
void grammar_search(struct grammar_build *, int from, const char *tag, int behind, int without);

/* A rule: any text up to a tag, then one of the rule. */
int grammar_behind(struct grammar_build *, const char *tag, int rule);

/* ---- file.c ---- */
/* Of a JSON schema, or of GBNF; after any text up to a tag (NULL: none). In the arena. A failure: the file can't be read, is neither, or
 * uses unsupported parts. */
const struct grammar *grammar_file(struct arena *, const char *path, bool schema, const char *tag);

/* ---- automaton.c: reads bytes by a grammar; its states are made on demand ---- */
struct automaton;
enum { AUTOMATON_DEAD, AUTOMATON_START }; /* states: no continuation; before the first byte */
struct automaton *automaton_new(const struct grammar *);
void automaton_free(struct automaton *);
const struct grammar *automaton_grammar(const struct automaton *); /* its own copy */
/* AUTOMATON_DEAD, too, if the step takes too much work (some 10 ms), which automaton_given_up counts. */
int automaton_next(struct automaton *, int state, uint8_t byte);
int64_t automaton_given_up(const struct automaton *);
/* The text may end here. */
bool automaton_accepts(const struct automaton *, int state);
/* The text can't go on here. */
bool automaton_is_last(struct automaton *, int state);
/* Its states take more memory than usual, and twice their size when last settled. */
bool automaton_is_full(const struct automaton *);
void automaton_settle(struct automaton *);
/* The work of its steps so far, in units of some nanoseconds. */
int64_t automaton_work(const struct automaton *);
/* Forgets all states except these two, which invalidates the numbers of the others, and counts how often. */
void automaton_forget(struct automaton *);
int64_t automaton_age(const struct automaton *);
/* A caller's note on a state, this many bytes, initially zeros. NULL: no note yet, and bytes is 0. */
void *automaton_note(struct automaton *, int state, size_t bytes);

/* ---- trial.c ---- */
/* NULL, or a sentence: one of its first states, as many as bounded work finds, takes too much work to leave. */
const char *grammar_trial(const struct grammar *);

/* ---- tokens.c: the bytes of tokens as a tree, and those that may follow a text ---- */
struct grammar_token {
    const char *at;
    size_t n; /* 0: not a text */
};
struct token_tree;
/* Of tokens by column. */
struct token_tree *token_tree_new(struct arena *, const struct grammar_token *, int64_t columns);
int64_t token_tree_columns(const struct token_tree *);

/* ---- matcher.c: a text under construction by a grammar ---- */
struct matcher;
/* At the beginning of a text. Texts may share an automaton. */
struct matcher *matcher_new(struct arena *, struct automaton *);
/* Appends to the text. False: not allowed; the matcher is unchanged. */
bool matcher_take(struct matcher *, const char *, size_t n);
bool matcher_accepts(struct matcher *);
bool matcher_is_last(struct matcher *);
/* Bits of the columns whose tokens may follow: 64 columns a number, until the next call of any matcher of the automaton. NULL: finding them
 * takes too long: about a tenth of a second for one token, or some milliseconds on average. */
const uint64_t *matcher_mask(struct matcher *, const struct token_tree *);

/* ==== internal ==== */

/* ---- numbered.c: lists of numbers, hash-consed ---- */
struct number_list {
    const int32_t *at;
    int32_t n;
};
struct numbered {
    struct arena *arena;
    struct number_list *list;
    int32_t n, room, slots, *slot;
};
/* The number of a list with this content. */
int32_t numbered_find(struct numbered *, const int32_t *, int32_t n);

struct grammar_edge {
    int32_t set, to; /* of a call: the rule */
};
struct build_state {
    VEC(struct grammar_edge) steps; /* bytes of a set */
    VEC(struct grammar_edge) calls; /* a text of a rule */
    VEC(int32_t) skips;             /* nothing */
};
struct build_rule {
    const char *name;
    int32_t start, end;
};
struct grammar_build {
    struct arena *arena;
    const char *wrong;
    int64_t edges; /* of all states */
    VEC(struct build_state) state;
    VEC(struct build_rule) rule;
    struct numbered sets;  /* of bytes */
    struct numbered chars; /* sets of characters of several bytes, */
    VEC(int) char_rule;    /* and the rule of each */
};
enum { GRAMMAR_STATES = 1 << 17, GRAMMAR_EDGES = 1 << 20, GRAMMAR_DEPTH = 64 /* of nesting in a text of a grammar or a schema */ };

/* The automaton's form. A state's transitions include those of all states that it reaches without a byte. */
struct grammar_state {
    int32_t step, call; /* its first ones; those of the next state follow */
    bool ends;          /* its rule may end here, */
    bool only_ends;     /* and must */
};
struct grammar_rule_at {
    int32_t start, order; /* rules that others begin with have larger numbers */
};
struct grammar {
    size_t bytes;
    int32_t root, rules, states, steps, calls, sets, classes;
    uint8_t class_of[256]; /* bytes that no set distinguishes */
    /* offsets of the arrays */
    size_t set_at, step_at, call_at, state_at, rule_at;
};
/* A set has a bit for each class. */
const struct grammar_bytes *grammar_sets(const struct grammar *);
const struct grammar_edge *grammar_steps(const struct grammar *);
const struct grammar_edge *grammar_calls(const struct grammar *);
const struct grammar_state *grammar_states(const struct grammar *); /* has one extra entry */
const struct grammar_rule_at *grammar_rules(const struct grammar *);

/* ---- schema.c: internal ---- */
struct schema_work {
    const json_t *schema;
    const char *path;
    int rule;
};
struct schema_reader {
    struct grammar_json *json;
    struct grammar_build *build;
    struct arena *arena;
    const json_t *root;
    struct name_index refs; /* rules of schemas by their pointers */
    VEC(struct schema_work) work;
    int depth;
};
/* "PATH: SENTENCE" */
void schema_refuse(struct schema_reader *, const char *path, const char *sentence);
/* A member; NULL: absent. */
const json_t *schema_member(const json_t *schema, const char *key);
/* A member that is an integer from 0 to INT32_MAX; otherwise: absent. */
int64_t schema_count(struct schema_reader *, const json_t *schema, const char *path, const char *key, int64_t otherwise);
/* A rule for the values of a part of the schema. */
int schema_rule(struct schema_reader *, const json_t *schema, const char *path);
/* The schema itself, or the one it refers to; *path is its path; NULL: refused. */
const json_t *schema_resolved(struct schema_reader *, const json_t *schema, const char **path);
/* No value is valid by both. */
bool schema_disjoint(struct schema_reader *, const json_t *, const json_t *, const char *path);
/* Steps for an object, for a list. */
void schema_object(struct schema_reader *, const json_t *schema, const char *path, int from, int to);
void schema_array(struct schema_reader *, const json_t *schema, const char *path, int from, int to);

/* ---- automaton.c: internal ---- */
/* By class of bytes: the next state, or AUTOMATON_UNKNOWN. */
enum { AUTOMATON_UNKNOWN = -1 };
const int32_t *automaton_steps(const struct automaton *, int state);

/* Tokens in byte order as a tree: a node for each byte, followed by its children. */
struct token_node {
    uint32_t behind; /* the node after its children */
    int32_t column;  /* of a token that ends here; -1: none */
    uint8_t byte, depth;
};
struct token_tree {
    int64_t columns, nodes;
    const struct token_node *node;
    const int32_t *same; /* by column: another token of the same bytes; -1: none */
};

#endif
