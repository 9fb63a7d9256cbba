/* Ceilings: the level of an owner, refused callers, and changes while a mutex is held; also for robust mutexes. */
#include "check.h"

static pthread_mutex_t low, high;

static void *take_and_end(void *taken)
{
    become_fifo(3);
    GIVES(0, pthread_mutex_lock(taken));
    return NULL;
}

static void is(int own, int kernel)
{
    int policy;
    struct sched_param param;
    GIVES(0, pthread_getschedparam(pthread_self(), &policy, &param));
    CHECK(policy == SCHED_FIFO && param.sched_priority == own);
    CHECK(level_now() == kernel);
}

int main(void)
{
    become_fifo(4);
    make(&low, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_PROTECT, PTHREAD_MUTEX_STALLED, 0);
    make(&high, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_PROTECT, PTHREAD_MUTEX_STALLED, 0);
    int before;
    GIVES(0, pthread_mutex_getprioceiling(&low, &before));
    CHECK(before == 20);
    GIVES(0, pthread_mutex_setprioceiling(&high, 30, &before));
    CHECK(before == 20);
    GIVES(EINVAL, pthread_mutex_setprioceiling(&high, 0, &before));
    GIVES(EINVAL, pthread_mutex_setprioceiling(&high, 100, &before));

    is(4, 4);
    GIVES(0, pthread_mutex_lock(&low));
    is(4, 20);
    GIVES(0, pthread_mutex_trylock(&high));
    is(4, 30);
    GIVES(0, pthread_mutex_unlock(&low));
    is(4, 30);
    GIVES(0, pthread_mutex_lock(&low));
    GIVES(0, pthread_mutex_unlock(&high));
    is(4, 20);

    /* The thread's own level changes below a ceiling, and above it. */
    struct sched_param param = { .sched_priority = 7 };
    GIVES(0, pthread_setschedparam(pthread_self(), SCHED_FIFO, &param));
    is(7, 20);
    GIVES(0, pthread_setschedprio(pthread_self(), 25));
    is(25, 25);
    GIVES(0, pthread_setschedprio(pthread_self(), 6));
    is(6, 20);
    /* A ceiling changes while its owner holds the mutex. */
    GIVES(0, pthread_mutex_setprioceiling(&low, 22, &before));
    is(6, 22);
    GIVES(0, pthread_mutex_unlock(&low));
    is(6, 6);

    become_fifo(40);
    GIVES(EINVAL, pthread_mutex_lock(&low));
    GIVES(EINVAL, pthread_mutex_trylock(&low));
    struct timespec soon = in_ms(CLOCK_REALTIME, 10);
    GIVES(EINVAL, pthread_mutex_timedlock(&low, &soon));
    is(40, 40);
    /* A thread that changes a ceiling need not be below it. */
    GIVES(0, pthread_mutex_setprioceiling(&low, 45, &before));
    CHECK(before == 22);
    GIVES(0, pthread_mutex_lock(&low));
    is(40, 45);
    GIVES(0, pthread_mutex_unlock(&low));

    /* The same from the ordinary policy. */
    param.sched_priority = 0;
    GIVES(0, pthread_setschedparam(pthread_self(), SCHED_OTHER, &param));
    GIVES(0, pthread_mutex_lock(&low));
    CHECK(level_now() == 45);
    GIVES(0, pthread_mutex_unlock(&low));
    CHECK(level_now() == 0);

    /* Robust mutexes with a ceiling, which the C library does not support. */
    pthread_mutex_t robust;
    make(&robust, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_PROTECT, PTHREAD_MUTEX_ROBUST, 0);
    become_fifo(4);
    join(start(take_and_end, &robust));
    GIVES(EOWNERDEAD, pthread_mutex_lock(&robust));
    is(4, 20);
    GIVES(0, pthread_mutex_consistent(&robust));
    GIVES(0, pthread_mutex_unlock(&robust));
    is(4, 4);
    join(start(take_and_end, &robust));
    GIVES(EOWNERDEAD, pthread_mutex_setprioceiling(&robust, 21, &before));
    is(4, 20);
    GIVES(0, pthread_mutex_unlock(&robust));
    is(4, 4);
    GIVES(ENOTRECOVERABLE, pthread_mutex_lock(&robust));
    is(4, 4);
    GIVES(0, pthread_mutex_destroy(&robust));
    return 0;
}
