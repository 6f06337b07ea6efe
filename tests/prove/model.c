/* model: what all trials of a model share: its canonical graph, sets of inputs, and the outputs of the whole run. */
#ifdef HAVE_CONFIG_H
#include "config.h"

#include "plan/input/input.h"
#include "plan/plan.h"
#endif
#include "tests/prove/private.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- temporary files ---------------------------------------------------------------------------------------------------------- */

static const char *new_folder(struct arena *a)
{
    const char *given = getenv("TMPDIR"), *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : given ? given : "/tmp";
    char *folder = arena_printf(a, "%s/tpc-prove-XXXXXX", parent);
    if (!mkdtemp(folder))
        fail("%s: the folder cannot be made: %s", folder, strerror(errno));
    return folder;
}

static int drop(const char *path, const struct stat *s, int kind, struct FTW *f)
{
    (void)s;
    (void)kind;
    (void)f;
    return remove(path);
}

static void drop_folder(const char *folder)
{
    (void)nftw(folder, drop, 8, FTW_DEPTH | FTW_PHYS);
}

/* Children, who inherit it, may fail and leave the folder to those who come after them. */
static void drop_own(void *data, int status)
{
    const struct prove *p = data;
    (void)status;
    if (p->owner == getpid())
        drop_folder(p->folder);
}

/* ---- the whole run -------------------------------------------------------------------------------------------------------------- */

/* Small sizes that differ for symbols that none is given for. */
static void choose_sizes(struct arena *a, const struct graph *g, const struct bindings *given, struct bindings *dims)
{
    static const int64_t size[] = {3, 5, 2, 7, 4, 6};
    struct bindings all = {0};
    int n = 0;
    for (int i = 0; given && i < given->list.n; i++)
        bindings_set(a, &all, given->list.at[i].name, given->list.at[i].value);
    for (int i = 0; i < g->inputs.n; i++)
        for (int d = 0; d < g->inputs.at[i]->type.rank; d++) {
            const struct dim *s = g->inputs.at[i]->type.dim[d];
            if (s->kind != DIM_SYM)
                continue;
            if (!bindings_get(&all, s->name))
                bindings_set(a, &all, s->name, size[n++ % 6]);
            bindings_set(a, dims, s->name, *bindings_get(&all, s->name));
        }
}

static void run_whole(struct prove *p, struct session *s, struct graph *g, struct tensor *inputs)
{
    struct arena *a = p->arena;
    struct input_set set = {.in = inputs, .want = NEWN(a, struct tensor, g->outputs.n)};
    struct tensor *pieces = NEWN(a, struct tensor, g->outputs.n);
    session_run(s, set.in, pieces);
    for (int i = 0; i < g->outputs.n; i++)
        set.want[i] = session_gather(s, a, i, &pieces[i]);
    const struct bindings *b = session_bindings(s);
    for (int i = 0; i < b->list.n; i++)
        bindings_set(a, &set.sizes, b->list.at[i].name, b->list.at[i].value);
    VEC_PUSH(a, &p->sets, set);
}

/* The source of the sets: given inputs, else folders next to the model (not for a training step), else the types. */
struct given {
    bool train;
    const struct bindings *sizes;
    int nset;
    struct tensor *const *inputs;
};

static void run_sets(struct prove *p, struct comm *self, struct session *s, struct graph *g, const struct given *given)
{
    const char *beside = path_dir(p->arena, p->path);
    for (int k = 0; k < given->nset; k++)
        run_whole(p, s, g, given->inputs[k]);
    bool sized = given->sizes && given->sizes->list.n > 0;
    for (int k = 0; given->nset == 0 && !given->train && !sized; k++) {
        struct job_options data = {.test_data = path_join(p->arena, beside, arena_printf(p->arena, "test_data_set_%d", k))};
        if (!path_is_folder(data.test_data))
            break;
        run_whole(p, s, g, job_inputs(p->arena, self, s, g, &data));
    }
    struct job_options made = {.random = true, .seed = 1};
    if (p->sets.n > 0)
        return;
    choose_sizes(p->arena, g, given->sizes, &made.dims);
    run_whole(p, s, g, job_inputs(p->arena, self, s, g, &made));
}

