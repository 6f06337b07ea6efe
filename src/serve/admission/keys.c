/* keys: clients must send one of the keys of a file. Keys are compared in constant time and are never logged. */
#include "serve/admission/admission.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { LONGEST = 256, LARGEST_FILE = 1 << 16 }; /* bytes */

struct key {
    unsigned char at[LONGEST]; /* padded with zeros */
};
struct keys {
    VEC(struct key) list;
};

static void add_key(struct arena *a, struct keys *k, const char *path, int line, const char *at, size_t n)
{
    struct key key = {{0}};
    for (size_t i = 0; i < n; i++)
        if (at[i] <= ' ' || at[i] > '~')
            fail("%s: line %d: a key has letters, digits and signs of ASCII, and no blanks", path, line);
    if (n > LONGEST)
        fail("%s: line %d: a key has at most %d bytes", path, line, LONGEST);
    memcpy(key.at, at, n);
    if (n)
        VEC_PUSH(a, &k->list, key);
}

static size_t read_file(const char *path, char *text)
{
    struct stat about;
    FILE *f = fopen(path, "re");
    if (!f || fstat(fileno(f), &about) < 0)
        fail("%s: can't be read: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        fail("%s: expected a file of keys, one on each line", path);
    if (about.st_mode & (S_IRWXG | S_IRWXO))
        fail("%s: other users may use it: chmod 600 %s", path, path);
    size_t n = fread(text, 1, LARGEST_FILE + 1, f);
    bool failed = ferror(f);
    (void)fclose(f);
    if (failed || n > LARGEST_FILE)
        fail("%s: can't be read: expected at most %d bytes", path, LARGEST_FILE);
    return n;
}

struct keys *keys_read(struct arena *a, const char *path)
{
    struct keys *k = NEW(a, struct keys);
    char *text = arena_alloc(a, LARGEST_FILE + 1);
    size_t n = read_file(path, text), from = 0;
    *k = (struct keys){0};
    for (int line = 1; from < n; line++) {
        const char *end = memchr(text + from, '\n', n - from);
        size_t to = end ? (size_t)(end - text) : n, length = to - from;
        length -= length && text[to - 1] == '\r';
        add_key(a, k, path, line, text + from, length);
        from = to + 1;
    }
    memset(text, 0, n);
    if (k->list.n == 0)
        fail("%s: has no key: expected one on each line", path);
    return k;
}

bool keys_admit(const struct keys *k, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    unsigned char given[LONGEST] = {0};
    bool found = false;
    const char *key = authorization && strncasecmp(authorization, scheme, sizeof scheme - 1) == 0 ? authorization + sizeof scheme - 1 : "";
    size_t n = strlen(key);
    memcpy(given, key, n < LONGEST ? n : LONGEST);
    for (int i = 0; i < k->list.n; i++) {
        volatile unsigned char differ = n == 0 || n > LONGEST;
        for (size_t j = 0; j < LONGEST; j++)
            differ = (unsigned char)(differ | (given[j] ^ k->list.at[i].at[j]));
        found |= differ == 0;
    }
    return found;
}
