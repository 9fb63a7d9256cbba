/* Threads as the tasks of a set. Needs permission for SCHED_FIFO. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

#ifdef MUTANT
/* Locking excludes no thread. */
#define lw_task_lock(resource) 0
#endif

/* The number of allocations of the thread. A sanitizer has its own allocator, so they are not counted there. */
static _Thread_local long allocations;
#if defined(__SANITIZE_ADDRESS__)
enum { IS_COUNTED = 0 };
#else
enum { IS_COUNTED = 1 };
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
void *malloc(size_t size) {
    allocations++;
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    allocations++;
    return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
    allocations++;
    return __libc_realloc(old, size);
}
#endif

enum { TASKS = 4, JOBS = 200 };

static lw_taskset_t set;
static uint32_t counter, spare, tasks[TASKS];
static int cpus;

/* Puts two tasks on each CPU, of which there are at most two; or, as a cluster, all tasks on any of them. Only the
   first two tasks use `spare`. */
static void make_in(const char *protocol, int is_cluster) {
    static const int all[] = {0, 1};
    long before = allocations;
    EXPECT(0, lw_taskset_init(&set, protocol));
    CHECK(!IS_COUNTED || allocations > before);
    EXPECT(0, lw_taskset_resource(&set, "counter", cpus - 1, &counter));
    EXPECT(0, lw_taskset_resource(&set, "spare", cpus - 1, &spare));
    const uint32_t both[] = {counter, spare};
    for (int i = 0; i < TASKS; i++) {
        char name[] = {'t', (char)('0' + i), 0};
        const size_t uses = i < 2 ? 2 : 1;
        if (is_cluster) {
            EXPECT(0, lw_taskset_task_in_cluster(&set, name, all, (size_t)cpus, 10 + i, both, uses, &tasks[i]));
        } else {
            EXPECT(0, lw_taskset_task(&set, name, i % cpus, 10 + i, both, uses, &tasks[i]));
        }
    }
    EXPECT(0, lw_taskset_build(&set));
    /* Under some protocols the jobs are counted, which allocates nothing either. */
    if (protocol[0] == 'm') {
        EXPECT(0, lw_taskset_measure(&set));
    }
}

static void make(const char *protocol) {
    make_in(protocol, 0);
}

static atomic_int inside;
static volatile long count;

static void *works(void *task) {
    EXPECT(0, lw_task_join(&set, *(uint32_t *)task));
    const struct timespec nap = {.tv_sec = 0, .tv_nsec = 20000};
    for (int i = 0; i < JOBS; i++) {
        /* Leave time to the CPU: the throttling of real-time threads would stop the others. */
        nanosleep(&nap, NULL);
        long before = allocations;
        EXPECT(0, lw_task_begin());
        EXPECT(0, lw_task_lock(counter));
        CHECK(atomic_fetch_add(&inside, 1) == 0);
        count = count + 1;
        CHECK(atomic_fetch_sub(&inside, 1) == 1);
        EXPECT(0, lw_task_unlock(counter));
        EXPECT(EPERM, lw_task_unlock(counter));
        EXPECT(0, lw_task_end());
        CHECK(allocations == before);
    }
    EXPECT(0, lw_task_leave());
    return NULL;
}

static void all_work(void) {
    count = 0;
    pthread_t threads[TASKS];
    for (int task = 0; task < TASKS; task++) {
        threads[task] = start(works, &tasks[task]);
    }
    for (int task = 0; task < TASKS; task++) {
        join(threads[task]);
    }
    CHECK(count == (long)TASKS * JOBS);
    EXPECT(0, lw_taskset_destroy(&set));
}

static void one_holder_at_a_time(void) {
    static const char *const protocols[] = {"none",      "pip",       "icpp",       "pcp",  "srp",  "mpcp", "mpcp_vs", "dpcp", "dflp",
                                            "fmlp_long", "fmlp_plus", "fmlp_short", "msrp", "mrsp", "omlp", "phase_fair", "task_fair"};
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
        make(protocols[i]);
        all_work();
    }
    make_in("omlp", 1);
    all_work();
}

