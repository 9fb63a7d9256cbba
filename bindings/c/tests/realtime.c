/* Inheritance, ceilings and sections, as seen in the scheduling that the kernel reports. Needs permission for
   SCHED_FIFO. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <sched.h>
#include <sys/syscall.h>

#ifdef MUTANT
enum { PROTOCOL = LW_PROTOCOL_NONE };
#else
enum { PROTOCOL = LW_PROTOCOL_INHERIT };
#endif

static int become(int policy, int level) {
    struct sched_param param = {.sched_priority = level};
    return sched_setscheduler(0, policy, &param) == 0 ? 0 : errno;
}

/* Returns the caller's level, with ceilings and sections, but without inheritance. */
static int level(void) {
    struct sched_param param;
    CHECK(sched_getparam(0, &param) == 0);
    return param.sched_priority;
}

/* Returns the level that a thread executes at, with inheritance, or 0 if it is not a real-time thread. */
static int effective(pid_t thread) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *file = fopen(path, "r");
    CHECK(file && fgets(text, sizeof text, file));
    fclose(file);
    /* The priority is the 18th field, counted from the start of the line; the name in parentheses is the second. It
       is -1 - level for real-time threads. */
    char *field = strrchr(text, ')');
    for (int i = 2; i < 18; i++) {
        field = strchr(field + 1, ' ');
        CHECK(field);
    }
    int priority = atoi(field);
    return priority < 0 ? -1 - priority : 0;
}

static lw_mutex_t mutex;

static void *is_urgent(void *unused) {
    EXPECT(0, become(SCHED_FIFO, 50));
    EXPECT(0, lw_mutex_lock(&mutex));
    EXPECT(0, lw_mutex_unlock(&mutex));
    return unused;
}

static void an_owner_inherits(void) {
    lw_mutex_options_t options = {.protocol = PROTOCOL};
    pid_t me = (pid_t)syscall(SYS_gettid);
    EXPECT(0, lw_mutex_init(&mutex, &options));
    EXPECT(0, become(SCHED_FIFO, 10));
    EXPECT(0, lw_mutex_lock(&mutex));
    CHECK(effective(me) == 10);
    pthread_t urgent = start(is_urgent, NULL);
    struct timespec nap = ms(1);
    int lent = 10;
    for (int i = 0; i < WAIT_S_MAX * 100 && lent != 50; i++) {
        nanosleep(&nap, NULL);
        lent = effective(me);
#ifdef MUTANT
        if (i == 200) {
            break;
        }
#endif
    }
    CHECK(lent == 50);
    EXPECT(0, lw_mutex_unlock(&mutex));
    CHECK(effective(me) == 10);
    join(urgent);
    EXPECT(0, become(SCHED_OTHER, 0));
}

static lw_fifo_mutex_t fifo = LW_FIFO_MUTEX_INITIALIZER;

static void *asks_in_turn(void *level) {
    EXPECT(0, become(SCHED_FIFO, *(int *)level));
    EXPECT(0, lw_fifo_mutex_lock(&fifo));
    EXPECT(0, lw_fifo_mutex_unlock(&fifo));
    return NULL;
}

/* The owner of a FIFO mutex inherits from the second waiter through the first one. */
static void a_fifo_owner_inherits(void) {
    int levels[] = {40, 50};
    pthread_t threads[2];
    pid_t me = (pid_t)syscall(SYS_gettid);
    EXPECT(0, become(SCHED_FIFO, 10));
    EXPECT(0, lw_fifo_mutex_lock(&fifo));
    for (int i = 0; i < 2; i++) {
        threads[i] = start(asks_in_turn, &levels[i]);
        struct timespec nap = ms(1);
        for (int round = 0; round < WAIT_S_MAX * 100 && effective(me) != levels[i]; round++) {
            nanosleep(&nap, NULL);
        }
        CHECK(effective(me) == levels[i]);
    }
    EXPECT(0, lw_fifo_mutex_unlock(&fifo));
    CHECK(effective(me) == 10);
    join(threads[0]);
    join(threads[1]);
    EXPECT(0, become(SCHED_OTHER, 0));
}

