/* The owner of a mutex stands where the C library has it: sandboxes read it there, after a raw clone. */
#include "check.h"

/* Locks the mutex so many times, and looks at the owner until the last unlock. */
static void look_at_owner(pthread_mutex_t *mutex, int times)
{
    for (int i = 0; i < times; i++)
        GIVES(0, pthread_mutex_lock(mutex));
    for (int i = 0; i < times; i++) {
        CHECK(mutex->__data.__owner == gettid());
        GIVES(0, pthread_mutex_unlock(mutex));
    }
    CHECK(mutex->__data.__owner == 0);
}

/* Another thread that unlocks a robust mutex is refused, and leaves the owner where it is. */
static void *fails_to_unlock(void *mutex)
{
    GIVES(EPERM, pthread_mutex_unlock(mutex));
    return NULL;
}

static void keep_the_owner_of_a_robust_one(void)
{
    pthread_mutex_t mutex;
    make(&mutex, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST, 0);
    GIVES(0, pthread_mutex_lock(&mutex));
    join(start(fails_to_unlock, &mutex));
    CHECK(mutex.__data.__owner == gettid());
    GIVES(0, pthread_mutex_unlock(&mutex));
}

static pthread_mutex_t contended;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool go;

/* Gets the mutex after a wait for it, and after a wait for a condition. */
static void *wait_for_it(void *unused)
{
    GIVES(0, pthread_mutex_lock(&contended));
    CHECK(contended.__data.__owner == gettid());
    while (!go)
        GIVES(0, pthread_cond_wait(&cond, &contended));
    CHECK(contended.__data.__owner == gettid());
    GIVES(0, pthread_mutex_unlock(&contended));
    return unused;
}

int main(void)
{
    alarm(20);
    for (int type = PTHREAD_MUTEX_NORMAL; type <= PTHREAD_MUTEX_ERRORCHECK; type++) {
        for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++) {
            for (int robust = PTHREAD_MUTEX_STALLED; robust <= PTHREAD_MUTEX_ROBUST; robust++) {
                pthread_mutex_t mutex;
                make(&mutex, type, protocol, robust, 0);
                look_at_owner(&mutex, type == PTHREAD_MUTEX_RECURSIVE ? 3 : 1);
            }
        }
    }
    for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++) {
        make(&contended, PTHREAD_MUTEX_NORMAL, protocol, PTHREAD_MUTEX_STALLED, 0);
        go = false;
        GIVES(0, pthread_mutex_lock(&contended));
        pthread_t thread = start(wait_for_it, NULL);
        sleep_ms(20);
        GIVES(0, pthread_mutex_unlock(&contended));
        sleep_ms(20);
        GIVES(0, pthread_mutex_lock(&contended));
        go = true;
        GIVES(0, pthread_cond_signal(&cond));
        GIVES(0, pthread_mutex_unlock(&contended));
        join(thread);
    }
    keep_the_owner_of_a_robust_one();
    /* A child of a raw clone has another id than the C library notes. The mutex shows the noted one. */
    int parent = gettid();
    pid_t child = syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    if (child == 0) {
        pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
        GIVES(0, pthread_mutex_lock(&mutex));
        _exit(mutex.__data.__owner == parent ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}