static void *holds_the_counter(void *unused) {
    EXPECT(0, lw_task_join(&set, tasks[0]));
    const struct timespec due = from_now(CLOCK_MONOTONIC, 1);
    EXPECT(0, lw_task_begin_due(CLOCK_MONOTONIC, &due));
    EXPECT(0, lw_task_lock(counter));
    double end = seconds(now(CLOCK_MONOTONIC)) + 0.003;
    while (seconds(now(CLOCK_MONOTONIC)) < end) {
    }
    EXPECT(0, lw_task_unlock(counter));
    EXPECT(0, lw_task_end());
    EXPECT(0, lw_task_leave());
    return unused;
}

static void jobs_are_counted(void) {
    lw_task_statistics_t of;
    lw_wait_statistics_t waits;
    char path[64], text[4096], small[8];
    cpus = 1;
    EXPECT(0, lw_taskset_init(&set, "pip"));
    EXPECT(0, lw_taskset_resource(&set, "counter", -1, &counter));
    EXPECT(0, lw_taskset_task(&set, "late", 0, 10, &counter, 1, &tasks[0]));
    EXPECT(EINVAL, lw_taskset_deadline(&set, tasks[0], 0));
    EXPECT(EINVAL, lw_taskset_deadline(&set, tasks[0], UINT64_MAX));
    EXPECT(EINVAL, lw_taskset_deadline(&set, 77, 1000));
    EXPECT(0, lw_taskset_deadline(&set, tasks[0], 2000000));
    EXPECT(EINVAL, lw_taskset_measure(&set));
    EXPECT(0, lw_taskset_build(&set));
    EXPECT(EBUSY, lw_taskset_deadline(&set, tasks[0], 2000000));
    EXPECT(EINVAL, lw_taskset_statistics(&set, tasks[0], &of));
    EXPECT(EINVAL, lw_taskset_report(&set, text, sizeof text));
    EXPECT(0, lw_taskset_measure(&set));
    EXPECT(EINVAL, lw_taskset_bound(&set, 77, 1000));
    EXPECT(EINVAL, lw_taskset_bound(&set, tasks[0], 0));
    EXPECT(0, lw_taskset_bound(&set, tasks[0], 1000000));
    EXPECT(0, lw_taskset_waits(&set, tasks[0], counter, &waits));
    CHECK(waits.sections == 0 && waits.holder == LW_NO_TASK);
    /* A job with one section has six events. It is not shown if they do not all fit. */
    uint64_t dropped = 99;
    snprintf(path, sizeof path, "/tmp/lockwright-%d.pftrace", (int)getpid());
    EXPECT(EINVAL, lw_taskset_write_trace(&set, path, &dropped));
    CHECK(access(path, F_OK) != 0 && dropped == 99);
    EXPECT(EINVAL, lw_taskset_trace(&set, 0));
    EXPECT(EINVAL, lw_taskset_trace(&set, (size_t)LW_TRACE_EVENTS_MAX + 1));
    EXPECT(0, lw_taskset_trace(&set, 4));
    join(start(holds_the_counter, NULL));
    EXPECT(0, lw_taskset_write_trace(&set, path, &dropped));
    CHECK(dropped == 6 && access(path, F_OK) == 0);
    EXPECT(0, lw_taskset_write_trace(&set, path, NULL));
    EXPECT(0, unlink(path));
    EXPECT(ENOENT, lw_taskset_write_trace(&set, "/no/such/folder/file", &dropped));
    EXPECT(EINVAL, lw_taskset_write_trace(&set, NULL, &dropped));
    EXPECT(0, lw_taskset_statistics(&set, tasks[0], &of));
    CHECK(of.jobs == 1 && of.misses == 1 && of.above_bound == 1 && of.worst_job == 1);
    CHECK(of.worst_ns >= 3000000 && of.mean_ns == of.worst_ns && of.p999_ns == of.worst_ns);
    CHECK(of.bound_ns == 1000000 && of.deadline_ns == 2000000);
    lw_histogram_bin_t bins[2] = {{1, 1}, {1, 1}};
    size_t length = 99;
    EXPECT(0, lw_taskset_histogram(&set, tasks[0], bins, 2, &length));
    CHECK(length == 1 && bins[0].jobs == 1 && bins[0].up_to_ns >= of.worst_ns && bins[1].jobs == 1);
    EXPECT(0, lw_taskset_histogram(&set, tasks[0], NULL, 0, &length));
    EXPECT(EINVAL, lw_taskset_histogram(&set, tasks[0], NULL, 1, &length));
    EXPECT(EINVAL, lw_taskset_histogram(&set, tasks[0], bins, 1, NULL));
    EXPECT(EINVAL, lw_taskset_histogram(&set, 77, bins, 1, &length));
    EXPECT(0, lw_taskset_waits(&set, tasks[0], counter, &waits));
    CHECK(waits.sections == 1 && waits.waits == 0 && waits.longest_section_ns >= 3000000);
    EXPECT(0, lw_taskset_report(&set, text, sizeof text));
    CHECK(strstr(text, "late") && strstr(text, "counter") && strstr(text, "2 ms"));
    EXPECT(ERANGE, lw_taskset_report(&set, small, sizeof small));
    CHECK(strlen(small) == sizeof small - 1);
    EXPECT(EINVAL, lw_taskset_report(&set, NULL, 10));
    EXPECT(EINVAL, lw_taskset_statistics(&set, 77, &of));
    EXPECT(EINVAL, lw_taskset_statistics(&set, tasks[0], NULL));
    EXPECT(EINVAL, lw_taskset_waits(&set, tasks[0], 77, &waits));
    EXPECT(0, lw_taskset_destroy(&set));
    EXPECT(EINVAL, lw_taskset_report(&set, text, sizeof text));
}

