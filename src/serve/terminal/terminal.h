/* terminal: a conversation on the terminal (tpc-run --chat). A thread reads what the user says and prints what the engine answers. */
#ifndef TPC_TERMINAL_H
#define TPC_TERMINAL_H

#include "serve/serve.h"

/* terminal.c: starts the thread; with the input's end the service ends. system: a message before all others; NULL: none. */
struct terminal;
struct terminal *terminal_start(struct arena *, struct service *, const char *system, bool asks);
void terminal_stop(struct terminal *);

/* ---- input.c: messages from stdin ---- */
struct input {
    struct text_builder read; /* what was read */
    size_t taken;             /* bytes of it that were used */
    bool ended;
    bool asks; /* the user sees when to write */
};
enum input_kind {
    INPUT_MESSAGE,
    INPUT_COMMAND,     /* a line that begins with / */
    INPUT_INTERRUPTED, /* by ^C: what was begun is dropped */
    INPUT_CUT,         /* the terminal may have cut a line: the message is dropped */
    INPUT_END
};
/* Waits for it. A line is a message; one that ends in \ goes on in the next, and so do lines between """. The text is in the arena. */
enum input_kind input_read(struct input *, struct arena *, struct text *);

/* ---- conversation.c: what was said ---- */
struct conversation {
    const struct service *service;
    json_t *messages;
    size_t first; /* messages that stay: that of the system */
};
void conversation_begin(struct conversation *, const struct service *, const char *system);
void conversation_end(struct conversation *);
void conversation_reset(struct conversation *);
void conversation_add_user(struct conversation *, struct text);
/* What a model thought, and what it said. */
void conversation_add_answer(struct conversation *, struct chat_parts);
/* Forgets the message that was added last. */
void conversation_take_back(struct conversation *);
/* The prompt for the next answer. The oldest turns are dropped, so that there is room for it; *dropped counts them. NULL, or what is
 * wrong; then none are. */
const char *conversation_prompt(struct conversation *, struct arena *, struct chat_prompt *, int *dropped);

#endif
