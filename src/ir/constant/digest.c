/* digest: digests of a weight's bytes from tpc-shard. The digest of all bytes is checked if a run reads all of them. The digest of a few
 * sampled pages is checked for every weight: the weights of another model differ nearly everywhere, and other pages need not be read. */
#include "ir/constant/constant.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_PAGES = 16, SAMPLE_PAGE = 4096 };

/* The start of page k of the sample. A constant no larger than the sample is its own sample. */
static int64_t page_start(int64_t bytes, int k)
{
    return (bytes - SAMPLE_PAGE) / (SAMPLE_PAGES - 1) * k / SAMPLE_PAGE * SAMPLE_PAGE;
}

static bool is_own_sample(int64_t bytes)
{
    return bytes <= (int64_t)SAMPLE_PAGES * SAMPLE_PAGE;
}

struct digester {
    struct digest *whole, *sample;
    int64_t bytes, at; /* of the constant; processed so far */
};

struct digester *digest_new(struct arena *a, int64_t bytes)
{
    struct digester *d = NEW(a, struct digester);
    *d = (struct digester){digest_begin(a), digest_begin(a), bytes, 0};
    return d;
}

void digest_take(void *data, const void *from, size_t bytes)
{
    struct digester *d = data;
    int64_t end = d->at + (int64_t)bytes;
    digest_add(d->whole, from, bytes);
    for (int k = 0; k < SAMPLE_PAGES && !is_own_sample(d->bytes); k++) {
        int64_t lo = page_start(d->bytes, k), hi = lo + SAMPLE_PAGE;
        lo = lo > d->at ? lo : d->at;
        hi = hi < end ? hi : end;
        if (lo < hi)
            digest_add(d->sample, (const uint8_t *)from + (lo - d->at), (size_t)(hi - lo));
    }
    d->at = end;
}

struct constant_digest digest_end(const struct digester *d)
{
    struct constant_digest found = {digest_value(d->whole), digest_value(d->sample)};
    if (is_own_sample(d->bytes))
        found.sample = found.whole;
    return found;
}

struct constant_digest digest_of_zeros(struct arena *a, int64_t bytes)
{
    struct digester *d = digest_new(a, bytes);
    digest_zeros(d->whole, bytes);
    if (!is_own_sample(bytes))
        digest_zeros(d->sample, (int64_t)SAMPLE_PAGES * SAMPLE_PAGE);
    return digest_end(d);
}

/* ---- as text ---- */

const char *digest_text(struct arena *a, struct constant_digest d)
{
    return arena_printf(a, "%016" PRIx64 " %016" PRIx64, d.whole, d.sample);
}

bool digest_parse(const char *text, struct constant_digest *out)
{
    static const char digits[] = "0123456789abcdef";
    if (strlen(text) != 33 || strspn(text, digits) != 16 || text[16] != ' ' || strspn(text + 17, digits) != 16)
        return false;
    *out = (struct constant_digest){strtoull(text, NULL, 16), strtoull(text + 17, NULL, 16)};
    return true;
}

/* ---- checking ---- */

static uint64_t sample_of(const uint8_t *at, int64_t bytes)
{
    struct arena *tmp = arena_new();
    struct digest *s = digest_begin(tmp);
    for (int k = 0; k < SAMPLE_PAGES; k++)
        digest_add(s, at + page_start(bytes, k), SAMPLE_PAGE);
    uint64_t found = digest_value(s);
    arena_free(tmp);
    return found;
}

uint64_t digest_sample(struct constant *c, const char *name)
{
    const uint8_t *at = constant_data(c, name);
    return is_own_sample(c->bytes) ? digest_bytes(at, (size_t)c->bytes) : sample_of(at, c->bytes);
}

_Noreturn static void refuse(const char *path, const char *what, const char *which, uint64_t found, uint64_t expected)
{
    fail("%s: %s is not what was written for this rank: its %s digest %016" PRIx64 ", expected %016" PRIx64
         "; the file is of another rank or model, or damaged",
         path, what, which, found, expected);
}

void digest_compare(const char *path, const char *what, uint64_t expected, uint64_t found)
{
    if (found != expected)
        refuse(path, what, "bytes have", found, expected);
}

void digest_check(struct constant *c, const char *name, bool whole)
{
    if (!c->digest || !c->bytes || c->checked)
        return;
    const uint8_t *at = constant_data(c, name);
    bool all = whole || is_own_sample(c->bytes);
    uint64_t found = all ? digest_bytes(at, (size_t)c->bytes) : sample_of(at, c->bytes),
             expected = all ? c->digest->whole : c->digest->sample;
    if (found != expected)
        refuse(c->source.path ? c->source.path : "the graph", arena_printf(arena_new(), "tensor '%s'", name),
               all ? "bytes have" : "sampled pages have", found, expected);
    c->checked = all;
}
