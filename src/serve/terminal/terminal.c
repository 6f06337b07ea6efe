/* terminal: turns of a conversation. ^C stops an answer; a second one, before the first takes effect, ends the program. */
#include "serve/terminal/terminal.h"

#include "serve/queue/queue.h"
#include "serve/request/request.h"

#include <string.h>
#include <sys/random.h>

struct terminal {
    struct service *service;
    struct conversation said;
    struct input input;
    pthread_t thread;
};

static const char help[] = "a line is a message; \\ at its end, or \"\"\" before and behind several lines, makes a longer one\n"
                           "/reset begins a new conversation, /exit or ^D ends the program, ^C stops an answer, /help prints this\n"
                           "lines that are pasted are messages of their own, but between \"\"\"";

/* ---- an answer ---- */

static void put_more(struct call *c, struct choice *o, struct text more, const char *finish)
{
    (void)o, (void)finish;
    text_put(&c->events, more.at, more.n);
}

static void put_nothing(struct call *c)
{
    (void)c;
}

/* Errors are printed after the text. */
static void put_no_error(struct call *c, const char *message)
{
    (void)c, (void)message;
}

static const struct endpoint to_terminal = {.put_event = put_more, .put_end = put_nothing, .put_error = put_no_error};

/* Bytes of a UTF-8 control character, which could control a terminal; 0: none, or a tab or line end. */
static size_t control_bytes(const char *at, size_t n)
{
    unsigned char c = (unsigned char)at[0], next = n > 1 ? (unsigned char)at[1] : 0;
    if (c == 0xc2 && next >= 0x80 && next < 0xa0)
        return 2;
    return (c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
}

/* Replaces control characters. Under mpirun stdout may be a pseudo terminal, so all outputs are treated alike. */
static void print(const char *at, size_t n)
{
    for (size_t i = 0, control; i < n; i += control ? control : 1) {
        control = control_bytes(at + i, n - i);
        (void)fwrite(control ? "\xef\xbf\xbd" : at + i, 1, control ? 3 : 1, stdout);
    }
    streams_flush();
}

/* Prints what the engine has for it; needs the lock, which it releases while printing. */
static void print_events(struct call *c)
{
    struct service *s = c->service;
    struct arena *tmp = arena_new();
    size_t n = (size_t)c->events.to.n;
    const char *text = n ? memcpy(arena_alloc(tmp, n), c->events.to.at, n) : "";
    c->events.to.n = 0;
    pthread_mutex_unlock(&s->lock);
    print(text, n);
    arena_free(tmp);
    pthread_mutex_lock(&s->lock);
}

/* Prints it as it is generated, to its end. */
static void follow(struct call *c)
{
    struct service *s = c->service;
    pthread_mutex_lock(&s->lock);
    while (c->open || c->events.to.n) {
        struct timespec until = clock_after(50);
        if (c->open && !c->events.to.n)
            (void)pthread_cond_timedwait(&s->wake_terminal, &s->lock, &until);
        if (!c->gone && signal_interrupted())
            c->gone = true;
        print_events(c);
    }
    pthread_mutex_unlock(&s->lock);
}

static bool draw_seed(const struct service *s, uint64_t *seed)
{
    return s->seeded || getrandom(seed, sizeof *seed, 0) == (ssize_t)sizeof *seed;
}

/* The call of a prompt, which waits for the engine; c->refused: why not. */
static struct call *ask_engine(struct service *s, const struct chat_prompt *p)
{
    struct call *c = call_new(s, NULL);
    struct reading r = {.call = c, .each = 1, .how = {.of = s->usual, .begins = true}};
    r.how.grammar = p->thinks ? s->form_behind : s->form;
    c->endpoint = &to_terminal;
    c->chat = s->chat;
    c->stream = true;
    c->most = INT32_MAX; /* only the context limits it */
    if (!draw_seed(s, &r.how.of.seed))
        request_blame(&r, "seed", "the system gave no random number: give --seed N");
    request_make_choices(&r, "messages", 1);
    request_add_choices(&r, "messages", p->ids.list.at, p->ids.list.n);
    c->refused = r.wrong;
    if (r.wrong)
        return c;
    c->choice->thoughts = (struct chat_thoughts){.tags = &s->chat->tags, .opened = p->thinks};
    pthread_mutex_lock(&s->lock);
    (void)call_put(c);
    pthread_mutex_unlock(&s->lock);
    return c;
}

static void answer(struct terminal *t, const struct chat_prompt *p)
{
    struct service *s = t->service;
    struct call *c = ask_engine(s, p);
    if (c->refused) {
        diag_announce("%s", c->refused);
        conversation_take_back(&t->said);
    } else {
        if (p->thinks) {
            print(s->chat->tags.open.at, s->chat->tags.open.n);
            print("\n", 1);
        }
        follow(c);
        print("\n", 1);
        struct chat_thoughts thoughts = {.tags = &s->chat->tags, .opened = p->thinks};
        conversation_add_answer(&t->said, chat_split(&thoughts, text_built(&c->choice->text), true));
        if (c->refused)
            diag_announce("%s", c->refused);
        if (!c->gone && strcmp(c->choice->finish, "length") == 0)
            diag_tell("the answer ends here: the context of %lld tokens is full", (long long)s->context);
    }
    call_leave(c);
}

/* ---- turns ---- */

static void take_message(struct terminal *t, struct arena *a, struct text text)
{
    struct chat_prompt p = {0};
    int dropped = 0;
    size_t bad;
    if (!text_is_utf8(text.at, text.n, &bad)) {
        diag_announce("the message is not UTF-8 at byte %zu", bad);
        return;
    }
    conversation_add_user(&t->said, text);
    const char *why = conversation_prompt(&t->said, a, &p, &dropped);
    if (dropped && !why)
        diag_tell("the context of %lld tokens is full: the model no longer sees the oldest %d turn%s", (long long)t->service->context,
                  dropped, dropped == 1 ? "" : "s");
    if (why) {
        diag_announce("%s", why);
        conversation_take_back(&t->said);
    } else
        answer(t, &p);
}

/* False: the conversation ends. */
static bool obey(struct terminal *t, struct text command)
{
    while (command.n && (command.at[command.n - 1] == ' ' || command.at[command.n - 1] == '\t'))
        command.n--;
    if (text_eq(command, text_of("/exit")) || text_eq(command, text_of("/bye")))
        return false;
    if (text_eq(command, text_of("/reset")) || text_eq(command, text_of("/clear"))) {
        conversation_reset(&t->said);
        diag_tell("a new conversation");
    } else if (text_eq(command, text_of("/help")))
        (void)fprintf(stderr, "%s\n", help);
    else
        diag_announce("there is no command '%.*s': /help lists them; a message that begins with / is put between \"\"\"",
                      command.n < 40 ? (int)command.n : 40, command.at);
    return true;
}

/* One turn; false: the conversation ends. */
static bool take_turn(struct terminal *t)
{
    struct arena *a = arena_new();
    struct text text = {"", 0};
    enum input_kind kind = input_read(&t->input, a, &text);
    bool goes_on = kind != INPUT_END && !(kind == INPUT_COMMAND && !obey(t, text));
    if (kind == INPUT_INTERRUPTED)
        (void)fputs("\nwhat was begun is dropped; /exit or ^D ends the program\n", stderr);
    if (kind == INPUT_CUT)
        diag_announce("a line is as long as the terminal can keep, so it may be cut: expected lines between \"\"\", or a file");
    if (kind == INPUT_MESSAGE && text.n)
        take_message(t, a, text);
    arena_free(a);
    return goes_on;
}

static void *converse(void *terminal)
{
    struct terminal *t = terminal;
    struct service *s = t->service;
    while (take_turn(t))
        continue;
    if (t->input.asks)
        (void)fputc('\n', stderr);
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    s->end = clock_seconds();
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

struct terminal *terminal_start(struct arena *a, struct service *s, const char *system, bool asks)
{
    struct terminal *t = NEW(a, struct terminal);
    *t = (struct terminal){.service = s, .input = {.read.arena = a, .asks = asks}};
    conversation_begin(&t->said, s, system);
    if (pthread_cond_init(&s->wake_terminal, NULL) || pthread_create(&t->thread, NULL, converse, t))
        fail("can't create a thread for the conversation");
    return t;
}

void terminal_stop(struct terminal *t)
{
    (void)pthread_join(t->thread, NULL);
    conversation_end(&t->said);
}
