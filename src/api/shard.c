/* shard: tpc_shard runs the command line of tpc-shard in this process, so that it takes every option and stays the same. */
#include "cli/shard.h"

#include "api/api.h"

#include <stdio.h>

enum { MOST_WORDS = 256 };

struct command {
    int words;
    char *word[MOST_WORDS + 1];
};

static void run_command(void *command)
{
    struct command *c = command;
    shard_command(c->words, c->word);
    (void)fflush(stdout);
}

static bool add_word(struct command *c, const char *word)
{
    bool room = c->words < MOST_WORDS;
    if (room)
        c->word[c->words++] = (char *)(uintptr_t)word;
    return room;
}

int tpc_shard(const char *model, int ranks, const char *out, const char *const *options)
{
    struct command c = {0};
    char number[16];
    bool fits = true;
    if (!model || !*model || !out || !*out)
        return error_invalid("tpc_shard: model and out have to be given");
    (void)snprintf(number, sizeof number, "%d", ranks);
    const char *const words[] = {"tpc-shard", "--tp", number, "-o", out, "-q", NULL};
    for (int i = 0; words[i]; i++)
        fits = add_word(&c, words[i]) && fits;
    for (int i = 0; options && options[i]; i++)
        fits = add_word(&c, options[i]) && fits;
    if (!add_word(&c, "--") || !add_word(&c, model) || !fits)
        return error_invalid("tpc_shard: expected at most %d options", MOST_WORDS - 10);
    struct scope *scope = scope_new();
    if (!scope)
        return error_memory();
    int status = crew_run_apart(scope, run_command, &c) ? TPC_OK : error_of_scope(scope);
    scope_free(scope);
    return status;
}
