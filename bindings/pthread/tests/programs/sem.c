/* Semaphores: units, errors, time-outs, signals, cancellation, shared and named ones, child processes, freed memory.

   Arguments: none for what every policy keeps; `cancel` and `order` for what holds where units are handed over: no unit
   is lost with a thread that is cancelled, and no thread overtakes one that waits. */
#include "check.h"
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>

enum { THREADS = 4, UNITS = 2, ROUNDS = 5000 };

#define FAILS(expected, call) \
    do { \
        errno = 0; \
        GIVES(-1, call); \
        GIVES(expected, errno); \
    } while (0)

static sem_t sem;
static atomic_int inside;

static void *takes_turns(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 8 == 0) {
            struct timespec time = in_ms(CLOCK_REALTIME, 0);
            if (sem_timedwait(&sem, &time) != 0) {
                GIVES(ETIMEDOUT, errno);
                continue;
            }
        } else {
            GIVES(0, sem_wait(&sem));
        }
        CHECK(atomic_fetch_add(&inside, 1) < UNITS);
        if (round % 16 == 0)
            sched_yield();
        atomic_fetch_sub(&inside, 1);
        GIVES(0, sem_post(&sem));
    }
    return NULL;
}

static int value_of(sem_t *sem)
{
    int value = -77;
    GIVES(0, sem_getvalue(sem, &value));
    return value;
}

static void no_unit_is_lost(void)
{
    pthread_t threads[THREADS];
    GIVES(0, sem_init(&sem, 0, UNITS));
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(takes_turns, NULL);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    CHECK(value_of(&sem) == UNITS);
    GIVES(0, sem_destroy(&sem));
}

static void errors_and_times(void)
{
    double begin = now_ms(CLOCK_MONOTONIC);
    struct timespec wrong = { 0, 1000000000 }, time = in_ms(CLOCK_MONOTONIC, 30);
    FAILS(EINVAL, sem_init(&sem, 0, (unsigned)SEM_VALUE_MAX + 1));
    GIVES(0, sem_init(&sem, 0, SEM_VALUE_MAX));
    FAILS(EOVERFLOW, sem_post(&sem));
    CHECK(value_of(&sem) == SEM_VALUE_MAX);
    GIVES(0, sem_init(&sem, 0, 1));
    FAILS(EINVAL, sem_timedwait(&sem, &wrong));
    FAILS(EINVAL, sem_clockwait(&sem, CLOCK_PROCESS_CPUTIME_ID, &time));
    GIVES(0, sem_trywait(&sem));
    FAILS(EAGAIN, sem_trywait(&sem));
    FAILS(ETIMEDOUT, sem_clockwait(&sem, CLOCK_MONOTONIC, &time));
    CHECK(now_ms(CLOCK_MONOTONIC) - begin >= 29);
    CHECK(value_of(&sem) == 0);
    GIVES(0, sem_post(&sem));
    CHECK(value_of(&sem) == 1);
}

static void nothing(int number)
{
    (void)number;
}

static void posts_there(int number)
{
    (void)number;
    int before = errno;
    GIVES(0, sem_post(&sem));
    CHECK(errno == before);
}

static void *is_interrupted(void *argument)
{
    (void)argument;
    FAILS(EINTR, sem_wait(&sem));
    struct timespec time = in_ms(CLOCK_REALTIME, 10000);
    FAILS(EINTR, sem_timedwait(&sem, &time));
    return NULL;
}

static void *waits(void *sem)
{
    GIVES(0, sem_wait(sem));
    return sem;
}

static void signals_interrupt_and_post(void)
{
    struct sigaction action = { .sa_handler = nothing };
    GIVES(0, sigaction(SIGUSR1, &action, NULL));
    action.sa_handler = posts_there;
    GIVES(0, sigaction(SIGUSR2, &action, NULL));
    GIVES(0, sem_init(&sem, 0, 0));
    pthread_t thread = start(is_interrupted, NULL);
    for (int signal = 0; signal < 2; signal++) {
        sleep_ms(30);
        GIVES(0, pthread_kill(thread, SIGUSR1));
    }
    join(thread);
    CHECK(value_of(&sem) == 0);
    thread = start(waits, &sem);
    sleep_ms(20);
    GIVES(0, raise(SIGUSR2));
    join(thread);
}

static void *takes(void *has_unit)
{
    GIVES(0, sem_wait(&sem));
    atomic_store((atomic_bool *)has_unit, true);
    return NULL;
}

/* A unit that comes at the instant of a cancellation is neither lost nor taken twice. The result of the thread does not
   tell whether it was cancelled: a C library before 2.41 may store PTHREAD_CANCELED for a thread that has returned. */
