/* test_stages.c: cuts of random graphs at random prices against all cuts, tried one by one; what a cut may not part; the graph of a stage.
 */
#include "ir/text/text.h"
#include "op/op.h"
#include "plan/stages/stages.h"
#include "tests/unit/main.h"

#include <math.h>
#include <string.h>

static struct graph *parse(struct arena *a, const char *text)
{
    return graph_parse(a, alg_new(a), text, "test", op_find);
}

/* ---- cuts --------------------------------------------------------------------------------------------------------------------------- */

enum { NODES = 7 };
static uint64_t drawn;
static int draw(int n)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (int)((drawn >> 33) % (uint64_t)n);
}

/* Each node adds two of what is before it; some read one of three weights. */
static struct graph *random_graph(struct arena *a)
{
    const char *text = "graph g {\n opset 23\n input v0: f32[4]\n";
    for (int i = 0; i < 3; i++)
        text = arena_printf(a, "%s const w%d: f32[4] = [1, 2, 3, %d] origin w%d\n", text, i, i, i);
    for (int i = 1; i <= NODES; i++)
        text = arena_printf(a, "%s node n%d: v%d: ? = %s\n", text, i, i,
                            draw(2) ? arena_printf(a, "Add(v%d, v%d)", draw(i), draw(i))
                                    : arena_printf(a, "Mul(v%d, w%d)", draw(i), draw(3)));
    return parse(a, arena_printf(a, "%s output v%d\n output v1\n}", text, NODES));
}

struct cost {
    double slowest, bytes, held;
};

static bool in_stage(const int *first, int k, int node)
{
    return node >= first[k] && node < first[k + 1];
}

/* What the stage reads, each value once. */
static struct cost cost_of_stage(const struct graph *g, const struct stage_prices *p, const int *first, int k)
{
    struct cost c = {0, 0, 0};
    for (int i = first[k]; i < first[k + 1]; i++)
        c.slowest += p->node[i] * (p->slower ? p->slower[k] : 1);
    for (int v = 0; v < g->values.n; v++) {
        const struct value *value = g->values.at[v];
        bool read = false, made = false;
        for (int i = 0; i < g->nodes.n; i++) {
            made = made || (value->producer == g->nodes.at[i] && i < first[k]);
            for (int o = 0; o < g->nodes.at[i]->nin; o++)
                read = read || (g->nodes.at[i]->in[o] == value && in_stage(first, k, i));
        }
        c.held += read && value->constant ? p->bytes[v] : 0;
        if (!read || !made)
            continue;
        c.slowest += p->crossing[v] + (c.bytes > 0 ? 0 : p->message);
        c.bytes += p->bytes[v];
    }
    return c;
}

static struct cost cost_of(const struct graph *g, const struct stage_prices *p, const int *first, int stages)
{
    struct cost all = {0, 0, 0};
    for (int k = 0; k < stages; k++) {
        struct cost c = cost_of_stage(g, p, first, k);
        all.slowest = fmax(all.slowest, c.slowest);
        all.bytes += c.bytes;
        all.held = fmax(all.held, c.held / (p->room ? p->room[k] : 1));
    }
    return all;
}

/* The least cost of a part over all cuts that begin with these and keep the limits. */
static double least(const struct graph *g, const struct stage_prices *p, const bool *cut, int *first, int k, int stages, double slowest,
                    double bytes, int part)
{
    if (k == stages) {
        first[stages] = g->nodes.n;
        struct cost c = cost_of(g, p, first, stages);
        if (c.slowest > slowest || c.bytes > bytes || (p->room && c.held > 1))
            return INFINITY;
        return part == 0 ? c.slowest : part == 1 ? c.bytes : c.held;
    }
    double best = INFINITY;
    for (int at = first[k - 1]; at <= g->nodes.n; at++)
        if (at == 0 || at == g->nodes.n || cut[at]) {
            first[k] = at;
            best = fmin(best, least(g, p, cut, first, k + 1, stages, slowest, bytes, part));
        }
    return best;
}

/* The fractions of memory that stages use are exact: limits are powers of two. */
enum { WIDE = 1024 }; /* this multiple of memory is never exceeded */

static double least_part(const struct graph *g, struct stage_prices p, const double *wide, const bool *cut, int stages)
{
    int first[8] = {0};
    p.room = wide;
    return WIDE * least(g, &p, cut, first, 1, stages, INFINITY, INFINITY, 2);
}

