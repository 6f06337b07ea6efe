/* terminal: a conversation on the terminal (tpc-run --chat). A thread reads the user's messages and prints the engine's answers. */
#ifndef TPC_TERMINAL_H
#define TPC_TERMINAL_H

#include "serve/serve.h"

/* terminal.c: starts the thread; the end of input ends the service. system: the first message; NULL: none. */
struct terminal;
struct terminal *terminal_start(struct arena *, struct service *, const char *system, bool asks);
void terminal_stop(struct terminal *);

/* ---- input.c: messages from stdin ---- */
struct input {
    struct text_builder read; /* what was read so far */
    size_t taken;             /* bytes of it already used */
    bool ended;
    bool asks; /* prints a prompt */
};
enum input_kind {
    INPUT_MESSAGE,
    INPUT_COMMAND,     /* a line that begins with / */
    INPUT_INTERRUPTED, /* by ^C: the current message is dropped */
    INPUT_CUT,         /* the terminal may have truncated a line: the message is dropped */
    INPUT_END
};
/* Waits for a message. A line is a message; one that ends in \ continues in the next, and lines between """ are one message. The text is in
 * the arena. */
enum input_kind input_read(struct input *, struct arena *, struct text *);

/* ---- conversation.c: the messages so far ---- */
struct conversation {
    const struct service *service;
    json_t *messages;
    size_t first; /* messages that are never dropped: the system message */
};
void conversation_begin(struct conversation *, const struct service *, const char *system);
void conversation_end(struct conversation *);
void conversation_reset(struct conversation *);
void conversation_add_user(struct conversation *, struct text);
/* A model's thoughts and text. */
void conversation_add_answer(struct conversation *, struct chat_parts);
/* Removes the last message. */
void conversation_take_back(struct conversation *);
/* The prompt for the next answer. Drops the oldest turns to make room for the answer; *dropped counts them. NULL, or an error; then none
 * are dropped. */
const char *conversation_prompt(struct conversation *, struct arena *, struct chat_prompt *, int *dropped);

#endif