static int policy(void) {
    return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static void *is_another(void *unused) {
    EXPECT(EPERM, lw_task_begin());
    EXPECT(EPERM, lw_task_lock(counter));
    EXPECT(EPERM, lw_task_read(counter));
    EXPECT(EPERM, lw_task_unlock(counter));
    EXPECT(EPERM, lw_task_end());
    EXPECT(EPERM, lw_task_leave());
    EXPECT(EBUSY, lw_task_join(&set, tasks[0]));
    EXPECT(EPERM, lw_task_leave());
    return unused;
}

static void *reads(void *unused) {
    EXPECT(0, lw_task_join(&set, tasks[1]));
    EXPECT(0, lw_task_begin());
    EXPECT(0, lw_task_read(counter));
    EXPECT(0, lw_task_unlock(counter));
    EXPECT(0, lw_task_end());
    EXPECT(0, lw_task_leave());
    return unused;
}

/* Another task reads, and is done, while this one reads. */
static void readers_share(const char *protocol) {
    make(protocol);
    EXPECT(0, lw_task_join(&set, tasks[0]));
    EXPECT(0, lw_task_begin());
    EXPECT(0, lw_task_read(counter));
    EXPECT(EDEADLK, lw_task_read(counter));
    join(start(reads, NULL));
    EXPECT(0, lw_task_unlock(counter));
    EXPECT(0, lw_task_end());
    EXPECT(0, lw_task_leave());
    EXPECT(0, lw_taskset_destroy(&set));
}

static void what_is_refused(const char *protocol, int nests) {
    cpu_set_t before, after;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    make(protocol);
    EXPECT(0, lw_task_join(&set, tasks[0]));
    CHECK(policy() == SCHED_FIFO);
    EXPECT(EBUSY, lw_task_join(&set, tasks[0]));
    EXPECT(EBUSY, lw_task_join(&set, tasks[1]));
    EXPECT(EPERM, lw_task_lock(counter));
    EXPECT(EPERM, lw_task_unlock(counter));
    EXPECT(EPERM, lw_task_end());
    EXPECT(0, lw_task_begin());
    EXPECT(EBUSY, lw_task_begin());
    EXPECT(EPERM, lw_task_unlock(counter));
    EXPECT(EACCES, lw_task_lock(2));
    EXPECT(EACCES, lw_task_lock(65536 + counter));
    EXPECT(EPERM, lw_task_unlock(65536 + counter));
    EXPECT(0, lw_task_lock(counter));
    join(start(is_another, NULL));
    EXPECT(EDEADLK, lw_task_lock(counter));
    EXPECT(nests ? 0 : ENOTSUP, lw_task_lock(spare));
    if (nests) {
        /* The order of unlocking is not checked. */
        EXPECT(0, lw_task_unlock(counter));
        EXPECT(0, lw_task_unlock(spare));
        EXPECT(0, lw_task_lock(spare));
        EXPECT(0, lw_task_lock(counter));
    }
    /* The end of the job unlocks what the job holds. */
    EXPECT(0, lw_task_end());
    EXPECT(EPERM, lw_task_unlock(counter));
    EXPECT(0, lw_task_begin());
    EXPECT(0, lw_task_lock(counter));
    /* So does the end of the membership. The set may have been destroyed before. */
    lw_taskset_t gone = set;
    EXPECT(0, lw_taskset_destroy(&set));
    EXPECT(EINVAL, lw_task_join(&gone, tasks[1]));
    EXPECT(0, lw_task_unlock(counter));
    EXPECT(0, lw_task_leave());
    EXPECT(EPERM, lw_task_leave());
    EXPECT(EPERM, lw_task_begin());
    CHECK(policy() == SCHED_OTHER);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&before, &after));
}

