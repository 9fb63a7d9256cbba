/* Locks often. Arguments: "stress", the number of threads, the pairs of each, and the pairs of each in a second at most
   (0: as many as possible); "exit", which ends while threads lock as often as possible; or "speed". */
#include "check.h"
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <sys/resource.h>

static pthread_mutex_t own[8];
static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER;
static long pairs, rate, counter;

/* Pairs of its own mutex, and of the common one in between. */
static void *stress(void *argument)
{
    pthread_mutex_t *mutex = argument;
    double begin = now_ms(CLOCK_MONOTONIC);
    for (long i = 0; i < pairs; i++) {
        GIVES(0, pthread_mutex_lock(mutex));
        GIVES(0, pthread_mutex_unlock(mutex));
        if (i % 64 == 0) {
            GIVES(0, pthread_mutex_lock(&common));
            counter++;
            GIVES(0, pthread_mutex_unlock(&common));
            while (rate > 0 && i > (now_ms(CLOCK_MONOTONIC) - begin) * rate / 1e3) {
            }
        }
    }
    return NULL;
}

enum { TURNS = 41, ROUNDS = 20000 };

static double turn(int (*lock)(pthread_mutex_t *), int (*unlock)(pthread_mutex_t *), pthread_mutex_t *mutex)
{
    double start = now_ms(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < ROUNDS; i++) {
        lock(mutex);
        unlock(mutex);
    }
    return (now_ms(CLOCK_THREAD_CPUTIME_ID) - start) * 1e6 / ROUNDS;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Medians of a pair by the C library's functions and by those that the program gets, in ns of processor time, and of
   their difference. Turns are short, and the ring is written in between. */
static void speed(void)
{
    void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    int (*lock)(pthread_mutex_t *), (*unlock)(pthread_mutex_t *);
    *(void **)&lock = dlsym(library, "pthread_mutex_lock");
    *(void **)&unlock = dlsym(library, "pthread_mutex_unlock");
    double plain[TURNS], recorded[TURNS], more[TURNS];
    for (int i = 0; i < TURNS; i++) {
        sleep_ms(20);
        plain[i] = turn(lock, unlock, &own[0]);
        recorded[i] = turn(pthread_mutex_lock, pthread_mutex_unlock, &own[1]);
        more[i] = recorded[i] - plain[i];
    }
    qsort(plain, TURNS, sizeof(double), ascending);
    qsort(recorded, TURNS, sizeof(double), ascending);
    qsort(more, TURNS, sizeof(double), ascending);
    printf("a pair: plain %.1f ns, recorded %.1f ns, more %.1f ns (quartiles %.1f to %.1f)\n", plain[TURNS / 2],
           recorded[TURNS / 2], more[TURNS / 2], more[TURNS / 4], more[3 * TURNS / 4]);
}

/* Moves a thread to the first CPU, or away from it. */
static void move(pid_t thread, int is_first)
{
    cpu_set_t all, some;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    int first = 0;
    while (!CPU_ISSET(first, &all))
        first++;
    some = all;
    if (is_first) {
        CPU_ZERO(&some);
        CPU_SET(first, &some);
    } else if (CPU_COUNT(&all) > 1) {
        CPU_CLR(first, &some);
    }
    CHECK(sched_setaffinity(thread, sizeof some, &some) == 0);
}

static void *stress_beside(void *mutex)
{
    move(0, 1);
    return stress(mutex);
}

static void *stress_elsewhere(void *mutex)
{
    move(0, 0);
    return stress(mutex);
}

/* Leaves little time of the first CPU to the thread that writes the recording. */
static void hinder_recorder(void)
{
    DIR *threads = opendir("/proc/self/task");
    int found = 0;
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file != NULL && fgets(name, sizeof name, file) != NULL && strcmp(name, "lw-recorder\n") == 0) {
            CHECK(setpriority(PRIO_PROCESS, atoi(entry->d_name), 19) == 0);
            move(atoi(entry->d_name), 1);
            found++;
        }
        if (file != NULL)
            fclose(file);
    }
    closedir(threads);
    CHECK(found == 1);
}

int main(int count, char **arguments)
{
    CHECK(count >= 2);
    for (int i = 0; i < 8; i++)
        GIVES(0, pthread_mutex_init(&own[i], NULL));
    if (strcmp(arguments[1], "speed") == 0) {
        /* The C library is faster while there is only one thread. */
        join(start(stress, &own[0]));
        speed();
        return 0;
    }
    if (strcmp(arguments[1], "exit") == 0) {
        pairs = LONG_MAX;
        hinder_recorder();
        start(stress_elsewhere, &own[0]);
        start(stress_beside, &own[1]);
        sleep_ms(300);
        exit(0);
    }
    CHECK(count == 5);
    int threads = atoi(arguments[2]);
    pairs = atol(arguments[3]);
    rate = atol(arguments[4]);
    CHECK(threads >= 1 && threads <= 8);
    pthread_t all[8];
    double begin = now_ms(CLOCK_MONOTONIC);
    for (int i = 0; i < threads; i++)
        all[i] = start(stress, &own[i]);
    for (int i = 0; i < threads; i++)
        join(all[i]);
    double s = (now_ms(CLOCK_MONOTONIC) - begin) / 1e3;
    fprintf(stderr, "%.2f million events a second\n", 2.0 * threads * pairs / s / 1e6);
    CHECK(counter == threads * ((pairs + 63) / 64));
    return 0;
}
