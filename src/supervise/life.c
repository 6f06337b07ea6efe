/* life: the thread that hears a program: its beats, its last words, and messages for who started it. */
#include "supervise/supervise.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

/* The status, and the sentence of the rank that fails first. */
static void note_failure(struct life *l, struct message_data data)
{
    struct cursor c = {.left = data};
    const int64_t status = cursor_number(&c);
    size_t n = c.left.n < sizeof l->said - 1 ? c.left.n : sizeof l->said - 1;
    l->fails = l->fails > 0 ? l->fails : clock_seconds();
    l->status = l->status ? l->status : (int)status;
    if (c.bad || l->said[0])
        return;
    memcpy(l->said, c.left.at, n);
    l->said[n] = '\0';
    diag_make_printable(l->said);
}

static void note_first_rank(struct life *l, struct message_data data)
{
    struct cursor c = {.left = data};
    const int64_t pid = cursor_number(&c);
    l->pid = !c.bad && pid > 0 && pid <= INT32_MAX ? (int)pid : 0;
}

static void hear(void *life, const struct message *m)
{
    struct life *l = life;
    pthread_mutex_lock(&l->lock);
    if (m->kind == MESSAGE_LOST)
        note_failure(l, m->data);
    else
        l->heard = clock_seconds();
    if (m->kind == MESSAGE_BEAT)
        note_first_rank(l, m->data);
    pthread_mutex_unlock(&l->lock);
    const char *bad = m->kind != MESSAGE_BEAT && m->kind != MESSAGE_LOST ? l->take(l->own, m) : NULL;
    pthread_mutex_lock(&l->lock);
    l->ready = l->ready || (m->kind == MESSAGE_READY && !bad);
    l->bad = l->bad ? l->bad : bad;
    pthread_mutex_unlock(&l->lock);
}

static void pass_on(void *life, struct message_data other)
{
    struct life *l = life;
    l->other(l->own, other);
}

/* good: what came is a message. True: no more is to be taken; behind the end of the program, once nothing comes. */
static bool is_done(struct life *l, bool good, bool came)
{
    pthread_mutex_lock(&l->lock);
    if (!good && !l->bad)
        l->bad = "a message of rank 0 can't be read";
    bool done = l->bad || (l->over && !came);
    pthread_mutex_unlock(&l->lock);
    return done;
}

static void *listen_to(void *life)
{
    enum { PART = 1 << 16, LOOK_EACH = 100 };
    struct life *l = life;
    char *part = arena_alloc(l->arena, PART);
    bool good = true, came;
    do {
        struct pollfd p = {.fd = l->out, .events = POLLIN};
        came = poll(&p, 1, LOOK_EACH) == 1;
        ssize_t n = came ? read(l->out, part, PART) : -1;
        if (n == 0)
            break;
        good = n < 0 || message_take(&l->stream, (struct message_data){part, (size_t)n}, hear, pass_on, l);
    } while (!is_done(l, good, came));
    return NULL;
}

bool life_hear(struct life *l)
{
    l->stream.line.arena = l->arena;
    if (pthread_mutex_init(&l->lock, NULL))
        return false;
    if (pthread_create(&l->thread, NULL, listen_to, l) == 0)
        return true;
    pthread_mutex_destroy(&l->lock);
    return false;
}

struct life_signs life_look(struct life *l)
{
    pthread_mutex_lock(&l->lock);
    struct life_signs s = {.heard = l->heard, .fails = l->fails, .ready = l->ready, .pid = l->pid, .status = l->status};
    s.bad = l->bad;
    s.said = l->said;
    pthread_mutex_unlock(&l->lock);
    return s;
}

bool life_end(struct life *l)
{
    pthread_mutex_lock(&l->lock);
    l->over = true;
    pthread_mutex_unlock(&l->lock);
    (void)pthread_join(l->thread, NULL);
    (void)close(l->out);
    pthread_mutex_destroy(&l->lock);
    return l->ready;
}
