/* Reader-writer locks: exclusion, time-outs, recursive readers, initialisers, child processes, shared locks.

   Arguments: none for what every policy keeps; `inherits` and `order` for what holds under LOCKWRIGHT_PROTOCOL=inherit,
   the latter for real-time threads on one CPU. */
#include "check.h"

enum { READERS = 3, WRITERS = 2, ROUNDS = 5000 };

struct pair {
    pthread_rwlock_t lock;
    volatile long one, other;
};

static struct pair pair = { .lock = PTHREAD_RWLOCK_INITIALIZER };

static void *writes(void *argument)
{
    struct pair *pair = argument;
    for (int round = 0; round < ROUNDS; round++) {
        GIVES(0, pthread_rwlock_wrlock(&pair->lock));
        long seen = pair->one;
        if (round % 16 == 0)
            sched_yield();
        pair->one = seen + 1;
        pair->other++;
        GIVES(0, pthread_rwlock_unlock(&pair->lock));
    }
    return NULL;
}

static void *reads(void *argument)
{
    struct pair *pair = argument;
    for (int round = 0; round < ROUNDS; round++) {
        GIVES(0, pthread_rwlock_rdlock(&pair->lock));
        long seen = pair->one;
        if (round % 16 == 0)
            sched_yield();
        if (round % 4 == 0) {
            GIVES(0, pthread_rwlock_rdlock(&pair->lock));
            CHECK(pair->other == seen);
            GIVES(0, pthread_rwlock_unlock(&pair->lock));
        }
        CHECK(pair->other == seen && pair->one == seen);
        GIVES(0, pthread_rwlock_unlock(&pair->lock));
    }
    return NULL;
}

static void nothing_is_lost(void)
{
    pthread_t threads[READERS + WRITERS];
    pair.one = pair.other = 0;
    for (int i = 0; i < READERS + WRITERS; i++)
        threads[i] = start(i < READERS ? reads : writes, &pair);
    for (int i = 0; i < READERS + WRITERS; i++)
        join(threads[i]);
    CHECK(pair.one == WRITERS * ROUNDS && pair.other == WRITERS * ROUNDS);
}

typedef int (*until)(pthread_rwlock_t *, clockid_t, const struct timespec *);

static int timed(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *time, until clocked)
{
    if (clock != CLOCK_REALTIME)
        return clocked(lock, clock, time);
    return clocked == pthread_rwlock_clockrdlock ? pthread_rwlock_timedrdlock(lock, time)
                                                 : pthread_rwlock_timedwrlock(lock, time);
}

static void times_out(pthread_rwlock_t *lock, until clocked)
{
    clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME };
    for (int i = 0; i < 2; i++) {
        struct timespec time = in_ms(clocks[i], 20);
        double begin = now_ms(clocks[i]);
        GIVES(ETIMEDOUT, timed(lock, clocks[i], &time, clocked));
        CHECK(now_ms(clocks[i]) - begin >= 19.9);
        time.tv_nsec = 1000000000;
        GIVES(EINVAL, timed(lock, clocks[i], &time, clocked));
    }
    struct timespec time = in_ms(CLOCK_MONOTONIC, 20);
    GIVES(EINVAL, clocked(lock, CLOCK_PROCESS_CPUTIME_ID, &time));
}

static void *finds_it_read(void *lock)
{
    GIVES(EBUSY, pthread_rwlock_trywrlock(lock));
    times_out(lock, pthread_rwlock_clockwrlock);
    GIVES(0, pthread_rwlock_tryrdlock(lock));
    GIVES(0, pthread_rwlock_unlock(lock));
    struct timespec past = { 1, 0 };
    GIVES(0, pthread_rwlock_timedrdlock(lock, &past));
    GIVES(0, pthread_rwlock_unlock(lock));
    return NULL;
}

static void *finds_it_written(void *lock)
{
    GIVES(EBUSY, pthread_rwlock_trywrlock(lock));
    GIVES(EBUSY, pthread_rwlock_tryrdlock(lock));
    times_out(lock, pthread_rwlock_clockrdlock);
    times_out(lock, pthread_rwlock_clockwrlock);
    return NULL;
}

