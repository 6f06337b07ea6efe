/* did_you_mean: the name that was probably meant, by Levenshtein distance; * matches any characters. */
#include "base/base.h"

#include <string.h>

static int smallest(int a, int b, int c)
{
    int ab = a < b ? a : b;
    return ab < c ? ab : c;
}

static int distance(const char *a, const char *b)
{
    enum { LONGEST = 256 };
    int row[LONGEST + 1], n = (int)strnlen(b, LONGEST), m = (int)strnlen(a, LONGEST);
    for (int k = 0; k <= n; k++)
        row[k] = k;
    for (int i = 1; i <= m; i++) {
        int corner = row[0], step = a[i - 1] != '*'; /* characters that a glob's * matches cost nothing */
        row[0] += step;
        for (int k = 1; k <= n; k++) {
            int above = row[k];
            row[k] = smallest(row[k] + step, row[k - 1] + step, corner + (step && a[i - 1] != b[k - 1]));
            corner = above;
        }
    }
    return row[n];
}

int did_you_mean(const char *text, int n, const char *const *names)
{
    int edits;
    return did_you_mean_at(text, n, names, sizeof *names, &edits);
}

int did_you_mean_at(const char *text, int n, const void *first, size_t stride, int *edits)
{
    int best = -1, least = 0;
    for (int i = 0; i < n; i++) {
        const void *at = (const char *)first + (size_t)i * stride;
        int d = distance(text, *(const char *const *)at);
        if (best < 0 || d < least) {
            least = d;
            best = i;
        }
    }
    *edits = least;
    return best;
}
