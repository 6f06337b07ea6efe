/* glob: * stands for any characters, ? for one; everything else is itself (names of nodes hold brackets). Only the last * is ever taken
 * back, so the time is bounded by the product of the lengths. */
#include "base/base.h"

bool glob_match(const char *glob, const char *text)
{
    const char *star = NULL, *mark = NULL;
    while (*text) {
        if (*glob == '*') {
            star = ++glob;
            mark = text;
        } else if (*glob == '?' || *glob == *text) {
            glob++;
            text++;
        } else if (star) {
            glob = star;
            text = ++mark;
        } else {
            return false;
        }
    }
    while (*glob == '*')
        glob++;
    return !*glob;
}
