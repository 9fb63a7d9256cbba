/* The functions mtx_* and cnd_* of C11. */
#include "check.h"
#include <threads.h>

static mtx_t mutex;
static cnd_t cond;
static int turn, answer;

static int try_it(void *unused)
{
    (void)unused;
    struct timespec soon = in_ms(CLOCK_REALTIME, 20);
    answer = mtx_trylock(&mutex);
    return mtx_timedlock(&mutex, &soon);
}

static int wait_for_turn(void *unused)
{
    (void)unused;
    CHECK(mtx_lock(&mutex) == thrd_success);
    while (turn == 0)
        CHECK(cnd_wait(&cond, &mutex) == thrd_success);
    turn--;
    return mtx_unlock(&mutex);
}

static atomic_bool is_held, may_end;

static int end_with_it(void *unused)
{
    (void)unused;
    CHECK(mtx_lock(&mutex) == thrd_success);
    is_held = true;
    while (!may_end)
        sleep_ms(1);
    return 0;
}

static atomic_int waiter;

static int lock_and_unlock(void *unused)
{
    (void)unused;
    waiter = gettid();
    CHECK(mtx_lock(&mutex) == thrd_success);
    return mtx_unlock(&mutex);
}

/* The kernel hands a mutex that inherits to a waiter if its owner ends. */
static void the_heir_succeeds(void)
{
    int result;
    thrd_t threads[2];
    CHECK(mtx_init(&mutex, mtx_plain) == thrd_success);
    CHECK(thrd_create(&threads[0], end_with_it, NULL) == thrd_success);
    while (!is_held)
        sleep_ms(1);
    CHECK(thrd_create(&threads[1], lock_and_unlock, NULL) == thrd_success);
    while (waiter == 0)
        sleep_ms(1);
    until_asleep(waiter);
    may_end = true;
    CHECK(thrd_join(threads[0], &result) == thrd_success);
    CHECK(thrd_join(threads[1], &result) == thrd_success && result == thrd_success);
    CHECK(mtx_lock(&mutex) == thrd_success && mtx_unlock(&mutex) == thrd_success);
    mtx_destroy(&mutex);
}

int main(int count, char **arguments)
{
    int result;
    if (count == 2 && strcmp(arguments[1], "inherits") == 0) {
        alarm(30);
        the_heir_succeeds();
        return 0;
    }
    thrd_t threads[3];
    alarm(30);
    CHECK(mtx_init(&mutex, mtx_timed) == thrd_success);
    CHECK(mtx_lock(&mutex) == thrd_success);
    CHECK(thrd_create(&threads[0], try_it, NULL) == thrd_success);
    CHECK(thrd_join(threads[0], &result) == thrd_success);
    CHECK(answer == thrd_busy && result == thrd_timedout);
    CHECK(mtx_unlock(&mutex) == thrd_success);
    mtx_destroy(&mutex);

    CHECK(mtx_init(&mutex, mtx_plain | mtx_recursive) == thrd_success);
    CHECK(mtx_lock(&mutex) == thrd_success && mtx_lock(&mutex) == thrd_success);
    CHECK(mtx_unlock(&mutex) == thrd_success && mtx_unlock(&mutex) == thrd_success);
    CHECK(mtx_unlock(&mutex) == thrd_error);
    mtx_destroy(&mutex);

    CHECK(mtx_init(&mutex, mtx_plain) == thrd_success && cnd_init(&cond) == thrd_success);
    for (int i = 0; i < 3; i++)
        CHECK(thrd_create(&threads[i], wait_for_turn, NULL) == thrd_success);
    struct timespec soon = in_ms(CLOCK_REALTIME, 20);
    CHECK(mtx_lock(&mutex) == thrd_success);
    while ((result = cnd_timedwait(&cond, &mutex, &soon)) == thrd_success) {
    }
    CHECK(result == thrd_timedout);
    turn = 3;
    CHECK(cnd_signal(&cond) == thrd_success);
    CHECK(cnd_broadcast(&cond) == thrd_success);
    CHECK(mtx_unlock(&mutex) == thrd_success);
    for (int i = 0; i < 3; i++) {
        CHECK(thrd_join(threads[i], &result) == thrd_success && result == thrd_success);
    }
    cnd_destroy(&cond);
    mtx_destroy(&mutex);
    return 0;
}
