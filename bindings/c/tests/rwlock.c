/* Reader-writer locks: readers share, writers exclude; time-outs; misuse; threads of several processes. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { READERS = 3, WRITERS = 2, ROUNDS = 5000 };

#ifdef MUTANT
/* Writers exclude nobody. */
#define lw_rwlock_wrlock(rwlock) 0
#define unlock_after_writing(rwlock) 0
#else
#define unlock_after_writing(rwlock) lw_rwlock_unlock(rwlock)
#endif

struct pair {
    lw_rwlock_t lock;
    volatile long one, other;
};

static struct pair here = {.lock = LW_RWLOCK_INITIALIZER};

static void *writes(void *argument) {
    struct pair *pair = argument;
    for (int round = 0; round < ROUNDS; round++) {
        EXPECT(0, lw_rwlock_wrlock(&pair->lock));
        long seen = pair->one;
        if (round % 16 == 0) {
            sched_yield();
        }
        pair->one = seen + 1;
        pair->other++;
        EXPECT(0, unlock_after_writing(&pair->lock));
    }
    return NULL;
}

static void *reads(void *argument) {
    struct pair *pair = argument;
    for (int round = 0; round < ROUNDS; round++) {
        EXPECT(0, lw_rwlock_rdlock(&pair->lock));
        long seen = pair->one;
        if (round % 16 == 0) {
            sched_yield();
        }
        CHECK(pair->other == seen && pair->one == seen);
        EXPECT(0, lw_rwlock_unlock(&pair->lock));
    }
    return NULL;
}

static void nothing_is_lost(void) {
    pthread_t threads[READERS + WRITERS];
    for (int i = 0; i < READERS + WRITERS; i++) {
        threads[i] = start(i < READERS ? reads : writes, &here);
    }
    for (int i = 0; i < READERS + WRITERS; i++) {
        join(threads[i]);
    }
    CHECK(here.one == WRITERS * ROUNDS && here.other == WRITERS * ROUNDS);
}

static void *finds_it_read(void *argument) {
    lw_rwlock_t *lock = argument;
    EXPECT(0, lw_rwlock_tryrdlock(lock));
    EXPECT(0, lw_rwlock_rdlock_nested(lock));
    EXPECT(0, lw_rwlock_unlock(lock));
    EXPECT(0, lw_rwlock_unlock(lock));
    EXPECT(EBUSY, lw_rwlock_trywrlock(lock));
    const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};
    for (int i = 0; i < 2; i++) {
        struct timespec until = from_now(clocks[i], 20);
        EXPECT(ETIMEDOUT, lw_rwlock_wrlock_until(lock, clocks[i], &until));
        CHECK(seconds(now(clocks[i])) >= seconds(until));
        EXPECT(0, lw_rwlock_rdlock_until(lock, clocks[i], &until));
        EXPECT(0, lw_rwlock_unlock(lock));
    }
    struct timespec time = ms(1);
    EXPECT(ETIMEDOUT, lw_rwlock_wrlock_for(lock, &time));
    return NULL;
}

static void *finds_it_written(void *argument) {
    lw_rwlock_t *lock = argument;
    EXPECT(EBUSY, lw_rwlock_tryrdlock(lock));
    EXPECT(EBUSY, lw_rwlock_trywrlock(lock));
    EXPECT(EPERM, lw_rwlock_unlock(lock));
    struct timespec until = from_now(CLOCK_REALTIME, 20), time = ms(1);
    EXPECT(ETIMEDOUT, lw_rwlock_rdlock_until(lock, CLOCK_REALTIME, &until));
    CHECK(seconds(now(CLOCK_REALTIME)) >= seconds(until));
    EXPECT(ETIMEDOUT, lw_rwlock_rdlock_for(lock, &time));
    EXPECT(ETIMEDOUT, lw_rwlock_wrlock_for(lock, &time));
    return NULL;
}

static void times_and_misuse(void) {
    lw_rwlock_t lock;
    memset(&lock, 0xff, sizeof lock);
    EXPECT(EINVAL, lw_rwlock_rdlock(&lock));
    EXPECT(EINVAL, lw_rwlock_unlock(&lock));
    EXPECT(EINVAL, lw_rwlock_init(&lock, 2));
    EXPECT(EINVAL, lw_rwlock_init(NULL, 0));
    EXPECT(0, lw_rwlock_init(&lock, 0));
    EXPECT(EPERM, lw_rwlock_unlock(&lock));
    EXPECT(0, lw_rwlock_rdlock(&lock));
    EXPECT(EBUSY, lw_rwlock_destroy(&lock));
    join(start(finds_it_read, &lock));
    EXPECT(0, lw_rwlock_unlock(&lock));
    struct timespec time = ms(100), wrong = {0, 1000000000};
    EXPECT(EINVAL, lw_rwlock_wrlock_for(&lock, &wrong));
    EXPECT(EINVAL, lw_rwlock_rdlock_until(&lock, CLOCK_PROCESS_CPUTIME_ID, &time));
    EXPECT(EINVAL, lw_rwlock_rdlock_until(&lock, CLOCK_MONOTONIC, NULL));
    EXPECT(0, lw_rwlock_wrlock_for(&lock, &time));
    EXPECT(EBUSY, lw_rwlock_destroy(&lock));
    EXPECT(EDEADLK, lw_rwlock_rdlock(&lock));
    EXPECT(EDEADLK, lw_rwlock_wrlock_for(&lock, &time));
    EXPECT(EBUSY, lw_rwlock_tryrdlock(&lock));
    join(start(finds_it_written, &lock));
    EXPECT(0, lw_rwlock_unlock(&lock));
    EXPECT(0, lw_rwlock_trywrlock(&lock));
    EXPECT(0, lw_rwlock_unlock(&lock));
    EXPECT(0, lw_rwlock_destroy(&lock));
    EXPECT(EINVAL, lw_rwlock_destroy(&lock));
    EXPECT(EINVAL, lw_rwlock_tryrdlock(&lock));
}

static void between_processes(void) {
    struct pair *pair = mmap(NULL, sizeof *pair, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(pair != MAP_FAILED);
    EXPECT(0, lw_rwlock_init(&pair->lock, 1));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        begin_test();
        writes(pair);
        reads(pair);
        _exit(0);
    }
    reads(pair);
    writes(pair);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(pair->one == 2 * ROUNDS && pair->other == 2 * ROUNDS);
    EXPECT(0, lw_rwlock_destroy(&pair->lock));
}

int main(void) {
    begin_test();
    nothing_is_lost();
    times_and_misuse();
    between_processes();
    return 0;
}
