/* Child processes: mutexes that handlers hold across fork, free mutexes, and shared mutexes. */
#include "check.h"

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn;
static atomic_bool stop;

static void before(void)
{
    GIVES(0, pthread_mutex_lock(&held));
}

static void after(void)
{
    GIVES(0, pthread_mutex_unlock(&held));
}

/* Waits for the mutex that fork holds, and then continues. */
static void *compete(void *unused)
{
    while (!stop) {
        GIVES(0, pthread_mutex_lock(&held));
        GIVES(0, pthread_mutex_unlock(&held));
    }
    return unused;
}

static void *take_turn(void *unused)
{
    GIVES(0, pthread_mutex_lock(&plain));
    turn++;
    GIVES(0, pthread_cond_signal(&cond));
    GIVES(0, pthread_mutex_unlock(&plain));
    return unused;
}

static void use(void)
{
    GIVES(0, pthread_mutex_lock(&held));
    GIVES(EBUSY, pthread_mutex_trylock(&held));
    GIVES(0, pthread_mutex_unlock(&held));
    pthread_t thread = start(take_turn, NULL);
    GIVES(0, pthread_mutex_lock(&plain));
    while (turn == 0)
        GIVES(0, pthread_cond_wait(&cond, &plain));
    turn = 0;
    GIVES(0, pthread_mutex_unlock(&plain));
    join(thread);
    pthread_mutex_t mutex;
    for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++) {
        make(&mutex, PTHREAD_MUTEX_RECURSIVE, protocol, PTHREAD_MUTEX_ROBUST, 0);
        GIVES(0, pthread_mutex_lock(&mutex));
        GIVES(0, pthread_mutex_lock(&mutex));
        GIVES(0, pthread_mutex_unlock(&mutex));
        GIVES(0, pthread_mutex_unlock(&mutex));
        GIVES(EPERM, pthread_mutex_unlock(&mutex));
        GIVES(0, pthread_mutex_destroy(&mutex));
    }
}

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int ball;
};

static void play(struct shared *shared, int me)
{
    for (int i = 0; i < 500; i++) {
        GIVES(0, pthread_mutex_lock(&shared->mutex));
        while (shared->ball != me)
            GIVES(0, pthread_cond_wait(&shared->cond, &shared->mutex));
        shared->ball = 1 - me;
        GIVES(0, pthread_cond_signal(&shared->cond));
        GIVES(0, pthread_mutex_unlock(&shared->mutex));
    }
}

static void *lock_and_unlock(void *mutex)
{
    GIVES(0, pthread_mutex_lock(mutex));
    GIVES(0, pthread_mutex_unlock(mutex));
    return NULL;
}

/* The child unlocks a mutex that the parent locked, while another thread of the child waits for it. */
static void hand_over_in_child(void)
{
    GIVES(0, pthread_mutex_lock(&plain));
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        pthread_t thread = start(lock_and_unlock, &plain);
        sleep_ms(50);
        GIVES(0, pthread_mutex_unlock(&plain));
        join(thread);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    GIVES(0, pthread_mutex_unlock(&plain));
}

/* The child waits for a condition with a mutex that the parent locked. */
static void wait_in_child(void)
{
    GIVES(0, pthread_mutex_lock(&plain));
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        struct timespec soon = in_ms(CLOCK_REALTIME, 10);
        GIVES(ETIMEDOUT, pthread_cond_timedwait(&cond, &plain, &soon));
        pthread_t thread = start(take_turn, NULL);
        while (turn == 0)
            GIVES(0, pthread_cond_wait(&cond, &plain));
        GIVES(0, pthread_mutex_unlock(&plain));
        join(thread);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    GIVES(0, pthread_mutex_unlock(&plain));
}

static void *nothing(void *unused)
{
    return unused;
}

int main(void)
{
    alarm(60);
    pthread_t thread = start(nothing, NULL);
    join(thread);
    pthread_atfork(before, after, after);
    thread = start(compete, NULL);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            use();
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    stop = true;
    join(thread);
    use();
    hand_over_in_child();
    wait_in_child();

    for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++) {
        struct shared *shared = shared_memory(sizeof *shared);
        pthread_condattr_t attributes;
        make(&shared->mutex, PTHREAD_MUTEX_NORMAL, protocol, PTHREAD_MUTEX_STALLED, 1);
        pthread_condattr_init(&attributes);
        pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_cond_init(&shared->cond, &attributes);
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            play(shared, 1);
            _exit(0);
        }
        play(shared, 0);
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        GIVES(0, pthread_cond_destroy(&shared->cond));
        GIVES(0, pthread_mutex_destroy(&shared->mutex));
    }
    return 0;
}
