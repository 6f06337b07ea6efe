/* escape: escapes a model's text for HTML and XML. */
#include "plan/report/report.h"

#include <string.h>

/* Bytes of the first character of a text; 0: invalid UTF-8, or not allowed in XML. */
static size_t character(const char *text)
{
    size_t n = 1, most = strlen(text);
    while (n <= 4 && n <= most && string_fault(text, n))
        n++;
    return n > 4 || n > most || (n == 3 && (memcmp(text, "\xef\xbf\xbe", 3) == 0 || memcmp(text, "\xef\xbf\xbf", 3) == 0)) ? 0 : n;
}

static void put_character(FILE *f, const char *text, size_t n)
{
    switch (*text) {
    case '&': fputs("&amp;", f); return;
    case '<': fputs("&lt;", f); return;
    case '>': fputs("&gt;", f); return;
    case '"': fputs("&quot;", f); return;
    default:;
    }
    if (n == 1)
        fputc(*text < ' ' && *text != '\n' ? ' ' : *text, f);
    else
        fwrite(n ? text : "\xef\xbf\xbd", 1, n ? n : 3, f);
}

void escape_text(FILE *f, const char *text)
{
    for (size_t n; *text; text += n ? n : 1)
        put_character(f, text, n = character(text));
}