static void answers(pthread_rwlock_t *lock)
{
    GIVES(0, pthread_rwlock_rdlock(lock));
    join(start(finds_it_read, lock));
    GIVES(0, pthread_rwlock_unlock(lock));
    GIVES(0, pthread_rwlock_wrlock(lock));
    join(start(finds_it_written, lock));
    struct timespec time = in_ms(CLOCK_REALTIME, 1000);
    GIVES(EDEADLK, pthread_rwlock_rdlock(lock));
    GIVES(EDEADLK, pthread_rwlock_wrlock(lock));
    GIVES(EDEADLK, pthread_rwlock_timedrdlock(lock, &time));
    GIVES(EDEADLK, pthread_rwlock_timedwrlock(lock, &time));
    GIVES(EBUSY, pthread_rwlock_tryrdlock(lock));
    GIVES(EBUSY, pthread_rwlock_trywrlock(lock));
    GIVES(0, pthread_rwlock_unlock(lock));
    GIVES(0, pthread_rwlock_trywrlock(lock));
    GIVES(0, pthread_rwlock_unlock(lock));
    GIVES(0, pthread_rwlock_destroy(lock));
}

static void every_kind_answers(void)
{
    static pthread_rwlock_t fixed = PTHREAD_RWLOCK_INITIALIZER;
    static pthread_rwlock_t nonrecursive = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    answers(&fixed);
    answers(&nonrecursive);
    for (int kind = PTHREAD_RWLOCK_PREFER_READER_NP; kind <= PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP; kind++) {
        for (int shared = 0; shared <= 1; shared++) {
            pthread_rwlockattr_t attributes;
            pthread_rwlock_t lock;
            GIVES(0, pthread_rwlockattr_init(&attributes));
            GIVES(0, pthread_rwlockattr_setkind_np(&attributes, kind));
            GIVES(0, pthread_rwlockattr_setpshared(&attributes, shared));
            memset(&lock, 0xff, sizeof lock);
            GIVES(0, pthread_rwlock_init(&lock, &attributes));
            answers(&lock);
        }
    }
}

static atomic_int waiting, entered;

static void *writes_once(void *lock)
{
    waiting++;
    GIVES(0, pthread_rwlock_wrlock(lock));
    entered++;
    GIVES(0, pthread_rwlock_unlock(lock));
    return NULL;
}

/* A thread reads again while a writer waits for it. */
static void readers_are_recursive(void)
{
    for (int kind = PTHREAD_RWLOCK_PREFER_READER_NP; kind <= PTHREAD_RWLOCK_PREFER_WRITER_NP; kind++) {
        pthread_rwlockattr_t attributes;
        pthread_rwlock_t lock;
        GIVES(0, pthread_rwlockattr_init(&attributes));
        GIVES(0, pthread_rwlockattr_setkind_np(&attributes, kind));
        GIVES(0, pthread_rwlock_init(&lock, &attributes));
        waiting = entered = 0;
        GIVES(0, pthread_rwlock_rdlock(&lock));
        pthread_t writer = start(writes_once, &lock);
        while (waiting == 0)
            sleep_ms(1);
        sleep_ms(20);
        struct timespec time = in_ms(CLOCK_REALTIME, 1000);
        GIVES(0, pthread_rwlock_rdlock(&lock));
        GIVES(0, pthread_rwlock_tryrdlock(&lock));
        GIVES(0, pthread_rwlock_timedrdlock(&lock, &time));
        CHECK(entered == 0);
        for (int i = 0; i < 4; i++)
            GIVES(0, pthread_rwlock_unlock(&lock));
        join(writer);
        CHECK(entered == 1);
    }
}

static pthread_rwlock_t held = PTHREAD_RWLOCK_INITIALIZER;

static void before(void)
{
    GIVES(0, pthread_rwlock_wrlock(&held));
}

static void after(void)
{
    GIVES(0, pthread_rwlock_unlock(&held));
}

static atomic_bool stop;

