/* serve/request: the content of requests. Fields of the body are read by name; addresses share most of them. */
#ifndef TPC_SERVE_REQUEST_H
#define TPC_SERVE_REQUEST_H

#include "serve/serve.h"

/* A body while it is read. */
struct reading {
    struct call *call;
    const json_t *root;
    struct text_list read;   /* names that were looked up */
    const char *wrong;       /* the first error */
    struct row_sampling how; /* for all texts, except their numbers */
    int64_t each;            /* texts per prompt */
    bool echo;               /* the prompt is returned, too */
    bool special;            /* prompts get the special tokens of the template */
    int64_t most_other;      /* max_completion_tokens; -1: not given */
    int64_t usual_most;      /* default number of tokens of a text */
    const char *const *own;  /* fields that this address reads and others reject; ends with NULL */
};

/* ---- reading.c ---- */
/* Records the first error. key: the field, also for the reply's `param`; it must stay valid. The sentence is in the call's arena. */
void request_blame(struct reading *, const char *key, const char *sentence);
/* "KEY: expected ..." */
void request_refuse(struct reading *, const char *key, const char *expected);
/* NULL: not given, or null. All fields are read through it, so that the others are known to have no effect. */
const json_t *request_given(struct reading *, const char *key);
double request_real(struct reading *, const char *key, double otherwise);
int64_t request_integer(struct reading *, const char *key, int64_t least, int64_t most, int64_t otherwise);
bool request_flag(struct reading *, const char *key, bool otherwise);
/* Reads the body of a call with the function of its address. NULL, or the error, in the call's arena. */
const char *request_body(struct call *, void (*read)(struct reading *));

/* ---- shared.c: fields common to completions and chats ---- */
void shared_read(struct reading *);
/* Before the texts are added: the number of prompts; then the texts of a prompt. key: the field of prompts. */
void request_make_choices(struct reading *, const char *key, int64_t prompts);
void request_add_choices(struct reading *, const char *key, const int64_t *token, int64_t n);
/* The tokens of a text; false: `key` was blamed. */
bool request_encode(struct reading *, const char *key, struct text, bool special, struct token_ids *);

/* model.c: the number of the adapter that the request names as its model, from 1; 0: the model itself. A server without adapters accepts
 * any name. */
int64_t request_model(struct reading *);
/* 'model', 'adapter', .. */
const char *request_model_names(const struct call *);

/* ---- logprobs.c: requested log-probabilities; then, over all texts, whether they are too many for a reply ---- */
void logprobs_of_completion(struct reading *);
void logprobs_of_chat(struct reading *);
void logprobs_limit(struct reading *);

/* ---- form.c ---- */
/* The required form of the text, if any. Before the texts are added. tag: the form follows free text up to this tag; NULL: none. The text
 * may or must be calls of the tools instead; NULL: no tools. */
struct tools_asked;
void form_read(struct reading *, const char *tag, const struct tools_asked *);

/* ---- tools.c: the tools of a chat ---- */
struct tools_asked {
    const json_t *tools; /* NULL: none may be called */
    bool must, single;   /* the answer must be calls; at most one */
    const char *only;    /* the tool that must be called; NULL: any */
};
struct tools_asked tools_read(struct reading *);

/* ---- shown.c ---- */
/* Adds a token that is returned with its log-probability; at: byte offset of its text. */
void shown_add(struct choice *, const struct tokenizer *, int64_t token, size_t at);
/* For the engine, with its tokenizer. */
void shown_score(struct choice *, struct shown_token *, const struct logprobs *);

/* ---- fields.c: unread fields ---- */
/* The first one, except `own`, that would affect the text and is not implemented; NULL: none. */
const char *fields_unsupported(const json_t *root, const char *const *own);
/* Those without effect: plain text of limited length. read: the names of fields that were read. */
struct text_list fields_ignored(struct arena *, json_t *root, const struct text_list *read);

/* ---- the addresses ---- */
void request_completion(struct reading *); /* completion.c */
void request_tokenize(struct reading *);   /* tokens.c */
void request_detokenize(struct reading *);
void request_chat(struct reading *);      /* chat.c */
void request_embedding(struct reading *); /* embedding.c */

#endif
