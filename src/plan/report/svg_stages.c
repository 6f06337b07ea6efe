/* svg_stages: a picture of pipeline stages: a row for each, with its ranks and what it receives; then the time at which each works, with as
 * many groups of rows in flight as there are stages. For training, the microbatches of a step by the 1F1B schedule. */
#include "plan/cost/cost.h"
#include "plan/report/report.h"
#include "plan/report/svg_draw.h"

#include <math.h>
#include <string.h>

enum { WIDE = 900, MARGIN = 16, LABEL = 92, HEAD = 52, ROW = 64, BETWEEN = 34, RANKS_DRAWN = 4, STAGES_DRAWN = 32, SLOT = 20, LINE = 16 };
/* The backward pass computes two products for each product of the forward pass. */
#define FORWARD_PART (1.0 / 3)

struct picture {
    FILE *f;
    struct arena *arena;
    const struct stage_plan *plan;
    const struct options *options;
    int stages; /* stages in the picture */
    double y;
};

/* ---- stages ------------------------------------------------------------------------------------------------------------------------- */

static void draw_rank(const struct picture *p, int stage, int rank, double x, double wide)
{
    const struct rank_use *use = &p->plan->made[stage].plan->use[rank];
    svg_rect(p->f, arena_printf(p->arena, "r%d", stage % 4), x, p->y + 8, wide, ROW - 16);
    svg_text(p->f, x + wide / 2, p->y + 28, "name", arena_printf(p->arena, "rank %d", stage * p->options->ranks + rank));
    svg_text(p->f, x + wide / 2, p->y + 44, "share",
             svg_fitting(p->arena,
                         arena_printf(p->arena, "weights %s, all %s", units_bytes(p->arena, (double)use->weights),
                                      units_bytes(p->arena, (double)memory_total(use))),
                         wide, 11));
}

static void draw_stage(const struct picture *p, int stage)
{
    const struct stage_made *made = &p->plan->made[stage];
    int n = p->options->ranks, drawn = n < RANKS_DRAWN ? n : RANKS_DRAWN, more = n > drawn ? 22 : 0;
    double x = MARGIN + LABEL, wide = (WIDE - MARGIN - x - 8 - more) / drawn;
    svg_rect(p->f, "frame", MARGIN, p->y, WIDE - 2 * MARGIN, ROW);
    svg_text(p->f, MARGIN + 10, p->y + 22, "label", arena_printf(p->arena, "stage %d", stage));
    svg_text(p->f, MARGIN + 10, p->y + 38, "small", arena_printf(p->arena, "%d nodes", made->source->nodes.n));
    svg_text(p->f, MARGIN + 10, p->y + 53, "small", units_seconds(p->arena, plan_seconds(made->plan)));
    for (int r = 0; r < drawn; r++)
        draw_rank(p, stage, r, x + r * wide, wide - 8);
    if (more)
        svg_text(p->f, WIDE - MARGIN - more, p->y + ROW / 2.0, "label", "…");
}

/* Draws what the next stage receives, above it. */
static void draw_received(const struct picture *p, int stage)
{
    double bytes = stage_received_bytes(p->plan, stage), x = MARGIN + LABEL + 20;
    fprintf(p->f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"flow\"/>\n", x, p->y + 3, x, p->y + BETWEEN - 3);
    svg_text(p->f, x + 10, p->y + BETWEEN / 2.0 + 4, "small",
             arena_printf(p->arena, "%s from %s to each rank, %s", units_bytes(p->arena, bytes),
                          p->plan->map.g->trained.n ? "other stages" : "stages before",
                          units_seconds(p->arena, stage_receives(p->plan, stage))));
}

/* ---- when each works ---------------------------------------------------------------------------------------------------------------- */

/* The work of a stage on one group of rows or one microbatch. */
struct turn {
    int group;
    bool again; /* the backward pass */
    double from, to;
};
struct times {
    bool trains;
    int stages, groups, n; /* n: turns of a stage */
    struct turn **turn;    /* by stage, in execution order */
};

/* Stage k starts P - k microbatches, then finishes one for each that it starts. */
static void order_training(struct times *t, int k)
{
    int ahead = t->stages - k < t->groups ? t->stages - k : t->groups, begun = 0, done = 0;
    for (int i = 0; i < t->n; i++) {
        bool begins = begun < ahead || (begun < t->groups && begun - done < ahead);
        t->turn[k][i] = (struct turn){.group = begins ? begun : done, .again = !begins};
        begun += begins;
        done += !begins;
    }
}

static const struct turn *turn_of(const struct times *t, int stage, int group, bool again)
{
    for (int i = 0; i < t->n; i++)
        if (t->turn[stage][i].group == group && t->turn[stage][i].again == again)
            return &t->turn[stage][i];
    return NULL;
}

/* When the inputs of a turn are available: -1: not known yet. */
static double ready_at(const struct times *t, int k, const struct turn *turn)
{
    const struct turn *before = NULL;
    if (turn->again)
        before = k + 1 < t->stages ? turn_of(t, k + 1, turn->group, true) : turn_of(t, k, turn->group, false);
    else if (k > 0)
        before = turn_of(t, k - 1, turn->group, false);
    else if (!t->trains && turn->group >= t->stages)
        before = turn_of(t, t->stages - 1, turn->group - t->stages, false); /* its input is the token that this group made before */
    return !before ? 0 : before->to > 0 ? before->to : -1;
}

