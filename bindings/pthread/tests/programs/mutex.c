/* Mutexes of every type and protocol: which calls succeed, which are refused, and how. */
#include "check.h"

static pthread_mutex_t mutex;
static atomic_int answer;

enum { LOCK, TRY, TIMED, CLOCKED, UNLOCK };

static int call(int what)
{
    struct timespec soon = in_ms(CLOCK_REALTIME, 10), soon_by_monotonic = in_ms(CLOCK_MONOTONIC, 10);
    switch (what) {
    case LOCK:
        return pthread_mutex_lock(&mutex);
    case TRY:
        return pthread_mutex_trylock(&mutex);
    case TIMED:
        return pthread_mutex_timedlock(&mutex, &soon);
    case CLOCKED:
        return pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon_by_monotonic);
    default:
        return pthread_mutex_unlock(&mutex);
    }
}

static void *call_there(void *what)
{
    answer = call((int)(long)what);
    return NULL;
}

/* Returns the result of the call in another thread. */
static int other(int what)
{
    join(start(call_there, (void *)(long)what));
    return answer;
}

static void one(int type, int protocol, int robust, int shared)
{
    bool asks_owner = type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK || robust || protocol;
    struct timespec past = { 0, 0 }, before_the_start = { -5, 0 }, none = { 5, 1000000000 }, negative = { 5, -1 };
    struct timespec later = in_ms(CLOCK_REALTIME, 5000);

    make(&mutex, type, protocol, robust, shared);
    for (int what = LOCK; what <= CLOCKED; what++) {
        GIVES(0, call(what));
        GIVES(EBUSY, other(TRY));
        double start = now_ms(CLOCK_MONOTONIC);
        GIVES(ETIMEDOUT, other(TIMED));
        GIVES(ETIMEDOUT, other(CLOCKED));
        CHECK(now_ms(CLOCK_MONOTONIC) - start > 19);
        if (asks_owner)
            GIVES(EPERM, other(UNLOCK));
        /* The C library destroys a shared robust mutex. */
        if (!robust || !shared)
            GIVES(EBUSY, pthread_mutex_destroy(&mutex));
        GIVES(0, call(UNLOCK));
    }
    if (asks_owner)
        GIVES(EPERM, call(UNLOCK));

    /* The time matters only if the thread must wait. */
    GIVES(0, pthread_mutex_timedlock(&mutex, &past));
    GIVES(0, call(UNLOCK));
    GIVES(0, pthread_mutex_timedlock(&mutex, &none));
    GIVES(0, call(UNLOCK));
    GIVES(0, pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &negative));
    GIVES(0, call(UNLOCK));
    GIVES(EINVAL, pthread_mutex_clocklock(&mutex, CLOCK_BOOTTIME, &later));

    /* The owner locks once more. */
    GIVES(0, call(LOCK));
    switch (type) {
    case PTHREAD_MUTEX_RECURSIVE:
        for (int what = LOCK; what <= CLOCKED; what++)
            GIVES(0, call(what));
        GIVES(EBUSY, other(TRY));
        for (int what = LOCK; what <= CLOCKED; what++)
            GIVES(0, call(UNLOCK));
        GIVES(EBUSY, other(TRY));
        break;
    case PTHREAD_MUTEX_ERRORCHECK:
        GIVES(EDEADLK, call(LOCK));
        GIVES(EDEADLK, call(TIMED));
        GIVES(EDEADLK, pthread_mutex_timedlock(&mutex, &none));
        GIVES(EBUSY, call(TRY));
        break;
    default:
        GIVES(EBUSY, call(TRY));
        GIVES(ETIMEDOUT, call(TIMED));
        GIVES(ETIMEDOUT, call(CLOCKED));
        GIVES(ETIMEDOUT, pthread_mutex_timedlock(&mutex, &past));
        GIVES(ETIMEDOUT, pthread_mutex_timedlock(&mutex, &before_the_start));
        GIVES(EINVAL, pthread_mutex_timedlock(&mutex, &none));
        GIVES(EINVAL, pthread_mutex_timedlock(&mutex, &negative));
    }
    GIVES(0, call(UNLOCK));

    if (!robust)
        GIVES(EINVAL, pthread_mutex_consistent(&mutex));
    int ceiling;
    if (protocol != PTHREAD_PRIO_PROTECT) {
        GIVES(EINVAL, pthread_mutex_getprioceiling(&mutex, &ceiling));
        GIVES(EINVAL, pthread_mutex_setprioceiling(&mutex, 10, &ceiling));
    }
    GIVES(0, pthread_mutex_destroy(&mutex));
    GIVES(EINVAL, pthread_mutex_lock(&mutex));
    GIVES(EINVAL, pthread_mutex_unlock(&mutex));
}

