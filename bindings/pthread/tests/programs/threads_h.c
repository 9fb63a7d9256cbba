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

int main(void)
{
    int result;
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