/* Runs turns as early as possible, in each stage's order. */
static void run_turns(const struct picture *p, struct times *t)
{
    int *next = NEWN(p->arena, int, t->stages);
    for (bool moved = true; moved;) {
        moved = false;
        for (int k = 0; k < t->stages; k++) {
            struct turn *turn = &t->turn[k][next[k]];
            double ready = next[k] < t->n ? ready_at(t, k, turn) : -1,
                   own = plan_seconds(p->plan->made[k].plan) + stage_receives(p->plan, k);
            if (ready < 0)
                continue;
            turn->from = fmax(ready, next[k] ? turn[-1].to : 0);
            turn->to = turn->from + fmax(1e-12, own * (!t->trains ? 1 : turn->again ? 1 - FORWARD_PART : FORWARD_PART));
            next[k]++;
            moved = true;
        }
    }
}

static struct times times_of(const struct picture *p)
{
    struct times t = {.trains = p->plan->map.g->trained.n > 0, .stages = p->stages, .groups = 2 * p->stages};
    t.n = t.trains ? 2 * t.groups : t.groups;
    t.turn = NEWN(p->arena, struct turn *, t.stages);
    for (int k = 0; k < t.stages; k++) {
        t.turn[k] = NEWN(p->arena, struct turn, t.n + 1);
        for (int i = 0; i < t.n; i++)
            t.turn[k][i].group = i;
        if (t.trains)
            order_training(&t, k);
    }
    run_turns(p, &t);
    return t;
}

static void draw_turns(const struct picture *p, const struct times *t, int stage, double x, double wide, double end)
{
    svg_text(p->f, MARGIN + 10, p->y + 14, "small", arena_printf(p->arena, "stage %d", stage));
    svg_rect(p->f, "frame", x, p->y, wide, SLOT);
    for (int i = 0; i < t->n; i++) {
        const struct turn *turn = &t->turn[stage][i];
        int group = t->trains ? turn->group : turn->group % t->stages;
        double from = x + wide * turn->from / end, w = wide * (turn->to - turn->from) / end;
        svg_rect(p->f, arena_printf(p->arena, "r%d%s", group % 4, turn->again ? " soft" : ""), from, p->y, fmax(0.5, w - 1), SLOT);
        if (w > 14)
            svg_text(p->f, from + w / 2, p->y + 14, "share", arena_printf(p->arena, "%d", group));
    }
}

static void draw_times(struct picture *p)
{
    const struct times t = times_of(p);
    double end = 0, x = MARGIN + LABEL;
    for (int k = 0; k < t.stages; k++)
        end = fmax(end, t.turn[k][t.n - 1].to);
    svg_text(p->f, MARGIN, p->y + 14, "label",
             arena_printf(p->arena, t.trains ? "%d microbatches, %s" : "two steps of %d groups of rows, %s", t.trains ? t.groups : t.stages,
                          units_seconds(p->arena, end)));
    p->y += 24;
    for (int k = 0; k < t.stages; k++, p->y += SLOT + 4)
        draw_turns(p, &t, k, x, WIDE - MARGIN - x, end);
    svg_text(p->f, MARGIN, p->y + 12, "small",
             t.trains ? "Time goes to the right. Full: a forward half, drawn as a third of the time; pale: a backward half. Empty: the "
                        "stage waits."
                      : "Time goes to the right; numbers are groups of rows. Empty: the stage waits.");
}

/* Whether to show times: not for a plan that cannot run, nor for too many stages. */
static bool has_times(const struct picture *p)
{
    for (int k = 0; k < p->plan->cut.stages; k++)
        if (p->plan->made[k].plan->missing.list.n)
            return false;
    return p->stages == p->plan->cut.stages;
}

void plan_svg_stages(FILE *f, const struct options *options, const struct stage_plan *plan)
{
    struct picture p = {.f = f, .arena = arena_new(), .plan = plan, .options = options, .y = HEAD};
    p.stages = plan->cut.stages < STAGES_DRAWN ? plan->cut.stages : STAGES_DRAWN;
    bool timed = has_times(&p);
    double high = HEAD + p.stages * (ROW + BETWEEN) + (timed ? 24 + p.stages * (SLOT + 4) + 20 : LINE) + MARGIN;
    svg_begin(f, WIDE, high);
    svg_text(f, MARGIN, 30, "title",
             svg_fitting(p.arena,
                         arena_printf(p.arena, "%s on %d ranks: %d stages of %d", options->model, plan->cut.stages * options->ranks,
                                      plan->cut.stages, options->ranks),
                         WIDE - 2 * MARGIN, 16));
    for (int k = 0; k < p.stages; k++) {
        draw_stage(&p, k);
        p.y += ROW;
        if (k + 1 < p.stages)
            draw_received(&p, k + 1);
        p.y += BETWEEN;
    }
    if (timed)
        draw_times(&p);
    else if (p.stages < plan->cut.stages)
        svg_text(f, MARGIN, p.y, "small", arena_printf(p.arena, "and %d more stages", plan->cut.stages - p.stages));
    fputs("</svg>\n", f);
    arena_free(p.arena);
}
