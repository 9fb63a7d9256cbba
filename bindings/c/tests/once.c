/* One-time initialisation: once, failures, cancellation, waiting for oneself, a child process. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <sys/wait.h>

enum { THREADS = 4, ROUNDS = 500 };

#ifdef MUTANT
/* Nobody waits, and everybody initialises. */
static int calls(lw_once_t *once, int (*routine)(void *), void *argument) {
    (void)once;
    return routine(argument);
}
#define lw_once_call calls
#endif

static lw_once_t onces[ROUNDS];
static int counts[ROUNDS];

static int initialises(void *argument) {
    int *count = argument;
    sched_yield();
    *count += 1;
    return 0;
}

static void *uses(void *argument) {
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        EXPECT(0, lw_once_call(&onces[round], initialises, &counts[round]));
        CHECK(counts[round] == 1);
    }
    return NULL;
}

static void each_is_initialised_once(void) {
    pthread_t threads[THREADS];
    for (int round = 0; round < ROUNDS; round++) {
        onces[round] = (lw_once_t)LW_ONCE_INITIALIZER;
    }
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(uses, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        join(threads[i]);
    }
}

static lw_once_t again = LW_ONCE_INITIALIZER;

static int fails(void *argument) {
    (void)argument;
    return 1;
}

static int calls_itself(void *argument) {
    EXPECT(EDEADLK, lw_once_call(&again, initialises, argument));
    return 0;
}

static int waits_for_ever(void *argument) {
    __atomic_store_n((int *)argument, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        pause();
    }
    return 0;
}

static void *is_cancelled(void *begun) {
    lw_once_call(&again, waits_for_ever, begun);
    return NULL;
}

static void *initialises_again(void *count) {
    EXPECT(0, lw_once_call(&again, initialises, count));
    return NULL;
}

static void the_next_caller_initialises(void) {
    int count = 0, begun = 0;
    EXPECT(ECANCELED, lw_once_call(&again, fails, NULL));
    pthread_t thread = start(is_cancelled, &begun);
    while (!__atomic_load_n(&begun, __ATOMIC_SEQ_CST)) {
        sched_yield();
    }
    pthread_t waiter = start(initialises_again, &count);
    struct timespec time = ms(20);
    nanosleep(&time, NULL);
    EXPECT(0, pthread_cancel(thread));
    join(thread);
    join(waiter);
    EXPECT(0, lw_once_call(&again, fails, NULL));
    CHECK(count == 1);
    again = (lw_once_t)LW_ONCE_INITIALIZER;
    EXPECT(0, lw_once_call(&again, calls_itself, &count));
    CHECK(count == 1);
}

static void misuse(void) {
    lw_once_t once;
    memset(&once, 0xa5, sizeof once);
    EXPECT(EINVAL, lw_once_call(&once, initialises, NULL));
    EXPECT(EINVAL, lw_once_call(NULL, initialises, NULL));
    EXPECT(EINVAL, lw_once_call(&again, NULL, NULL));
}

/* The child does not wait for a thread of its parent. */
static void a_child_initialises(void) {
    int begun = 0, count = 0;
    again = (lw_once_t)LW_ONCE_INITIALIZER;
    pthread_t thread = start(is_cancelled, &begun);
    while (!__atomic_load_n(&begun, __ATOMIC_SEQ_CST)) {
        sched_yield();
    }
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        begin_test();
        EXPECT(0, lw_once_call(&again, initialises, &count));
        _exit(count == 1 ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(0, pthread_cancel(thread));
    join(thread);
}

static int ends_the_thread(void *argument) {
    (void)argument;
    pthread_exit(NULL);
}

static void *comes_after(void *has_to_wait) {
    int count = 0;
    if (!has_to_wait) {
        struct timespec time = ms(50);
        nanosleep(&time, NULL);
    }
    EXPECT(0, lw_once_call(&again, initialises, &count));
    _exit(count == 1 ? 0 : 1);
}

static int starts_a_waiter(void *argument) {
    (void)argument;
    start(comes_after, &again);
    struct timespec time = ms(50);
    nanosleep(&time, NULL);
    pthread_exit(NULL);
}

/* The main thread stays in the table of the kernel until the others have ended. */
static void the_main_thread_ends_inside(void) {
    for (int waits = 0; waits < 2; waits++) {
        again = (lw_once_t)LW_ONCE_INITIALIZER;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            begin_test();
            if (!waits) {
                start(comes_after, NULL);
            }
            lw_once_call(&again, waits ? starts_a_waiter : ends_the_thread, NULL);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

int main(void) {
    begin_test();
    each_is_initialised_once();
    the_next_caller_initialises();
    misuse();
    a_child_initialises();
    the_main_thread_ends_inside();
    return 0;
}
