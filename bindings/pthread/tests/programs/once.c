/* pthread_once and call_once: once, cancellation, a child process.

   Arguments: none for what every policy keeps; `inherits` for what holds under LOCKWRIGHT_PROTOCOL=inherit. */
#include "check.h"
#include <threads.h>

enum { THREADS = 4, ROUNDS = 500 };

static pthread_once_t onces[ROUNDS];
static once_flag flags[ROUNDS];
static int counts[ROUNDS], flag_counts[ROUNDS];
static _Thread_local int round_now;

static void initialises(void)
{
    sched_yield();
    counts[round_now]++;
}

static void initialises_flag(void)
{
    flag_counts[round_now]++;
}

static void *uses(void *argument)
{
    (void)argument;
    for (round_now = 0; round_now < ROUNDS; round_now++) {
        GIVES(0, pthread_once(&onces[round_now], initialises));
        call_once(&flags[round_now], initialises_flag);
        CHECK(counts[round_now] == 1 && flag_counts[round_now] == 1);
    }
    return NULL;
}

static pthread_once_t again = PTHREAD_ONCE_INIT;
static atomic_int begun, initialised;

static void waits_for_ever(void)
{
    atomic_store(&begun, 1);
    for (;;)
        pause();
}

static void counts_once(void)
{
    atomic_fetch_add(&initialised, 1);
}

static void *is_cancelled(void *argument)
{
    (void)argument;
    pthread_once(&again, waits_for_ever);
    return NULL;
}

static void *initialises_again(void *argument)
{
    GIVES(0, pthread_once(&again, counts_once));
    return argument;
}

static pthread_t begin_for_ever(void)
{
    again = PTHREAD_ONCE_INIT;
    atomic_store(&begun, 0);
    pthread_t thread = start(is_cancelled, NULL);
    while (!atomic_load(&begun))
        sched_yield();
    return thread;
}

static void the_next_caller_initialises(void)
{
    pthread_t thread = begin_for_ever(), waiter = start(initialises_again, NULL);
    sleep_ms(20);
    GIVES(0, pthread_cancel(thread));
    CHECK(join(thread) == PTHREAD_CANCELED);
    join(waiter);
    initialises_again(NULL);
    CHECK(atomic_load(&initialised) == 1);
}

static void a_child_does_not_wait_for_its_parent(void)
{
    pthread_t thread = begin_for_ever();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(20);
        atomic_store(&initialised, 0);
        initialises_again(NULL);
        _exit(atomic_load(&initialised) == 1 ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    GIVES(0, pthread_cancel(thread));
    join(thread);
}

static void leaves_by_exit(void)
{
    pthread_exit(NULL);
}

static void *exits_inside(void *argument)
{
    pthread_once(&again, leaves_by_exit);
    return argument;
}

static atomic_int tid;

static void shows_its_level(void)
{
    atomic_store(&tid, (int)syscall(SYS_gettid));
    while (!atomic_load(&begun))
        sleep_ms(1);
}

static void *initialises_slowly(void *level)
{
    become_fifo((int)(long)level);
    GIVES(0, pthread_once(&again, shows_its_level));
    return NULL;
}

/* Returns the level at which a thread executes, with inheritance. */
static int level_of(int tid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "r");
    CHECK(file && fgets(line, sizeof line, file));
    fclose(file);
    char *field = strrchr(line, ')') + 1;
    int priority = 0;
    CHECK(sscanf(field, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %d", &priority) == 1);
    return -1 - priority;
}

static void a_waiter_lends_its_priority(void)
{
    on_one_cpu();
    become_fifo(90);
    again = PTHREAD_ONCE_INIT;
    atomic_store(&begun, 0);
    pthread_t first = start(initialises_slowly, (void *)10L);
    while (!atomic_load(&tid))
        sleep_ms(1);
    pthread_t urgent = start(initialises_slowly, (void *)60L);
    sleep_ms(30);
    CHECK(level_of(atomic_load(&tid)) == 60);
    atomic_store(&begun, 1);
    join(first);
    join(urgent);
}

int main(int count, char **arguments)
{
    alarm(100);
    if (count > 1 && strcmp(arguments[1], "inherits") == 0) {
        a_waiter_lends_its_priority();
        return 0;
    }
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(uses, NULL);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    the_next_caller_initialises();
    a_child_does_not_wait_for_its_parent();
    again = PTHREAD_ONCE_INIT;
    atomic_store(&initialised, 0);
    join(start(exits_inside, NULL));
    initialises_again(NULL);
    CHECK(atomic_load(&initialised) == 1);
    return 0;
}
