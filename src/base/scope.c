/* scope: work of a library, in a program that continues when it fails.
 *
 * A failure leaves the work by longjmp, which releases nothing on the way. So code that takes memory, files or threads registers them with
 * scope_keep, and the scope releases what is left at its end, newest first. Several threads may be in one scope: the first failure counts,
 * and the others leave as soon as they wait for each other (scope_look). Hooks of diag_on_failure see stacks that are still alive: they run
 * before the jump. */
#include "base/base.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SENTENCE = 4096 };

struct scope_item {
    struct scope_item *next, *prev;
    struct scope *of;
    void (*drop)(void *);
    void *data;
};
struct scope {
    pthread_mutex_t lock;
    struct scope_item items; /* a ring */
    struct diag_voice voice;
    struct diag_hooks hooks;
    atomic_bool failed;
    char sentence[MAX_SENTENCE];
    int status;
    void (*listener)(void *);
    void *heard_by;
    void *strings;
};
static _Thread_local struct scope *current;
static void *strings_of_program;

struct scope *scope_new(void)
{
    struct scope *s = calloc(1, sizeof *s);
    if (!s || pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s);
        return NULL;
    }
    s->items.next = s->items.prev = &s->items;
    s->voice = (struct diag_voice){"tpc", -1};
    return s;
}

static void unlink_item(struct scope_item *i)
{
    i->next->prev = i->prev;
    i->prev->next = i->next;
}

void scope_free(struct scope *s)
{
    if (!s)
        return;
    struct scope *outer = scope_swap(NULL);
    while (s->items.next != &s->items) {
        struct scope_item *i = s->items.next;
        unlink_item(i);
        i->drop(i->data);
        free(i);
    }
    (void)scope_swap(outer);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

struct scope *scope_current(void)
{
    return current;
}

struct scope *scope_swap(struct scope *to)
{
    struct scope *was = current;
    current = to;
    return was;
}

void **scope_strings(void)
{
    return current ? &current->strings : &strings_of_program;
}

struct diag_voice *scope_voice(struct scope *s)
{
    return &s->voice;
}

struct diag_hooks *scope_hooks(struct scope *s)
{
    return &s->hooks;
}

struct scope_item *scope_keep(void (*drop)(void *), void *data)
{
    struct scope *s = current;
    struct scope_item *i = s ? malloc(sizeof *i) : NULL;
    if (!s)
        return NULL;
    if (!i) {
        drop(data);
        fail("out of memory: expected %zu more bytes, found none", sizeof *i);
    }
    pthread_mutex_lock(&s->lock);
    *i = (struct scope_item){s->items.next, &s->items, s, drop, data};
    i->next->prev = i;
    s->items.next = i;
    pthread_mutex_unlock(&s->lock);
    return i;
}

void scope_forget(struct scope_item *i)
{
    if (!i)
        return;
    pthread_mutex_lock(&i->of->lock);
    unlink_item(i);
    pthread_mutex_unlock(&i->of->lock);
    free(i);
}

static bool is_first(struct scope *s)
{
    return !atomic_exchange(&s->failed, true);
}

/* Control characters of hostile names are shown as '?'. */
static void keep_sentence(struct scope *s, const char *sentence, int status)
{
    snprintf(s->sentence, sizeof s->sentence, "%s", sentence);
    diag_make_printable(s->sentence);
    s->status = status;
}

void scope_note(struct scope *s, const char *sentence, int status)
{
    if (!is_first(s))
        return;
    keep_sentence(s, sentence, status);
    for (struct diag_hooks *h = &s->hooks; h->n > 0;) {
        struct diag_hook hook = h->at[--h->n];
        hook.run(hook.data, status);
    }
}

void scope_listen(void (*listener)(void *), void *data)
{
    current->listener = listener;
    current->heard_by = data;
}

void scope_look(void)
{
    if (current && current->listener)
        current->listener(current->heard_by);
    if (current && atomic_load(&current->failed))
        fail("another rank failed");
}

bool scope_do(struct scope *s, void (*work)(void *), void *data)
{
    struct scope *outer = scope_swap(s);
    int status = diag_leave_on_failure(s, work, data);
    (void)scope_swap(outer);
    return status == 0 && !scope_failed(s);
}

bool scope_failed(const struct scope *s)
{
    return atomic_load(&s->failed);
}

const char *scope_sentence(const struct scope *s)
{
    return s->sentence;
}

int scope_status(const struct scope *s)
{
    return s->status;
}
