/* page: the web client at /: an HTML file with its style and script, built into the program. */
#include "serve/page/page.h" /* generated from page.html, page.css and page.js */

#include "serve/http/http.h"

#include <string.h>

static const struct page_file files[] = {{"/", "text/html; charset=utf-8", page_html},
                                         {"/page.css", "text/css; charset=utf-8", page_css},
                                         {"/page.js", "text/javascript; charset=utf-8", page_js}};

const struct page_file *page_named(const char *path)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(files[i].path, path) == 0)
            return &files[i];
    return NULL;
}

const char *page_text(struct arena *a, const struct page_file *f)
{
    struct text_builder b = {.arena = a};
    for (const char *const *line = f->line; *line; line++)
        text_put(&b, *line, strlen(*line));
    text_put(&b, "", 1);
    return text_built(&b).at;
}
