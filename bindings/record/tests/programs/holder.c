/* `waiter` waits ten times for a mutex that `holder` holds for some milliseconds. It prints how long each wait took by its
   own clock, in ns. With the argument `inherit`, the mutex inherits and `waiter` is a real-time thread. */
#include "check.h"

enum { WAITS = 10 };

pthread_mutex_t bus = PTHREAD_MUTEX_INITIALIZER;
static atomic_int turn, waiter;

static long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void *holds(void *unused)
{
    pthread_setname_np(pthread_self(), "holder");
    for (int round = 0; round < WAITS; round++) {
        pthread_mutex_lock(&bus);
        atomic_store(&turn, 2 * round + 1);
        until_waits(&waiter);
        pause_ms(1 + round % 3);
        pthread_mutex_unlock(&bus);
        while (atomic_load(&turn) != 2 * round + 2)
            pause_ms(1);
    }
    return unused;
}

int main(int arguments, char **argument)
{
    int inherits = arguments > 1 && strcmp(argument[1], "inherit") == 0;
    make(&bus, PTHREAD_MUTEX_NORMAL, inherits ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, 0);
    pthread_setname_np(pthread_self(), "waiter");
    atomic_store(&waiter, (int)syscall(SYS_gettid));
    pthread_t thread = start(holds, NULL);
    struct sched_param fifo = { .sched_priority = 10 };
    if (inherits && pthread_setschedparam(pthread_self(), SCHED_FIFO, &fifo) != 0)
        return 77;
    for (int round = 0; round < WAITS; round++) {
        while (atomic_load(&turn) != 2 * round + 1)
            pause_ms(1);
        long from = now_ns();
        pthread_mutex_lock(&bus);
        long until = now_ns();
        pthread_mutex_unlock(&bus);
        printf("%ld\n", until - from);
        atomic_store(&turn, 2 * round + 2);
    }
    fflush(stdout);
    join(thread);
    return 0;
}
