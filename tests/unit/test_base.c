/* test_base.c: arena, checked arithmetic, files and the ways to fail. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/base.h"
#include "tests/unit/main.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(arena_blocks_are_zeroed_and_aligned)
{
    struct arena *a = arena_new();
    for (size_t n = 0; n < 5000; n += 37) {
        unsigned char *p = arena_alloc(a, n);
        ck_assert_uint_eq((uintptr_t)p % (n < 64 ? 16 : 64), 0);
        for (size_t i = 0; i < n; i++)
            ck_assert_uint_eq(p[i], 0);
        memset(p, 0xff, n);
    }
    unsigned char *big = arena_alloc(a, (size_t)1 << 24);
    ck_assert_uint_eq(big[(1 << 24) - 1], 0);
    arena_free(a);
}
END_TEST

START_TEST(arenas_within_an_arena_end_with_it)
{
    struct arena *a = arena_new(), *first = arena_new_within(a), *second = arena_new_within(a), *third = arena_new_within(second);
    (void)arena_alloc(first, 1);
    (void)arena_alloc(third, (size_t)1 << 20);
    (void)arena_new_within(a);
    arena_free(first);
    arena_free(second); /* and the third */
    arena_free(a);      /* LeakSanitizer: nothing is left */
}
END_TEST

START_TEST(arena_strings)
{
    struct arena *a = arena_new();
    ck_assert_str_eq(arena_strdup(a, "abc"), "abc");
    ck_assert_str_eq(arena_strndup(a, "abcdef", 2), "ab");
    ck_assert_str_eq(arena_printf(a, "%s-%d", "x", 42), "x-42");
    for (int n = 0; n < 600; n++) {
        const char *text = arena_printf(a, "%*s.", n, "");
        ck_assert_uint_eq(strlen(text), (size_t)n + 1);
        ck_assert_uint_eq(strspn(text, " "), (size_t)n);
    }
    arena_free(a);
}
END_TEST

/* In pieces, as a whole, and of nothing: what the reference implementation gives. */
START_TEST(digests_of_pieces)
{
    enum { BYTES = 5000 };
    struct arena *a = arena_new();
    uint8_t bytes[BYTES];
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(i * 31 >> 3);
    ck_assert_uint_eq(digest_value(digest_begin(a)), 0x2d06800538d394c2);
    for (size_t piece = 1; piece < BYTES; piece = piece * 2 + 1) {
        struct digest *d = digest_begin(a);
        for (size_t at = 0; at < BYTES; at += piece)
            digest_add(d, bytes + at, piece < BYTES - at ? piece : BYTES - at);
        ck_assert_uint_eq(digest_value(d), digest_bytes(bytes, BYTES));
    }
    arena_free(a);
}
END_TEST

struct counted {
    int next, done, fails_at;
};

static int take_counted(void *data)
{
    struct counted *c = data;
    return c->next < 100 ? c->next++ : BESIDE_NONE;
}

static void run_counted(void *data, int job)
{
    if (job == ((struct counted *)data)->fails_at)
        fail("job %d", job);
}

static void count_done(void *data, int job)
{
    ((struct counted *)data)->done += job;
}

static void run_beside(void *data)
{
    static const struct beside work = {take_counted, run_counted, count_done};
    beside(3, &work, data);
}

START_TEST(jobs_beside_each_other)
{
    struct arena *a = arena_new();
    struct counted all = {.fails_at = -1}, some = {.fails_at = 40};
    run_beside(&all);
    ck_assert_int_eq(all.done, 99 * 100 / 2);
    ck_assert_str_eq(diag_try(a, run_beside, &some), "job 40");
    ck_assert_int_le(some.done, 99 * 100 / 2 - 40); /* threads that are quicker may have done all the others */
    arena_free(a);
}
END_TEST

START_TEST(strings_have_numbers)
{
    struct arena *a = arena_new();
    int64_t number[1000];
    for (int i = 0; i < 1000; i++) {
        const char *text = arena_printf(a, "text %d", i);
        number[i] = string_number(text, strlen(text));
    }
    for (int i = 0; i < 1000; i++) {
        const char *text = arena_printf(a, "text %d", i);
        ck_assert_str_eq(string_text(number[i]), text);
        ck_assert_int_eq(string_number(text, strlen(text)), number[i]);
    }
    ck_assert_int_eq(string_number("", 0), 0);
    ck_assert_str_eq(string_text(0), "");
    arena_free(a);
}
END_TEST

/* Every code, and around each of them what is none. */
/* For the character and its bytes; not an assertion each: Check writes a message for every one. */
static bool is_read_back(uint32_t c)
{
    char text[8] = "";
    int n = string_put_char(c, text);
    const char *at = text;
    if (!string_is_char(c))
        return string_fault(text, (size_t)n) != NULL;
    return !string_fault(text, (size_t)n) && string_next_char(&at) == c && at == text + n &&
        (string_fault(text, (size_t)n - 1) == NULL) == (n == 1);
}