static void an_owner_has_the_ceiling(int robust) {
    lw_mutex_options_t options = {.protocol = LW_PROTOCOL_PROTECT, .ceiling = 60, .robust = (uint32_t)robust};
    lw_mutex_t low, high;
    int before = 0;
    EXPECT(0, lw_mutex_init(&low, &options));
    options.ceiling = 70;
    EXPECT(0, lw_mutex_init(&high, &options));
    EXPECT(0, become(SCHED_FIFO, 5));
    EXPECT(0, lw_mutex_lock(&low));
    CHECK(level() == 60);
    EXPECT(0, lw_mutex_lock(&high));
    CHECK(level() == 70);
    EXPECT(0, lw_mutex_unlock(&low));
    CHECK(level() == 70);
    /* The owner changes the ceiling, and its level follows. */
    EXPECT(0, lw_mutex_set_ceiling(&high, 40, &before));
    CHECK(before == 70 && level() == 40);
    EXPECT(0, lw_mutex_set_ceiling(&high, 80, &before));
    CHECK(before == 40 && level() == 80);
    EXPECT(EINVAL, lw_mutex_set_ceiling(&high, 4, NULL));
    CHECK(level() == 80);
    EXPECT(0, lw_mutex_unlock(&high));
    CHECK(level() == 5);
    /* A thread above the ceiling cannot lock the mutex, but may change its ceiling. */
    EXPECT(0, become(SCHED_FIFO, 65));
    struct timespec time = ms(1);
    EXPECT(EINVAL, lw_mutex_lock(&low));
    EXPECT(EINVAL, lw_mutex_trylock(&low));
    EXPECT(EINVAL, lw_mutex_lock_for(&low, &time));
    EXPECT(0, lw_mutex_set_ceiling(&low, 90, &before));
    CHECK(before == 60 && level() == 65 && !lw_mutex_is_mine(&low));
    EXPECT(0, lw_mutex_lock(&low));
    CHECK(level() == 90);
    EXPECT(0, lw_mutex_unlock(&low));
    CHECK(level() == 65);
    EXPECT(0, become(SCHED_OTHER, 0));
    EXPECT(0, lw_mutex_lock(&low));
    CHECK(level() == 90 && (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO);
    EXPECT(0, lw_mutex_unlock(&low));
    CHECK(level() == 0 && sched_getscheduler(0) == SCHED_OTHER);
}

static lw_mutex_t orphan;

static void *leaves_it(void *unused) {
    EXPECT(0, lw_mutex_lock(&orphan));
    return unused;
}

/* The ceiling changes after the owner ended and before the next owner is told so. */
static void a_ceiling_of_the_dead(void) {
    lw_mutex_options_t options = {.protocol = LW_PROTOCOL_PROTECT, .ceiling = 30, .robust = 1};
    EXPECT(0, lw_mutex_init(&orphan, &options));
    join(start(leaves_it, NULL));
    EXPECT(0, lw_mutex_set_ceiling(&orphan, 35, NULL));
    CHECK(level() == 0 && !lw_mutex_is_mine(&orphan));
    EXPECT(EOWNERDEAD, lw_mutex_lock(&orphan));
    CHECK(level() == 35);
    EXPECT(0, lw_mutex_make_consistent(&orphan));
    EXPECT(0, lw_mutex_unlock(&orphan));
    CHECK(level() == 0);
    EXPECT(0, lw_mutex_lock(&orphan));
    EXPECT(0, lw_mutex_unlock(&orphan));
}

static void eager_sections(void) {
    EXPECT(0, become(SCHED_FIFO, 5));
    EXPECT(0, lw_section_eager_open(0));
    EXPECT(EBUSY, lw_section_eager_open(0));
    EXPECT(EPERM, lw_section_eager_leave());
    EXPECT(0, lw_section_eager_enter());
    CHECK(level() == 98);
    EXPECT(0, lw_section_eager_enter());
    EXPECT(0, lw_section_eager_leave());
    CHECK(level() == 98);
    EXPECT(0, lw_section_eager_leave());
    CHECK(level() == 5);
    EXPECT(EPERM, lw_section_eager_leave());
    /* Closing the handle ends its section. */
    EXPECT(0, lw_section_eager_enter());
    EXPECT(0, lw_section_eager_close());
    CHECK(level() == 5);
    EXPECT(EPERM, lw_section_eager_enter());
    EXPECT(0, lw_section_eager_open(20));
    EXPECT(0, lw_section_eager_enter());
    CHECK(level() == 20);
    EXPECT(0, lw_section_eager_leave());
    EXPECT(0, lw_section_eager_close());
    EXPECT(0, become(SCHED_OTHER, 0));
}

static int cpu;
static volatile int has_left;

static void *looks(void *unused) {
    EXPECT(0, become(SCHED_FIFO, 40));
    EXPECT(0, lw_section_lazy_open((unsigned)cpu));
    CHECK(has_left == 1);
    EXPECT(0, lw_section_lazy_enter());
    /* The thread ends inside its section, which ends the section. */
    return unused;
}

static void lazy_sections(void) {
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    while (!CPU_ISSET(cpu, &set)) {
        cpu++;
    }
    EXPECT(0, become(SCHED_FIFO, 5));
    EXPECT(0, lw_section_lazy_open((unsigned)cpu));
    EXPECT(EBUSY, lw_section_lazy_open((unsigned)cpu));
    EXPECT(0, lw_section_lazy_enter());
    EXPECT(0, lw_section_lazy_enter());
    struct timespec soon = from_now(CLOCK_MONOTONIC, 20);
    EXPECT(EDEADLK, lw_section_lazy_sleep_until(&soon));
    pid_t me = (pid_t)syscall(SYS_gettid);
    pthread_t other = start(looks, NULL);
    /* The other thread is more urgent and on the same CPU: it waits, and lends its level. */
    struct timespec nap = ms(1);
    int lent = 0;
    for (int i = 0; i < WAIT_S_MAX * 100 && lent != 40; i++) {
        nanosleep(&nap, NULL);
        lent = effective(me);
    }
    CHECK(lent == 40);
    EXPECT(0, lw_section_lazy_leave());
    has_left = 1;
    EXPECT(0, lw_section_lazy_leave());
    join(other);
    EXPECT(EPERM, lw_section_lazy_leave());
    EXPECT(0, lw_section_lazy_look());
    EXPECT(EINVAL, lw_section_lazy_sleep_until(NULL));
    soon = from_now(CLOCK_MONOTONIC, 20);
    EXPECT(0, lw_section_lazy_sleep_until(&soon));
    CHECK(seconds(now(CLOCK_MONOTONIC)) >= seconds(soon));
    EXPECT(0, lw_section_lazy_enter());
    EXPECT(0, lw_section_lazy_leave());
    EXPECT(0, lw_section_lazy_close());
    EXPECT(0, become(SCHED_OTHER, 0));
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
}

static void extended_sections(void) {
    int opened = lw_section_extended_open();
    if (opened == ENOTSUP || opened == ENXIO) {
        EXPECT(opened, lw_section_extended_open());
        EXPECT(EPERM, lw_section_extended_enter());
        return;
    }
    CHECK(opened == 0);
    EXPECT(EBUSY, lw_section_extended_open());
    EXPECT(EPERM, lw_section_extended_leave());
    EXPECT(0, lw_section_extended_enter());
    EXPECT(0, lw_section_extended_enter());
    EXPECT(0, lw_section_extended_leave());
    EXPECT(0, lw_section_extended_leave());
    EXPECT(EPERM, lw_section_extended_leave());
    EXPECT(0, lw_section_extended_enter());
    EXPECT(0, lw_section_extended_close());
    EXPECT(EPERM, lw_section_extended_enter());
}

int main(void) {
    begin_test();
    if (become(SCHED_FIFO, 98) != 0) {
        fprintf(stderr, "no permission for SCHED_FIFO\n");
        return SKIPPED;
    }
    EXPECT(0, become(SCHED_OTHER, 0));
    an_owner_inherits();
    a_fifo_owner_inherits();
    an_owner_has_the_ceiling(0);
    an_owner_has_the_ceiling(1);
    a_ceiling_of_the_dead();
    eager_sections();
    lazy_sections();
    extended_sections();
    return 0;
}
