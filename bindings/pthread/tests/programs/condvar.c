/* Condition variables: clocks and time-outs, errors, cancellation, destruction while waiters leave, and mutexes
   locked twice. */
#include "check.h"

static pthread_mutex_t mutex;
static pthread_cond_t cond;
static int turn;
static atomic_int waiting, cleaned;

static void set_up(int type, int protocol, int robust, int shared, clockid_t clock)
{
    pthread_condattr_t attributes;
    make(&mutex, type, protocol, robust, shared);
    GIVES(0, pthread_condattr_init(&attributes));
    GIVES(0, pthread_condattr_setclock(&attributes, clock));
    GIVES(0, pthread_condattr_setpshared(&attributes, shared));
    GIVES(0, pthread_cond_init(&cond, &attributes));
    turn = 0;
    waiting = cleaned = 0;
}

static void *wait_for_turn(void *unused)
{
    (void)unused;
    GIVES(0, pthread_mutex_lock(&mutex));
    waiting++;
    while (turn == 0)
        GIVES(0, pthread_cond_wait(&cond, &mutex));
    turn--;
    GIVES(0, pthread_mutex_unlock(&mutex));
    return NULL;
}

static void until_waiting(int count)
{
    while (waiting < count)
        sleep_ms(1);
    /* The last waiter counted holds the mutex until it waits. */
    GIVES(0, pthread_mutex_lock(&mutex));
    GIVES(0, pthread_mutex_unlock(&mutex));
}

enum { THREADS = 6 };

static void wake_all(bool broadcast, bool with_mutex)
{
    pthread_t threads[THREADS];
    waiting = 0;
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(wait_for_turn, NULL);
    until_waiting(THREADS);
    GIVES(0, pthread_mutex_lock(&mutex));
    turn = THREADS;
    if (!with_mutex)
        GIVES(0, pthread_mutex_unlock(&mutex));
    if (broadcast) {
        GIVES(0, pthread_cond_broadcast(&cond));
    } else {
        for (int i = 0; i < THREADS; i++)
            GIVES(0, pthread_cond_signal(&cond));
    }
    if (with_mutex)
        GIVES(0, pthread_mutex_unlock(&mutex));
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    CHECK(turn == 0);
}

static void time_out(clockid_t clock)
{
    struct timespec past = { 0, 0 }, negative = { -7, 0 }, none = { 1, 1000000000 }, soon = in_ms(clock, 40);
    GIVES(0, pthread_mutex_lock(&mutex));
    double start = now_ms(CLOCK_MONOTONIC);
    int ended;
    while ((ended = pthread_cond_timedwait(&cond, &mutex, &soon)) == 0) {
    }
    GIVES(ETIMEDOUT, ended);
    CHECK(now_ms(CLOCK_MONOTONIC) - start > 38 && now_ms(CLOCK_MONOTONIC) - start < 3000);
    soon = in_ms(CLOCK_MONOTONIC, 20);
    while ((ended = pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &soon)) == 0) {
    }
    GIVES(ETIMEDOUT, ended);
    soon = in_ms(CLOCK_REALTIME, 20);
    while ((ended = pthread_cond_clockwait(&cond, &mutex, CLOCK_REALTIME, &soon)) == 0) {
    }
    GIVES(ETIMEDOUT, ended);
    GIVES(ETIMEDOUT, pthread_cond_timedwait(&cond, &mutex, &past));
    GIVES(ETIMEDOUT, pthread_cond_timedwait(&cond, &mutex, &negative));
    GIVES(EINVAL, pthread_cond_timedwait(&cond, &mutex, &none));
    GIVES(EINVAL, pthread_cond_clockwait(&cond, &mutex, CLOCK_BOOTTIME, &soon));
    GIVES(0, pthread_mutex_unlock(&mutex));
}

/* Cleanup handlers hold the mutex. */
static void clean(void *unused)
{
    (void)unused;
    cleaned++;
    GIVES(0, pthread_mutex_unlock(&mutex));
}