static void note_ends(struct prove *p, const struct graph *g)
{
    p->nin = g->inputs.n;
    p->nout = g->outputs.n;
    p->in_name = NEWN(p->arena, const char *, p->nin);
    p->out_name = NEWN(p->arena, const char *, p->nout);
    for (int i = 0; i < p->nin; i++)
        p->in_name[i] = arena_strdup(p->arena, g->inputs.at[i]->name);
    for (int i = 0; i < p->nout; i++)
        p->out_name[i] = arena_strdup(p->arena, g->outputs.at[i]->name);
}

/* What the first set tells of sequences. */
static struct size_source first_set(struct prove *p)
{
    struct job_options *data = NEW(p->arena, struct job_options);
    data->test_data = path_join(p->arena, path_dir(p->arena, p->path), "test_data_set_0");
    return (struct size_source){.held = path_is_folder(data->test_data) ? job_input_held : NULL, .data = data};
}

static void run_model(struct prove *p, const struct given *given)
{
    const struct job_options o = {.rtol = -1, .atol = -1, .rel = -1};
    struct comm *self = comm_self();
    const struct size_source sizes = first_set(p);
    struct graph *g = given->train ? graph_copy(p->arena, p->compile.graph) : job_load_model(p->arena, p->path, NULL, &sizes, &o);
    job_fuse(g, self, &o);
    struct session *s = session_new(g, self, (struct session_options){.threads = 1});
    note_ends(p, g);
    p->rel = compare_tolerance(g, &o).rel;
    run_sets(p, self, s, g, given);
    session_free(s);
    self->free(self);
}

/* ---- opening ---------------------------------------------------------------------------------------------------------------------- */

static void compile_front(struct prove *p, bool train, const struct bindings *sizes)
{
    struct options *options = NEW(p->arena, struct options);
    struct written ignored;
    options->model = p->path;
    options->machine = machine_reference();
    options->train = train ? "*" : NULL;
    if (train && sizes)
        options->dims = *sizes;
    p->digest = digest_file(p->arena, p->path);
    if (!digest_file_get(p->digest, &ignored))
        fail("%s: cannot be read", p->path);
    p->compile = (struct compile){.arena = p->arena, .options = options, .plan = &p->plan, .model_path = p->path, .sizes = first_set(p)};
    pass_run(&p->compile, "load", "workloads", NULL);
}

static struct prove *open_in(struct arena *a, const char *folder, const char *path, const struct given *given)
{
    struct prove *p = NEW(a, struct prove);
    p->arena = a;
    p->folder = folder;
    p->path = path;
    p->owner = getpid();
    diag_on_failure(drop_own, p);
    if (given->train) { /* the step is what the front passes make */
        compile_front(p, true, given->sizes);
        run_model(p, given);
    } else {
        run_model(p, given);
        compile_front(p, false, NULL);
    }
    return p;
}

struct prove *prove_open(struct arena *a, const char *path, const struct bindings *sizes)
{
    return open_in(a, new_folder(a), path, &(struct given){.sizes = sizes});
}

struct prove *prove_open_training(struct arena *a, const char *path, const struct bindings *sizes)
{
    return open_in(a, new_folder(a), path, &(struct given){.train = true, .sizes = sizes});
}

static struct prove *open_text(struct arena *a, const char *text, const struct given *given)
{
    const char *folder = new_folder(a), *path = path_join(a, folder, "model.txt");
    out_write_text(path, text);
    return open_in(a, folder, path, given);
}

struct prove *prove_open_text(struct arena *a, const char *text, const struct bindings *sizes)
{
    return open_text(a, text, &(struct given){.sizes = sizes});
}

struct prove *prove_open_given(struct arena *a, const char *text, int nset, struct tensor *const *inputs)
{
    return open_text(a, text, &(struct given){.nset = nset, .inputs = inputs});
}

void prove_close(struct prove *p)
{
    diag_forget(drop_own, p);
    drop_folder(p->folder);
}

const char *prove_path(const struct prove *p)
{
    return p->path;
}

int prove_sets(const struct prove *p)
{
    return p->sets.n;
}

const struct graph *prove_graph(const struct prove *p)
{
    return p->compile.graph;
}

const struct bindings *prove_sizes(const struct prove *p, int set)
{
    return &p->sets.at[set].sizes;
}
