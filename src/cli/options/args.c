/* args: parses command lines by a table of options. Long options take --name VALUE or --name=VALUE, letters take -o VALUE or -oVALUE. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/options/args.h"
#include "kern/kern.h"
#include "onnx/onnx.h"
#include "op/plugin/plugin.h"
#include "plan/plan.h"
#include "run/run.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

#ifdef HAVE_TEXT
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>
#endif
#ifdef HAVE_SERVE
#include <microhttpd.h>
#endif

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

/* The option that was probably meant: at most a third of the characters differ. NULL: none. */
static const char *nearest_option(struct arena *a, const struct args *args, const char *name)
{
    int edits;
    const char **names = NEWN(a, const char *, args->n + 1);
    names[0] = "help";
    for (int i = 0; i < args->n; i++)
        names[i + 1] = *args->table[i].name ? args->table[i].name : names[0];
    int at = did_you_mean_at(name, args->n + 1, names, sizeof *names, &edits);
    return 3 * (size_t)edits <= strlen(name) ? names[at] : NULL;
}

void args_bindings(struct arena *a, const char *text, struct bindings *sizes)
{
    for (size_t n; n = strcspn(text, ","), true; text += n + 1) {
        struct binding given;
        const char *item = arena_strndup(a, text, n);
        if (!binding_parse(a, item, &given))
            fail_usage("--dim is '%s', expected NAME=INT with an integer of 0 or more", item);
        bindings_set(a, sizes, given.name, given.value);
        if (!text[n])
            return;
    }
}

struct folders args_folders(const struct text_list *list)
{
    for (int i = 0; i < list->text.n; i++)
        if (!path_exists(list->text.at[i]))
            fail_usage("--external-root names '%s', and there is no such folder", list->text.at[i]);
    return (struct folders){list->text.at, list->text.n};
}

void args_plugins(const struct text_list *list)
{
    for (int i = 0; i < list->text.n; i++)
        plugin_load(list->text.at[i]);
}

double args_real(const char *what, const char *text, bool is_signed)
{
    char *end;
    double x = strtod(text, &end);
    if (*end || end == text || !(is_signed ? isfinite(x) : x >= 0))
        fail_usage("%s is '%s', expected a number%s", what, text, is_signed ? "" : " >= 0");
    return x;
}

int64_t args_bytes(const char *what, const char *text)
{
    static const char *const unit[] = {"", "K", "M", "G", "T", "B", "KB", "MB", "GB", "TB", "B", "KiB", "MiB", "GiB", "TiB"};
    char *end;
    double x = strtod(text, &end);
    int i = 0;
    while (i < 15 && strcasecmp(end, unit[i]))
        i++;
    for (int k = 0; k < i % 5; k++)
        x *= i < 10 ? 1000 : 1024;
    bool decimal = text[strspn(text, "+-0123456789.eE")] == *end; /* not hexadecimal, nor a word */
    if (end == text || !decimal || i == 15 || !(x >= 1) || x > 1e18)
        fail_usage("%s is '%s', expected a size such as 800M, 1.5GiB or 4096", what, text);
    return (int64_t)x;
}

/* Words for a value's form in --help. */
static const char *form_words(const char *form)
{
    return strcmp(form, "FILE") == 0 ? "the name of a file" : strcmp(form, "DIR") == 0 ? "the name of a folder" : form;
}

static void store(struct arena *a, const struct arg *arg, const char *text)
{
    const char *what = arena_printf(a, "--%s", arg->name);
    switch (arg->kind) {
    case ARG_FLAG: *(bool *)arg->to = true; return;
    case ARG_TEXT:
        if (!*text)
            fail_usage("%s is '', expected %s", what, form_words(arg->value));
        /* fall through */
    case ARG_ANY: *(const char **)arg->to = text; return;
    case ARG_INT: *(int64_t *)arg->to = number_read(what, text, 1, INT32_MAX); return; /* all count something */
    case ARG_RANKS: *(int64_t *)arg->to = number_read(what, text, 1, PLAN_RANKS); return;
    case ARG_REAL: *(double *)arg->to = args_real(what, text, false); return;
    case ARG_SIGNED: *(double *)arg->to = args_real(what, text, true); return;
    case ARG_LIST: VEC_PUSH(a, &((struct text_list *)arg->to)->text, text); return;
    case ARG_MAYBE_INT:
        if (text)
            number_read(what, text, 0, INT64_MAX);
        /* fall through */
    case ARG_MAYBE: *(struct text_maybe *)arg->to = (struct text_maybe){true, text}; return;
    case ARG_GROUP: break;
    }
    bug("no such kind of option");
}

static bool takes_value(const struct arg *arg)
{
    return arg->kind == ARG_TEXT || arg->kind == ARG_ANY || arg->kind == ARG_INT || arg->kind == ARG_RANKS || arg->kind == ARG_REAL ||
        arg->kind == ARG_SIGNED || arg->kind == ARG_LIST;
}

