/* captured: a stream whose text is kept in an arena. */
#include "base/base.h"

#include <stdlib.h>

void captured_begin(struct captured *c)
{
    *c = (struct captured){0};
    c->to = open_memstream(&c->text, &c->bytes);
    if (!c->to)
        fail("there is no memory for a text");
}

char *captured_end(struct captured *c, struct arena *a)
{
    if (fclose(c->to) != 0)
        fail("there is no memory for a text of %zu bytes", c->bytes);
    char *kept = arena_strndup(a, c->text, c->bytes);
    free(c->text);
    return kept;
}