static void *wait_for_ever(void *timed)
{
    struct timespec later = in_ms(CLOCK_MONOTONIC, 60000);
    GIVES(0, pthread_mutex_lock(&mutex));
    pthread_cleanup_push(clean, NULL);
    waiting++;
    for (;;) {
        if (timed)
            pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &later);
        else
            pthread_cond_wait(&cond, &mutex);
    }
    pthread_cleanup_pop(0);
    return NULL;
}

static void *cancelled_before(void *unused)
{
    GIVES(0, pthread_cancel(pthread_self()));
    return wait_for_ever(unused);
}

static void *takes_no_cancel(void *unused)
{
    (void)unused;
    GIVES(0, pthread_cancel(pthread_self()));
    /* Lock, timed lock, unlock and signal are not cancellation points. */
    GIVES(0, pthread_mutex_lock(&mutex));
    GIVES(0, pthread_cond_signal(&cond));
    GIVES(0, pthread_mutex_unlock(&mutex));
    waiting++;
    pthread_testcancel();
    return NULL;
}

static void cancel(void)
{
    for (long timed = 0; timed <= 1; timed++) {
        waiting = cleaned = 0;
        pthread_t thread = start(wait_for_ever, (void *)timed);
        until_waiting(1);
        sleep_ms(5);
        GIVES(0, pthread_cancel(thread));
        CHECK(join(thread) == PTHREAD_CANCELED && cleaned == 1);
        CHECK(join(start(cancelled_before, (void *)timed)) == PTHREAD_CANCELED && cleaned == 2);
    }
    /* While another thread holds the mutex, the cancelled thread must wait for it. */
    waiting = cleaned = 0;
    pthread_t thread = start(wait_for_ever, NULL);
    until_waiting(1);
    GIVES(0, pthread_mutex_lock(&mutex));
    GIVES(0, pthread_cancel(thread));
    sleep_ms(20);
    CHECK(cleaned == 0);
    GIVES(0, pthread_mutex_unlock(&mutex));
    CHECK(join(thread) == PTHREAD_CANCELED && cleaned == 1);

    waiting = 0;
    GIVES(0, pthread_mutex_lock(&mutex));
    thread = start(takes_no_cancel, NULL);
    sleep_ms(10);
    GIVES(0, pthread_mutex_unlock(&mutex));
    CHECK(join(thread) == PTHREAD_CANCELED && waiting == 1);
}

static void release(void *unused)
{
    (void)unused;
    pthread_mutex_unlock(&mutex);
}

static void *wait_and_release(void *had_turn)
{
    GIVES(0, pthread_mutex_lock(&mutex));
    waiting++;
    pthread_cleanup_push(release, NULL);
    while (turn == 0)
        pthread_cond_wait(&cond, &mutex);
    turn--;
    if (had_turn)
        *(bool *)had_turn = true;
    pthread_cleanup_pop(1);
    return NULL;
}

/* A signal at the same instant as a cancellation is not lost. One of two waiters is cancelled, and the other gets
   the signal, or both return. */
static void cancel_race(void)
{
    for (int i = 0; i < 100; i++) {
        waiting = 0;
        turn = 0;
        bool had_turn = false;
        pthread_t victim = start(wait_and_release, &had_turn), other = start(wait_and_release, NULL);
        until_waiting(2);
        GIVES(0, pthread_mutex_lock(&mutex));
        turn = 1;
        if (i % 2 == 0)
            GIVES(0, pthread_mutex_unlock(&mutex));
        GIVES(0, pthread_cond_signal(&cond));
        GIVES(0, pthread_cancel(victim));
        if (i % 2 != 0)
            GIVES(0, pthread_mutex_unlock(&mutex));
        /* Its result means nothing: the C library may report a thread as cancelled that is about to return. */
        join(victim);
        if (had_turn) {
            GIVES(0, pthread_mutex_lock(&mutex));
            turn = 1;
            GIVES(0, pthread_cond_signal(&cond));
            GIVES(0, pthread_mutex_unlock(&mutex));
        }
        /* If the victim was cancelled after it was woken, the signal went on to this thread. */
        join(other);
        CHECK(turn == 0);
    }
}

