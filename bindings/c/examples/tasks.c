/* Two threads are the tasks of a set under DPCP: their sections on the bus execute on the bus's CPU. Needs
 * permission for SCHED_FIFO. Prints what their jobs did. With the name of a file, also writes a trace of the jobs there,
 * which https://ui.perfetto.dev shows.
 *
 *     cc tasks.c $(pkg-config --cflags --libs lockwright) -pthread && ./a.out jobs.pftrace
 */
#define _GNU_SOURCE
#include <errno.h>
#include <lockwright.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

/* A job has three events, and its section three. */
enum { JOBS = 1000, EVENTS = 6 * JOBS, NO_RIGHT = 77 };

static lw_taskset_t set;
static uint32_t bus;
static long messages;

struct thread {
    uint32_t task;
    long period_ns;
    int error;
};

/* Prints why the last call failed. */
static int fail(int error) {
    char text[1024];
    lw_task_error(text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return error;
}

/* A job whose deadline is the next release. */
static int job(const struct timespec *due) {
    int error = lw_task_begin_due(CLOCK_MONOTONIC, due);
    if (error == 0) {
        error = lw_task_lock(bus);
        if (error == 0) {
            for (volatile int i = 0; i < 20000; i++) {
            }
            messages++; /* Executes on the CPU of the bus. */
            error = lw_task_unlock(bus);
        }
        lw_task_end();
    }
    return error;
}

static void advance(struct timespec *time, long ns) {
    time->tv_nsec += ns;
    if (time->tv_nsec >= 1000000000) {
        time->tv_nsec -= 1000000000;
        time->tv_sec++;
    }
}

static void *work(void *argument) {
    struct thread *thread = argument;
    thread->error = lw_task_join(&set, thread->task);
    if (thread->error != 0) {
        fail(thread->error);
        return NULL;
    }
    struct timespec release;
    clock_gettime(CLOCK_MONOTONIC, &release);
    for (int i = 0; i < JOBS && thread->error == 0; i++) {
        advance(&release, thread->period_ns);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &release, NULL);
        struct timespec due = release;
        advance(&due, thread->period_ns);
        thread->error = job(&due);
    }
    if (thread->error != 0) {
        fail(thread->error);
    }
    lw_task_leave();
    return NULL;
}

int main(int argc, char **argv) {
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) {
        return 1;
    }
    int last = CPU_COUNT(&cpus) < 2 ? 0 : 1;
    struct thread control = {.period_ns = 1000000}, logging = {.period_ns = 1500000};
    if (lw_taskset_init(&set, "dpcp") != 0 || lw_taskset_resource(&set, "bus", last, &bus) != 0 ||
        lw_taskset_task(&set, "control", 0, 20, &bus, 1, &control.task) != 0 ||
        lw_taskset_task(&set, "logging", last, 10, &bus, 1, &logging.task) != 0 ||
        lw_taskset_deadline(&set, control.task, (uint64_t)control.period_ns) != 0 ||
        lw_taskset_deadline(&set, logging.task, (uint64_t)logging.period_ns) != 0 || lw_taskset_build(&set) != 0 ||
        lw_taskset_measure(&set) != 0 || (argc > 1 && lw_taskset_trace(&set, EVENTS) != 0)) {
        return fail(1);
    }
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, work, &control) != 0 ||
        pthread_create(&threads[1], NULL, work, &logging) != 0) {
        return 1;
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    if (control.error == EPERM || logging.error == EPERM) {
        return NO_RIGHT;
    }
    char report[4096];
    if (lw_taskset_report(&set, report, sizeof report) != 0) {
        return fail(1);
    }
    fputs(report, stdout);
    uint64_t dropped = 0;
    if (argc > 1 && lw_taskset_write_trace(&set, argv[1], &dropped) != 0) {
        return fail(1);
    }
    lw_taskset_destroy(&set);
    printf("messages %ld\n", messages);
    return messages == 2 * JOBS && dropped == 0 ? 0 : 1;
}
