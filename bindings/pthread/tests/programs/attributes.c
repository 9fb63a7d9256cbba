/* Attributes: each keeps its value, and refuses invalid values. */
#include "check.h"

int pthread_mutexattr_setkind_np(pthread_mutexattr_t *, int);
int pthread_mutexattr_getkind_np(const pthread_mutexattr_t *, int *);

int main(void)
{
    pthread_mutexattr_t of_mutex;
    pthread_condattr_t of_cond;
    int value;

    GIVES(0, pthread_mutexattr_init(&of_mutex));
#define DEFAULT(name, expected) \
    GIVES(0, pthread_mutexattr_get##name(&of_mutex, &value)); \
    CHECK(value == expected)
#define KEEPS(name, kept) \
    GIVES(0, pthread_mutexattr_set##name(&of_mutex, kept)); \
    GIVES(0, pthread_mutexattr_get##name(&of_mutex, &value)); \
    CHECK(value == kept)
#define REFUSES(name, refused) GIVES(EINVAL, pthread_mutexattr_set##name(&of_mutex, refused))

    DEFAULT(type, PTHREAD_MUTEX_DEFAULT);
    DEFAULT(pshared, PTHREAD_PROCESS_PRIVATE);
    DEFAULT(protocol, PTHREAD_PRIO_NONE);
    DEFAULT(robust, PTHREAD_MUTEX_STALLED);
    DEFAULT(prioceiling, 1);
    for (int type = PTHREAD_MUTEX_NORMAL; type <= PTHREAD_MUTEX_ADAPTIVE_NP; type++) {
        KEEPS(type, type);
    }
    KEEPS(pshared, PTHREAD_PROCESS_SHARED);
    KEEPS(robust, PTHREAD_MUTEX_ROBUST);
    KEEPS(protocol, PTHREAD_PRIO_INHERIT);
    KEEPS(protocol, PTHREAD_PRIO_PROTECT);
    KEEPS(prioceiling, 99);
    KEEPS(prioceiling, 1);
    REFUSES(type, -1);
    REFUSES(type, 4);
    REFUSES(pshared, 2);
    REFUSES(robust, 2);
    REFUSES(protocol, 3);
    REFUSES(prioceiling, 0);
    REFUSES(prioceiling, 100);
    /* None of these changed another attribute. */
    DEFAULT(type, PTHREAD_MUTEX_ADAPTIVE_NP);
    DEFAULT(pshared, PTHREAD_PROCESS_SHARED);
    DEFAULT(robust, PTHREAD_MUTEX_ROBUST);
    DEFAULT(protocol, PTHREAD_PRIO_PROTECT);
    KEEPS(pshared, PTHREAD_PROCESS_PRIVATE);
    KEEPS(robust, PTHREAD_MUTEX_STALLED);
    KEEPS(protocol, PTHREAD_PRIO_NONE);
    GIVES(0, pthread_mutexattr_destroy(&of_mutex));

    GIVES(0, pthread_condattr_init(&of_cond));
    clockid_t clock;
    GIVES(0, pthread_condattr_getclock(&of_cond, &clock));
    CHECK(clock == CLOCK_REALTIME);
    GIVES(0, pthread_condattr_setclock(&of_cond, CLOCK_MONOTONIC));
    GIVES(0, pthread_condattr_setpshared(&of_cond, PTHREAD_PROCESS_SHARED));
    GIVES(0, pthread_condattr_getclock(&of_cond, &clock));
    CHECK(clock == CLOCK_MONOTONIC);
    GIVES(0, pthread_condattr_getpshared(&of_cond, &value));
    CHECK(value == PTHREAD_PROCESS_SHARED);
    GIVES(EINVAL, pthread_condattr_setclock(&of_cond, CLOCK_PROCESS_CPUTIME_ID));
    GIVES(EINVAL, pthread_condattr_setpshared(&of_cond, 2));
    GIVES(0, pthread_condattr_destroy(&of_cond));
    return 0;
}
