/* plot: a picture of a run's losses, redrawn at each checkpoint. A continued run takes the earlier steps from its log. */
#include "plan/report/report.h"
#include "plan/report/svg_draw.h"
#include "train/plot/chart.h"
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 960, LEFT = 78, RIGHT = 24, TOP = 76, LOSS_HIGH = 340, RATE_HIGH = 100, GAP = 24, BOTTOM = 50 };
enum { MOST = 2000, DOTS = 100, X_TICKS = 10, LOSS_TICKS = 6, RATE_TICKS = 3, LOG_FROM = 10 }; /* LOG_FROM: the range of losses */

struct point {
    double step, loss, rate, validation; /* NAN: none */
};
struct train_plot {
    struct arena *arena;
    const char *path, *folder;
    int64_t steps; /* in the whole run */
    VEC(struct point) points;
};

static const char style[] =
    "<style>\n"
    "text { font: 12px sans-serif; fill: #57606a; } .title { font-size: 16px; font-weight: bold; fill: #24292f; }\n"
    ".label { font-weight: bold; text-anchor: middle; fill: #24292f; } .end { text-anchor: end; } .mid { text-anchor: middle; }\n"
    ".paper { fill: #ffffff; } .grid { stroke: #eaeef2; } .frame { fill: none; stroke: #afb8c1; } .key { fill: #24292f; }\n"
    ".training, .validation, .rate { fill: none; stroke-width: 1.5; stroke-linejoin: round; }\n"
    ".training { stroke: #0969da; } .validation { stroke: #bc4c00; stroke-width: 2; } .rate { stroke: #57606a; }\n"
    ".training.dot { fill: #0969da; } .validation.dot { fill: #bc4c00; } .rate.dot { fill: #57606a; }\n"
    "</style>\n";

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

/* A column of a line of the log; advances *at. NAN: empty, or no number. */
static double take_column(const char **at)
{
    char *end;
    size_t n = strcspn(*at, ",\n");
    double x = strtod(*at, &end);
    bool whole = n > 0 && end == *at + n;
    *at += n + ((*at)[n] == ',');
    return whole ? x : NAN;
}

static void read_log(struct train_plot *p, const char *path, int64_t done)
{
    struct map m = map_file(path);
    const char *at = arena_strndup(p->arena, m.at ? (const char *)m.at : "", m.bytes), *line = strchr(at, '\n');
    map_close(m);
    for (; line && line[1]; line = strchr(line + 1, '\n')) {
        at = line + 1;
        double column[LOG_COLUMNS];
        for (int i = 0; i < LOG_COLUMNS; i++)
            column[i] = take_column(&at);
        if (column[0] >= 1 && column[0] <= (double)done)
            VEC_PUSH(p->arena, &p->points, ((struct point){column[0], column[1], column[2], column[LOG_COLUMNS - 1]}));
    }
}

struct train_plot *plot_open(struct arena *a, const char *path, const struct plot_run *of)
{
    struct train_plot *p = NEW(a, struct train_plot);
    *p = (struct train_plot){.arena = a, .path = path, .folder = of->folder, .steps = of->steps};
    if (path && of->log && of->done)
        read_log(p, of->log, of->done);
    return p;
}

void plot_step(struct train_plot *p, const struct step_report *r)
{
    if (p->path)
        VEC_PUSH(p->arena, &p->points, ((struct point){(double)r->step, r->loss, r->rate, r->validation}));
}

/* ---- curves ---------------------------------------------------------------------------------------------------------- */

static double loss_of(const struct point *p)
{
    return p->loss;
}

static double rate_of(const struct point *p)
{
    return p->rate;
}

static double validation_of(const struct point *p)
{
    return p->validation;
}

struct curve {
    struct series at;
    int steps; /* a point is the mean of this many */
    double least, most;
};

/* Every step is a point, up to MOST. each: or only those with a number. */
static struct curve curve_of(struct arena *a, const struct train_plot *p, double (*of)(const struct point *), bool each)
{
    int n = 0, kept = 0;
    double *x = NEWN(a, double, p->points.n), *y = NEWN(a, double, p->points.n);
    struct curve c = {.least = INFINITY, .most = -INFINITY};
    for (int i = 0; i < p->points.n; i++)
        if (each || isfinite(of(&p->points.at[i]))) {
            x[n] = p->points.at[i].step;
            y[n++] = of(&p->points.at[i]);
        }
    c.steps = n / MOST + (n % MOST > 0);
    for (int i = 0; i < n; i += c.steps) {
        int some = n - i < c.steps ? n - i : c.steps;
        double step = 0, sum = 0;
        for (int k = i; k < i + some; k++) {
            step += x[k] / some;
            sum += y[k] / some;
        }
        x[kept] = step;
        y[kept] = sum;
        if (isfinite(sum)) {
            c.least = fmin(c.least, sum);
            c.most = fmax(c.most, sum);
        }
        kept++;
    }
    c.at = (struct series){kept, x, y};
    return c;
}

