/* replay COUNT SEED FILE...: the main of a fuzz target where libFuzzer is not: every file as it is and COUNT mutations of it.
 *
 * An input that does not survive (child.c) is kept as crash-N. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROWTH = 256 };

static uint64_t state;

static size_t pick(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return n ? (size_t)((state >> 33) % n) : 0;
}

/* ---- mutations ----------------------------------------------------------------------------------------------------------- */

struct input {
    uint8_t *at;
    size_t n, room;
};

static void flip(struct input *in)
{
    in->at[pick(in->n)] ^= (uint8_t)(1u << pick(8));
}

static void overwrite(struct input *in)
{
    static const uint8_t telling[] = {0, 1, 2, 7, 8, 0x0a, 0x10, 0x12, 0x1a, 0x22, 0x7f, 0x80, 0xff, '0', '9', '-', '*', '/', '.', '['};
    in->at[pick(in->n)] = telling[pick(sizeof telling)];
}

static void erase(struct input *in)
{
    size_t at = pick(in->n), n = 1 + pick(16);
    if (n > in->n - at)
        n = in->n - at;
    memmove(in->at + at, in->at + at + n, in->n - at - n);
    in->n -= n;
}

static void repeat(struct input *in)
{
    size_t from = pick(in->n), n = 1 + pick(64), to = pick(in->n);
    if (n > in->n - from)
        n = in->n - from;
    if (n > in->room - in->n)
        return;
    uint8_t piece[64];
    memcpy(piece, in->at + from, n);
    memmove(in->at + to + n, in->at + to, in->n - to);
    memcpy(in->at + to, piece, n);
    in->n += n;
}

/* A piece over another: names, types and numbers swap places. */
static void graft(struct input *in)
{
    size_t n = 1 + pick(24), from = pick(in->n), to = pick(in->n);
    if (n > in->n - from)
        n = in->n - from;
    if (n > in->n - to)
        n = in->n - to;
    memmove(in->at + to, in->at + from, n);
}

static void longest_varint(struct input *in)
{
    size_t at = pick(in->n), n = 1 + pick(9);
    for (size_t i = 0; i < n && at + i < in->n; i++)
        in->at[at + i] = i + 1 < n ? 0xff : 0x7f;
}

static void cut(struct input *in)
{
    if (pick(8) == 0)
        in->n = pick(in->n);
}

static void mutate(struct input *in)
{
    static void (*const kinds[])(struct input *) = {flip, flip, overwrite, overwrite, erase, repeat, graft, graft, longest_varint, cut};
    for (size_t i = 1 + pick(4); i > 0 && in->n > 0; i--)
        kinds[pick(sizeof kinds / sizeof *kinds)](in);
}

/* ---- the files ------------------------------------------------------------------------------------------------------------- */

static void keep(const struct input *in, int number)
{
    char path[64];
    snprintf(path, sizeof path, "crash-%d", number);
    FILE *f = fopen(path, "wb");
    if (f && fwrite(in->at, 1, in->n, f) == in->n && fclose(f) == 0)
        printf("# kept as %s\n", path);
}

static bool survives(const struct input *in, const char *name, int number)
{
    if (fuzz_survives(in->at, in->n))
        return true;
    printf("# %s, input %d\n", name, number);
    keep(in, number);
    return false;
}

static int replay(const char *path, int count, int number)
{
    struct map m = map_file(path);
    struct arena *arena = arena_new();
    struct input in = {.at = arena_alloc(arena, m.bytes + GROWTH), .room = m.bytes + GROWTH};
    int bad = 0;
    for (int i = 0; i <= count; i++) {
        if (m.bytes)
            memcpy(in.at, m.at, m.bytes);
        in.n = m.bytes;
        if (i)
            mutate(&in);
        bad += !survives(&in, path, number + i);
    }
    if (m.bytes)
        map_close(m);
    arena_free(arena);
    return bad;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        fail_usage("expected COUNT SEED FILE...");
    int count = atoi(argv[1]), bad = 0;
    state = strtoull(argv[2], NULL, 10);
    for (int i = 3; i < argc; i++)
        bad += replay(argv[i], count, (i - 3) * (count + 1));
    printf("%d inputs, %d bad\n", (argc - 3) * (count + 1), bad);
    return bad ? 1 : 0;
}