static void what_was_not_said(void) {
    char text[256];
    make("dpcp");
    EXPECT(0, lw_task_join(&set, tasks[3]));
    EXPECT(0, lw_task_begin());
    EXPECT(0, lw_task_error(text, sizeof text));
    CHECK(text[0] == 0);
    EXPECT(EACCES, lw_task_lock(spare));
    EXPECT(0, lw_task_error(text, sizeof text));
    CHECK(strstr(text, "not declared to use"));
    EXPECT(0, lw_task_leave());
    EXPECT(0, lw_taskset_destroy(&set));
}

/* A thread whose first call is refused, and that ends inside a job. */
static void *ends_inside(void *unused) {
    EXPECT(EPERM, lw_task_begin());
    EXPECT(0, lw_task_join(&set, tasks[0]));
    EXPECT(0, lw_task_begin());
    EXPECT(0, lw_task_lock(counter));
    return unused;
}

static void *comes_after(void *unused) {
    for (int i = 0; i < 2; i++) {
        EXPECT(0, lw_task_join(&set, tasks[i]));
        EXPECT(0, lw_task_begin());
        EXPECT(0, lw_task_lock(counter));
        EXPECT(0, lw_task_leave());
    }
    return unused;
}

static void a_thread_ends_inside(const char *protocol) {
    make(protocol);
    join(start(ends_inside, NULL));
    join(start(comes_after, NULL));
    EXPECT(0, lw_taskset_destroy(&set));
}

/* A child process has a copy of its parent's thread, but is not a task. Its end does not affect the parent. */
static void a_child_is_no_task(void) {
    make("dpcp");
    EXPECT(0, lw_task_join(&set, tasks[0]));
    EXPECT(0, lw_task_begin());
    EXPECT(0, lw_task_lock(counter));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        EXPECT(EPERM, lw_task_begin());
        EXPECT(EPERM, lw_task_lock(spare));
        EXPECT(EPERM, lw_task_unlock(counter));
        EXPECT(EPERM, lw_task_leave());
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(policy() == SCHED_FIFO);
    EXPECT(EDEADLK, lw_task_lock(counter));
    EXPECT(0, lw_task_unlock(counter));
    EXPECT(0, lw_task_end());
    EXPECT(0, lw_task_leave());
    EXPECT(0, lw_taskset_destroy(&set));
}

static struct timespec origin;
static atomic_int second_joined, first_begun, second_begins, second_started;

static struct timespec after_s(long seconds) {
    struct timespec time = {.tv_sec = origin.tv_sec + seconds, .tv_nsec = origin.tv_nsec};
    return time;
}

/* Begins a job when the other one has begun, with a deadline in seconds. */
static void *begins_later(void *seconds) {
    const struct timespec nap = {.tv_sec = 0, .tv_nsec = 1000000};
    EXPECT(0, lw_task_join(&set, tasks[1]));
    atomic_store(&second_joined, 1);
    while (!atomic_load(&first_begun)) {
        nanosleep(&nap, NULL);
    }
    struct timespec due = after_s(*(long *)seconds);
    atomic_store(&second_begins, 1);
    EXPECT(0, lw_task_begin_due(CLOCK_MONOTONIC, &due));
    atomic_store(&second_started, 1);
    EXPECT(0, lw_task_end());
    EXPECT(0, lw_task_leave());
    return NULL;
}

