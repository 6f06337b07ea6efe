/* serve/request: what a request asks for. Fields of its body are read by name; several addresses share most of them. */
#ifndef TPC_SERVE_REQUEST_H
#define TPC_SERVE_REQUEST_H

#include "serve/serve.h"

/* A body that is being read. */
struct reading {
    struct call *call;
    const json_t *root;
    struct text_list read;   /* the names that were looked for */
    const char *wrong;       /* the first fault */
    struct row_sampling how; /* of all texts but their numbers */
    int64_t each;            /* texts of a prompt */
    bool echo;               /* the prompt is returned, too */
    bool special;            /* prompts get the special tokens of the template */
    int64_t most_other;      /* max_completion_tokens; -1: not given */
    int64_t usual_most;      /* tokens of a text where the request does not say */
    const char *const *own;  /* fields that this address reads and others refuse; NULL ends */
};

/* ---- reading.c ---- */
/* The first fault is kept. key: the field, also of the reply's `param`; it must last. The sentence is in the call's arena. */
void request_blame(struct reading *, const char *key, const char *sentence);
/* "KEY: expected ..." */
void request_refuse(struct reading *, const char *key, const char *expected);
/* NULL: not given, or null. All fields are read by it, so that others are known to have no effect. */
const json_t *request_given(struct reading *, const char *key);
double request_real(struct reading *, const char *key, double otherwise);
int64_t request_integer(struct reading *, const char *key, int64_t least, int64_t most, int64_t otherwise);
bool request_flag(struct reading *, const char *key, bool otherwise);
/* Reads the body of a call by a function of its address. NULL, or what is wrong with it, in the call's arena. */
const char *request_body(struct call *, void (*read)(struct reading *));

/* ---- shared.c: the fields that completions and chats have in common ---- */
void shared_read(struct reading *);
/* Before the texts are added: how many prompts there will be; then the texts of a prompt. key: the field of prompts. */
void request_make_choices(struct reading *, const char *key, int64_t prompts);
void request_add_choices(struct reading *, const char *key, const int64_t *token, int64_t n);
/* The tokens of a text; false: `key` was blamed. */
bool request_encode(struct reading *, const char *key, struct text, bool special, struct token_ids *);

/* model.c: the number of the adapter that the request names as its model, from 1; 0: the model itself. A server without adapters takes any
 * name. */
int64_t request_model(struct reading *);

/* ---- logprobs.c: which log-probabilities are asked for; then, of all texts, whether they are too many for a reply ---- */
void logprobs_of_completion(struct reading *);
void logprobs_of_chat(struct reading *);
void logprobs_limit(struct reading *);

/* ---- form.c ---- */
/* Which form the text is to have, if any. Before the texts are added. tag: it comes behind free text up to this one; NULL: it does not. The
 * text may be calls of the tools instead, or must; NULL: there are none. */
struct tools_asked;
void form_read(struct reading *, const char *tag, const struct tools_asked *);

/* ---- tools.c: the tools of a chat ---- */
struct tools_asked {
    const json_t *tools; /* NULL: none may be called */
    bool must, single;   /* the answer is calls; one at most */
    const char *only;    /* the one that is to be called; NULL: any */
};
struct tools_asked tools_read(struct reading *);

/* ---- shown.c ---- */
/* A token of the text is returned with its log-probability; at: the byte of the text where its own begins. */
void shown_add(struct choice *, const struct tokenizer *, int64_t token, size_t at);
/* By the engine, whose tokenizer it takes. */
void shown_score(struct choice *, struct shown_token *, const struct logprobs *);

/* ---- fields.c: fields that are not read ---- */
/* The first one, but for those of `own`, that would steer the text and is not implemented; NULL: there is none. */
const char *fields_unsupported(const json_t *root, const char *const *own);
/* Those that have no effect: plain text of limited length. read: the names of those that were read. */
struct text_list fields_ignored(struct arena *, json_t *root, const struct text_list *read);

/* ---- the addresses ---- */
void request_completion(struct reading *); /* completion.c */
void request_tokenize(struct reading *);   /* tokens.c */
void request_detokenize(struct reading *);
void request_chat(struct reading *);      /* chat.c */
void request_embedding(struct reading *); /* embedding.c */

#endif
