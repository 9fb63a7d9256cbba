/* Semaphores: exactness, hand-over, time-outs, misuse, a signal handler, freed memory, processes. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { THREADS = 4, UNITS = 2, ROUNDS = 5000 };

#ifdef MUTANT
/* A wait takes no unit. */
#define lw_sem_wait(sem) ((void)(sem), 0)
#endif

static lw_sem_t global = LW_SEM_INITIALIZER(UNITS);
static int inside;

static void *takes_turns(void *argument) {
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        EXPECT(0, lw_sem_wait(&global));
        CHECK(__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST) < UNITS);
        if (round % 16 == 0) {
            sched_yield();
        }
        __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
        EXPECT(0, lw_sem_post(&global));
    }
    return NULL;
}

static unsigned value_of(lw_sem_t *sem) {
    unsigned value = 77;
    EXPECT(0, lw_sem_value(sem, &value));
    return value;
}

static void no_unit_is_lost(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(takes_turns, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        join(threads[i]);
    }
    CHECK(value_of(&global) == UNITS);
}

static void times_and_misuse(void) {
    lw_sem_t sem, wrong = LW_SEM_INITIALIZER(0x80000000u);
    unsigned value;
    memset(&sem, 0xa5, sizeof sem);
    EXPECT(EINVAL, lw_sem_post(&sem));
    EXPECT(EINVAL, lw_sem_trywait(&wrong));
    EXPECT(EINVAL, lw_sem_init(&sem, 2, 0));
    EXPECT(EINVAL, lw_sem_init(&sem, 0, 0x80000000u));
    EXPECT(EINVAL, lw_sem_init(NULL, 0, 0));
    EXPECT(0, lw_sem_init(&sem, 0, 1));
    EXPECT(EINVAL, lw_sem_value(&sem, NULL));
    EXPECT(0, lw_sem_wait(&sem));
    EXPECT(EAGAIN, lw_sem_trywait(&sem));
    struct timespec time = ms(20), bad = {0, 1000000000};
    EXPECT(EINVAL, lw_sem_wait_for(&sem, &bad));
    EXPECT(EINVAL, lw_sem_wait_until(&sem, CLOCK_PROCESS_CPUTIME_ID, &time));
    EXPECT(EINVAL, lw_sem_wait_until(&sem, CLOCK_MONOTONIC, NULL));
    const double begin = seconds(now(CLOCK_MONOTONIC));
    EXPECT(ETIMEDOUT, lw_sem_wait_for(&sem, &time));
    CHECK(seconds(now(CLOCK_MONOTONIC)) - begin >= 0.02);
    time = from_now(CLOCK_REALTIME, 20);
    EXPECT(ETIMEDOUT, lw_sem_wait_until(&sem, CLOCK_REALTIME, &time));
    EXPECT(0, lw_sem_post_many(&sem, 3));
    EXPECT(0, lw_sem_wait_until(&sem, CLOCK_REALTIME, &time));
    CHECK(value_of(&sem) == 2);
    EXPECT(EOVERFLOW, lw_sem_post_many(&sem, 0x7fffffffu));
    EXPECT(0, lw_sem_post_many(&sem, 0x7ffffffdu));
    EXPECT(EOVERFLOW, lw_sem_post(&sem));
    EXPECT(0, lw_sem_destroy(&sem));
    EXPECT(EINVAL, lw_sem_destroy(&sem));
    EXPECT(EINVAL, lw_sem_value(&sem, &value));
}

static void *waits(void *sem) {
    EXPECT(0, lw_sem_wait(sem));
    return NULL;
}

static lw_sem_t by_handler = LW_SEM_INITIALIZER(0);

static void handles(int number) {
    (void)number;
    EXPECT(0, lw_sem_post(&by_handler));
}

static void a_signal_handler_posts(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handles;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int round = 0; round < 100; round++) {
        CHECK(raise(SIGUSR1) == 0);
    }
    for (int round = 0; round < 100; round++) {
        EXPECT(0, lw_sem_wait(&by_handler));
    }
    EXPECT(EAGAIN, lw_sem_trywait(&by_handler));
}

struct pair {
    lw_sem_t there, back;
};

static void between_processes(void) {
    struct pair *pair = mmap(NULL, sizeof *pair, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(pair != MAP_FAILED);
    EXPECT(0, lw_sem_init(&pair->there, 1, 0));
    EXPECT(0, lw_sem_init(&pair->back, 1, 0));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        begin_test();
        for (int round = 0; round < ROUNDS; round++) {
            EXPECT(0, lw_sem_wait(&pair->there));
            EXPECT(0, lw_sem_post(&pair->back));
        }
        _exit(0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        EXPECT(0, lw_sem_post(&pair->there));
        EXPECT(0, lw_sem_wait(&pair->back));
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(0, lw_sem_destroy(&pair->there));
}

static void *posts(void *sem) {
    EXPECT(0, lw_sem_post(sem));
    return NULL;
}

/* The thread that gets the last unit unmaps the semaphore at once. */
static void memory_is_freed(void) {
    for (int round = 0; round < full_or(5000, 500); round++) {
        lw_sem_t *sem = mmap(NULL, sizeof *sem, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(sem != MAP_FAILED);
        EXPECT(0, lw_sem_init(sem, 0, 0));
        pthread_t thread = start(posts, sem);
        EXPECT(0, lw_sem_wait(sem));
        CHECK(munmap(sem, sizeof *sem) == 0);
        join(thread);
    }
}

int main(void) {
    begin_test();
    no_unit_is_lost();
    times_and_misuse();
    a_signal_handler_posts();
    lw_sem_t sem;
    EXPECT(0, lw_sem_init(&sem, 0, 0));
    pthread_t thread = start(waits, &sem);
    struct timespec time = ms(50);
    nanosleep(&time, NULL);
    EXPECT(EBUSY, lw_sem_destroy(&sem));
    EXPECT(0, lw_sem_post(&sem));
    join(thread);
    EXPECT(0, lw_sem_destroy(&sem));
    between_processes();
    memory_is_freed();
    return 0;
}
