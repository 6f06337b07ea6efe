/* What every unit test has in common: cases of a suite under Check, and the run that main ends with. */
#ifndef TESTS_UNIT_MAIN_H
#define TESTS_UNIT_MAIN_H

#include <check.h>
#include <stdlib.h>

#undef fail /* use base.h's */

/* Check writes a line to a file for every assertion that holds, so that it can tell where a test that crashes was last. */
#define _mark_point(file, line) ((void)(line))

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* A case of its own in the suite; setup and teardown may be NULL, and run in the process of each test. */
static inline TCase *unit_case(Suite *suite, const char *name, void (*setup)(void), void (*teardown)(void))
{
    TCase *c = tcase_create(name);
    suite_add_tcase(suite, c);
    if (setup)
        tcase_add_checked_fixture(c, setup, teardown);
    return c;
}

static inline int unit_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