static bool all_digits(const char *text)
{
    return text && *text && text[strspn(text, "0123456789")] == '\0';
}

static const struct arg *find_long(const struct args *args, const char *name, size_t n)
{
    for (int i = 0; i < args->n; i++)
        if (n && strlen(args->table[i].name) == n && strncmp(args->table[i].name, name, n) == 0)
            return &args->table[i];
    return NULL;
}

static const struct arg *find_letter(const struct args *args, char letter)
{
    for (int i = 0; i < args->n; i++)
        if (letter && args->table[i].letter == letter)
            return &args->table[i];
    return NULL;
}

static bool is_option(const struct args *args, const char *text)
{
    if (strncmp(text, "--", 2) == 0)
        return strcmp(text, "--help") == 0 || find_long(args, text + 2, strcspn(text + 2, "="));
    return text[0] == '-' && text[1] && !text[2] && find_letter(args, text[1]);
}

/* A command line that is read, up to the word `at`. */
struct words {
    const struct args *args;
    int n, at;
    char **word;
};

/* The value of the option at this word, from the same or the next word. */
static const char *value_of(struct words *w, const struct arg *arg, const char *inlined)
{
    const char *given = w->word[w->at], *next = w->at + 1 < w->n ? w->word[w->at + 1] : NULL;
    if (inlined && arg->kind == ARG_FLAG)
        fail_usage("%s takes no value", given);
    if (inlined)
        return inlined;
    if (arg->kind == ARG_MAYBE_INT && all_digits(next))
        return w->word[++w->at];
    if (!takes_value(arg))
        return NULL;
    if (!next)
        fail_usage("%s needs a value: %s", given, arg->value);
    if (is_option(w->args, next))
        fail_usage("%s needs a value: %s, and found the option '%s'", given, arg->value, next);
    return w->word[++w->at];
}

/* Only a list takes two values; a repeated flag changes nothing. */
static void take(struct arena *a, struct words *w, const struct arg *arg, const char *inlined)
{
    bool *given = &w->args->given[arg - w->args->table];
    const char *text = value_of(w, arg, inlined);
    if (*given && arg->kind != ARG_LIST && arg->kind != ARG_FLAG)
        fail_usage("--%s is given twice, the second time as '%s': it takes one value", arg->name, text ? text : "");
    *given = true;
    store(a, arg, text);
}

/* Returns "-o, --out DIR" or, without a letter, " --tp N". */
static char *option_head(struct arena *a, const struct arg *arg)
{
    const char *value = arg->value ? arg->value : "", *gap = *value && arg->kind != ARG_MAYBE ? " " : "";
    if (arg->letter)
        return arena_printf(a, "-%c, --%s%s%s", arg->letter, arg->name, gap, value);
    return arena_printf(a, "    --%s%s%s", arg->name, gap, value);
}

static void help(struct arena *a, const struct args *args)
{
    const char *before = "usage:";
    for (const struct arg_prose *u = args->usage; u->head; u++, before = "      ")
        printf("%s %-38s %s\n", before, u->head, u->text);
    for (int i = 0; i < args->n; i++) {
        const struct arg *arg = &args->table[i];
        if (arg->kind == ARG_GROUP)
            printf("\n%s:\n", arg->value);
        if (!arg->help)
            continue; /* a heading, or a hidden test option */
        printf("  %-30s %s\n", option_head(a, arg), arg->help);
    }
    printf("  %-30s %s\n", "    --help[=man|bash|zsh|fish]", "print this text, the man page, or shell completions");
    printf("  %-30s %s\n", "    --version", "print versions of the program and its libraries");
}

/* These end the program. */
static void refuse_in_library(const char *option)
{
    if (scope_current())
        fail_usage("--%s is an option of the program: it does nothing in a library", option);
}

/* Prints a form of --help; NULL: the list of options. */
static _Noreturn void show_help(struct arena *a, const struct args *args, const char *form)
{
    refuse_in_library("help");
    if (!form)
        help(a, args);
    else if (strcmp(form, "man") == 0)
        manual_print(args);
    else if (!complete_print(args, form))
        fail_usage("--help is '%s', expected man, bash, zsh or fish", form);
    streams_end();
    exit(0);
}

static void optional_versions(void)
{
#ifdef HAVE_TEXT
    char pcre2[64] = "";
    (void)pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    printf("text: PCRE2 %s, utf8proc %s\n", pcre2, utf8proc_version());
#else
    printf("text: none (built without: no --prompt)\n");
#endif
#ifdef HAVE_SERVE
    printf("server: built for libmicrohttpd %x.%x.%x\n", MHD_VERSION >> 24, MHD_VERSION >> 16 & 255, MHD_VERSION >> 8 & 255);
#else
    printf("server: none (built without: no --serve)\n");
#endif
}

