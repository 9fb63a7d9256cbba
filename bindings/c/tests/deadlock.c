/* A thread that would wait for itself gets EDEADLK and the cycle. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { LINKS_MAX = 64, THREADS = 3 };

#ifdef MUTANT
enum { UNCHECKED = 1 };
#else
enum { UNCHECKED = 0 };
#endif

static lw_mutex_t mutexes[THREADS];
static uint32_t threads[THREADS];
static pthread_barrier_t all_have_one;
static int told;

/* Holds its own mutex, and requests that of the next thread. */
static void *closes(void *argument) {
    size_t me = (size_t)argument, length = 99;
    lw_deadlock_link_t links[LINKS_MAX];
    threads[me] = (uint32_t)syscall(SYS_gettid);
    char name[16];
    snprintf(name, sizeof name, "closes %zu", me);
    CHECK(pthread_setname_np(pthread_self(), name) == 0);
    EXPECT(0, lw_deadlock_cycle(links, LINKS_MAX, &length));
    CHECK(length == 0);
    EXPECT(0, lw_mutex_lock(&mutexes[me]));
    pthread_barrier_wait(&all_have_one);
#ifdef MUTANT
    /* A timed wait ends by itself, so nothing is refused. */
    struct timespec time = ms(WAIT_S_MAX * 10L);
    int taken = lw_mutex_lock_for(&mutexes[(me + 1) % THREADS], &time);
#else
    int taken = lw_mutex_lock(&mutexes[(me + 1) % THREADS]);
#endif
    if (taken == EDEADLK) {
        __atomic_fetch_add(&told, 1, __ATOMIC_SEQ_CST);
        for (int again = 0; again < 2; again++) {
            EXPECT(0, lw_deadlock_cycle(links, LINKS_MAX, &length));
            CHECK(length == THREADS);
            for (size_t i = 0; i < THREADS; i++) {
                CHECK(links[i].thread == threads[(me + i) % THREADS]);
                CHECK(links[i].mutex == &mutexes[(me + i + 1) % THREADS]);
                char name[16];
                snprintf(name, sizeof name, "closes %zu", (me + i) % THREADS);
                CHECK(strcmp(links[i].name, name) == 0);
            }
        }
        /* Writes no more links than there is room for. */
        memset(links, 0, sizeof links);
        EXPECT(0, lw_deadlock_cycle(links, 1, &length));
        CHECK(length == THREADS && links[0].thread == threads[me] && links[1].mutex == NULL);
    } else {
        EXPECT(0, taken);
        EXPECT(0, lw_mutex_unlock(&mutexes[(me + 1) % THREADS]));
    }
    EXPECT(0, lw_mutex_unlock(&mutexes[me]));
    return argument;
}

static void one_of_a_cycle_is_told(uint32_t protocol) {
    pthread_t started[THREADS];
    lw_mutex_options_t options = {.protocol = protocol, .unchecked = UNCHECKED};
    pthread_barrier_init(&all_have_one, NULL, THREADS);
    told = 0;
    for (size_t i = 0; i < THREADS; i++) {
        EXPECT(0, lw_mutex_init(&mutexes[i], &options));
    }
    for (size_t i = 0; i < THREADS; i++) {
        started[i] = start(closes, (void *)i);
    }
    for (size_t i = 0; i < THREADS; i++) {
        join(started[i]);
    }
    CHECK(told == 1);
    pthread_barrier_destroy(&all_have_one);
}

static lw_cond_t signalled;
static int waits;

static void count_told(int answer, const lw_mutex_t *asked) {
    lw_deadlock_link_t links[LINKS_MAX];
    size_t length = 0;
    if (answer == EDEADLK) {
        __atomic_fetch_add(&told, 1, __ATOMIC_SEQ_CST);
        EXPECT(0, lw_deadlock_cycle(links, LINKS_MAX, &length));
        CHECK(length == 2 && links[0].thread == (uint32_t)syscall(SYS_gettid) && links[0].mutex == asked);
    } else {
        EXPECT(0, answer);
    }
}

/* Holds the first mutex, and waits for a signal with the second. */
static void *waits_in_between(void *argument) {
    EXPECT(0, lw_mutex_lock(&mutexes[0]));
    EXPECT(0, lw_mutex_lock(&mutexes[1]));
    waits = 1;
    int answer = lw_cond_wait(&signalled, &mutexes[1]);
    count_told(answer, &mutexes[1]);
    if (answer == 0) {
        EXPECT(0, lw_mutex_unlock(&mutexes[1]));
    }
    EXPECT(0, lw_mutex_unlock(&mutexes[0]));
    return argument;
}

/* The signalling thread holds the second mutex, and requests the first. */
static void one_of_a_cycle_through_a_wait_is_told(uint32_t protocol) {
    lw_mutex_options_t options = {.protocol = protocol, .unchecked = UNCHECKED};
    told = waits = 0;
    for (size_t i = 0; i < 2; i++) {
        EXPECT(0, lw_mutex_init(&mutexes[i], &options));
    }
    EXPECT(0, lw_cond_init(&signalled, 0));
    pthread_t waiter = start(waits_in_between, NULL);
    EXPECT(0, lw_mutex_lock(&mutexes[1]));
    while (!waits) {
        EXPECT(0, lw_mutex_unlock(&mutexes[1]));
        usleep(100);
        EXPECT(0, lw_mutex_lock(&mutexes[1]));
    }
    EXPECT(0, lw_cond_signal(&signalled));
    int answer = lw_mutex_lock(&mutexes[0]);
    count_told(answer, &mutexes[0]);
    if (answer == 0) {
        EXPECT(0, lw_mutex_unlock(&mutexes[0]));
    }
    EXPECT(0, lw_mutex_unlock(&mutexes[1]));
    join(waiter);
    CHECK(told == 1);
}

