/* shardings: multi-device annotations in the text form (grammar: text.h). They are data: nodes and tensors are named, not looked up. */
#include "ir/configuration.h"
#include "ir/text/text.h"

#include <inttypes.h>
#include <string.h>

static const char *const hows[] = {[SHARDED_READS] = "reads", [SHARDED_MAKES] = "makes", [SHARDED_KEEPS] = "keeps"};

/* ---- printing ---------------------------------------------------------------------------------------------------------- */

static void print_ints(FILE *to, int n, const int64_t *at)
{
    fputs(" [", to);
    for (int i = 0; i < n; i++)
        fprintf(to, "%s%" PRId64, i ? ", " : "", at[i]);
    fputc(']', to);
}

static void print_part(FILE *to, const struct shards *part)
{
    if (part->symbol)
        lex_put_name(to, part->symbol);
    else if (part->sized)
        fprintf(to, "%" PRId64, part->size);
    fprintf(to, ":%" PRId64, part->count);
}

static void print_axis(FILE *to, const struct sharded_axis *a)
{
    fprintf(to, " axis %" PRId64 " [", a->axis);
    for (int i = 0; i < a->n; i++) {
        fputs(i ? ", " : "", to);
        print_part(to, &a->part[i]);
    }
    fputc(']', to);
}

static void print_places(FILE *to, const struct sharding *s)
{
    fputs(" on", to);
    print_ints(to, s->ndevice, s->device);
    for (int i = 0; i < s->ngroup; i++) {
        fprintf(to, " group %" PRId64, s->group[i].key);
        print_ints(to, s->group[i].n, s->group[i].device);
    }
    for (int i = 0; i < s->naxis; i++)
        print_axis(to, &s->axis[i]);
}

static void print_sharding(FILE *to, int indent, const struct sharding *s)
{
    fprintf(to, "%*sshard ", indent, "");
    lex_put_name(to, s->node);
    fprintf(to, " %s ", hows[s->how]);
    lex_put_name(to, s->tensor);
    if (s->how != SHARDED_KEEPS)
        print_places(to, s);
    fputc('\n', to);
}

static void print_configuration(FILE *to, int indent, const struct configuration *c)
{
    fprintf(to, "%*sconfiguration ", indent, "");
    lex_put_name(to, c->name);
    fprintf(to, " %" PRId64 "\n", c->devices);
    for (int i = 0; i < c->shardings.n; i++)
        print_sharding(to, indent, &c->shardings.at[i]);
    for (int i = 0; i < c->stages.n; i++) {
        fprintf(to, "%*sstage ", indent, "");
        lex_put_name(to, c->stages.at[i].node);
        fprintf(to, " %" PRId64 "\n", c->stages.at[i].stage);
    }
}

void shardings_print(const struct graph *g, FILE *to, int indent)
{
    for (int i = 0; i < g->configurations.n; i++)
        print_configuration(to, indent, g->configurations.at[i]);
}

/* ---- parsing ----------------------------------------------------------------------------------------------------------- */

struct ints {
    VEC(int64_t) list;
};

static struct ints parse_int_list(struct lexer *l)
{
    struct ints out = {{NULL, 0, 0}};
    lex_expect(l, "[");
    while (!lex_accept(l, "]")) {
        if (out.list.n)
            lex_expect(l, ",");
        VEC_PUSH(l->arena, &out.list, lex_int(l, INT64_MIN, INT64_MAX));
    }
    return out;
}

static struct shards parse_part(struct lexer *l)
{
    struct shards part = {.sized = false};
    lex_space(l);
    part.sized = *l->at == '-' || (*l->at >= '0' && *l->at <= '9');
    if (part.sized)
        part.size = lex_int(l, INT64_MIN, INT64_MAX);
    else if (*l->at != ':')
        part.symbol = lex_name(l);
    lex_expect(l, ":");
    part.count = lex_int(l, INT64_MIN, INT64_MAX);
    return part;
}

static struct sharded_axis parse_axis(struct lexer *l)
{
    VEC(struct shards) parts = {NULL, 0, 0};
    int64_t axis = lex_int(l, INT64_MIN, INT64_MAX);
    lex_expect(l, "[");
    while (!lex_accept(l, "]")) {
        if (parts.n)
            lex_expect(l, ",");
        VEC_PUSH(l->arena, &parts, parse_part(l));
    }
    return (struct sharded_axis){axis, parts.n, parts.at};
}

static struct device_group parse_group(struct lexer *l)
{
    int64_t key = lex_int(l, INT64_MIN, INT64_MAX);
    struct ints of = parse_int_list(l);
    return (struct device_group){key, of.list.n, of.list.at};
}

static enum sharded parse_how(struct lexer *l)
{
    for (int i = SHARDED_READS; i <= SHARDED_KEEPS; i++)
        if (lex_accept_word(l, hows[i]))
            return (enum sharded)i;
    lex_fail(l, "expected reads, makes or keeps, found '%.12s'", l->at);
}

static struct configuration *last_configuration(struct lexer *l, struct graph *g)
{
    if (!g->configurations.n)
        lex_fail(l, "expected a configuration before it");
    return g->configurations.at[g->configurations.n - 1];
}

void shardings_parse_configuration(struct lexer *l, struct graph *g)
{
    struct configuration *c = NEW(g->arena, struct configuration);
    *c = (struct configuration){.name = lex_name(l)};
    if (graph_configuration(g, c->name))
        lex_fail(l, "configuration '%s' is there already", c->name);
    c->devices = lex_int(l, 1, INT32_MAX);
    VEC_PUSH(g->arena, &g->configurations, c);
}

static void parse_places(struct lexer *l, struct sharding *s)
{
    VEC(struct device_group) groups = {NULL, 0, 0};
    VEC(struct sharded_axis) axes = {NULL, 0, 0};
    if (!lex_accept_word(l, "on"))
        lex_fail(l, "expected 'on'");
    struct ints devices = parse_int_list(l);
    while (lex_accept_word(l, "group"))
        VEC_PUSH(l->arena, &groups, parse_group(l));
    while (lex_accept_word(l, "axis"))
        VEC_PUSH(l->arena, &axes, parse_axis(l));
    s->ndevice = devices.list.n;
    s->device = devices.list.at;
    s->ngroup = groups.n;
    s->group = groups.at;
    s->naxis = axes.n;
    s->axis = axes.at;
}

void shardings_parse_shard(struct lexer *l, struct graph *g)
{
    struct configuration *c = last_configuration(l, g);
    struct sharding s = {.node = lex_name(l)};
    s.how = parse_how(l);
    s.tensor = lex_name(l);
    if (s.how != SHARDED_KEEPS)
        parse_places(l, &s);
    VEC_PUSH(g->arena, &c->shardings, s);
}

void shardings_parse_stage(struct lexer *l, struct graph *g)
{
    struct configuration *c = last_configuration(l, g);
    struct pipeline_stage s = {.node = lex_name(l)};
    s.stage = lex_int(l, INT32_MIN, INT32_MAX);
    VEC_PUSH(g->arena, &c->stages, s);
}
