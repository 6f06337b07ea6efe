/* chat: conversations as a model's own chat template writes them, and the parts of an answer. */
#ifndef TPC_CHAT_H
#define TPC_CHAT_H

#include "grammar/grammar.h"
#include "jinja/jinja.h"
#include "job/job.h"
#include "tokenizer/tokenizer.h"

/* ---- template.c: the templates of a model ---- */
enum chat_use { CHAT_USUAL, CHAT_TOOLS, CHAT_USES };
struct chat_template {
    const char *where; /* its file, and the name in it; NULL: there is none */
    struct text text;
    struct jinja *parsed; /* NULL: `fault` says why */
    const char *fault;
};
/* That of --chat-template, or chat_template.jinja beside the model, or chat_template of tokenizer_config.json; in the arena. */
struct chat_template chat_template_find(struct arena *, const struct job_options *, enum chat_use);

/* ---- thoughts.c: an answer may begin with thoughts, between tags ---- */
struct chat_tags {
    struct text open, close;   /* empty: the model has none */
    int64_t open_id, close_id; /* of tokens that decoding leaves out, for they are special; -1: decoding writes them */
};
struct chat_tags chat_tags_find(const struct chat_template *, const struct tokenizer *);
/* The tag that decoding leaves out; empty: the token is none. */
struct text chat_tag_of(const struct chat_tags *, int64_t token);
struct chat_thoughts {
    const struct chat_tags *tags;
    bool opened;     /* the template has written the first tag */
    size_t searched; /* bytes without the second one */
};
/* The parts of an answer, as far as later text can't change them; last: there is none. */
struct chat_parts {
    struct text thoughts, content;
};
struct chat_parts chat_split(struct chat_thoughts *, struct text answer, bool last);

/* ---- calls.c: an answer may have calls of tools ---- */
enum chat_calls_form {
    CHAT_CALLS_NONE,    /* one that is not known: all is content */
    CHAT_CALLS_TAGGED,  /* <tool_call>{"name": ..., "arguments": ...}</tool_call>, as Hermes and Qwen write them */
    CHAT_CALLS_MISTRAL, /* [TOOL_CALLS][{"name": ..., "arguments": ...}, ...], or [TOOL_CALLS]NAME[ARGS]{...} */
    CHAT_CALLS_PLAIN    /* the answer is {"name": ..., "parameters": ...}, as Llama 3 writes it */
};
struct chat_call {
    const char *name, *arguments; /* a text of JSON, as the model wrote it */
};
struct chat_calls {
    struct arena *arena;
    enum chat_calls_form form;
    const json_t *tools; /* that may be called */
    bool single;         /* calls behind the first one are left out */
    size_t read;         /* bytes of the answer that are decided */
    struct text_builder content;
    VEC(struct chat_call) call;
};
/* Reads on in an answer that has grown, as far as later text can't change what is read; last: it is whole. */
void chat_calls_read(struct chat_calls *, struct text answer, bool last);

/* ---- call_form.c ---- */
struct chat_mark {
    int64_t token;
    struct text text;
};
struct chat_call_form {
    enum chat_calls_form form;
    bool arguments_apart; /* the second form of Mistral */
    int marks;
    struct chat_mark mark[6]; /* special tokens that belong to it, which decoding leaves out */
};
/* By the templates, of all uses. */
struct chat_call_form chat_call_form_find(const struct chat_template *, const struct tokenizer *);
/* Empty: the token is no such mark. */
struct text chat_mark_of(const struct chat_call_form *, int64_t token);
/* Some of the tools are to be called by their schemas alone. */
bool chat_calls_strict(const json_t *tools);
/* A rule: calls of the tools. A schema that is not supported is grammar_fault. */
struct chat_calls_asked {
    const char *only; /* the tool that is called; NULL: any */
    bool single;      /* once */
    bool free;        /* there is any text between, maybe no call, and only strict tools keep to their schemas: not in the plain form */
};
int chat_calls_rule(struct grammar_json *, const struct chat_call_form *, const json_t *tools, const struct chat_calls_asked *);

/* ---- chat.c: what is known of a model's conversations; it is only read, so that threads may share it ---- */
struct chat {
    struct chat_template template[CHAT_USES];
    json_t *tokens; /* the variables bos_token, eos_token and so on */
    bool lists;     /* the template takes contents as lists of parts alone */
    bool developer; /* it knows messages of developers */
    struct chat_tags tags;
    struct chat_call_form calls;
    struct end_tokens ends; /* special tokens that the template writes behind an answer */
};
/* NULL: there is no template, or it can't be used; *why is the sentence. */
struct chat *chat_read(struct arena *, const struct job_options *, const struct tokenizer *, const char **why);
void chat_free(struct chat *);

/* ---- render.c ---- */
struct chat_prompt {
    struct token_ids ids;
    bool thinks; /* the answer begins with thoughts: the template has written their first tag */
};
/* The tokens of a conversation, ready for its answer. variables: messages, as chat_messages returns them, and perhaps tools, documents and
 * others; nothing of them becomes a special token. NULL, or a sentence in the arena: what is wrong. */
const char *chat_render(const struct chat *, const struct tokenizer *, struct arena *, const json_t *variables, struct chat_prompt *);
/* The tokens of the first bytes of what chat_write wrote. NULL, or what is wrong. */
const char *chat_encode(const struct tokenizer *, struct arena *, const struct jinja_text *, size_t bytes, struct token_ids *);
/* The text alone. answers: it ends where an answer is to begin. NULL, or what is wrong. */
const char *chat_write(const struct chat *, struct arena *, const json_t *variables, bool answers, struct jinja_text *);

/* ---- messages.c ---- */
bool chat_is_role(struct text);
/* Messages of a request, in the form that the template takes; the caller drops them. NULL: *why says what is wrong. */
json_t *chat_messages(const struct chat *, struct arena *, const json_t *given, const char **why);

#endif