static void *competes(void *unused)
{
    while (!stop) {
        GIVES(0, pthread_rwlock_rdlock(&held));
        GIVES(0, pthread_rwlock_unlock(&held));
        sched_yield();
    }
    return unused;
}

/* A handler holds a lock across fork. */
static void child_processes_continue(void)
{
    pthread_atfork(before, after, after);
    pthread_t threads[] = { start(competes, NULL), start(competes, NULL) };
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            GIVES(0, pthread_rwlock_trywrlock(&held));
            GIVES(0, pthread_rwlock_unlock(&held));
            waiting = entered = 0;
            GIVES(0, pthread_rwlock_rdlock(&held));
            pthread_t writer = start(writes_once, &held);
            while (waiting == 0)
                sleep_ms(1);
            GIVES(0, pthread_rwlock_unlock(&held));
            join(writer);
            CHECK(entered == 1);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    stop = true;
    join(threads[0]);
    join(threads[1]);
}

static void processes_share_a_lock(void)
{
    struct pair *shared = shared_memory(sizeof *shared);
    pthread_rwlockattr_t attributes;
    GIVES(0, pthread_rwlockattr_init(&attributes));
    GIVES(0, pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    GIVES(0, pthread_rwlock_init(&shared->lock, &attributes));
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        writes(shared);
        _exit(0);
    }
    writes(shared);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(shared->one == 2 * ROUNDS && shared->other == 2 * ROUNDS);
    GIVES(0, pthread_rwlock_destroy(&shared->lock));
}

enum { THREADS = 6 };

static int order[THREADS], places;

/* A negative level reads. */
static void *locks_once(void *argument)
{
    int level = (int)(long)argument;
    become_fifo(abs(level));
    waiting++;
    GIVES(0, level < 0 ? pthread_rwlock_rdlock(&pair.lock) : pthread_rwlock_wrlock(&pair.lock));
    order[places++] = level;
    GIVES(0, pthread_rwlock_unlock(&pair.lock));
    return NULL;
}

/* The readers enter first, although writers are more urgent. Then the writers, by priority. */
static void readers_then_writers_by_priority(void)
{
    static const long levels[THREADS] = { 12, -11, 30, -14, 25, 20 };
    static const int expected[THREADS] = { -14, -11, 30, 25, 20, 12 };
    pthread_t threads[THREADS];
    waiting = places = 0;
    GIVES(0, pthread_rwlock_wrlock(&pair.lock));
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(locks_once, (void *)levels[i]);
        while (waiting <= i)
            sleep_ms(1);
        sleep_ms(5);
    }
    GIVES(0, pthread_rwlock_unlock(&pair.lock));
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    CHECK(memcmp(order, expected, sizeof order) == 0);
}

static void *reads_on(void *unused)
{
    become_fifo(20);
    while (!stop) {
        GIVES(0, pthread_rwlock_rdlock(&pair.lock));
        sleep_ms(2);
        GIVES(0, pthread_rwlock_unlock(&pair.lock));
    }
    return unused;
}

/* Readers that overlap all the time do not keep a writer out. */
static void writers_do_not_starve(void)
{
    pthread_t readers[READERS];
    stop = false;
    for (int i = 0; i < READERS; i++) {
        readers[i] = start(reads_on, NULL);
        sleep_ms(1);
    }
    for (int i = 0; i < 50; i++) {
        GIVES(0, pthread_rwlock_wrlock(&pair.lock));
        GIVES(0, pthread_rwlock_unlock(&pair.lock));
    }
    stop = true;
    for (int i = 0; i < READERS; i++)
        join(readers[i]);
}

static struct {
    pthread_rwlock_t *lock;
    atomic_int last;
    atomic_bool is_written, leaves;
} freed;

static void *writes_until_told(void *unused)
{
    become_fifo(10);
    GIVES(0, pthread_rwlock_wrlock(freed.lock));
    freed.is_written = true;
    while (!freed.leaves)
        sleep_ms(1);
    GIVES(0, pthread_rwlock_unlock(freed.lock));
    return unused;
}

