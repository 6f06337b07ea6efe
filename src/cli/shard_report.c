/* shard_report: writes the reports of --report KIND[=FILE]. */
#include "cli/shard.h"
#include "plan/folder/folder.h"
#include "plan/html/html.h"
#include "plan/report/report.h"

#include <string.h>

#define REPORT(kind, is)                                        \
    static void kind##_report(FILE *f, const struct compile *c) \
    {                                                           \
        is;                                                     \
    }
static void text_report(FILE *f, const struct compile *c)
{
    if (c->stages.n)
        plan_report_stages(f, c->options, c->stages.plan);
    else
        plan_report(f, c->graph, c->options, c->plan);
}

static void json_report(FILE *f, const struct compile *c)
{
    fputs(c->stages.n ? plan_json_stages(c->source, c->options, c->stages.plan) : plan_json(c->source, c->graph, c->options, c->plan), f);
}
REPORT(html, plan_html(f, c->graph, c->options, c->plan))
REPORT(dot, plan_dot(f, c->graph))

static void svg_report(FILE *f, const struct compile *c)
{
    if (c->stages.n)
        plan_svg_stages(f, c->options, c->stages.plan);
    else
        plan_svg(f, c->graph, c->options, c->plan);
}

/* begins: a text near the beginning of such files, so that no other file is replaced. */
static const struct form {
    const char *kind, *option, *begins;
    void (*write)(FILE *, const struct compile *);
} forms[] = {
    {"text", "--report text", REPORT_KIND, text_report}, {"json", "--report json", PLAN_KIND, json_report},
    {"html", "--report html", HTML_KIND, html_report},   {"dot", "--report dot", DOT_KIND, dot_report},
    {"svg", "--report svg", SVG_KIND, svg_report},
};
enum { FORMS = sizeof forms / sizeof *forms };

bool shard_report_is(const char *text, const char *kind)
{
    size_t n = strlen(kind);
    return strncmp(text, kind, n) == 0 && (!text[n] || text[n] == '=');
}

static const struct form *form_of(const char *text)
{
    for (int i = 0; i < FORMS; i++)
        if (shard_report_is(text, forms[i].kind))
            return &forms[i];
    fail_usage("--report is '%s', expected text, json, html, dot or svg, or one of them with =FILE", text);
}

static const char *file_of(const char *text)
{
    const char *equals = strchr(text, '=');
    return equals ? equals + 1 : NULL;
}

bool shard_report_has(const struct text_list *list, const char *kind)
{
    for (int i = 0; i < list->text.n; i++)
        if (shard_report_is(list->text.at[i], kind))
            return true;
    return false;
}

bool shard_report_shows_text(const struct text_list *list)
{
    return NAMED_AT(list->text.at, list->text.n, "text") >= 0;
}

void shard_check_file(const char *option, const char *path, const char *kind)
{
    out_check(option, path, kind);
    folder_keep(path);
}

void shard_report_check(const struct text_list *list)
{
    int printed = 0;
    for (int i = 0; i < list->text.n; i++) {
        const char *text = list->text.at[i], *file = form_of(text) ? file_of(text) : NULL;
        if (file)
            shard_check_file(form_of(text)->option, file, form_of(text)->begins);
        printed += !file;
    }
    if (printed > 1)
        fail_usage("--report is given %d times without =FILE: only one report can go to stdout", printed);
}

static void write_report_file(const struct compile *c, const struct form *form, const char *path)
{
    struct out out;
    out_open_whole(c->arena, &out, path);
    form->write(out.file, c);
    out_close(&out);
}

void shard_report_write(const struct compile *c, const char *text)
{
    const struct form *form = form_of(text);
    if (file_of(text)) {
        write_report_file(c, form, file_of(text));
        return;
    }
    form->write(stdout, c);
    streams_flush();
}