START_TEST(strings_are_utf8)
{
    uint32_t wrong = 0;
    for (uint32_t c = 1; c < 0x120000; c++)
        wrong = wrong || is_read_back(c) ? wrong : c;
    ck_assert_uint_eq(wrong, 0);
    ck_assert_str_eq(string_fault("a\0b", 3), "holds a NUL");
    static const char *const bad[] = {"\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\x80", "\xfe", "\xff", "\xc3(", "a\xed\xa0\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_str_eq(string_fault(bad[i], strlen(bad[i])), "is not UTF-8");
}
END_TEST

START_TEST(vec_grows)
{
    struct arena *a = arena_new();
    VEC(int) v = {0};
    for (int i = 0; i < 1000; i++)
        VEC_PUSH(a, &v, i);
    ck_assert_int_eq(v.n, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(v.at[i], i);
    arena_free(a);
}
END_TEST

START_TEST(array_overflow_fails)
{
    (void)arena_array(arena_new(), SIZE_MAX / 2, 16);
}
END_TEST

START_TEST(integers_in_texts)
{
    int64_t n = 7;
    ck_assert(!i64_parse("", 0, 9, &n) && !i64_parse("5x", 0, 9, &n) && !i64_parse("10", 0, 9, &n) && !i64_parse("-1", 0, 9, &n));
    ck_assert(!i64_parse("9223372036854775808", INT64_MIN, INT64_MAX, &n));
    ck_assert_int_eq(n, 7);
    ck_assert(i64_parse("-9223372036854775808", INT64_MIN, INT64_MAX, &n) && n == INT64_MIN);
}
END_TEST

START_TEST(checked_arithmetic)
{
    int64_t r = 7;
    ck_assert(!i64_add(INT64_MAX, 1, &r) && !i64_sub(INT64_MIN, 1, &r) && !i64_mul(INT64_MAX, 2, &r));
    ck_assert_int_eq(r, 7);
    ck_assert(i64_mul(-3, 5, &r));
    ck_assert_int_eq(r, -15);
    for (int64_t x = -20; x <= 20; x++)
        for (int64_t y = -6; y <= 6; y++)
            if (y != 0) {
                int64_t q = i64_floor_div(x, y), m = i64_floor_mod(x, y);
                ck_assert_int_eq(q * y + m, x);
                ck_assert(y > 0 ? m >= 0 && m < y : m <= 0 && m > y);
            }
}
END_TEST

START_TEST(files)
{
    struct arena *a = arena_new();
    char dir[] = "test-base-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    char *path = path_join(a, dir, "file");
    ck_assert_str_eq(path_dir(a, path), dir);
    ck_assert_str_eq(path_dir(a, "x"), ".");
    ck_assert_str_eq(path_dir(a, "/x"), "/");
    ck_assert_str_eq(path_join(a, "a/", "b"), "a/b");
    ck_assert_str_eq(path_join(a, "a", "/b"), "/b");
    struct map m;
    ck_assert(!path_exists(path) && !map_try_file(path, &m) && !map_try_file(dir, &m));
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fputs("hello", f) < 0, 0);
    ck_assert_int_eq(fclose(f), 0);
    m = map_file(path);
    ck_assert_uint_eq(m.bytes, 5);
    ck_assert_mem_eq(m.at, "hello", 5);
    map_close(m);
    ck_assert(remove(path) == 0 && remove(dir) == 0);
    ck_assert(!path_exists(dir));
    arena_free(a);
}
END_TEST

START_TEST(missing_file_fails)
{
    (void)map_file("no/such/file");
}
END_TEST

static void fail_in_try(void *of_the_job)
{
    if (of_the_job)
        fail_job("all ranks");
    fail("this work");
}

START_TEST(a_failure_of_the_job_is_not_caught)
{
    struct arena *a = arena_new();
    ck_assert_str_eq(diag_try(a, fail_in_try, NULL), "this work");
    (void)diag_try(a, fail_in_try, a);
    _exit(0);
}
END_TEST

START_TEST(usage_fails_with_2)
{
    fail_usage("wrong");
}
END_TEST

static void leave_with_9(void *data, int status)
{
    _exit(status == 1 && data == NULL ? 9 : 8);
}

static void never(void *data, int status)
{
    (void)data;
    (void)status;
    _exit(7);
}

START_TEST(hooks_run_and_can_be_forgotten)
{
    diag_on_failure(leave_with_9, NULL);
    diag_on_failure(never, NULL);
    diag_forget(never, NULL);
    fail("expected");
}
END_TEST

/* Reads a page of a mapped file that is no longer there; the exit status 1 of a failure is what the suite expects. */
START_TEST(a_mapped_file_cut_short_fails)
{
    char path[] = "test-base-XXXXXX";
    int fd = mkstemp(path);
    ck_assert(fd >= 0 && ftruncate(fd, 1 << 20) == 0);
    signal_watch(false);
    struct map m = map_file(path);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(unlink(path), 0);
    _exit(m.at[1 << 19] ? 8 : 9);
}
END_TEST

/* Such a signal that no file is to blame for ends the program as it would have: the suite expects it. */
START_TEST(another_bus_error_stays_one)
{
    signal_watch(false);
    ck_assert_int_eq(kill(getpid(), SIGBUS), 0);
    for (;;)
        (void)pause();
}
END_TEST

START_TEST(a_request_to_end_fails)
{
    signal_watch(true);
    diag_on_failure(leave_with_9, NULL);
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    for (;;)
        (void)pause();
}
END_TEST

/* Parts of a file in any order, with gaps, small ones and some of several pieces: the bytes that are put, and zeros between. */
static void put_parts(struct arena *a, const char *path, bool behind)
{
    enum { PARTS = 40, STRIDE = 150001, MOST = 2500000 };
    size_t bytes = (size_t)PARTS * STRIDE + MOST;
    uint8_t *want = arena_alloc(a, bytes), *part = arena_alloc(a, MOST);
    size_t end = 0;
    struct out o;
    out_open(&o, path);
    if (behind)
        out_behind(&o);
    for (size_t i = 0; i < PARTS; i++) {
        size_t at = i * 17 % PARTS * STRIDE, n = i % 7 ? 1 + i * 977 : MOST;
        for (size_t k = 0; k < n; k++)
            part[k] = (uint8_t)(splitmix(i * MOST + k));
        memcpy(want + at, part, n);
        end = at + n > end ? at + n : end;
        out_seek(&o, (int64_t)at);
        out_put(&o, part, n / 3);
        out_put(&o, part + n / 3, n - n / 3);
    }
    (void)out_close(&o);
    struct map m = map_file(path);
    ck_assert_uint_eq(m.bytes, end);
    ck_assert(memcmp(m.at, want, end) == 0);
    map_close(m);
    ck_assert_int_eq(remove(path), 0);
}

START_TEST(files_are_written_anywhere)
{
    struct arena *a = arena_new();
    char dir[] = "test-base-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    put_parts(a, path_join(a, dir, "file"), false);
    put_parts(a, path_join(a, dir, "file"), true);
    ck_assert_int_eq(remove(dir), 0);
    arena_free(a);
}
END_TEST

START_TEST(globs_rewrite_names)
{
    static const struct {
        const char *glob, *text, *pattern, *want;
    } cases[] = {
        {"past.*.key", "past.0.key", "present.*.key", "present.0.key"},
        {"*.a*", "x.a.ay", "<*|*>", "<x|.ay>"},
        {"*a*a", "aXaYa", "*-*", "-XaY"},
        {"past?*", "past.", "*", ""},
        {"**", "ab", "*|*", "|ab"},
        {"a", "a", "b", "b"},
        {"past.*.key", "past.0.value", "*", NULL},
        {"a*", "", "*", NULL},
    };
    struct arena *a = arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = glob_rewrite(a, cases[i].glob, cases[i].text, cases[i].pattern);
        ck_assert_msg(!got == !cases[i].want && (!got || strcmp(got, cases[i].want) == 0), "%s of %s: %s", cases[i].glob, cases[i].text,
                      got ? got : "no match");
    }
    arena_free(a);
}
END_TEST

