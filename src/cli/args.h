/* cli/args.h: the command line of both programs: a table of options, parsed, listed by --help, checked against misspelling. */
#ifndef TPC_ARGS_H
#define TPC_ARGS_H

#include "base/base.h"

struct arg_list { VEC(const char *) text; };
struct arg_maybe { bool given; const char *text; };      /* text NULL: given without a value */
enum arg_kind {
    ARG_FLAG,                        /* bool */
    ARG_TEXT,                        /* const char *: --name VALUE or --name=VALUE */
    ARG_INT,                         /* int64_t */
    ARG_REAL,                        /* double */
    ARG_LIST,                        /* struct arg_list: repeatable */
    ARG_MAYBE,                       /* struct arg_maybe: --name or --name=VALUE */
    ARG_MAYBE_INT                    /* struct arg_maybe: also --name 7 */
};
struct arg {
    const char *name;                /* without dashes */
    char letter;                     /* 0: none */
    enum arg_kind kind;
    void *to;
    const char *value, *help;        /* value: as --help shows it */
};
struct args { const char *program, *usage; const struct arg *table; int n; };
/* --help and --version print and end the program. A wrong command line is fail_usage. Returns the positional arguments. */
struct arg_list args_parse(struct arena *, const struct args *, int argc, char **argv);
/* An integer in [lo, hi], or fail_usage naming what. */
int64_t args_int(const char *what, const char *text, int64_t lo, int64_t hi);

#endif
