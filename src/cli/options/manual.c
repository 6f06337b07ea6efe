/* manual: prints the man page of a program from its table of options and a few lines of text. It uses plain man(7) macros, which groff
 * and mandoc read. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/options/args.h"

#include <ctype.h>
#include <string.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

/* Prints text: a hyphen stays a hyphen, and no line begins with a control character. */
static void put_escaped(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (const char *c = text; *c; c++) {
        if (*c == '-' || *c == '\\')
            putchar('\\');
        putchar(*c == '\\' ? 'e' : *c);
        if (*c == '\n' && (c[1] == '.' || c[1] == '\''))
            fputs("\\&", stdout);
    }
}

static void put_font(char font, const char *text)
{
    printf("\\f%c", font);
    put_escaped(text);
    fputs("\\fR", stdout);
}

static void put_name(const char *program)
{
    fputs(".TH ", stdout);
    for (const char *c = program; *c; c++)
        putchar(toupper((unsigned char)*c));
    printf(" 1 \"\" \"tpc %s\" \"User Commands\"\n.SH NAME\n", PACKAGE_VERSION);
    put_escaped(program);
    fputs(" \\- ", stdout);
}

static void put_usage(const struct arg_prose *usage)
{
    for (; usage->head; usage++) {
        fputs(".TP\n", stdout);
        put_font('B', usage->head);
        putchar('\n');
        put_escaped(usage->text);
        putchar('\n');
    }
}

/* An optional value follows directly, as in --help; other values follow a blank. */
static void put_option(const struct arg *arg)
{
    char letter[] = {'-', arg->letter, '\0'};
    fputs(".TP\n", stdout);
    if (arg->letter)
        put_font('B', letter);
    if (arg->letter)
        fputs(", ", stdout);
    fputs("\\fB\\-\\-", stdout);
    put_escaped(arg->name);
    fputs("\\fR", stdout);
    if (arg->value && arg->kind != ARG_MAYBE)
        putchar(' ');
    if (arg->value)
        put_font('I', arg->value);
    putchar('\n');
    put_escaped(arg->help);
    putchar('\n');
}

static void put_options(const struct args *args)
{
    static const struct arg own[] = {
        {"help", 0, ARG_MAYBE, NULL, "[=man|bash|zsh|fish]", "Print a summary, this page, or the completions of a shell."},
        {"version", 0, ARG_FLAG, NULL, NULL, "Print versions of the program and its libraries."},
    };
    puts(".SH OPTIONS");
    for (int i = 0; i < args->n; i++)
        if (args->table[i].kind == ARG_GROUP)
            printf(".SS %s\n", args->table[i].value);
        else if (args->table[i].help)
            put_option(&args->table[i]);
    for (int i = 0; i < 2; i++)
        put_option(&own[i]);
}

static void put_paragraphs(const struct arg_prose *p)
{
    for (; p->head; p++) {
        puts(".PP");
        put_escaped(p->text);
        putchar('\n');
    }
}

static void put_examples(const struct arg_prose *p)
{
    puts(".SH EXAMPLES");
    for (; p->head; p++) {
        puts(".PP");
        put_escaped(p->text);
        fputs("\n.PP\n.nf\n.RS 4\n", stdout);
        put_escaped(p->head);
        puts("\n.RE\n.fi");
    }
}

void manual_print(const struct args *args)
{
    put_name(args->program);
    put_escaped(args->summary);
    puts("\n.SH SYNOPSIS");
    put_usage(args->usage);
    puts(".SH DESCRIPTION");
    put_paragraphs(args->description);
    put_options(args);
    puts(
        ".SH \"EXIT STATUS\"\n.TP\n0\nsuccess\n.TP\n1\nthe input is invalid or not supported, or a comparison failed\n.TP\n2\nwrong usage");
    puts(".SH ENVIRONMENT");
    put_usage(args->environment);
    put_examples(args->examples);
    puts(".SH \"SEE ALSO\"\n.BR tpc\\-shard (1),\n.BR tpc\\-run (1),\n.BR mpirun (1)");
}
