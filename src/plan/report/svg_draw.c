/* svg_draw: text, rectangles and the style sheet of pictures. */
#include "plan/report/svg_draw.h"

#include "plan/report/report.h"

#include <string.h>

static const char style[] =
    "<style>\n" SVG_KIND "; fill: #57606a; } .label { font-size: 12px; font-weight: bold; fill: #24292f; }\n"
    ".title { font-size: 16px; font-weight: bold; fill: #24292f; } .name, .share, .rank { text-anchor: middle; }\n"
    ".name, .rank { font-size: 12px; font-weight: bold; fill: #24292f; } .share { fill: #24292f; }\n"
    ".band, .bytes { fill: #1f2328; } .band { font-size: 12px; font-weight: bold; } .bytes { text-anchor: end; } .paper { fill: "
    "#ffffff; } .flow { stroke: #afb8c1; stroke-width: 2; }\n"
    ".frame { fill: #f6f8fa; stroke: #d0d7de; rx: 6px; } .box { fill: #ffffff; stroke: #afb8c1; stroke-dasharray: 3 2; }\n"
    ".all { fill: #d0d7de; } .r0 { fill: #79b8ff; } .r1 { fill: #ffb26b; } .r2 { fill: #8fd19e; } .r3 { fill: #d2a8ff; }\n"
    ".partial { fill-opacity: 0.35; } .soft { fill-opacity: 0.6; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "text { fill: #9198a1; } .label, .title, .name, .rank, .share { fill: #e6edf3; } .band, .bytes { fill: #1f2328; } .paper { "
    "fill: #0d1117; }\n"
    ".frame { fill: #151b23; stroke: #3d444d; } .box { fill: #0d1117; stroke: #656c76; } .flow { stroke: #656c76; } .all { "
    "fill: #3d444d; }\n"
    ".r0 { fill: #1f6feb; } .r1 { fill: #bd561d; } .r2 { fill: #238636; } .r3 { fill: #8957e5; }\n"
    "}\n</style>\n";

void svg_begin(FILE *f, int wide, double high)
{
    fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\">\n", wide, high, wide, high);
    fputs(style, f);
    fprintf(f, "<rect width=\"%d\" height=\"%.0f\" class=\"paper\"/>\n", wide, high);
}

const char *svg_fitting(struct arena *a, const char *text, double wide, int size)
{
    size_t most = wide > 0 ? (size_t)(wide / (0.62 * size)) : 0, n = most;
    if (strlen(text) <= most)
        return text;
    while (n > 0 && (--n, ((unsigned char)text[n] & 0xC0) == 0x80)) /* to a character boundary */
        ;
    return n > 0 ? arena_printf(a, "%.*s…", (int)n, text) : "";
}

void svg_text(FILE *f, double x, double y, const char *class, const char *text)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
    escape_text(f, text);
    fputs("</text>\n", f);
}

void svg_rect(FILE *f, const char *class, double x, double y, double wide, double high)
{
    fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"%s\"/>\n", x, y, wide, high, class);
}
