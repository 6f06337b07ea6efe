/* cli/args.h: the command line of both programs: a table of options, parsed, listed by --help, checked against misspelling. */
#ifndef TPC_ARGS_H
#define TPC_ARGS_H

#include "algebra/algebra.h"

enum arg_kind {
    ARG_FLAG,     /* bool */
    ARG_TEXT,     /* const char *: --name VALUE or --name=VALUE */
    ARG_INT,      /* int64_t, 1 to 2^31 - 1 */
    ARG_RANKS,    /* int64_t, 1 to PLAN_RANKS */
    ARG_REAL,     /* double */
    ARG_LIST,     /* struct text_list: repeatable */
    ARG_MAYBE,    /* struct text_maybe: --name or --name=VALUE */
    ARG_MAYBE_INT /* struct text_maybe: also --name 7 */
};
struct arg {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    enum arg_kind kind;
    void *to;
    const char *value, *help; /* value: as --help shows it */
};
struct arg_prose {
    const char *head, *text;
}; /* a list of these ends with head NULL */
struct args {
    const char *program, *summary; /* summary: one line, no capital, no full stop */
    const struct arg_prose *usage; /* a command line, what it does */
    const struct arg *table;
    int n;
    const struct arg_prose *description, *environment, *examples; /* of the man page; the heads of a description are empty */
};
/* --help, --help=man|bash|zsh|fish and --version print and end the program. A wrong command line is fail_usage. Returns the positional
 * arguments. */
struct text_list args_parse(struct arena *, const struct args *, int argc, char **argv);
/* The NAME=INT of --dim. */
struct binding args_binding(struct arena *, const char *text);
/* A size such as 800M, 1.5GiB or 4096: K, M, G and T are powers of 1000, KiB ... of 1024. At least 1, or fail_usage naming what. */
int64_t args_bytes(const char *what, const char *text);
/* The folders of --external-root, which must exist. */
struct folders args_folders(const struct text_list *);

/* manual.c: the man page, in the macros of man(7). */
void manual_print(const struct args *);

/* complete.c: the completion script of a shell: bash, zsh or fish; false: another one. */
bool complete_print(const struct args *, const char *shell);

#endif
