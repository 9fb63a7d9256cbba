/* Barriers: rounds and leaders, misuse, freed memory, processes. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { THREADS = 4, ROUNDS = 3000 };

#ifdef MUTANT
/* Nobody waits. */
#define lw_barrier_wait(barrier, is_leader) ((void)(barrier), *(is_leader) = 0)
#endif

static lw_barrier_t global = LW_BARRIER_INITIALIZER(THREADS);
static int arrived, leaders;

static void *meets(void *argument) {
    (void)argument;
    for (int round = 1; round <= ROUNDS; round++) {
        int is_leader = 77;
        __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
        EXPECT(0, lw_barrier_wait(&global, &is_leader));
        CHECK(is_leader == 0 || is_leader == 1);
        __atomic_fetch_add(&leaders, is_leader, __ATOMIC_RELAXED);
        int seen = __atomic_load_n(&arrived, __ATOMIC_RELAXED);
        CHECK(seen >= round * THREADS && seen < (round + 1) * THREADS);
    }
    return NULL;
}

static void all_meet(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(meets, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        join(threads[i]);
    }
    CHECK(leaders == ROUNDS);
    EXPECT(0, lw_barrier_destroy(&global));
}

static void misuse(void) {
    lw_barrier_t barrier, none = LW_BARRIER_INITIALIZER(0);
    int is_leader = 0;
    memset(&barrier, 0xa5, sizeof barrier);
    EXPECT(EINVAL, lw_barrier_wait(&barrier, &is_leader));
    EXPECT(EINVAL, lw_barrier_wait(&none, &is_leader));
    EXPECT(EINVAL, lw_barrier_init(&barrier, 0, 0));
    EXPECT(EINVAL, lw_barrier_init(&barrier, -1, 1));
    EXPECT(EINVAL, lw_barrier_init(NULL, 0, 1));
    EXPECT(0, lw_barrier_init(&barrier, 0, 1));
    EXPECT(0, lw_barrier_wait(&barrier, &is_leader));
    CHECK(is_leader == 1);
    EXPECT(0, lw_barrier_wait(&barrier, (int *)NULL));
    EXPECT(0, lw_barrier_destroy(&barrier));
    EXPECT(EINVAL, lw_barrier_destroy(&barrier));
}

static void *meets_and_frees(void *argument) {
    lw_barrier_t *barrier = argument;
    int is_leader = 0;
    EXPECT(0, lw_barrier_wait(barrier, &is_leader));
    if (is_leader) {
        EXPECT(0, lw_barrier_destroy(barrier));
        CHECK(munmap(barrier, sizeof *barrier) == 0);
    }
    return NULL;
}

/* The leader unmaps the barrier as soon as the destruction has returned. */
static void memory_is_freed(void) {
    for (int round = 0; round < full_or(5000, 500); round++) {
        lw_barrier_t *barrier =
            mmap(NULL, sizeof *barrier, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(barrier != MAP_FAILED);
        EXPECT(0, lw_barrier_init(barrier, 0, 2));
        pthread_t thread = start(meets_and_frees, barrier);
        meets_and_frees(barrier);
        join(thread);
    }
}

static void between_processes(void) {
    lw_barrier_t *barrier = mmap(NULL, sizeof *barrier, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(barrier != MAP_FAILED);
    EXPECT(0, lw_barrier_init(barrier, 1, 2));
    pid_t child = fork();
    CHECK(child >= 0);
    int is_leader, mine = 0;
    for (int round = 0; round < ROUNDS; round++) {
        EXPECT(0, lw_barrier_wait(barrier, &is_leader));
        mine += is_leader;
    }
    if (child == 0) {
        _exit(0);
    }
    CHECK(mine >= 0 && mine <= ROUNDS);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(0, lw_barrier_destroy(barrier));
}

int main(void) {
    begin_test();
    all_meet();
    misuse();
    memory_is_freed();
    between_processes();
    return 0;
}
