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
    const char *where; /* its file, and the name in it; NULL: none */
    struct text text;
    struct jinja *parsed; /* NULL: `fault` says why */
    const char *fault;
};
/* The template of --chat-template, or chat_template.jinja next to the model, or chat_template of tokenizer_config.json; in the arena. */
struct chat_template chat_template_find(struct arena *, const struct job_options *, enum chat_use);

/* ---- thoughts.c: an answer may begin with thoughts, between tags ---- */
struct chat_tags {
    struct text open, close;   /* empty: the model has none */
    int64_t open_id, close_id; /* of special tokens, which decoding leaves out; -1: decoding writes them */
};
struct chat_tags chat_tags_find(const struct chat_template *, const struct tokenizer *);
/* The tag that decoding leaves out; empty: not such a token. */
struct text chat_tag_of(const struct chat_tags *, int64_t token);
struct chat_thoughts {
    const struct chat_tags *tags;
    bool opened;     /* the template has written the first tag */
    size_t searched; /* bytes searched without finding the second tag */
};
/* The parts of an answer, as far as later text can't change them; last: no later text. */
struct chat_parts {
    struct text thoughts, content;
};
struct chat_parts chat_split(struct chat_thoughts *, struct text answer, bool last);

/* ---- calls.c: an answer may have tool calls ---- */
enum chat_calls_form {
    CHAT_CALLS_NONE,    /* an unknown form: everything is content */
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
    bool single;         /* calls after the first one are dropped */
    size_t read;         /* decided bytes of the answer */
    struct text_builder content;
    VEC(struct chat_call) call;
};
/* Continues reading an answer that has grown, as far as later text can't change what is read; last: it is whole. */
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
    struct chat_mark mark[6]; /* its special tokens, which decoding leaves out */
};
/* By the templates, for all uses. */
struct chat_call_form chat_call_form_find(const struct chat_template *, const struct tokenizer *);
/* Empty: not such a mark. */
struct text chat_mark_of(const struct chat_call_form *, int64_t token);
/* Some tools may only be called according to their schemas. */
bool chat_calls_strict(const json_t *tools);
/* A rule for calls of the tools. An unsupported schema is a grammar_fault. */
struct chat_calls_asked {
    const char *only; /* the tool that is called; NULL: any */
    bool single;      /* one call only */
    bool free;        /* any text between, perhaps no call; only strict tools keep to their schemas: not in the plain form */
};
int chat_calls_rule(struct grammar_json *, const struct chat_call_form *, const json_t *tools, const struct chat_calls_asked *);

/* ---- chat.c: properties of a model's conversations; read-only, so that threads may share it ---- */
struct chat {
    struct chat_template template[CHAT_USES];
    json_t *tokens; /* the variables bos_token, eos_token and so on */
    bool lists;     /* the template takes contents only as lists of parts */
    bool developer; /* it accepts developer messages */
    struct chat_tags tags;
    struct chat_call_form calls;
    struct end_tokens ends; /* special tokens that the template writes after an answer */
};
/* NULL: no usable template; *why says why. */
struct chat *chat_read(struct arena *, const struct job_options *, const struct tokenizer *, const char **why);
void chat_free(struct chat *);

/* ---- render.c ---- */
struct chat_prompt {
    struct token_ids ids;
    bool thinks; /* the answer begins with thoughts: the template wrote the opening tag */
};
/* The tokens of a conversation, ready for its answer. variables: messages, as chat_messages returns them, and perhaps tools, documents and
 * others; their text never becomes a special token. Returns NULL, or the fault as a sentence in the arena. */
const char *chat_render(const struct chat *, const struct tokenizer *, struct arena *, const json_t *variables, struct chat_prompt *);
/* The tokens of the first bytes that chat_write wrote. Returns NULL, or the fault. */
const char *chat_encode(const struct tokenizer *, struct arena *, const struct jinja_text *, size_t bytes, struct token_ids *);
/* The text only. answers: it ends where an answer begins. Returns NULL, or the fault. */
const char *chat_write(const struct chat *, struct arena *, const json_t *variables, bool answers, struct jinja_text *);

/* ---- messages.c ---- */
bool chat_is_role(struct text);
/* Messages of a request, in the template's form; the caller releases them. NULL: *why is the fault. */
json_t *chat_messages(const struct chat *, struct arena *, const json_t *given, const char **why);

#endif
