/* Robust mutexes: the owner ends, as a thread or with its process, before or while another thread waits. */
#include "check.h"

static pthread_mutex_t *mutex;
static atomic_bool *has_it;

static void *take_and_end(void *ms)
{
    GIVES(0, pthread_mutex_lock(mutex));
    *has_it = true;
    sleep_ms((long)ms);
    return NULL;
}

static void *take(void *unused)
{
    (void)unused;
    return (void *)(long)pthread_mutex_lock(mutex);
}

static void until_owned(void)
{
    while (!*has_it)
        sleep_ms(1);
    *has_it = false;
}

static void end_of_thread(long ms)
{
    pthread_t owner = start(take_and_end, (void *)ms);
    if (ms == 0)
        join(owner);
    until_owned();
    GIVES(EOWNERDEAD, pthread_mutex_lock(mutex));
    if (ms != 0)
        join(owner);
}

static void end_of_process(long ms)
{
    pid_t child = fork();
    if (child == 0) {
        GIVES(0, pthread_mutex_lock(mutex));
        *has_it = true;
        sleep_ms(ms);
        kill(getpid(), SIGKILL);
    }
    until_owned();
    GIVES(EOWNERDEAD, pthread_mutex_lock(mutex));
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

/* A shared mutex is the C library's. */
static void heal_shared(long ms, int type, int protocol)
{
    make(mutex, type, protocol, PTHREAD_MUTEX_ROBUST, 1);
    for (int i = 0; i < 3; i++) {
        end_of_process(ms);
        GIVES(0, pthread_mutex_consistent(mutex));
        GIVES(0, pthread_mutex_unlock(mutex));
        GIVES(0, pthread_mutex_trylock(mutex));
        GIVES(0, pthread_mutex_unlock(mutex));
    }
    GIVES(0, pthread_mutex_destroy(mutex));
}

static void heal_and_give_up(long ms, int type, int protocol)
{
    make(mutex, type, protocol, PTHREAD_MUTEX_ROBUST, 0);
    for (int i = 0; i < 3; i++) {
        end_of_thread(ms);
        GIVES(0, pthread_mutex_consistent(mutex));
        GIVES(EINVAL, pthread_mutex_consistent(mutex));
        GIVES(0, pthread_mutex_unlock(mutex));
        GIVES(0, pthread_mutex_trylock(mutex));
        GIVES(0, pthread_mutex_unlock(mutex));
    }
    /* An unrecoverable mutex is refused to all threads, including those that already wait. */
    end_of_thread(ms);
    pthread_t waiters[2] = { start(take, NULL), start(take, NULL) };
    sleep_ms(20);
    GIVES(0, pthread_mutex_unlock(mutex));
    for (int i = 0; i < 2; i++)
        CHECK(join(waiters[i]) == (void *)(long)ENOTRECOVERABLE);
    GIVES(ENOTRECOVERABLE, pthread_mutex_lock(mutex));
    GIVES(ENOTRECOVERABLE, pthread_mutex_trylock(mutex));
    struct timespec soon = in_ms(CLOCK_REALTIME, 10000);
    GIVES(ENOTRECOVERABLE, pthread_mutex_timedlock(mutex, &soon));
    GIVES(EPERM, pthread_mutex_unlock(mutex));
    GIVES(0, pthread_mutex_destroy(mutex));
}

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

/* The waiter holds the mutex, and unlocks it by waiting. */
static atomic_int waits;

static void *wait_once(void *unused)
{
    (void)unused;
    GIVES(0, pthread_mutex_lock(mutex));
    waits = 1;
    return (void *)(long)pthread_cond_wait(&cond, mutex);
}

static void *signal_and_end(void *unused)
{
    (void)unused;
    GIVES(0, pthread_mutex_lock(mutex));
    GIVES(0, pthread_cond_signal(&cond));
    return NULL;
}

int main(void)
{
    mutex = shared_memory(sizeof *mutex);
    has_it = shared_memory(sizeof *has_it);
    for (int type = PTHREAD_MUTEX_NORMAL; type <= PTHREAD_MUTEX_ADAPTIVE_NP; type++) {
        for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++) {
            heal_and_give_up(0, type, protocol);
            heal_and_give_up(20, type, protocol);
            heal_shared(0, type, protocol);
            heal_shared(30, type, protocol);
        }
    }
    /* The end of an owner is reported to a waiter of a condition variable. */
    for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++) {
        make(mutex, PTHREAD_MUTEX_NORMAL, protocol, PTHREAD_MUTEX_ROBUST, 0);
        waits = 0;
        pthread_t waiter = start(wait_once, NULL);
        while (!waits)
            sleep_ms(1);
        join(start(signal_and_end, NULL));
        CHECK(join(waiter) == (void *)(long)EOWNERDEAD);
    }
    return 0;
}
