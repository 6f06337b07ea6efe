/* string: strings in tensors. An element is the number of its text in a table of the scope or program: equal texts have one number, so
 * elements are moved and compared as integers of 8 bytes. Number 0 is the empty text: cleared memory holds texts. Numbers mean nothing
 * outside of the process, so files and other ranks get the texts. A text stays until its scope ends. */
#include "base/base.h"

#include <string.h>
#include <xxhash.h>

struct entry {
    const char *text;
    size_t bytes;
    uint64_t hash;
};
struct string_table {
    struct arena *arena;
    VEC(struct entry) all;
    int *slot; /* by hash: the number of an entry; 0: free */
    int slots;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all tables */

/* ---- characters ------------------------------------------------------------------------------------------------------------ */

/* The number of bytes after the first one of a character, and the least code point of that length; -1: invalid first byte. */
static int following(unsigned char first, uint32_t *bits, uint32_t *least)
{
    static const uint32_t leasts[] = {0, 0x80, 0x800, 0x10000};
    int n = first < 0x80 ? 0 : first < 0xc0 ? -1 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf8 ? 3 : -1;
    *bits = n > 0 ? first & (0x3fu >> n) : first;
    *least = n > 0 ? leasts[n] : 0;
    return n;
}

/* The length of the character at `at`; 0: invalid. */
static size_t take_char(const char *at, size_t bytes, uint32_t *out)
{
    uint32_t least;
    int n = following((unsigned char)*at, out, &least);
    if (n < 0 || bytes <= (size_t)n)
        return 0;
    for (int i = 1; i <= n; i++) {
        unsigned char c = (unsigned char)at[i];
        if ((c & 0xc0) != 0x80)
            return 0;
        *out = *out << 6 | (c & 0x3f);
    }
    return *out >= least && string_is_char(*out) ? (size_t)n + 1 : 0;
}

bool string_is_char(uint32_t c)
{
    return c > 0 && c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000);
}

const char *string_fault(const char *text, size_t bytes)
{
    uint32_t c;
    for (size_t i = 0, n; i < bytes; i += n) {
        if (!text[i])
            return "holds a NUL";
        n = take_char(text + i, bytes - i, &c);
        if (!n)
            return "is not UTF-8";
    }
    return NULL;
}

uint32_t string_next_char(const char **at)
{
    uint32_t c = 0;
    size_t n = **at ? take_char(*at, strnlen(*at, 4), &c) : 0;
    require(n || !**at);
    *at += n;
    return c;
}

int string_put_char(uint32_t c, char *to)
{
    int n = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    for (int i = n; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(n ? (0xff00u >> (n + 1) & 0xff) | c : c);
    return n + 1;
}

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

static int *place_of(const struct string_table *t, uint64_t hash, const char *text, size_t bytes)
{
    int i = (int)(hash % (uint64_t)t->slots);
    for (; t->slot[i]; i = (i + 1) % t->slots) {
        const struct entry *e = &t->all.at[t->slot[i]];
        if (e->hash == hash && e->bytes == bytes && memcmp(e->text, text, bytes) == 0)
            break;
    }
    return &t->slot[i];
}

static void widen(struct string_table *t)
{
    t->slots = t->slots ? 2 * t->slots : 64;
    t->slot = NEWN(t->arena, int, t->slots);
    for (int i = 1; i < t->all.n; i++)
        *place_of(t, t->all.at[i].hash, t->all.at[i].text, t->all.at[i].bytes) = i;
}

/* This thread's scope's table; call with the lock held. */
static struct string_table *table_now(void)
{
    void **slot = scope_strings();
    if (!*slot) {
        struct arena *a = arena_new();
        struct string_table *t = NEW(a, struct string_table);
        t->arena = a;
        VEC_PUSH(a, &t->all, ((struct entry){.text = ""}));
        *slot = t;
    }
    return *slot;
}

static int number_in(struct string_table *t, const char *text, size_t bytes)
{
    if (2 * t->all.n >= t->slots)
        widen(t);
    uint64_t hash = XXH3_64bits(text, bytes);
    int *place = place_of(t, hash, text, bytes);
    if (!*place) {
        if (t->all.n == 1 << 29)
            fail("more than %d different strings are more than tpc can hold", 1 << 29);
        *place = t->all.n;
        VEC_PUSH(t->arena, &t->all, ((struct entry){arena_strndup(t->arena, text, bytes), bytes, hash}));
    }
    return *place;
}

int64_t string_number(const char *text, size_t bytes)
{
    if (!bytes)
        return 0;
    require(!string_fault(text, bytes));
    diag_lock(&lock);
    int number = number_in(table_now(), text, bytes);
    diag_unlock(&lock);
    return number;
}

const char *string_text(int64_t number)
{
    if (!number)
        return "";
    diag_lock(&lock);
    const struct string_table *t = table_now();
    const char *text = number > 0 && number < t->all.n ? t->all.at[number].text : NULL;
    diag_unlock(&lock);
    if (!text)
        bug("no string has the number %lld", (long long)number);
    return text;
}
