/* FIFO mutexes: exclusion, the order of requests, time-outs, misuse, the end of an owner. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <sys/syscall.h>

enum { THREADS = 4, ROUNDS = 5000, WAITERS = 6 };

#ifdef MUTANT
/* A holder that asks again is served before the waiters. */
#define ask_again(mutex) ((void)(mutex), 0)
#else
#define ask_again(mutex) (lw_fifo_mutex_unlock(mutex) == 0 ? lw_fifo_mutex_lock(mutex) : -1)
#endif

static lw_fifo_mutex_t mutex = LW_FIFO_MUTEX_INITIALIZER;
static volatile long total;

static void *counts(void *unused) {
    for (int round = 0; round < ROUNDS; round++) {
        EXPECT(0, lw_fifo_mutex_lock(&mutex));
        long seen = total;
        if (round % 64 == 0) {
            sched_yield();
        }
        total = seen + 1;
        EXPECT(0, lw_fifo_mutex_unlock(&mutex));
    }
    return unused;
}

static void nothing_is_lost(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(counts, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        join(threads[i]);
    }
    CHECK(total == (long)THREADS * ROUNDS);
}

/* Waits until a thread is suspended. */
static void sleeps(const pid_t *thread) {
    struct timespec nap = ms(1);
    char path[64], text[512];
    for (int i = 0; i < WAIT_S_MAX * 1000; i++) {
        pid_t id = __atomic_load_n(thread, __ATOMIC_ACQUIRE);
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)id);
        FILE *file = id != 0 ? fopen(path, "r") : NULL;
        if (file) {
            const char *name_end = fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
            fclose(file);
            if (name_end && name_end[1] == ' ' && name_end[2] == 'S') {
                return;
            }
        }
        nanosleep(&nap, NULL);
    }
    CHECK(!"the thread waits");
}

struct waiter {
    pid_t id;
    int number;
};

static int served[2 * WAITERS], count;

static void *waits(void *argument) {
    struct waiter *waiter = argument;
    __atomic_store_n(&waiter->id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    EXPECT(0, lw_fifo_mutex_lock(&mutex));
    served[count++] = waiter->number;
    EXPECT(0, lw_fifo_mutex_unlock(&mutex));
    return NULL;
}

/* The holder asks again at once, behind all waiters. */
static void requests_are_served_in_order(void) {
    pthread_t threads[WAITERS];
    struct waiter waiters[WAITERS];
    EXPECT(0, lw_fifo_mutex_lock(&mutex));
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){.number = i};
        threads[i] = start(waits, &waiters[i]);
        sleeps(&waiters[i].id);
    }
    EXPECT(0, ask_again(&mutex));
    served[count++] = WAITERS;
    EXPECT(0, lw_fifo_mutex_unlock(&mutex));
    for (int i = 0; i < WAITERS; i++) {
        join(threads[i]);
    }
    for (int i = 0; i <= WAITERS; i++) {
        CHECK(served[i] == i);
    }
}

static void *cannot_have_it(void *unused) {
    struct timespec wait = ms(20), at = from_now(CLOCK_REALTIME, 20), negative = {.tv_sec = -1};
    EXPECT(EBUSY, lw_fifo_mutex_trylock(&mutex));
    EXPECT(EBUSY, lw_fifo_mutex_destroy(&mutex));
    EXPECT(EPERM, lw_fifo_mutex_unlock(&mutex));
    CHECK(lw_fifo_mutex_is_mine(&mutex) == 0);
    double before = seconds(now(CLOCK_MONOTONIC));
    EXPECT(ETIMEDOUT, lw_fifo_mutex_lock_for(&mutex, &wait));
    CHECK(seconds(now(CLOCK_MONOTONIC)) - before >= 0.02);
    EXPECT(ETIMEDOUT, lw_fifo_mutex_lock_until(&mutex, CLOCK_REALTIME, &at));
    EXPECT(EINVAL, lw_fifo_mutex_lock_until(&mutex, CLOCK_PROCESS_CPUTIME_ID, &at));
    EXPECT(EINVAL, lw_fifo_mutex_lock_for(&mutex, &negative));
    EXPECT(EINVAL, lw_fifo_mutex_lock_for(&mutex, NULL));
    return unused;
}

static void misuse(void) {
    static lw_fifo_mutex_t other;
    memset(&other, 0xa5, sizeof other);
    EXPECT(EINVAL, lw_fifo_mutex_lock(&other));
    EXPECT(EINVAL, lw_fifo_mutex_lock(NULL));
    EXPECT(EINVAL, lw_fifo_mutex_unlock(&other));
    EXPECT(EINVAL, lw_fifo_mutex_init(NULL));
    EXPECT(EINVAL, lw_fifo_mutex_init((lw_fifo_mutex_t *)((char *)&other + 1)));
    CHECK(lw_fifo_mutex_is_mine(NULL) == 0);
    EXPECT(0, lw_fifo_mutex_init(&other));
    EXPECT(EPERM, lw_fifo_mutex_unlock(&other));
    EXPECT(0, lw_fifo_mutex_trylock(&other));
    CHECK(lw_fifo_mutex_is_mine(&other) == 1);
    EXPECT(EDEADLK, lw_fifo_mutex_lock(&other));
    EXPECT(EBUSY, lw_fifo_mutex_trylock(&other));
    EXPECT(EBUSY, lw_fifo_mutex_destroy(&other));
    EXPECT(0, lw_fifo_mutex_unlock(&other));
    EXPECT(0, lw_fifo_mutex_destroy(&other));
    EXPECT(EINVAL, lw_fifo_mutex_lock(&other));
    EXPECT(EINVAL, lw_fifo_mutex_destroy(&other));
}

static void *ends_with_it(void *argument) {
    EXPECT(0, lw_fifo_mutex_lock(argument));
    return NULL;
}

static void an_owner_that_ended_is_told(void) {
    static lw_fifo_mutex_t lost = LW_FIFO_MUTEX_INITIALIZER;
    join(start(ends_with_it, &lost));
    EXPECT(ENOTRECOVERABLE, lw_fifo_mutex_lock(&lost));
    EXPECT(ENOTRECOVERABLE, lw_fifo_mutex_trylock(&lost));
    EXPECT(0, lw_fifo_mutex_destroy(&lost));
    EXPECT(0, lw_fifo_mutex_init(&lost));
    EXPECT(0, lw_fifo_mutex_lock(&lost));
}

int main(void) {
    begin_test();
    nothing_is_lost();
    requests_are_served_in_order();
    EXPECT(0, lw_fifo_mutex_lock(&mutex));
    join(start(cannot_have_it, NULL));
    EXPECT(0, lw_fifo_mutex_unlock(&mutex));
    misuse();
    an_owner_that_ended_is_told();
    EXPECT(0, lw_fifo_mutex_destroy(&mutex));
    return 0;
}
