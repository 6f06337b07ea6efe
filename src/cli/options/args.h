/* args.h: the command line of both programs, from one table of options: parsing, --help, the man page and shell completions. */
#ifndef TPC_ARGS_H
#define TPC_ARGS_H

#include "algebra/algebra.h"

enum arg_kind {
    ARG_FLAG,      /* bool */
    ARG_TEXT,      /* const char *: --name VALUE or --name=VALUE; not empty */
    ARG_ANY,       /* const char *: the same, which may be empty */
    ARG_INT,       /* int64_t, 1 to 2^31 - 1 */
    ARG_RANKS,     /* int64_t, 1 to PLAN_RANKS */
    ARG_REAL,      /* double */
    ARG_SIGNED,    /* the same, also below 0 */
    ARG_LIST,      /* struct text_list: the only kind with values that repeats */
    ARG_MAYBE,     /* struct text_maybe: --name or --name=VALUE */
    ARG_MAYBE_INT, /* struct text_maybe: also --name 7 */
    ARG_GROUP      /* not an option: a heading of --help, in `value` */
};
struct arg {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    enum arg_kind kind;
    void *to;
    const char *value, *help; /* value: its form in --help; NULL: no value. help NULL: a hidden test option */
};
#define ARG_HEADING(text)                    \
    {                                        \
        "", 0, ARG_GROUP, NULL, (text), NULL \
    }
struct arg_prose {
    const char *head, *text;
}; /* the last entry has head NULL */
struct args {
    const char *program, *summary; /* summary: one line, lower case, no full stop */
    const struct arg_prose *usage; /* a command line and what it does */
    const struct arg *table;
    int n;
    const struct arg_prose *description, *environment, *examples; /* texts of the man page; the heads of a description are empty */
    bool *given;                                                  /* of each row of the table; args_parse makes it */
    const char *(*mpi)(void);                                     /* names the MPI library; NULL: the program is not linked with one */
};
/* Parses the command line and returns the positional arguments. --help[=FORM] and --version print and end the program. A wrong command
 * line, such as a second value for an option of one: wrong usage (exit 2). */
struct text_list args_parse(struct arena *, struct args *, int argc, char **argv);
/* The command line as shell words, "--NAME VALUE" for each option given, in the order of the table. Options of the list are left out; it
 * ends with NULL. */
struct text_list args_given(struct arena *, const struct args *, const char *const *left_out);
/* Is the option of this name given? */
bool args_has(const struct args *, const char *name);
/* The name of the first given option that is not in `taken`; NULL: none. The list ends with NULL. */
const char *args_other(const struct args *, const char *const *taken);
/* Adds the sizes of --dim NAME=INT,.. */
void args_bindings(struct arena *, const char *text, struct bindings *);
/* Parses a size in bytes, such as 800M, 1.5GiB or 4096. K, M, G and T are powers of 1000; KiB, MiB, GiB and TiB of 1024. Less than 1:
 * wrong usage that names `what`. */
int64_t args_bytes(const char *what, const char *text);
/* A number of 0 or more; is_signed: a finite one. Another text: wrong usage that names `what`. */
double args_real(const char *what, const char *text, bool is_signed);
/* The folders of --external-root. One that does not exist: wrong usage. */
struct folders args_folders(const struct text_list *);

/* Loads the libraries of --plugin. */
void args_plugins(const struct text_list *);

/* find_model.c: the graphs of a model: a file, or a folder of rank files, is one graph; another folder contains one ONNX file, or an
 * encoder's and a decoder's, in execution order. No model, or several, is a failure. */
struct text_list find_graphs(struct arena *, const char *path);
/* Fails if this host lacks a model or folder that the other hosts have. of_folder: the number of this rank's files. */
void find_missing(struct arena *, int rank, int of_folder, const struct text_list *paths);

/* manual.c: prints the man page in man(7) macros. */
void manual_print(const struct args *);

/* complete.c: prints the completion script of bash, zsh or fish. Returns false for another shell. */
bool complete_print(const struct args *, const char *shell);

#endif