static pthread_mutex_t initialised[] = {
    PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
    PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
    PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
};

static long counted;

static void *count(void *contended)
{
    for (int i = 0; i < 5000; i++) {
        GIVES(0, pthread_mutex_lock(contended));
        counted++;
        GIVES(0, pthread_mutex_unlock(contended));
    }
    return NULL;
}

static void exclude(pthread_mutex_t *contended)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    counted = 0;
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(count, contended);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    CHECK(counted == THREADS * 5000);
}

static atomic_int twice_by;
static atomic_bool has_it_twice;

static void *locks_twice(void *contended)
{
    GIVES(0, pthread_mutex_lock(contended));
    twice_by = gettid();
    GIVES(0, pthread_mutex_lock(contended));
    has_it_twice = true;
    return NULL;
}

/* A thread waits for itself for ever. It does not access the memory any more, which then has another mutex. */
static void leave_behind(void)
{
    static pthread_mutex_t left;
    make(&left, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, 0);
    start(locks_twice, &left);
    while (!twice_by)
        sched_yield();
    until_asleep(twice_by);
    sleep_ms(5);
    make(&left, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, 0);
    sleep_ms(100);
    GIVES(0, pthread_mutex_trylock(&left));
    CHECK(!has_it_twice);
    GIVES(0, pthread_mutex_unlock(&left));
}

int main(int arguments, char **argument)
{
    bool with_ceilings = arguments > 1 && strcmp(argument[1], "ceilings") == 0;
    if (with_ceilings)
        become_fifo(2);
    for (int type = PTHREAD_MUTEX_NORMAL; type <= PTHREAD_MUTEX_ADAPTIVE_NP; type++) {
        for (int robust = PTHREAD_MUTEX_STALLED; robust <= PTHREAD_MUTEX_ROBUST; robust++) {
            for (int shared = 0; shared <= 1; shared++) {
                /* Shared mutexes are the C library's. */
                if (with_ceilings) {
                    if (!shared)
                        one(type, PTHREAD_PRIO_PROTECT, robust, shared);
                    continue;
                }
                if (!shared) {
                    one(type, PTHREAD_PRIO_NONE, robust, shared);
                    one(type, PTHREAD_PRIO_INHERIT, robust, shared);
                }
                make(&mutex, type, PTHREAD_PRIO_NONE, robust, shared);
                GIVES(0, call(LOCK));
                GIVES(EBUSY, other(TRY));
                GIVES(type == PTHREAD_MUTEX_RECURSIVE ? 0 : EBUSY, call(TRY));
                if (type == PTHREAD_MUTEX_RECURSIVE)
                    GIVES(0, call(UNLOCK));
                GIVES(0, call(UNLOCK));
                GIVES(0, pthread_mutex_destroy(&mutex));
                for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++) {
                    make(&mutex, type, protocol, robust, shared);
                    exclude(&mutex);
                    GIVES(0, pthread_mutex_destroy(&mutex));
                }
            }
        }
    }
    for (size_t i = 0; i < sizeof initialised / sizeof *initialised; i++)
        exclude(&initialised[i]);
    GIVES(EPERM, pthread_mutex_unlock(&initialised[1]));
    GIVES(0, pthread_mutex_lock(&initialised[2]));
    GIVES(EDEADLK, pthread_mutex_lock(&initialised[2]));

    leave_behind();

    /* The functions leave errno unchanged. */
    errno = 4711;
    GIVES(0, pthread_mutex_lock(&initialised[0]));
    struct timespec soon = in_ms(CLOCK_REALTIME, 10);
    GIVES(ETIMEDOUT, pthread_mutex_timedlock(&initialised[0], &soon));
    GIVES(0, pthread_mutex_unlock(&initialised[0]));
    CHECK(errno == 4711);
    return 0;
}
