/* stage: one graph of a decode loop, loaded, with its given inputs. */
#include "decode/stage/stage.h"

void stage_load(struct arena *a, struct comm *comm, const struct job_options *o, struct stage *s)
{
    s->graph = job_load(a, comm, s->path, o);
    s->ends = job_model_ends(a, s->graph);
    s->pipeline = pipeline_form(a, comm, s->graph);
    s->comm = s->pipeline ? pipeline_stage(s->pipeline) : comm;
    int n = s->graph->inputs.n + 1; /* last_position.c adds one */
    s->role = NEWN(a, enum role, n);
    s->given = NEWN(a, struct tensor, n);
    s->in = NEWN(a, struct tensor, n);
    s->out = NEWN(a, struct tensor, s->graph->outputs.n);
}

/* A decoder and its steps, as separate graphs, have nearly the same weights. */
static void share_weights(struct arena *a, const struct stage *stage, int k)
{
    struct graph **earlier = NEWN(a, struct graph *, k);
    for (int i = 0; i < k; i++)
        earlier[i] = stage[i].graph;
    int n = constant_share_weights(stage[k].graph, k, earlier);
    explain("%s: shares %d weights with earlier graphs", stage[k].path, n);
}

void stage_free(struct stage *s)
{
    session_free(s->session);
    pipeline_free(s->pipeline);
}

bool stage_any(const struct stage *s, struct comm *all, bool own)
{
    uint8_t mine = own, any = own;
    all->id = 0;
    all->name = "what stages have";
    if (s->pipeline)
        all->allreduce(all, &mine, &any, 1, DT_U8, RED_MAX);
    return any;
}

const char *stage_first_text(struct arena *a, const struct stage *s, struct comm *all, const char *own)
{
    int64_t *bytes, at = 0;
    const char *texts = s->pipeline ? comm_gather_texts(all, a, "what stages say", own, &bytes) : NULL;
    for (int r = 0; texts && r < all->size; at += bytes[r++])
        if (bytes[r])
            return arena_strndup(a, texts + at, (size_t)bytes[r]);
    return own;
}

void stage_fuse(struct arena *a, const struct job_options *o, struct stage *s)
{
    if (!o->output && !o->deterministic)
        last_position_only(a, s);
    job_fuse(s->graph, s->comm, o);
}

void stage_prepare(struct arena *a, struct comm *all, const struct job_options *o, int threads, struct stage *stage, int k)
{
    struct stage *s = &stage[k];
    struct session_options own = {.threads = threads,
                                  .keep_state = true,
                                  .pipeline = s->pipeline,
                                  .verify = o->verify,
                                  .beside = k > 0 ? stage[0].session : NULL,
                                  .deterministic = o->deterministic,
                                  .narrow = o->fast,
                                  .wire = o->wire,
                                  .force = o->force,
                                  .profile = o->profile || o->trace};
    if (k > 0)
        share_weights(a, stage, k);
    stage_fuse(a, o, s);
    job_check_memory(all, s->graph, o);
    s->session = session_new(s->graph, s->comm, own);
}

int64_t stage_cache_bytes(const struct stage *s, int64_t rows, int64_t columns)
{
    struct arena *tmp = arena_new();
    struct bindings dims = {0};
    int tokens = decode_find_input(s, ROLE_TOKENS);
    const struct type *t = tokens < 0 ? NULL : session_input_type(s->session, tokens);
    if (t && t->rank > 1 && t->dim[s->positions_lead ? 1 : 0]->kind == DIM_SYM)
        bindings_set(tmp, &dims, t->dim[s->positions_lead ? 1 : 0]->name, rows);
    int64_t bytes = session_state_need(s->session, &dims, columns);
    arena_free(tmp);
    return bytes;
}

void stage_check_cache(struct comm *group, struct comm *all, const struct job_options *o, const struct stage *s, struct cache_need need)
{
    need.bytes = stage_cache_bytes(s, need.rows, need.tokens);
    job_check_cache(group, all, s->graph, o, &need);
}

int64_t stage_room_left(const struct comm *all, const struct stage *s, int64_t rows, int64_t columns)
{
    int64_t room = room_left(all), caches = stage_cache_bytes(s, rows, columns);
    return room > caches ? room - caches : 0;
}

void stage_place_given(struct arena *a, struct stage *s)
{
    for (int i = 0; i < s->graph->inputs.n; i++) {
        const char *name = s->graph->inputs.at[i]->name;
        if (s->role[i] == ROLE_CONSTANT && !s->given[i].data)
            fail_usage("input '%s' (%s) of %s is not given: --input %s=FILE", name, type_str(a, session_input_type(s->session, i)), s->path,
                       name);
        if (s->role[i] == ROLE_CONSTANT || s->role[i] == ROLE_STATE)
            s->in[i] = s->given[i];
    }
}

void stage_get_ready(struct arena *a, struct stage *stage, int k, const struct history *h)
{
    chain_take(a, stage, k);
    stage_place_given(a, &stage[k]);
    if (h)
        history_reserve(a, h, &stage[k]);
}

void stage_run(struct stage *s, const struct history *h, int64_t fed)
{
    if (h)
        history_feed(h, s->keeps ? fed : 0, s);
    session_run(s->session, s->in, s->out);
    for (int i = 0; i < s->graph->inputs.n; i++)
        if (s->role[i] == ROLE_STATE)
            s->in[i].data = NULL;
}
