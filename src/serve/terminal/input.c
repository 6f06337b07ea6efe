/* input: messages from stdin, line by line. */
#include "serve/terminal/terminal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static const char quotes[] = "\"\"\"";
/* A terminal drops further bytes of a line (N_TTY_BUF_SIZE of Linux). */
enum { TERMINAL_LINE = 4095 };

static void ask(const struct input *in, const char *prompt)
{
    if (in->asks)
        (void)fputs(prompt, stderr);
}

/* ---- lines ---- */

/* Reads more of stdin; false: ^C. */
static bool read_more(struct input *in)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    char part[4096];
    while (poll(&p, 1, 50) <= 0)
        if (signal_interrupted())
            return false;
    ssize_t n = read(STDIN_FILENO, part, sizeof part);
    if (n < 0 && errno != EINTR && errno != EIO) /* EIO: the terminal is gone */
        fail("stdin: can't be read: %s", strerror(errno));
    if (n > 0)
        text_put(&in->read, part, (size_t)n);
    in->ended = n == 0 || (n < 0 && errno == EIO);
    return true;
}

/* Drops what was used. */
static void tidy(struct input *in)
{
    size_t left = (size_t)in->read.to.n - in->taken;
    if (in->taken && left)
        memmove(in->read.to.at, in->read.to.at + in->taken, left);
    in->read.to.n = (int)left;
    in->taken = 0;
}

/* The line end may be CRLF, and the last line may lack it. The line is valid until the next call. */
static enum input_kind next_line(struct input *in, struct text *line)
{
    tidy(in);
    for (size_t looked = 0;;) {
        struct text all = text_built(&in->read);
        const char *end = all.n > looked ? memchr(all.at + looked, '\n', all.n - looked) : NULL;
        if (end || (in->ended && all.n)) {
            size_t n = end ? (size_t)(end - all.at) : all.n;
            in->taken = n + (end != NULL);
            *line = (struct text){all.at, n && all.at[n - 1] == '\r' ? n - 1 : n};
            return n >= TERMINAL_LINE && isatty(STDIN_FILENO) ? INPUT_CUT : INPUT_MESSAGE;
        }
        if (in->ended)
            return INPUT_END;
        looked = all.n;
        if (all.n > SERVE_BODY)
            fail("stdin: a line is longer than %d bytes", SERVE_BODY);
        if (!read_more(in))
            return INPUT_INTERRUPTED;
    }
}

/* ---- messages ---- */

static bool ends_in(struct text t, const char *word)
{
    size_t n = strlen(word);
    return t.n >= n && memcmp(t.at + t.n - n, word, n) == 0;
}

/* Further lines, up to one that ends with `close`; each earlier one is followed by `join`. */
static enum input_kind read_lines(struct input *in, struct text_builder *b, struct text line, const char *mark, bool until)
{
    size_t n = strlen(mark);
    while (ends_in(line, mark) != until) {
        text_put(b, line.at, until ? line.n : line.n - n);
        text_put(b, "\n", 1);
        if (b->to.n > SERVE_BODY)
            fail("stdin: a message is longer than %d bytes", SERVE_BODY);
        ask(in, "... ");
        enum input_kind kind = next_line(in, &line);
        if (kind == INPUT_END)
            return INPUT_MESSAGE;
        if (kind != INPUT_MESSAGE)
            return kind;
    }
    text_put(b, line.at, until ? line.n - n : line.n);
    return INPUT_MESSAGE;
}

enum input_kind input_read(struct input *in, struct arena *a, struct text *out)
{
    struct text line;
    struct text_builder b = {.arena = a};
    ask(in, ">>> ");
    enum input_kind kind = next_line(in, &line);
    if (kind != INPUT_MESSAGE)
        return kind;
    bool quoted = text_starts(line, text_of(quotes));
    if (quoted)
        line = (struct text){line.at + strlen(quotes), line.n - strlen(quotes)};
    bool command = !quoted && line.n && line.at[0] == '/';
    if (command)
        text_put(&b, line.at, line.n);
    else
        kind = read_lines(in, &b, line, quoted ? quotes : "\\", quoted);
    *out = text_built(&b);
    return command ? INPUT_COMMAND : kind;
}