/* ---- control groups ---- */

struct group_case {
    const char *list;                /* as /proc/self/cgroup */
    const char *folder[3], *text[3]; /* "FOLDER/FILE" below the root, and what it holds */
    double cores;                    /* 0: no quota */
    int64_t memory;                  /* 0: no limit */
};
static const struct group_case group_cases[] = {
    {"0::/\n", {"cpu.max"}, {"max 100000\n"}, 0, 0},
    {"0::/\n", {"cpu.max"}, {"50000 100000\n"}, 0.5, 0},
    {"0::/a/b\n", {"a/cpu.max", "a/b/cpu.max"}, {"150000 100000\n", "max 100000\n"}, 1.5, 0},
    {"0::/a/b\n", {"a/cpu.max", "a/b/cpu.max"}, {"400000 100000\n", "300000 100000\n"}, 3, 0},
    {"0::/host/only\n", {"cpu.max"}, {"200000 100000\n"}, 2, 0},
    {"0::/\n", {"cpu.max"}, {"nonsense\n"}, 0, 0},
    {"0::/\n", {"cpu.max"}, {"100000\n"}, 0, 0},
    {"0::/\n", {"cpu.max"}, {"100000 0\n"}, 0, 0},
    {"3:cpuset:/a\n2:cpu,cpuacct:/a\n", {"cpu/a/cpu.cfs_quota_us", "cpu/a/cpu.cfs_period_us"}, {"25000\n", "50000\n"}, 0.5, 0},
    {"2:cpuacct,cpu:/a\n", {"cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"}, {"100000\n", "50000\n"}, 2, 0},
    {"2:cpu:/\n", {"cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"}, {"-1\n", "100000\n"}, 0, 0},
    {"3:cpuset:/\n", {"cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"}, {"1000\n", "100000\n"}, 0, 0},
    {"0::/a\n", {"a/memory.max", "a/memory.current", "a/memory.stat"}, {"1000\n", "700\n", "anon 1\ninactive_file 200\n"}, 0, 500},
    {"4:memory:/\n", {"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"}, {"1000\n", "1700\n"}, 0, -1},
};