START_TEST(cuts_are_best)
{
    struct arena *a = arena_new();
    drawn = (uint64_t)_i + 1;
    const struct graph *g = random_graph(a);
    double node[NODES + 1], crossing[64] = {0}, bytes[64] = {0}, held[64] = {0};
    ck_assert_int_lt(g->values.n, 64);
    for (int i = 0; i < NODES; i++)
        node[i] = 64 * draw(4);
    for (int i = 0; i < g->values.n; i++) {
        bytes[i] = 1 + draw(8);
        crossing[i] = draw(3) ? 0 : bytes[i];
        held[i] = g->values.at[i]->constant ? bytes[i] : 0;
    }
    double slower[4], room[4], wide[4];
    for (int k = 0; k < 4; k++) {
        slower[k] = 1 << draw(3);
        room[k] = 1 << draw(4);
        wide[k] = WIDE * room[k];
    }
    const struct stage_prices given = {node, crossing, _i % 3, bytes, held, _i % 5 ? slower : NULL, _i % 2 ? room : NULL};
    struct stage_map m = stage_map_of(a, g);
    stage_map_join(&m, draw(NODES), draw(NODES));
    for (int stages = 1; stages <= 4; stages++) {
        struct stage_cut cut = stage_cut_find(a, &m, &given, stages);
        struct stage_prices p = given;
        ck_assert(!p.room || stage_cut_least_part(&m, &p, stages) == least_part(g, given, wide, m.cut, stages));
        int first[8] = {0};
        if (isinf(least(g, &p, m.cut, first, 1, stages, INFINITY, INFINITY, 0)))
            p.room = wide; /* no cut keeps it */
        struct cost found = cost_of(g, &p, cut.first, stages);
        double slowest = least(g, &p, m.cut, first, 1, stages, INFINITY, INFINITY, 0), limit = slowest * (1 + STAGE_NEAR);
        double crosses = least(g, &p, m.cut, first, 1, stages, limit, INFINITY, 1);
        ck_assert_msg(found.slowest <= limit, "seed %d, %d stages: slowest %g, least %g", _i, stages, found.slowest, slowest);
        ck_assert_msg(found.bytes == crosses && cut.bytes == crosses, "seed %d, %d stages: %g bytes, least %g", _i, stages, found.bytes,
                      crosses);
        ck_assert(found.held == least(g, &p, m.cut, first, 1, stages, limit, crosses, 2));
        for (int k = 1; k < stages; k++)
            ck_assert(cut.first[k] == 0 || cut.first[k] == NODES || m.cut[cut.first[k]]);
    }
    arena_free(a);
}
END_TEST

/* ---- what stays together ------------------------------------------------------------------------------------------------------------ */

START_TEST(state_stays)
{
    struct arena *a = arena_new();
    const struct graph *g = parse(a,
                                  "graph g {\n opset 23\n dim P >= 0\n input x: f32[1, 4]\n input past: f32[P, 4]\n"
                                  " node a: a: f32[1, 4] = Relu(x)\n node b: b: f32[P + 1, 4] = Concat(past, a) {axis = 0}\n"
                                  " node c: c: f32[P + 1, 4] = Relu(b)\n node d: d: f32[P + 1, 4] = Relu(c)\n"
                                  " output c\n output d\n state past -> c dim 0\n}");
    const struct stage_map m = stage_map_of(a, g);
    ck_assert(g->states.n == 1 && m.cut[1] && !m.cut[2] && m.cut[3]);
    arena_free(a);
}
END_TEST

/* w2 is made of a weight, and n of nothing: each stage that reads them makes them. A random number is drawn once. */
START_TEST(copies)
{
    struct arena *a = arena_new();
    const struct graph *g = parse(a,
                                  "graph g {\n opset 23\n dim B >= 1\n input x: f32[B]\n const w: f32[1] = [1] origin w\n"
                                  " node w2: w2: f32[1] = Neg(w)\n node r: r: f32[1] = RandomNormal() {shape = [1]}\n"
                                  " node a: a: f32[B] = Add(x, w2)\n node b: b: f32[B] = Add(a, r)\n node c: c: f32[B] = Mul(b, w2)\n"
                                  " output c\n output w2\n}");
    const struct stage_map m = stage_map_of(a, g);
    int first[] = {0, 3, 4, 5};
    const struct stage_cut cut = {.stages = 3, .first = first, .copied = m.copied};
    const int nodes[] = {3, 1, 2}, inputs[] = {1, 3, 2}, outputs[] = {3, 1, 1};
    ck_assert(m.copied[0] && !m.copied[1] && !m.copied[2]);
    for (int k = 0; k < 3; k++) {
        const struct graph *s = stage_graph(a, &m, &cut, k);
        ck_assert_msg(s->nodes.n == nodes[k] && s->inputs.n == inputs[k] && s->outputs.n == outputs[k],
                      "stage %d: %d nodes, %d inputs, %d outputs", k, s->nodes.n, s->inputs.n, s->outputs.n);
        graph_verify(s, "stage_graph");
    }
    const int *to;
    const struct stage_plan plan = {.map = m, .cut = cut};
    ck_assert(stage_sender(&plan, "r") == 0 && stage_sender(&plan, "b") == 1 && stage_sender(&plan, "x") == -1);
    ck_assert(stage_readers(a, &plan, "r", &to) == 1 && to[0] == 1);
    ck_assert(stage_readers(a, &plan, "c", &to) == 0 && stage_readers(a, &plan, "w2", &to) == 0);
    arena_free(a);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stages");
    TCase *t = unit_case(suite, "stages", NULL, NULL);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, cuts_are_best, 0, 200);
    tcase_add_test(t, state_stays);
    tcase_add_test(t, copies);
    return unit_run(suite);
}
