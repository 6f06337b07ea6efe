/* Messages between a supervisor and its job: found in other text however it comes in parts; broken ones. And that a program's processes all
 * end, wherever they have gone. */
#include "supervise/supervise.h"
#include "tests/unit/main.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- messages ---- */

struct heard {
    char kinds[64], other[64];
    size_t bytes;
    bool same; /* all data is 0, 1, 2, .. */
};

static void take(void *heard, const struct message *m)
{
    struct heard *h = heard;
    h->kinds[strlen(h->kinds)] = (char)('a' + m->kind);
    h->bytes += m->data.n;
    for (size_t i = 0; i < m->data.n; i++)
        h->same = h->same && m->data.at[i] == (char)i;
}

static void take_other(void *heard, struct message_data other)
{
    struct heard *h = heard;
    strncat(h->other, other.at, other.n);
}

/* All of it in parts of n bytes. */
static bool hear(struct arena *a, const char *text, size_t n, struct heard *h)
{
    struct message_stream s = {.line.arena = a};
    bool good = true;
    *h = (struct heard){.same = true};
    for (size_t at = 0, all = strlen(text); at < all && good; at += n) {
        size_t left = strlen(text + at);
        good = message_take(&s, (struct message_data){text + at, left < n ? left : n}, take, take_other, h);
    }
    return good;
}

START_TEST(finds_messages_in_text)
{
    struct arena *a = arena_new();
    char data[300];
    struct heard h;
    for (int i = 0; i < (int)sizeof data; i++)
        data[i] = (char)i;
    const char *first = arena_strdup(a, message_line(a, 1, (struct message_data){data, sizeof data}));
    const char *text = arena_printf(a, "step %s1\nstep%s2\n", first, message_line(a, 0, (struct message_data){"", 0}));
    for (size_t n = 1; n < strlen(text) + 1; n++) {
        ck_assert(hear(a, text, n, &h));
        ck_assert_str_eq(h.kinds, "ba");
        ck_assert_str_eq(h.other, "step 1\nstep2\n");
        ck_assert(h.bytes == sizeof data && h.same);
    }
    arena_free(a);
}
END_TEST

START_TEST(refuses_broken_lines)
{
    static const char *const line[] = {"\001\n", "\0010\n", "\00100 \n", "\0010x\n", "\001000\n"};
    struct arena *a = arena_new();
    struct heard h;
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        ck_assert_msg(!hear(a, line[i], 1, &h), "line %zu is taken", i);
    arena_free(a);
}
END_TEST

START_TEST(reads_no_further)
{
    struct arena *a = arena_new();
    const int64_t number[] = {2, 7, 9, INT64_MAX, -1};
    const struct message_data all = {(const char *)number, sizeof number};
    struct cursor c = {.left = all};
    ck_assert_int_eq(cursor_count(&c, sizeof *number), 2);
    const int64_t *two = cursor_copy(&c, a, 2 * sizeof *two);
    ck_assert(two[0] == 7 && two[1] == 9 && !c.bad);
    ck_assert(cursor_count(&c, sizeof *number) == 0 && c.bad);
    ck_assert_int_eq(cursor_number(&c), 0);
    c = (struct cursor){.left = {all.at + 4 * sizeof *number, sizeof *number}};
    ck_assert(cursor_count(&c, 1) == 0 && c.bad);
    c = (struct cursor){.left = {all.at, 3}};
    ck_assert(cursor_number(&c) == 0 && c.bad);
    arena_free(a);
}
END_TEST

/* ---- programs ---- */

static void nap(void)
{
    (void)nanosleep(&(struct timespec){0, 20000000}, NULL);
}

/* The number that a process wrote to a file; 0: not within 20 s. */
static int number_in(const char *path)
{
    int number = 0;
    for (int i = 0; i < 1000 && !number; i++, nap()) {
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%d\n", &number) != 1)
            number = 0;
        if (f)
            (void)fclose(f);
    }
    return number;
}

/* One in a session of its own whose parent has ended, one that hears no request to end, one that is stopped. */
START_TEST(ends_all_processes)
{
    char dir[] = "/tmp/tpc-supervise-XXXXXX";
    struct arena *a = arena_new();
    ck_assert_ptr_nonnull(mkdtemp(dir));
    const char *path[] = {arena_printf(a, "%s/gone", dir), arena_printf(a, "%s/deaf", dir), arena_printf(a, "%s/stopped", dir)};
    const char *command = arena_printf(
        a,
        "(setsid sh -c 'echo $$ >%s; exec sleep 300' &) & sh -c 'trap \"\" TERM; echo $$ >%s; sleep 300; :' & "
        "sh -c 'echo $$ >%s; kill -STOP $$; :' & exec sleep 300",
        path[0], path[1], path[2]);
    struct program p = program_start(command);
    int number[3], status;
    for (int i = 0; i < 3; i++)
        ck_assert_int_gt(number[i] = number_in(path[i]), 0);
    ck_assert(!program_has_ended(&p, &status));
    program_end(&p, PROGRAM_ASK);
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(kill(number[i], 0) != 0, "process %d is left", i);
        (void)unlink(path[i]);
    }
    (void)close(p.out);
    (void)rmdir(dir);
    p = program_start("exit 7");
    for (int i = 0; i < 1000 && !program_has_ended(&p, &status); i++)
        nap();
    ck_assert_str_eq(program_status(a, status), "the job ended with status 7");
    program_end(&p, PROGRAM_KILL);
    (void)close(p.out);
    arena_free(a);
}
END_TEST

/* Where the process may open no more files. */
START_TEST(tells_what_cannot_start)
{
    struct rlimit before, none = {0, 0};
    int status;
    ck_assert(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none.rlim_max = before.rlim_max;
    ck_assert(setrlimit(RLIMIT_NOFILE, &none) == 0);
    struct program p = program_start("exit 0");
    ck_assert(setrlimit(RLIMIT_NOFILE, &before) == 0);
    ck_assert_int_eq(p.pid, 0);
    ck_assert_int_eq(p.error, EMFILE);
    ck_assert(program_has_ended(&p, &status) && status != 0);
    program_close(&p);
    ck_assert_int_ge(fcntl(STDIN_FILENO, F_GETFD), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("supervise");
    TCase *t = unit_case(suite, "supervise", NULL, NULL);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, finds_messages_in_text);
    tcase_add_test(t, refuses_broken_lines);
    tcase_add_test(t, reads_no_further);
    tcase_add_test(t, ends_all_processes);
    tcase_add_test(t, tells_what_cannot_start);
    return unit_run(suite);
}