static void write_file(struct arena *a, const char *root, const char *name, const char *text)
{
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/'))
        (void)mkdir(path_join(a, root, arena_strndup(a, name, (size_t)(slash - name))), 0700);
    FILE *f = fopen(path_join(a, root, name), "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(control_groups_limit_cores_and_memory)
{
    const struct group_case *c = &group_cases[_i];
    struct arena *a = arena_new();
    char root[] = "/tmp/tpc-test-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(root));
    write_file(a, root, "list", c->list);
    for (int i = 0; i < 3 && c->folder[i]; i++)
        write_file(a, root, c->folder[i], c->text[i]);
    const struct control_root at = {root, path_join(a, root, "list")};
    const double cores = cores_quota(&at);
    ck_assert(c->cores > 0 ? fabs(cores - c->cores) < 1e-9 : isinf(cores));
    ck_assert_int_eq(available_in(&at).bytes, c->memory == 0 ? INT64_MAX : c->memory < 0 ? 0 : c->memory);
    ck_assert_int_eq(system(arena_printf(a, "rm -r %s", root)), 0);
    arena_free(a);
}
END_TEST

/* What a C library gives a thread by itself: little (musl), or what the limit was when the program began (glibc). */
static const size_t stack_given[] = {128 << 10, 2 << 20, 64 << 20};

static void *stack_of_thread(void *bytes)
{
    pthread_attr_t own;
    ck_assert_int_eq(pthread_getattr_np(pthread_self(), &own), 0);
    ck_assert_int_eq(pthread_attr_getstacksize(&own, bytes), 0);
    (void)pthread_attr_destroy(&own);
    return NULL;
}

START_TEST(threads_have_stacks_of_8_mib)
{
    pthread_attr_t given;
    pthread_t thread;
    size_t bytes = 0;
    ck_assert_int_eq(pthread_attr_init(&given), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&given, stack_given[_i]), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&given), 0);
    stack_start();
    ck_assert_int_eq(pthread_create(&thread, NULL, stack_of_thread, &bytes), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(bytes, stack_given[_i] > 8 << 20 ? stack_given[_i] : 8 << 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base");
    TCase *t = unit_case(suite, "base", NULL, NULL);
    tcase_add_test(t, arena_blocks_are_zeroed_and_aligned);
    tcase_add_test(t, arenas_within_an_arena_end_with_it);
    tcase_add_test(t, arena_strings);
    tcase_add_test(t, strings_have_numbers);
    tcase_add_test(t, strings_are_utf8);
    tcase_add_test(t, vec_grows);
    tcase_add_test(t, globs_rewrite_names);
    tcase_add_loop_test(t, control_groups_limit_cores_and_memory, 0, COUNT(group_cases));
    tcase_add_exit_test(t, array_overflow_fails, 1);
    tcase_add_test(t, integers_in_texts);
    tcase_add_test(t, checked_arithmetic);
    tcase_add_test(t, files);
    tcase_add_test(t, files_are_written_anywhere);
    tcase_add_test(t, digests_of_pieces);
    tcase_add_test(t, jobs_beside_each_other);
    tcase_add_loop_test(t, threads_have_stacks_of_8_mib, 0, COUNT(stack_given));
    tcase_add_exit_test(t, missing_file_fails, 1);
    tcase_add_exit_test(t, a_failure_of_the_job_is_not_caught, 1);
    tcase_add_exit_test(t, usage_fails_with_2, 2);
    tcase_add_exit_test(t, hooks_run_and_can_be_forgotten, 9);
    tcase_add_exit_test(t, a_mapped_file_cut_short_fails, 1);
    tcase_add_test_raise_signal(t, another_bus_error_stays_one, SIGBUS);
    tcase_add_exit_test(t, a_request_to_end_fails, 9);
    return unit_run(suite);
}
