/* glob: * matches any characters, ? one, everything else itself (names of nodes hold brackets). Only the last * is ever tried again, so the
 * time is bounded by the product of the lengths. */
#include "base/base.h"

#include <ctype.h>
#include <string.h>

struct star_span {
    const char *at, *end;
};

static bool exactly(char a, char b)
{
    return a == b;
}

static bool in_any_case(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* span: what each * matches; NULL: not needed. */
static bool match_stars(const char *glob, const char *text, const char *end, struct star_span *span, bool (*same)(char, char))
{
    const char *star = NULL, *mark = NULL;
    int n = 0;
    while (text < end) {
        if (*glob == '*') {
            star = ++glob;
            mark = text;
            n++;
            if (span)
                span[n - 1] = (struct star_span){text, text};
        } else if (*glob == '?' || same(*glob, *text)) {
            glob++;
            text++;
        } else if (star) {
            glob = star;
            text = ++mark;
            if (span)
                span[n - 1].end = mark;
        } else {
            return false;
        }
    }
    for (; *glob == '*'; glob++)
        if (span)
            span[n++] = (struct star_span){text, text};
    return !*glob;
}

int glob_stars(const char *glob)
{
    int n = 0;
    for (; *glob; glob++)
        n += *glob == '*';
    return n;
}

bool glob_match(const char *glob, const char *text)
{
    return match_stars(glob, text, text + strlen(text), NULL, exactly);
}

bool glob_match_any_case(const char *glob, const char *text)
{
    return match_stars(glob, text, text + strlen(text), NULL, in_any_case);
}

bool glob_match_path(const char *glob, const char *path)
{
    enum { NESTED = 64 }; /* names in hostile files may be one long row of slashes */
    const char *end = path + strlen(path);
    for (int i = 0; i < NESTED && end > path; i++) {
        if (match_stars(glob, path, end, NULL, exactly))
            return true;
        while (end > path && end[-1] != '.' && end[-1] != '/')
            end--;
        end -= end > path;
    }
    return false;
}

char *glob_rewrite(struct arena *a, const char *glob, const char *text, const char *pattern)
{
    struct star_span *span = NEWN(a, struct star_span, glob_stars(glob) + 1);
    require(glob_stars(pattern) <= glob_stars(glob));
    if (!match_stars(glob, text, text + strlen(text), span, exactly))
        return NULL;
    char *out = arena_alloc(a, strlen(pattern) + strlen(text) + 1), *to = out; /* each part of text is used once */
    for (; *pattern; pattern++) {
        if (*pattern != '*') {
            *to++ = *pattern;
            continue;
        }
        memcpy(to, span->at, (size_t)(span->end - span->at));
        to += span->end - span->at;
        span++;
    }
    return out;
}