static struct axis axis_of_losses(const struct curve *training, const struct curve *validation)
{
    double least = fmin(training->least, validation->least), most = fmax(training->most, validation->most);
    if (!(least <= most))
        return axis_linear(0, 1, LOSS_TICKS);
    if (least > 0 && most / least >= LOG_FROM)
        return axis_logarithmic(least, most);
    return axis_linear(least, most, LOSS_TICKS);
}

/* ---- drawing --------------------------------------------------------------------------------------------------------- */

static void put_head(FILE *f, struct arena *a, const struct train_plot *p, double high)
{
    const struct point *last = &p->points.at[p->points.n - 1], *best = NULL;
    fprintf(f, PLOT_KIND " xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\" role=\"img\">\n", WIDE,
            high, WIDE, high);
    const char *title = arena_printf(a, "Training of %s", p->folder);
    fputs("<title>", f);
    escape_text(f, title);
    fprintf(f, "</title>\n%s<rect width=\"%d\" height=\"%.0f\" class=\"paper\"/>\n", style, WIDE, high);
    svg_text(f, LEFT, 30, "title", svg_fitting(a, title, WIDE - LEFT - RIGHT, 16));
    EACH (const struct point, x, p->points) {
        if (isfinite(x->validation) && (!best || x->validation < best->validation))
            best = x;
    }
    const char *text = arena_printf(a, "step %.0f of %lld: loss %.4f", last->step, (long long)p->steps, last->loss);
    if (best)
        text = arena_printf(a, "%s; lowest validation loss %.4f, after step %.0f", text, best->validation, best->step);
    svg_text(f, LEFT, 54, "said", text);
}

static void put_keys(FILE *f, struct arena *a, const struct curve *training, bool validates)
{
    const char *name = training->steps > 1 ? arena_printf(a, "training, mean of %d steps", training->steps) : "training";
    double x = WIDE - RIGHT - (training->steps > 1 ? 330 : 210);
    x += plot_key(f, x, 54, "training", name);
    if (validates)
        (void)plot_key(f, x, 54, "validation", "validation");
}

static void draw(FILE *f, struct arena *a, const struct train_plot *p)
{
    struct curve training = curve_of(a, p, loss_of, true), validation = curve_of(a, p, validation_of, false),
                 rate = curve_of(a, p, rate_of, true);
    bool rates = rate.least < rate.most;
    double first = p->points.at[0].step, last = p->points.at[p->points.n - 1].step;
    struct panel losses = {.f = f, .left = LEFT, .top = TOP, .wide = WIDE - LEFT - RIGHT, .high = LOSS_HIGH};
    losses.x = axis_of_steps(first, last, X_TICKS);
    losses.y = axis_of_losses(&training, &validation);
    put_head(f, a, p, TOP + LOSS_HIGH + (rates ? GAP + RATE_HIGH : 0) + BOTTOM);
    put_keys(f, a, &training, validation.at.n > 0);
    plot_panel(&losses, losses.y.logarithmic ? "loss, mean of labels (log)" : "loss, mean of labels");
    plot_curve(&losses, &training.at, "training", training.at.n <= DOTS);
    plot_curve(&losses, &validation.at, "validation", validation.at.n <= DOTS);
    struct panel lowest = losses;
    if (rates) {
        lowest.top += LOSS_HIGH + GAP;
        lowest.high = RATE_HIGH;
        lowest.y = axis_linear(0, rate.most, RATE_TICKS);
        plot_panel(&lowest, "learning rate");
        plot_curve(&lowest, &rate.at, "rate", false);
    }
    plot_panel_below(&lowest, "step");
    fputs("</svg>\n", f);
}

void plot_draw(const struct train_plot *p)
{
    struct out out;
    if (!p->path || !p->points.n)
        return;
    struct arena *a = arena_new();
    out_open_whole(a, &out, p->path);
    draw(out.file, a, p);
    (void)out_close(&out);
    arena_free(a);
}
