/*
 * The system @NAME@ as a program: each task is a thread under SCHED_FIFO on its CPU, with pthread mutexes and absolute
 * sleeps. `lockwright export c` wrote it.
 *
 *     cc -O2 -pthread -o program program.c && ./program [SECONDS]
 *
 * Exit status: 0 no job missed its deadline, 1 a job missed its deadline, 3 the machine refuses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum action { RUN, LOCK, UNLOCK };

/* RUN: nanoseconds of execution time. LOCK and UNLOCK: the number of the resource. */
struct step {
    enum action action;
    int64_t value;
};

/* Times are in nanoseconds. A greater level is more urgent. */
struct task {
    const char *name;
    int cpu;
    int level;
    int64_t period;
    int64_t deadline;
    int64_t offset;
    const struct step *body;
    int steps;
};

/* The ceiling counts only with PTHREAD_PRIO_PROTECT. The last resource is not used. */
struct resource {
    const char *name;
    int protocol;
    int ceiling;
};

@DATA@
struct seen {
    int64_t jobs;
    int64_t misses;
    int64_t longest;
};

static pthread_mutex_t mutexes[RESOURCES + 1];
static struct seen seen[TASKS];
static int64_t begin;
static int64_t duration;

static int64_t now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void sleep_until(int64_t at)
{
    struct timespec time = { at / 1000000000, at % 1000000000 };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
    }
}

/* The time of one look at the processor time of a thread. */
static int64_t look;

static void measure_look(void)
{
    enum { LOOKS = 1000 };
    int64_t first = now(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 1; i < LOOKS; i++)
        now(CLOCK_THREAD_CPUTIME_ID);
    look = (now(CLOCK_THREAD_CPUTIME_ID) - first) / LOOKS;
}

/* Executes for this time, and returns by how much it took too long. Preemption does not count. */
static int64_t run(int64_t time)
{
    int64_t at, end = now(CLOCK_THREAD_CPUTIME_ID) + time - look;
    while ((at = now(CLOCK_THREAD_CPUTIME_ID)) < end) {
    }
    return at - end;
}

static void refuse(const char *what, int error)
{
    fprintf(stderr, "%s: %s\n", what, strerror(error));
    if (error == EPERM)
        fprintf(stderr, "the program needs permission for SCHED_FIFO: CAP_SYS_NICE, or `ulimit -r`\n");
    exit(3);
}

static void job(const struct task *task)
{
    int64_t late = 0;
    for (int i = 0; i < task->steps; i++) {
        int64_t value = task->body[i].value;
        switch (task->body[i].action) {
        case RUN:
            late = run(value - late);
            break;
        case LOCK:
            pthread_mutex_lock(&mutexes[value]);
            break;
        case UNLOCK:
            pthread_mutex_unlock(&mutexes[value]);
            break;
        }
    }
}

static void *thread(void *argument)
{
    const struct task *task = argument;
    struct seen *mine = &seen[task - tasks];
    char name[16];
    snprintf(name, sizeof name, "%.15s", task->name);
    pthread_setname_np(pthread_self(), name);
    for (int64_t release = task->offset; release < duration; release += task->period) {
        sleep_until(begin + release);
        job(task);
        int64_t response = now(CLOCK_MONOTONIC) - begin - release;
        mine->jobs++;
        mine->misses += response > task->deadline;
        if (response > mine->longest)
            mine->longest = response;
    }
    return NULL;
}

/* The number in Linux of the nth CPU that this process may use. */
static int linux_cpu(const cpu_set_t *allowed, int n)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, allowed) && n-- == 0)
            return cpu;
    }
    fprintf(stderr, "the system has more CPUs than this process may use\n");
    exit(3);
}

static void make_mutexes(void)
{
    for (int i = 0; i < RESOURCES; i++) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setprotocol(&attributes, resources[i].protocol);
        if (resources[i].protocol == PTHREAD_PRIO_PROTECT)
            pthread_mutexattr_setprioceiling(&attributes, resources[i].ceiling);
        int error = pthread_mutex_init(&mutexes[i], &attributes);
        if (error != 0)
            refuse(resources[i].name, error);
        pthread_mutexattr_destroy(&attributes);
    }
}

static pthread_t start(const struct task *task, const cpu_set_t *allowed)
{
    struct sched_param param = { .sched_priority = task->level };
    pthread_attr_t attributes;
    pthread_t started;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(linux_cpu(allowed, task->cpu), &one);
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &param);
    int error = pthread_create(&started, &attributes, thread, (void *)task);
    if (error != 0)
        refuse(task->name, error);
    pthread_attr_destroy(&attributes);
    return started;
}

int main(int count, char **arguments)
{
    pthread_t threads[TASKS];
    cpu_set_t allowed;
    char *end = "";
    double seconds = count > 1 ? strtod(arguments[1], &end) : 10;
    if (count > 2 || *end != '\0' || !(seconds > 0 && seconds < 1e6)) {
        fprintf(stderr, "usage: %s [SECONDS]\n", arguments[0]);
        return 2;
    }
    duration = (int64_t)(seconds * 1e9);
    sched_getaffinity(0, sizeof allowed, &allowed);
    /* Without it, page faults delay jobs. */
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        perror("the memory is not locked");
    make_mutexes();
    measure_look();
    begin = now(CLOCK_MONOTONIC) + 100000000;
    for (int i = 0; i < TASKS; i++)
        threads[i] = start(&tasks[i], &allowed);
    int64_t misses = 0;
    printf("%-24s %10s %10s %14s %14s\n", "task", "jobs", "misses", "response [us]", "deadline [us]");
    for (int i = 0; i < TASKS; i++) {
        pthread_join(threads[i], NULL);
        printf("%-24s %10" PRId64 " %10" PRId64 " %14.1f %14.1f\n", tasks[i].name, seen[i].jobs, seen[i].misses,
               seen[i].longest / 1e3, tasks[i].deadline / 1e3);
        misses += seen[i].misses;
    }
    return misses > 0;
}
