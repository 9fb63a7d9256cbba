/* Mutexes with all options: exclusion, time-outs, ownership and recursion. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <sys/syscall.h>

enum { THREADS = 4 };

#ifdef MUTANT
/* Locking excludes no thread. */
#define lw_mutex_lock(mutex) 0
#define lw_mutex_unlock(mutex) 0
#endif

static lw_mutex_t mutex;
static volatile long count;
static int rounds;

static void *counts(void *unused) {
    for (int i = 0; i < rounds; i++) {
        EXPECT(0, lw_mutex_lock(&mutex));
        long seen = count;
        if (i % 16 == 0) {
            sched_yield();
        }
        count = seen + 1;
        EXPECT(0, lw_mutex_unlock(&mutex));
    }
    return unused;
}

static void nothing_is_lost(void) {
    pthread_t threads[THREADS];
    count = 0;
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(counts, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        join(threads[i]);
    }
    CHECK(count == (long)THREADS * rounds);
}

/* Requests a mutex that another thread holds. */
static void *meets(void *unused) {
    struct timespec begin = now(CLOCK_MONOTONIC), time = ms(1);
    EXPECT(EBUSY, lw_mutex_trylock(&mutex));
    EXPECT(ETIMEDOUT, lw_mutex_lock_for(&mutex, &time));
    CHECK(seconds(now(CLOCK_MONOTONIC)) - seconds(begin) >= 0.001);
    const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};
    for (int i = 0; i < 2; i++) {
        struct timespec until = from_now(clocks[i], 1);
        EXPECT(ETIMEDOUT, lw_mutex_lock_until(&mutex, clocks[i], &until));
        CHECK(seconds(now(clocks[i])) >= seconds(until));
    }
    EXPECT(EPERM, lw_mutex_unlock(&mutex));
    CHECK(!lw_mutex_is_mine(&mutex));
    uint32_t owner;
    EXPECT(0, lw_mutex_owner(&mutex, &owner));
    CHECK(owner == (uint32_t)getpid());
    return unused;
}

static void an_owner_is_known(int is_recursive) {
    uint32_t owner = 1;
    EXPECT(0, lw_mutex_owner(&mutex, &owner));
    CHECK(owner == 0);
    EXPECT(EPERM, lw_mutex_unlock(&mutex));
    EXPECT(0, lw_mutex_lock(&mutex));
    EXPECT(0, lw_mutex_owner(&mutex, &owner));
    CHECK(owner == (uint32_t)syscall(SYS_gettid) && lw_mutex_is_mine(&mutex));
    struct timespec time = ms(1);
    EXPECT(is_recursive ? 0 : EDEADLK, lw_mutex_lock(&mutex));
    EXPECT(is_recursive ? 0 : EDEADLK, lw_mutex_lock_for(&mutex, &time));
    EXPECT(is_recursive ? 0 : EBUSY, lw_mutex_trylock(&mutex));
    EXPECT(EBUSY, lw_mutex_destroy(&mutex));
    for (int i = 0; i < (is_recursive ? 3 : 0); i++) {
        EXPECT(0, lw_mutex_unlock(&mutex));
        CHECK(lw_mutex_is_mine(&mutex));
    }
    join(start(meets, NULL));
    EXPECT(0, lw_mutex_unlock(&mutex));
    EXPECT(EPERM, lw_mutex_unlock(&mutex));
    EXPECT(0, lw_mutex_trylock(&mutex));
    EXPECT(0, lw_mutex_unlock(&mutex));
    time = ms(0);
    EXPECT(0, lw_mutex_lock_for(&mutex, &time));
    EXPECT(0, lw_mutex_unlock(&mutex));
}

int main(void) {
    begin_test();
    rounds = full_or(2000, 400);
    for (unsigned bits = 0; bits < 64; bits++) {
        for (uint32_t unlock = LW_UNLOCK_AUTO; unlock <= LW_UNLOCK_PARALLEL; unlock++) {
            lw_mutex_options_t options = {.unlock = unlock};
            options.protocol = bits & 1 ? LW_PROTOCOL_NONE : LW_PROTOCOL_INHERIT;
            options.robust = bits >> 1 & 1;
            options.shared = bits >> 2 & 1;
            options.recursive = bits >> 3 & 1;
            options.unchecked = bits >> 4 & 1;
            options.kernel_owned = bits >> 5 & 1;
            EXPECT(0, lw_mutex_init(&mutex, &options));
            an_owner_is_known(bits >> 3 & 1);
            /* Threads are slow under a sanitizer, so only every fifth combination runs this. */
            if ((bits + unlock) % 5 == 0) {
                nothing_is_lost();
            }
            EXPECT(0, lw_mutex_destroy(&mutex));
        }
    }
    return 0;
}