static void cancellation_loses_nothing(void)
{
    GIVES(0, sem_init(&sem, 0, 0));
    for (int round = 0; round < 300; round++) {
        atomic_bool has_unit = false, other_has_unit = false;
        pthread_t thread = start(takes, &has_unit), other = start(takes, &other_has_unit);
        for (volatile int i = 0; i < round * 100; i++) {
        }
        GIVES(0, sem_post(&sem));
        GIVES(0, pthread_cancel(thread));
        join(thread);
        if (atomic_load(&has_unit))
            GIVES(0, sem_post(&sem));
        join(other);
        CHECK(atomic_load(&other_has_unit));
        CHECK(value_of(&sem) == 0);
    }
}

/* Although a unit is free. */
static void *is_cancelled(void *argument)
{
    (void)argument;
    GIVES(0, sem_init(&sem, 0, 1));
    GIVES(0, pthread_cancel(pthread_self()));
    sem_wait(&sem);
    CHECK(!"a wait is a cancellation point");
    return NULL;
}

struct pair {
    sem_t there, back;
};

static void exchange(sem_t *there, sem_t *back)
{
    pid_t child = fork();
    CHECK(child >= 0);
    for (int round = 0; round < ROUNDS; round++) {
        GIVES(0, sem_post(child == 0 ? back : there));
        GIVES(0, sem_wait(child == 0 ? there : back));
    }
    if (child == 0)
        _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void processes_share(void)
{
    struct pair *pair = shared_memory(sizeof *pair);
    GIVES(0, sem_init(&pair->there, 1, 0));
    GIVES(0, sem_init(&pair->back, 1, 0));
    exchange(&pair->there, &pair->back);
    char name[2][40];
    sem_t *named[2];
    for (int i = 0; i < 2; i++) {
        snprintf(name[i], sizeof name[i], "/lockwright-test-%d-%d", getpid(), i);
        named[i] = sem_open(name[i], O_CREAT | O_EXCL, 0600, 0);
        CHECK(named[i] != SEM_FAILED);
    }
    exchange(named[0], named[1]);
    for (int i = 0; i < 2; i++) {
        GIVES(0, sem_close(named[i]));
        GIVES(0, sem_unlink(name[i]));
    }
}

/* The waiters of the parent are not in the child. */
static void a_child_has_no_waiters(void)
{
    GIVES(0, sem_init(&sem, 0, 0));
    pthread_t threads[] = { start(waits, &sem), start(waits, &sem) };
    sleep_ms(30);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(20);
        GIVES(0, sem_post(&sem));
        GIVES(0, sem_wait(&sem));
        FAILS(EAGAIN, sem_trywait(&sem));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    GIVES(0, sem_post(&sem));
    GIVES(0, sem_post(&sem));
    join(threads[0]);
    join(threads[1]);
}

static void *posts(void *sem)
{
    GIVES(0, sem_post(sem));
    return NULL;
}

static void memory_is_freed(void)
{
    for (int round = 0; round < 500; round++) {
        sem_t *sem = mmap(NULL, sizeof *sem, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(sem != MAP_FAILED);
        GIVES(0, sem_init(sem, 0, 0));
        pthread_t thread = start(posts, sem);
        GIVES(0, sem_wait(sem));
        GIVES(0, sem_destroy(sem));
        GIVES(0, munmap(sem, sizeof *sem));
        join(thread);
    }
}

static atomic_int passed, waiter;

static void *waits_urgently(void *argument)
{
    (void)argument;
    become_fifo(10);
    atomic_store(&waiter, (int)syscall(SYS_gettid));
    GIVES(0, sem_wait(&sem));
    atomic_store(&passed, 1);
    return NULL;
}

/* The thread that waits is less urgent, on the same CPU, so it cannot execute meanwhile. */
static void a_waiter_is_not_overtaken(void)
{
    on_one_cpu();
    become_fifo(20);
    GIVES(0, sem_init(&sem, 0, 0));
    pthread_t thread = start(waits_urgently, NULL);
    while (atomic_load(&waiter) == 0)
        sleep_ms(1);
    until_asleep(atomic_load(&waiter));
    GIVES(0, sem_post(&sem));
    FAILS(EAGAIN, sem_trywait(&sem));
    CHECK(atomic_load(&passed) == 0);
    join(thread);
}

int main(int count, char **arguments)
{
    alarm(200);
    if (count > 1 && strcmp(arguments[1], "order") == 0) {
        a_waiter_is_not_overtaken();
        return 0;
    }
    if (count > 1 && strcmp(arguments[1], "cancel") == 0) {
        cancellation_loses_nothing();
        return 0;
    }
    no_unit_is_lost();
    errors_and_times();
    signals_interrupt_and_post();
    CHECK(join(start(is_cancelled, NULL)) == PTHREAD_CANCELED);
    CHECK(value_of(&sem) == 1);
    processes_share();
    a_child_has_no_waiters();
    memory_is_freed();
    return 0;
}
