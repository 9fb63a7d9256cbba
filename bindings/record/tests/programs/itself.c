/* A program that is linked with the recorder, and records a part of what it does. The argument is the folder. */
#include "check.h"
#include "../../include/lockwright_record.h"
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

pthread_mutex_t before = PTHREAD_MUTEX_INITIALIZER, during = PTHREAD_MUTEX_INITIALIZER, after = PTHREAD_MUTEX_INITIALIZER;

static void *works(void *unused)
{
    pthread_setname_np(pthread_self(), "worker");
    pthread_mutex_lock(&during);
    for (volatile int i = 0; i < 1000000; i++) {}
    pthread_mutex_unlock(&during);
    return unused;
}

static void take(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
}

static atomic_int is_stopping;

static void *stops(void *unused)
{
    atomic_store(&is_stopping, 1);
    lw_record_stop();
    return unused;
}

/* The bytes of memory that the program has. */
static rlim_t mapped(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld", &pages) == 1 && fclose(file) == 0);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

int main(int arguments, char **argument)
{
    CHECK(arguments > 1);
    take(&before);
    CHECK(lw_record_stop() == ENOENT);
    CHECK(lw_record_start(NULL) == EINVAL);
    CHECK(lw_record_start("/proc/no/such/folder") != 0);
    /* Without memory for its thread, it fails, and may be tried again. */
    struct rlimit all, little;
    CHECK(getrlimit(RLIMIT_AS, &all) == 0);
    little = all;
    little.rlim_cur = mapped() + (6 << 20);
    CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    CHECK(lw_record_start(argument[1]) == EAGAIN);
    CHECK(setrlimit(RLIMIT_AS, &all) == 0);
    CHECK(lw_record_start(argument[1]) == 0);
    CHECK(lw_record_start(argument[1]) == EBUSY);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, works, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    if (arguments > 2) {
        /* Another thread stops the recording while the program ends. */
        CHECK(pthread_create(&thread, NULL, stops, NULL) == 0);
        while (!atomic_load(&is_stopping)) {}
        exit(0);
    }
    CHECK(lw_record_stop() == 0);
    CHECK(lw_record_stop() == ENOENT && lw_record_start(argument[1]) == EBUSY);
    take(&after);
    return 0;
}