/* Two tasks of one CPU under p-edf. The job of the second one starts within that of the first one, or after it. */
static void deadlines_decide(void) {
    char path[] = "/tmp/lockwright-tasks-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    static const char text[] =
        "[platform]\nscheduler = \"p-edf\"\n"
        "[[task]]\nname = \"first\"\ncpu = 0\npriority = 1\nperiod = \"1 s\"\nwcet = \"1 ms\"\n"
        "[[task]]\nname = \"second\"\ncpu = 0\npriority = 2\nperiod = \"1 s\"\nwcet = \"1 ms\"\n";
    CHECK(write(file, text, sizeof text - 1) == (ssize_t)(sizeof text - 1) && close(file) == 0);
    EXPECT(0, lw_taskset_read(&set, path, NULL));
    CHECK(unlink(path) == 0);
    EXPECT(0, lw_taskset_find_task(&set, "first", &tasks[0]));
    EXPECT(0, lw_taskset_find_task(&set, "second", &tasks[1]));
    EXPECT(EPERM, lw_task_begin_due(CLOCK_MONOTONIC, &origin));
    static long deadlines[] = {40, 90};
    const struct timespec nap = {.tv_sec = 0, .tv_nsec = 1000000};
    for (int i = 0; i < 2; i++) {
        atomic_store(&second_joined, 0);
        atomic_store(&first_begun, 0);
        atomic_store(&second_begins, 0);
        atomic_store(&second_started, 0);
        CHECK(clock_gettime(CLOCK_MONOTONIC, &origin) == 0);
        pthread_t other = start(begins_later, &deadlines[i]);
        while (!atomic_load(&second_joined)) {
            nanosleep(&nap, NULL);
        }
        EXPECT(0, lw_task_join(&set, tasks[0]));
        struct timespec due = after_s(60), invalid = {.tv_sec = 1, .tv_nsec = 1000000000};
        EXPECT(EINVAL, lw_task_begin_due(CLOCK_MONOTONIC, NULL));
        EXPECT(EINVAL, lw_task_begin_due(CLOCK_MONOTONIC, &invalid));
        EXPECT(EINVAL, lw_task_begin_due(CLOCK_PROCESS_CPUTIME_ID, &due));
        EXPECT(0, lw_task_begin_due(CLOCK_MONOTONIC, &due));
        EXPECT(EBUSY, lw_task_begin_due(CLOCK_MONOTONIC, &due));
        atomic_store(&first_begun, 1);
        /* The other thread is more urgent until its job has started or waits. */
        while (!atomic_load(&second_begins)) {
        }
        CHECK(atomic_load(&second_started) == (i == 0));
        EXPECT(0, lw_task_end());
        EXPECT(0, lw_task_leave());
        join(other);
        CHECK(atomic_load(&second_started) == 1);
    }
    EXPECT(0, lw_taskset_destroy(&set));
}

int main(void) {
    begin_test();
    struct sched_param param = {.sched_priority = 98};
    if (sched_setscheduler(0, SCHED_FIFO, &param) != 0) {
        fprintf(stderr, "no permission for SCHED_FIFO\n");
        return SKIPPED;
    }
    param.sched_priority = 0;
    CHECK(sched_setscheduler(0, SCHED_OTHER, &param) == 0);
    cpu_set_t mine;
    CHECK(sched_getaffinity(0, sizeof mine, &mine) == 0);
    cpus = CPU_COUNT(&mine) < 2 ? 1 : 2;
    one_holder_at_a_time();
    const char *nesting[] = {"none", "pip", "icpp", "pcp", "srp", "mpcp"};
    for (size_t i = 0; i < sizeof nesting / sizeof *nesting; i++) {
        what_is_refused(nesting[i], 1);
        a_thread_ends_inside(nesting[i]);
    }
    const char *flat[] = {"mpcp_vs", "dpcp", "dflp", "fmlp_long", "fmlp_plus", "msrp", "mrsp", "omlp", "fmlp_short", "phase_fair", "task_fair"};
    for (size_t i = 0; i < sizeof flat / sizeof *flat; i++) {
        /* On one CPU a shared resource is under `icpp`, except under the last three protocols. */
        what_is_refused(flat[i], cpus == 1 && i < 8);
        a_thread_ends_inside(flat[i]);
    }
    readers_share("phase_fair");
    readers_share("task_fair");
    what_was_not_said();
    deadlines_decide();
    a_child_is_no_task();
    jobs_are_counted();
    return 0;
}
