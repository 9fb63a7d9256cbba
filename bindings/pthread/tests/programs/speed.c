/* Measures uncontended lock and unlock of the C library's own functions and of those that the program gets, in
   turns. Prints medians in ns, and their ratio. Without a preloaded library both are the same. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TURNS = 41, ROUNDS = 300000 };

struct doors {
    int (*init)(pthread_mutex_t *, const pthread_mutexattr_t *);
    int (*lock)(pthread_mutex_t *);
    int (*unlock)(pthread_mutex_t *);
};

static struct doors of(void *library)
{
    struct doors doors;
    *(void **)&doors.init = dlsym(library, "pthread_mutex_init");
    *(void **)&doors.lock = dlsym(library, "pthread_mutex_lock");
    *(void **)&doors.unlock = dlsym(library, "pthread_mutex_unlock");
    return doors;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static double turn(const struct doors *doors, pthread_mutex_t *mutex)
{
    double start = now();
    for (int i = 0; i < ROUNDS; i++) {
        doors->lock(mutex);
        doors->unlock(mutex);
    }
    return (now() - start) / ROUNDS;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *idle(void *unused)
{
    return unused;
}

int main(void)
{
    static const struct {
        const char *name;
        int type, protocol, robust;
    } kinds[] = {
        { "normal", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED },
        { "recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED },
        { "error-checking", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED },
        { "inherit", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED },
        { "robust", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST },
        { "inherit, robust", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_ROBUST },
    };
    struct doors library = of(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD)), program = of(RTLD_DEFAULT);
    pthread_t thread;

    /* The C library is faster while there is only one thread, but programs that lock have more. */
    pthread_create(&thread, NULL, idle, NULL);
    pthread_join(thread, NULL);

    printf("%-18s%10s%10s%8s\n", "kind", "library", "program", "ratio");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        pthread_mutexattr_t attributes;
        pthread_mutex_t a, b;
        double times[2][TURNS];
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, kinds[k].type);
        pthread_mutexattr_setprotocol(&attributes, kinds[k].protocol);
        pthread_mutexattr_setrobust(&attributes, kinds[k].robust);
        library.init(&a, &attributes);
        program.init(&b, &attributes);
        for (int i = 0; i < TURNS; i++) {
            times[0][i] = turn(&library, &a);
            times[1][i] = turn(&program, &b);
        }
        qsort(times[0], TURNS, sizeof(double), ascending);
        qsort(times[1], TURNS, sizeof(double), ascending);
        printf("%-18s%10.1f%10.1f%8.2f\n", kinds[k].name, times[0][TURNS / 2], times[1][TURNS / 2],
               times[1][TURNS / 2] / times[0][TURNS / 2]);
    }
    return 0;
}