/* The memory is used for something else right after the condition variable is destroyed. */
static void destroy_at_once(bool with_mutex)
{
    for (int i = 0; i < 50; i++) {
        pthread_t threads[THREADS];
        GIVES(0, pthread_cond_init(&cond, NULL));
        waiting = 0;
        for (int k = 0; k < THREADS; k++)
            threads[k] = start(wait_for_turn, NULL);
        until_waiting(THREADS);
        GIVES(0, pthread_mutex_lock(&mutex));
        turn = THREADS;
        GIVES(0, pthread_cond_broadcast(&cond));
        if (!with_mutex)
            GIVES(0, pthread_mutex_unlock(&mutex));
        GIVES(0, pthread_cond_destroy(&cond));
        memset(&cond, 0xa5, sizeof cond);
        if (with_mutex)
            GIVES(0, pthread_mutex_unlock(&mutex));
        for (int k = 0; k < THREADS; k++)
            join(threads[k]);
        for (size_t byte = 0; byte < sizeof cond; byte++)
            CHECK(((unsigned char *)&cond)[byte] == 0xa5);
    }
    GIVES(0, pthread_cond_init(&cond, NULL));
}

static void *signal_once(void *unused)
{
    (void)unused;
    sleep_ms(20);
    turn = 1;
    GIVES(0, pthread_cond_signal(&cond));
    return NULL;
}

static void in_use(void)
{
    waiting = turn = 0;
    pthread_t thread = start(wait_for_turn, NULL);
    until_waiting(1);
    sleep_ms(20);
    GIVES(EBUSY, pthread_cond_destroy(&cond));
    GIVES(EBUSY, pthread_mutex_destroy(&mutex));
    GIVES(0, pthread_mutex_lock(&mutex));
    turn = 1;
    GIVES(0, pthread_cond_signal(&cond));
    GIVES(0, pthread_mutex_unlock(&mutex));
    join(thread);
    GIVES(0, pthread_cond_destroy(&cond));
    GIVES(0, pthread_mutex_destroy(&mutex));
}

int main(void)
{
    alarm(120);
    for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++) {
        for (int robust = 0; robust <= 1; robust++) {
            for (int shared = 0; shared <= 1; shared++) {
                for (clockid_t clock = CLOCK_REALTIME; clock <= CLOCK_MONOTONIC; clock++) {
                    set_up(PTHREAD_MUTEX_ERRORCHECK, protocol, robust, shared, clock);
                    if (shared) {
                        /* Shared condition variables are the C library's. */
                        for (int how = 0; how < 4; how++)
                            wake_all(how & 1, how & 2);
                        GIVES(0, pthread_cond_destroy(&cond));
                        continue;
                    }
                    struct timespec later = in_ms(clock, 5000);
                    GIVES(EPERM, pthread_cond_wait(&cond, &mutex));
                    GIVES(EPERM, pthread_cond_timedwait(&cond, &mutex, &later));
                    GIVES(0, pthread_cond_signal(&cond));
                    GIVES(0, pthread_cond_broadcast(&cond));
                    time_out(clock);
                    for (int how = 0; how < 4; how++)
                        wake_all(how & 1, how & 2);
                    cancel();
                    cancel_race();
                    GIVES(0, pthread_cond_destroy(&cond));
                    destroy_at_once(true);
                    destroy_at_once(false);
                }
            }
        }
        /* A wait does not unlock a mutex that was locked twice, whether it inherits or not. */
        set_up(PTHREAD_MUTEX_RECURSIVE, protocol, 0, 0, CLOCK_REALTIME);
        GIVES(0, pthread_mutex_lock(&mutex));
        GIVES(0, pthread_mutex_lock(&mutex));
        pthread_t thread = start(signal_once, NULL);
        while (turn == 0)
            GIVES(0, pthread_cond_wait(&cond, &mutex));
        join(thread);
        GIVES(0, pthread_mutex_unlock(&mutex));
        GIVES(0, pthread_mutex_unlock(&mutex));
        GIVES(EPERM, pthread_mutex_unlock(&mutex));

        set_up(PTHREAD_MUTEX_NORMAL, protocol, 0, 0, CLOCK_REALTIME);
        in_use();
    }
    return 0;
}
