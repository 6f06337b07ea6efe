/* write_behind: a thread that writes a file while another one makes the next pieces. */
#include "base/base.h"

#include <errno.h>
#include <pthread.h>

enum { PIECES = 4 };

struct piece {
    const uint8_t *from;
    size_t bytes;
};
struct write_behind {
    FILE *file;
    uint8_t *room; /* a buffer of PIECES pieces */
    size_t most;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t more, less;
    struct piece piece[PIECES]; /* a ring */
    unsigned put, written;
    bool ends;
    int error; /* errno of the failed write, after which no other begins */
    pthread_t thread;
    struct scope_item *kept;
};

/* The next piece; false: no more. */
static bool take_piece(struct write_behind *w, struct piece *p)
{
    pthread_mutex_lock(&w->lock);
    while (w->written == w->put && !w->ends)
        pthread_cond_wait(&w->more, &w->lock);
    bool taken = w->written != w->put;
    *p = w->piece[w->written % PIECES];
    pthread_mutex_unlock(&w->lock);
    return taken;
}

static void piece_done(struct write_behind *w, int error)
{
    pthread_mutex_lock(&w->lock);
    w->error = error;
    w->written = error ? w->put : w->written + 1;
    pthread_cond_signal(&w->less);
    pthread_mutex_unlock(&w->lock);
}

static void *write_pieces(void *write_behind)
{
    struct write_behind *w = write_behind;
    struct piece p;
    while (take_piece(w, &p))
        piece_done(w, fwrite(p.from, 1, p.bytes, w->file) == p.bytes ? 0 : errno);
    return NULL;
}

static void stop(void *write_behind)
{
    struct write_behind *w = write_behind;
    pthread_mutex_lock(&w->lock);
    w->ends = true;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    require(pthread_join(w->thread, NULL) == 0);
}

/* Waits until at most this many pieces are unwritten. */
static int wait_until(struct write_behind *w, unsigned left)
{
    pthread_mutex_lock(&w->lock);
    while (w->put - w->written > left)
        pthread_cond_wait(&w->less, &w->lock);
    int error = w->error;
    pthread_mutex_unlock(&w->lock);
    return error;
}

struct write_behind *write_behind_begin(struct arena *a, FILE *file, size_t most)
{
    struct write_behind *w = NEW(a, struct write_behind);
    *w = (struct write_behind){.file = file, .room = arena_array(a, PIECES, most), .most = most};
    require(pthread_mutex_init(&w->lock, NULL) == 0 && pthread_cond_init(&w->more, NULL) == 0 && pthread_cond_init(&w->less, NULL) == 0);
    if (pthread_create(&w->thread, NULL, write_pieces, w) != 0)
        return NULL;
    w->kept = scope_keep(stop, w);
    return w;
}

int write_behind_put(struct write_behind *w, const uint8_t *from, size_t bytes)
{
    pthread_mutex_lock(&w->lock);
    w->piece[w->put % PIECES] = (struct piece){from, bytes};
    w->put += !w->error;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    return wait_until(w, PIECES - 1);
}

uint8_t *write_behind_room(const struct write_behind *w)
{
    return w->room + w->put % PIECES * w->most;
}

int write_behind_settle(struct write_behind *w)
{
    return wait_until(w, 0);
}

int write_behind_end(struct write_behind *w)
{
    scope_forget(w->kept);
    stop(w);
    return w->error;
}
