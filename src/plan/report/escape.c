/* escape: text of a model in HTML and XML. */
#include "plan/report/report.h"

void escape_text(FILE *f, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&': fputs("&amp;", f); break;
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        case '"': fputs("&quot;", f); break;
        default: fputc((unsigned char)*text < ' ' && *text != '\n' ? ' ' : *text, f);
        }
}
