/* Ends in different ways, after a lock and an unlock that must be in the recording. Argument: the way. */
#include "check.h"
#include <sys/resource.h>

pthread_mutex_t before = PTHREAD_MUTEX_INITIALIZER, last = PTHREAD_MUTEX_INITIALIZER;
static atomic_int worked;

static void use(pthread_mutex_t *mutex)
{
    GIVES(0, pthread_mutex_lock(mutex));
    GIVES(0, pthread_mutex_unlock(mutex));
}

static void *works(void *unused)
{
    for (;;) {
        use(&last);
        atomic_fetch_add(&worked, 1);
    }
    return unused;
}

/* Leaves memory for a small thread, but not for its events. */
static void limit_memory(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld", &pages) == 1 && fclose(file) == 0);
    rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1 << 20);
    struct rlimit limit = { bytes, bytes };
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void *ends(void *unused)
{
    pause_ms(50);
    use(&last);
    return unused;
}

int main(int count, char **arguments)
{
    CHECK(count >= 2);
    const char *way = arguments[1];
    use(&before);
    if (strcmp(way, "_exit") == 0) {
        use(&last);
        _exit(0);
    }
    if (strcmp(way, "pthread_exit") == 0) {
        start(ends, NULL);
        pthread_exit(NULL);
    }
    if (strcmp(way, "exit") == 0) {
        /* Another thread locks until the end. */
        start(works, NULL);
        while (atomic_load(&worked) < 2000)
            pause_ms(1);
        exit(0);
    }
    if (strcmp(way, "memory") == 0) {
        pthread_attr_t small;
        GIVES(0, pthread_attr_init(&small));
        GIVES(0, pthread_attr_setstacksize(&small, 1 << 16));
        limit_memory();
        for (int i = 0; i < 2; i++) {
            pthread_t thread;
            GIVES(0, pthread_create(&thread, &small, ends, NULL));
            join(thread);
        }
    }
    if (strcmp(way, "kill") == 0) {
        sleep_ms(200);
        raise(SIGKILL);
    }
    if (strcmp(way, "abort") == 0) {
        sleep_ms(200);
        abort();
    }
    if (strcmp(way, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 100000; i++)
                use(&last);
            exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
    }
    if (strcmp(way, "real-time") == 0) {
        /* As chrt does. */
        struct sched_param urgent = {.sched_priority = 10};
        CHECK(sched_setscheduler(0, SCHED_FIFO, &urgent) == 0 || getenv("LOCKWRIGHT_REQUIRE_RT") == NULL);
    }
    if (strcmp(way, "exec") == 0 || strcmp(way, "real-time") == 0)
        execl(arguments[0], arguments[0], "_exit", (char *)NULL);
    if (strcmp(way, "vfork") == 0) {
        pid_t child = vfork();
        if (child == 0)
            _exit(3);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
        use(&last);
    }
    if (strcmp(way, "close") == 0) {
        /* As daemons do. */
        for (int descriptor = 3; descriptor < 1024; descriptor++)
            close(descriptor);
        use(&last);
    }
    return 0;
}
