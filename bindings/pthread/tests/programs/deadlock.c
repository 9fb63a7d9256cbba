/* Two threads lock two mutexes in opposite orders. Arguments: the kind of the mutexes (`inherit`, `recursive` or `plain`), and
   the outcome for one of the threads (`refused`), or `waits` if both wait. With `passes`, one of the two requests comes from a
   wait for a condition, and the other one has a deadline, so both threads continue. With `ended`, the thread with the deadline
   ends. With `again`, a mutex whose owner ended is initialised again, and is part of a cycle for a moment. */
#include "check.h"

static pthread_mutex_t first, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static atomic_int refused;

static void *cross(void *is_other)
{
    pthread_setname_np(pthread_self(), is_other ? "crosses 1" : "crosses 0");
    pthread_mutex_t *mine = is_other ? &second : &first, *next = is_other ? &first : &second;
    GIVES(0, pthread_mutex_lock(mine));
    pthread_barrier_wait(&both);
    int answer = pthread_mutex_lock(next);
    if (answer == EDEADLK)
        refused++;
    else
        GIVES(0, pthread_mutex_unlock(next));
    GIVES(0, pthread_mutex_unlock(mine));
    return NULL;
}

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_bool go;
static atomic_int crossing;

static void has_second(void *unused)
{
    (void)unused;
    CHECK(second.__data.__owner == gettid());
    GIVES(0, pthread_mutex_unlock(&second));
    GIVES(0, pthread_mutex_unlock(&first));
}

/* Waits for the condition with the mutex that the other thread holds when this one is woken. */
static void *wait_for_go(void *unused)
{
    GIVES(0, pthread_mutex_lock(&first));
    GIVES(0, pthread_mutex_lock(&second));
    pthread_cleanup_push(has_second, NULL);
    pthread_barrier_wait(&both);
    while (!go)
        GIVES(0, pthread_cond_wait(&cond, &second));
    pthread_cleanup_pop(1);
    return unused;
}

static double until_ms;
static atomic_bool may_end;

static void *cross_for_a_while(void *unused)
{
    pthread_barrier_wait(&both);
    GIVES(0, pthread_mutex_lock(&second));
    struct timespec later = in_ms(CLOCK_REALTIME, 200);
    until_ms = later.tv_sec * 1e3 + later.tv_nsec / 1e6;
    crossing = gettid();
    GIVES(ETIMEDOUT, pthread_mutex_timedlock(&first, &later));
    GIVES(0, pthread_mutex_unlock(&second));
    while (!may_end)
        sleep_ms(1);
    return unused;
}

/* A wait for a condition locks its mutex again although that closes a cycle, because the cycle passes. Returns whether it
   did before the cycle had passed. */
static bool wait_in_a_cycle(bool is_cancelled)
{
    crossing = 0;
    go = may_end = false;
    pthread_t waits = start(wait_for_go, NULL), crosses = start(cross_for_a_while, NULL);
    while (crossing == 0)
        sleep_ms(1);
    until_asleep(crossing);
    if (is_cancelled) {
        GIVES(0, pthread_cancel(waits));
    } else {
        go = true;
        GIVES(0, pthread_cond_signal(&cond));
    }
    /* The thread that was woken begins to wait. */
    sleep_ms(50);
    bool is_in_time = now_ms(CLOCK_REALTIME) < until_ms;
    may_end = true;
    CHECK(join(waits) == (is_cancelled ? PTHREAD_CANCELED : NULL));
    join(crosses);
    return is_in_time;
}

static void wait_in_cycles(bool is_cancelled)
{
    for (int attempt = 0; attempt < 20; attempt++)
        if (wait_in_a_cycle(is_cancelled))
            return;
    CHECK(!"an attempt is in time");
}

static void *ends_with_second(void *until)
{
    GIVES(0, pthread_mutex_lock(&second));
    pthread_barrier_wait(&both);
    crossing = gettid();
    GIVES(ETIMEDOUT, pthread_mutex_clocklock(&first, CLOCK_MONOTONIC, until));
    return NULL;
}