static _Noreturn void version(const struct args *args)
{
    refuse_in_library("version");
    unsigned x = XXH_versionNumber();
    printf("%s %s\n", args->program, PACKAGE_VERSION);
    printf("protobuf-c %s\n", onnx_library());
    printf("oneDNN %s\n", kern_library());
    printf("OpenMP %s\n", kern_openmp());
    printf("jansson %s\n", jansson_version_str());
    printf("xxhash %u.%u.%u\n", x / 10000, x / 100 % 100, x % 100);
    if (args->mpi)
        printf("MPI: %s\n", args->mpi() ? args->mpi() : "none (built without: --local only)");
    optional_versions();
    streams_end();
    exit(0);
}

static _Noreturn void fail_unknown(struct arena *a, const struct args *args, const char *given, const char *name)
{
    const char *near = nearest_option(a, args, name);
    if (near)
        fail_usage("unknown option '%s', did you mean --%s?", given, near);
    fail_usage("unknown option '%s': --help lists them", given);
}

static void parse_long(struct arena *a, struct words *w)
{
    const char *given = w->word[w->at], *name = given + 2, *equal = strchr(name, '=');
    size_t n = equal ? (size_t)(equal - name) : strlen(name);
    if (n == 4 && strncmp(name, "help", n) == 0)
        show_help(a, w->args, equal ? equal + 1 : NULL);
    if (strcmp(name, "version") == 0)
        version(w->args);
    const struct arg *arg = find_long(w->args, name, n);
    if (!arg)
        fail_unknown(a, w->args, given, arena_strndup(a, name, n));
    take(a, w, arg, equal ? equal + 1 : NULL);
}

static void parse_letter(struct arena *a, struct words *w)
{
    const char *given = w->word[w->at];
    if (strcmp(given, "-h") == 0)
        show_help(a, w->args, NULL);
    const struct arg *arg = find_letter(w->args, given[1]);
    if (!arg)
        fail_usage("unknown option '%s': --help lists them", given);
    if (given[2] == '=')
        fail_usage("%s: expected -%c %s or --%s=%s", given, given[1], given + 3, arg->name, given + 3);
    take(a, w, arg, given[2] ? given + 2 : NULL);
}

struct text_list args_parse(struct arena *a, struct args *args, int argc, char **argv)
{
    struct text_list plain = {0};
    struct words w = {.args = args, .n = argc, .word = argv};
    bool options = true;
    args->given = NEWN(a, bool, args->n);
    for (w.at = 1; w.at < argc; w.at++) {
        const char *given = argv[w.at];
        if (options && strcmp(given, "--") == 0)
            options = false;
        else if (options && strncmp(given, "--", 2) == 0)
            parse_long(a, &w);
        else if (options && given[0] == '-' && given[1])
            parse_letter(a, &w);
        else
            VEC_PUSH(a, &plain.text, given);
    }
    return plain;
}

/* ---- what was given ----------------------------------------------------------------------------------------------------------- */

static const char *list_given(struct arena *a, const struct arg *arg)
{
    const struct text_list *list = arg->to;
    const char *all = NULL;
    for (int i = 0; i < list->text.n; i++)
        all = arena_printf(a, "%s%s--%s %s", all ? all : "", all ? " " : "", arg->name, shell_word(a, list->text.at[i]));
    return all;
}

static const char *value_given(struct arena *a, const struct arg *arg)
{
    switch (arg->kind) {
    case ARG_TEXT:
    case ARG_ANY: return *(const char *const *)arg->to;
    case ARG_INT:
    case ARG_RANKS: return arena_printf(a, "%lld", (long long)*(const int64_t *)arg->to);
    case ARG_REAL:
    case ARG_SIGNED: return arena_printf(a, "%.17g", *(const double *)arg->to);
    case ARG_MAYBE:
    case ARG_MAYBE_INT: return ((const struct text_maybe *)arg->to)->text;
    case ARG_FLAG:
    case ARG_LIST:
    case ARG_GROUP: break;
    }
    return NULL;
}

static const char *option_given(struct arena *a, const struct arg *arg)
{
    const char *value = value_given(a, arg);
    if (arg->kind == ARG_LIST)
        return list_given(a, arg);
    const char *before = !value ? "" : arg->kind == ARG_MAYBE ? "=" : " ";
    return arena_printf(a, "--%s%s%s", arg->name, before, value ? shell_word(a, value) : "");
}

static bool is_in(const char *name, const char *const *list)
{
    while (*list && strcmp(*list, name))
        list++;
    return *list != NULL;
}

struct text_list args_given(struct arena *a, const struct args *args, const char *const *left_out)
{
    struct text_list all = {0};
    for (int i = 0; i < args->n; i++) {
        if (args->given[i] && !is_in(args->table[i].name, left_out))
            VEC_PUSH(a, &all.text, option_given(a, &args->table[i]));
    }
    return all;
}

bool args_has(const struct args *args, const char *name)
{
    return args->given[find_long(args, name, strlen(name)) - args->table];
}

const char *args_other(const struct args *args, const char *const *taken)
{
    for (int i = 0; i < args->n; i++)
        if (args->given[i] && !is_in(args->table[i].name, taken))
            return args->table[i].name;
    return NULL;
}