static int timed_answer;

/* Holds the second mutex, and requests the first one for 50 ms. */
static void *backs_off(void *argument) {
    EXPECT(0, lw_mutex_lock(&mutexes[1]));
    pthread_barrier_wait(&all_have_one);
    struct timespec time = ms(50);
    timed_answer = lw_mutex_lock_for(&mutexes[0], &time);
    EXPECT(0, lw_mutex_unlock(&mutexes[1]));
    return argument;
}

/* A cycle through a timed wait passes by itself: no thread on it is refused. */
static void a_timed_wait_is_no_deadlock(uint32_t protocol) {
    lw_mutex_options_t options = {.protocol = protocol};
    for (size_t i = 0; i < 2; i++) {
        EXPECT(0, lw_mutex_init(&mutexes[i], &options));
    }
    pthread_barrier_init(&all_have_one, NULL, 2);
    pthread_t other = start(backs_off, NULL);
    EXPECT(0, lw_mutex_lock(&mutexes[0]));
    pthread_barrier_wait(&all_have_one);
    usleep(10000);
    EXPECT(0, lw_mutex_lock(&mutexes[1]));
    EXPECT(0, lw_mutex_unlock(&mutexes[1]));
    EXPECT(0, lw_mutex_unlock(&mutexes[0]));
    join(other);
    EXPECT(ETIMEDOUT, timed_answer);
    pthread_barrier_destroy(&all_have_one);
}

static lw_mutex_t waited_for;
static volatile int its_id, is_waiting;

static void end_at_once(int unused) {
    (void)unused;
    syscall(SYS_exit, 0);
}

static void *waits_and_ends(void *argument) {
    its_id = (int)syscall(SYS_gettid);
    is_waiting = 1;
    lw_mutex_lock(argument);
    return NULL;
}

static void *locks(void *mutex) {
    EXPECT(0, lw_mutex_lock(mutex));
    EXPECT(0, lw_mutex_unlock(mutex));
    return NULL;
}

/* A thread that ends by a system call while it waits leaves nothing behind: its mutex may go, and its id may be that
 * of another thread. */
static void the_end_of_a_waiter_is_noticed(void) {
    struct sigaction action = {.sa_handler = end_at_once};
    sigaction(SIGUSR1, &action, NULL);
    lw_mutex_options_t options = {.protocol = LW_PROTOCOL_NONE};
    lw_mutex_t *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(gone != MAP_FAILED);
    EXPECT(0, lw_mutex_init(gone, &options));
    EXPECT(0, lw_mutex_init(&waited_for, &options));
    EXPECT(0, lw_mutex_lock(gone));
    is_waiting = 0;
    pthread_t waiter = start(waits_and_ends, gone);
    while (!is_waiting) {
        usleep(100);
    }
    usleep(20000);
    pthread_kill(waiter, SIGUSR1);
    /* The C library does not know that the thread has ended. The kernel does. */
    while (syscall(SYS_tgkill, getpid(), its_id, 0) == 0) {
        usleep(100);
    }
    munmap(gone, 4096);
    /* The ended thread owns this mutex, so the search for a cycle comes to its entry. */
    *(volatile uint32_t *)&waited_for = (uint32_t)its_id;
    pthread_t other = start(locks, &waited_for);
    usleep(20000);
    *(volatile uint32_t *)&waited_for = 0;
    syscall(SYS_futex, &waited_for, FUTEX_WAKE_PRIVATE, 1);
    join(other);
}

static void own(void) {
    lw_mutex_t mutex = LW_MUTEX_INITIALIZER;
    lw_deadlock_link_t link;
    size_t length;
    EXPECT(0, lw_mutex_lock(&mutex));
    EXPECT(EDEADLK, lw_mutex_lock(&mutex));
    EXPECT(0, lw_deadlock_cycle(&link, 1, &length));
    CHECK(length == 1 && link.mutex == &mutex && link.thread == (uint32_t)syscall(SYS_gettid) && link.reserved == 0);
    char name[16];
    CHECK(pthread_getname_np(pthread_self(), name, sizeof name) == 0 && strcmp(link.name, name) == 0);
    EXPECT(0, lw_mutex_unlock(&mutex));
}

int main(void) {
    begin_test();
    for (int round = 0; round < 20; round++) {
        one_of_a_cycle_is_told(LW_PROTOCOL_INHERIT);
        one_of_a_cycle_is_told(LW_PROTOCOL_NONE);
        one_of_a_cycle_through_a_wait_is_told(LW_PROTOCOL_INHERIT);
        one_of_a_cycle_through_a_wait_is_told(LW_PROTOCOL_NONE);
    }
    own();
    a_timed_wait_is_no_deadlock(LW_PROTOCOL_INHERIT);
    a_timed_wait_is_no_deadlock(LW_PROTOCOL_NONE);
    the_end_of_a_waiter_is_noticed();
    return 0;
}
