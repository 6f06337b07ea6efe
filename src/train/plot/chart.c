/* chart: draws panels and curves (chart.h). */
#include "train/plot/chart.h"

#include "plan/report/report.h"
#include "plan/report/svg_draw.h"

#include <math.h>
#include <string.h>

enum { TICK_GAP = 8, LABEL_GAP = 54, LINE_GAP = 18, TITLE_GAP = 36, SAMPLE_WIDE = 22, LETTER_WIDE = 7 };

static double x_of(const struct panel *p, double x)
{
    return p->left + p->wide * axis_place(&p->x, x);
}

static double y_of(const struct panel *p, double y)
{
    return p->top + p->high * (1 - axis_place(&p->y, y));
}

/* Integers are printed in full. */
static void put_number(FILE *f, double x, double y, const char *class, double number)
{
    char text[32];
    (void)snprintf(text, sizeof text, fabs(number) < 1e15 && number == rint(number) ? "%.0f" : "%.6g", number);
    svg_text(f, x, y, class, text);
}

static void put_line(FILE *f, double x, double y, double to_x, double to_y)
{
    fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>\n", x, y, to_x, to_y);
}

void plot_panel(const struct panel *p, const char *label)
{
    double middle = p->top + p->high / 2, left = p->left - LABEL_GAP;
    for (int i = 0; i < p->y.ticks; i++) {
        double y = y_of(p, p->y.tick[i]);
        put_line(p->f, p->left, y, p->left + p->wide, y);
        put_number(p->f, p->left - TICK_GAP, y + 4, "end", p->y.tick[i]);
    }
    for (int i = 0; i < p->x.ticks; i++)
        put_line(p->f, x_of(p, p->x.tick[i]), p->top, x_of(p, p->x.tick[i]), p->top + p->high);
    svg_rect(p->f, "frame", p->left, p->top, p->wide, p->high);
    fprintf(p->f, "<text transform=\"translate(%.1f %.1f) rotate(-90)\" class=\"label\">", left, middle);
    escape_text(p->f, label);
    fputs("</text>\n", p->f);
}

void plot_panel_below(const struct panel *p, const char *label)
{
    double bottom = p->top + p->high;
    for (int i = 0; i < p->x.ticks; i++)
        put_number(p->f, x_of(p, p->x.tick[i]), bottom + LINE_GAP, "mid", p->x.tick[i]);
    svg_text(p->f, p->left + p->wide / 2, bottom + TITLE_GAP, "label", label);
}

static bool is_point(const struct series *s, int i)
{
    return i >= 0 && i < s->n && isfinite(s->y[i]);
}

static void put_dot(const struct panel *p, const struct series *s, int i, const char *class)
{
    fprintf(p->f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" class=\"%s dot\"/>\n", x_of(p, s->x[i]), y_of(p, s->y[i]), class);
}

/* The points from the first one up to a gap. Returns the gap's index. */
static int put_piece(const struct panel *p, const struct series *s, int from, const char *class)
{
    int i = from;
    fprintf(p->f, "<polyline class=\"%s\" points=\"", class);
    for (; is_point(s, i); i++)
        fprintf(p->f, i == from ? "%.1f,%.1f" : " %.1f,%.1f", x_of(p, s->x[i]), y_of(p, s->y[i]));
    fputs("\"/>\n", p->f);
    return i;
}

void plot_curve(const struct panel *p, const struct series *s, const char *class, bool dots)
{
    for (int i = 0; i < s->n;)
        i = is_point(s, i) ? put_piece(p, s, i, class) : i + 1;
    for (int i = 0; i < s->n; i++) /* a line of one point is invisible */
        if (is_point(s, i) && (dots || (!is_point(s, i - 1) && !is_point(s, i + 1))))
            put_dot(p, s, i, class);
}

double plot_key(FILE *f, double x, double y, const char *class, const char *name)
{
    fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x, y - 4, x + SAMPLE_WIDE, y - 4, class);
    svg_text(f, x + SAMPLE_WIDE + 6, y, "key", name);
    return SAMPLE_WIDE + LETTER_WIDE * (double)strlen(name) + 16;
}