static void *waits_for_second(void *until)
{
    GIVES(0, pthread_mutex_lock(&first));
    pthread_barrier_wait(&both);
    while (crossing == 0)
        sleep_ms(1);
    until_asleep(crossing);
    /* The request that closes the cycle is confirmed when the time comes. */
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, until, NULL);
    GIVES(EDEADLK, pthread_mutex_lock(&second));
    return NULL;
}

/* The time comes while a deadlock is confirmed, and the other thread ends with its mutex, for which the caller waits. It
   gets EDEADLK if the other thread does not execute in time. */
static void wait_for_ended(void)
{
    for (int attempt = 0; attempt < 20; attempt++) {
        make(&first, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, 0);
        make(&second, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, 0);
        crossing = 0;
        struct timespec almost = in_ms(CLOCK_MONOTONIC, 97), later = in_ms(CLOCK_MONOTONIC, 100);
        pthread_t ends = start(ends_with_second, &later), waits = start(waits_for_second, &almost);
        join(ends);
        struct timespec enough = in_ms(CLOCK_REALTIME, 100);
        if (pthread_timedjoin_np(waits, NULL, &enough) == ETIMEDOUT)
            return;
    }
    CHECK(!"an attempt is in time");
}

static void *locks_second(void *unused)
{
    GIVES(0, pthread_mutex_lock(&second));
    return unused;
}

static void *waits_for_dead(void *unused)
{
    GIVES(0, pthread_mutex_lock(&first));
    crossing = gettid();
    int answer = pthread_mutex_lock(&second);
    if (answer == EDEADLK)
        refused++;
    else
        GIVES(0, pthread_mutex_unlock(&second));
    GIVES(0, pthread_mutex_unlock(&first));
    return unused;
}

/* A thread waits for a mutex whose owner has ended, and tries it each 10 ms. Before the first try, the mutex is
   initialised again, and the try closes a cycle that lasts for 3 ms. The thread gets EDEADLK only if this one does not
   execute in time. */
static void wait_for_dead(void)
{
    for (int attempt = 0; attempt < 20; attempt++) {
        make(&second, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, 0);
        join(start(locks_second, NULL));
        crossing = 0;
        pthread_t waits = start(waits_for_dead, NULL);
        while (crossing == 0)
            sleep_ms(1);
        sleep_ms(7);
        make(&second, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, 0);
        GIVES(0, pthread_mutex_lock(&second));
        for (int cycle = 0; cycle < 3; cycle++) {
            struct timespec later = in_ms(CLOCK_MONOTONIC, 3);
            if (pthread_mutex_clocklock(&first, CLOCK_MONOTONIC, &later) == 0)
                GIVES(0, pthread_mutex_unlock(&first));
            sleep_ms(1);
        }
        GIVES(0, pthread_mutex_unlock(&second));
        join(waits);
    }
    CHECK(refused <= 5);
}

int main(int arguments, char **argument)
{
    CHECK(arguments > 2);
    alarm(20);
    int protocol = strcmp(argument[1], "inherit") == 0 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE;
    int type = strcmp(argument[1], "recursive") == 0 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL;
    make(&first, type, protocol, PTHREAD_MUTEX_STALLED, 0);
    if (strcmp(argument[1], "plain") != 0)
        make(&second, type, protocol, PTHREAD_MUTEX_STALLED, 0);
    pthread_barrier_init(&both, NULL, 2);
    if (strcmp(argument[2], "passes") == 0) {
        wait_in_cycles(false);
        wait_in_cycles(true);
        return 0;
    }
    if (strcmp(argument[2], "ended") == 0) {
        wait_for_ended();
        return 0;
    }
    if (strcmp(argument[2], "again") == 0) {
        wait_for_dead();
        return 0;
    }
    pthread_t threads[2] = { start(cross, NULL), start(cross, (void *)1) };
    if (strcmp(argument[2], "refused") == 0) {
        join(threads[0]);
        join(threads[1]);
        CHECK(refused == 1);
        return 0;
    }
    struct timespec later = in_ms(CLOCK_REALTIME, 300);
    GIVES(ETIMEDOUT, pthread_timedjoin_np(threads[0], NULL, &later));
    GIVES(ETIMEDOUT, pthread_timedjoin_np(threads[1], NULL, &later));
    CHECK(refused == 0);
    return 0;
}