static void *frees(void *writes)
{
    become_fifo(20);
    freed.last = gettid();
    GIVES(0, (writes ? pthread_rwlock_wrlock : pthread_rwlock_rdlock)(freed.lock));
    GIVES(0, pthread_rwlock_unlock(freed.lock));
    GIVES(0, munmap(freed.lock, 4096));
    return writes;
}

/* The thread that a writer admits preempts it in the middle of its unlock, unlocks, and frees the memory. */
static void the_last_user_frees(bool writes)
{
    freed.lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(freed.lock != MAP_FAILED);
    GIVES(0, pthread_rwlock_init(freed.lock, NULL));
    freed.last = freed.is_written = freed.leaves = 0;
    pthread_t writer = start(writes_until_told, NULL);
    while (!freed.is_written)
        sleep_ms(1);
    pthread_t last = start(frees, writes ? &freed : NULL);
    while (freed.last == 0)
        sleep_ms(1);
    until_asleep(freed.last);
    freed.leaves = true;
    join(last);
    join(writer);
}

static struct {
    pthread_rwlock_t lock;
    int id;
    atomic_int got;
    atomic_bool is_in;
} reused = { .lock = PTHREAD_RWLOCK_INITIALIZER };

static void *write_as_parent(void *unused)
{
    reused.got = gettid();
    GIVES(0, pthread_rwlock_wrlock(&reused.lock));
    reused.is_in = true;
    GIVES(0, pthread_rwlock_unlock(&reused.lock));
    return unused;
}

/* A thread has the id that its parent's thread had before the fork. It waits to write while the main thread reads, and
   the main thread's unlock is not taken for one of the parent's. */
static int lock_with_the_parents_id(void)
{
    /* The next thread gets this id, which is free. */
    FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");
    if (!file || fprintf(file, "%d", reused.id - 1) < 1 || fclose(file) != 0)
        return 77;
    GIVES(0, pthread_rwlock_rdlock(&reused.lock));
    pthread_t thread = start(write_as_parent, NULL);
    while (reused.got == 0)
        sleep_ms(1);
    /* It begins to wait. */
    sleep_ms(50);
    CHECK(!reused.is_in && reused.got == reused.id);
    GIVES(0, pthread_rwlock_unlock(&reused.lock));
    join(thread);
    return 0;
}

static int status_of(pid_t child)
{
    int status;
    pid_t ended = waitpid(child, &status, 0);
    CHECK(ended > 0 && (child == -1 || ended == child) && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* In a namespace of process ids of its own, a process forks and ends, so that its id is free in its child. */
static void an_id_is_used_again(void)
{
    pid_t outside = fork();
    if (outside == 0) {
        if (unshare(CLONE_NEWPID) != 0)
            _exit(77);
        pid_t first = fork();
        if (first != 0)
            _exit(status_of(first));
        alarm(20);
        pid_t parent = fork();
        if (parent == 0) {
            reused.id = gettid();
            if (fork() != 0)
                _exit(0);
            alarm(20);
            /* Until the first process of the namespace has waited for the parent. */
            while (kill(reused.id, 0) == 0)
                sleep_ms(1);
            _exit(lock_with_the_parents_id());
        }
        CHECK(status_of(parent) == 0);
        /* The child of a process that has ended becomes one of the first process. */
        _exit(status_of(-1));
    }
    int status = status_of(outside);
    if (status == 77)
        fprintf(stderr, "left out: an id cannot be chosen\n");
    else
        CHECK(status == 0);
}

int main(int count, char **arguments)
{
    alarm(120);
    if (count == 2 && strcmp(arguments[1], "order") == 0) {
        alarm(10);
        on_one_cpu();
        become_fifo(5);
        for (int i = 0; i < 5; i++)
            readers_then_writers_by_priority();
        writers_do_not_starve();
        the_last_user_frees(false);
        the_last_user_frees(true);
        return 0;
    }
    nothing_is_lost();
    every_kind_answers();
    readers_are_recursive();
    processes_share_a_lock();
    if (count == 2 && strcmp(arguments[1], "inherits") == 0) {
        child_processes_continue();
        an_id_is_used_again();
    }
    return 0;
}
