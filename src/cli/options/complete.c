/* complete: prints completion scripts of three shells from a table of options.
 *
 * The kind of a value follows from its form in --help. DIR is a folder, lower-case words between bars are the choices, a word with FILE
 * or MODEL is a file. Other values are not completed. */
#include "cli/options/args.h"

#include <ctype.h>
#include <string.h>

enum wants { WANTS_NOTHING, WANTS_ANYTHING, WANTS_WORD, WANTS_FILE, WANTS_FOLDER };

/* Copies the lower-case words of "text|json[=FILE]" or "[=SYMBOL|auto]" to out, separated by blanks. */
static void words_of(const char *value, char *out, size_t room)
{
    size_t n = 0;
    out[0] = '\0';
    for (const char *at = value; value && strchr(value, '|') && *at; at += strcspn(at, "|"), at += *at == '|') {
        const char *word = at + strspn(at, "[=");
        size_t length = strcspn(word, "|[]=");
        if (!islower((unsigned char)*word) || n + length + 2 > room)
            continue;
        n += (size_t)snprintf(out + n, room - n, "%s%.*s", n ? " " : "", (int)length, word);
    }
}

static enum wants wants_of(const struct arg *arg)
{
    char words[128];
    if (!arg->value)
        return WANTS_NOTHING;
    words_of(arg->value, words, sizeof words);
    if (*words)
        return WANTS_WORD;
    if (strstr(arg->value, "DIR"))
        return WANTS_FOLDER;
    return strstr(arg->value, "FILE") || strstr(arg->value, "MODEL") ? WANTS_FILE : WANTS_ANYTHING;
}

/* Prints the program's name as part of a shell function's name. */
static void put_function(const char *program)
{
    for (const char *c = program; *c; c++)
        putchar(*c == '-' ? '_' : *c);
}

/* Prints text inside single quotes, with a backslash before `marked` characters. */
static void put_quoted(const char *text, const char *marked)
{
    for (const char *c = text; *c; c++) {
        if (strchr(marked, *c))
            putchar('\\');
        if (*c == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*c);
    }
}

/* ---- bash --------------------------------------------------------------------------------------------------------------------- */

/* bash splits words at '='. The key of a value is "--name", or "--name=" after a typed '='. */
static void bash_case(const struct arg *arg)
{
    char words[128];
    enum wants wants = wants_of(arg);
    if (wants == WANTS_NOTHING || wants == WANTS_FILE)
        return;
    words_of(arg->value, words, sizeof words);
    fputs("        ", stdout);
    if (arg->letter)
        printf("-%c|", arg->letter);
    if (arg->kind != ARG_MAYBE && arg->kind != ARG_MAYBE_INT)
        printf("--%s|", arg->name);
    printf("--%s=) ", arg->name);
    if (wants == WANTS_FOLDER)
        puts("compopt +o default -o dirnames; return ;;");
    else
        printf("COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", words);
}

static void bash(const struct args *args)
{
    printf("# bash completion of %s\n_", args->program);
    put_function(args->program);
    puts("() {\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} key=${COMP_WORDS[COMP_CWORD-1]}\n"
         "    if [ \"$cur\" = = ]; then key=$key= cur=\n"
         "    elif [ \"$key\" = = ]; then key=${COMP_WORDS[COMP_CWORD-2]}=; fi\n"
         "    COMPREPLY=()\n"
         "    case $key in");
    for (int i = 0; i < args->n; i++)
        if (args->table[i].help)
            bash_case(&args->table[i]);
    fputs("    esac\n    case $cur in -*) COMPREPLY=($(compgen -W '", stdout);
    for (int i = 0; i < args->n; i++)
        if (args->table[i].help)
            printf("--%s ", args->table[i].name);
    fputs("--help --version' -- \"$cur\")) ;; esac\n}\ncomplete -o default -F _", stdout);
    put_function(args->program);
    printf(" %s\n", args->program);
}

/* ---- zsh ---------------------------------------------------------------------------------------------------------------------- */

static void zsh_value(const struct arg *arg)
{
    char words[128];
    enum wants wants = wants_of(arg);
    if (wants == WANTS_NOTHING)
        return;
    words_of(arg->value, words, sizeof words);
    fputs(arg->kind == ARG_MAYBE || arg->kind == ARG_MAYBE_INT ? "::" : ":", stdout);
    put_quoted(arg->value, ":[]\\");
    if (wants == WANTS_WORD)
        printf(":(%s)", words);
    else
        fputs(wants == WANTS_FOLDER ? ":_files -/" : wants == WANTS_FILE ? ":_files" : ": ", stdout);
}

static void zsh_option(const struct arg *arg)
{
    const char *sign = !arg->value ? "" : arg->kind == ARG_MAYBE ? "=-" : "=";
    fputs("  ", stdout);
    if (arg->letter)
        printf("'(-%c --%s)'{-%c%s,--%s%s}'[", arg->letter, arg->name, arg->letter, arg->value ? "+" : "", arg->name, sign);
    else
        printf("'%s--%s%s[", arg->kind == ARG_LIST ? "*" : "", arg->name, sign);
    put_quoted(arg->help, "[]\\");
    putchar(']');
    zsh_value(arg);
    puts("' \\");
}

static void zsh(const struct args *args)
{
    printf("#compdef %s\n_arguments -s \\\n", args->program);
    for (int i = 0; i < args->n; i++)
        if (args->table[i].help)
            zsh_option(&args->table[i]);
    puts("  '--help[the options]' '--version[versions]' \\\n  '*:model:_files'");
}

/* ---- fish --------------------------------------------------------------------------------------------------------------------- */

static void fish_option(const char *program, const struct arg *arg)
{
    char words[128];
    enum wants wants = wants_of(arg);
    words_of(arg->value, words, sizeof words);
    printf("complete -c %s -l %s", program, arg->name);
    if (arg->letter)
        printf(" -s %c", arg->letter);
    if (arg->value && arg->kind != ARG_MAYBE && arg->kind != ARG_MAYBE_INT)
        fputs(wants == WANTS_FILE ? " -r" : " -x", stdout);
    if (wants == WANTS_WORD)
        printf(" -a '%s'", words);
    if (wants == WANTS_FOLDER)
        fputs(" -a '(__fish_complete_directories)'", stdout);
    fputs(" -d '", stdout);
    for (const char *c = arg->help; *c; c++) { /* in fish a backslash quotes a quote */
        if (*c == '\'' || *c == '\\')
            putchar('\\');
        putchar(*c);
    }
    puts("'");
}

static void fish(const struct args *args)
{
    for (int i = 0; i < args->n; i++)
        if (args->table[i].help)
            fish_option(args->program, &args->table[i]);
    printf("complete -c %s -l help -d 'the options'\ncomplete -c %s -l version -d 'versions'\n", args->program, args->program);
}

bool complete_print(const struct args *args, const char *shell)
{
    static const struct {
        const char *name;
        void (*put)(const struct args *);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shell, shells[i].name) == 0) {
            shells[i].put(args);
            return true;
        }
    return false;
}
