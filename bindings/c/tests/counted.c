/* Counted mutexes: every section counts, and every lock that found the mutex locked and got it later, whichever the
   other options are. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <sys/syscall.h>

#ifdef MUTANT
/* A lock that does not wait is not one of a counted mutex. */
#define lw_mutex_trylock(mutex) (lw_mutex_is_mine(mutex) ? 0 : EBUSY)
#endif

static lw_mutex_t mutex;
static lw_cond_t cond = LW_COND_INITIALIZER;
static volatile uint32_t waiter;
static int condition;

static uint32_t self(void) {
    return (uint32_t)syscall(SYS_gettid);
}

static lw_mutex_statistics_t seen(void) {
    lw_mutex_statistics_t statistics;
    memset(&statistics, 0xff, sizeof statistics);
    EXPECT(0, lw_mutex_statistics(&mutex, &statistics));
    return statistics;
}

static void *gives_up(void *unused) {
    struct timespec time = ms(1);
    EXPECT(EBUSY, lw_mutex_trylock(&mutex));
    EXPECT(ETIMEDOUT, lw_mutex_lock_for(&mutex, &time));
    return unused;
}

static void *waits(void *unused) {
    EXPECT(0, pthread_setname_np(pthread_self(), "waiter"));
    waiter = self();
    EXPECT(0, lw_mutex_lock(&mutex));
    EXPECT(0, lw_mutex_unlock(&mutex));
    return unused;
}

static void *waits_for_the_condition(void *unused) {
    EXPECT(0, lw_mutex_lock(&mutex));
    while (!condition) {
        EXPECT(0, lw_cond_wait(&cond, &mutex));
    }
    EXPECT(0, lw_mutex_unlock(&mutex));
    return unused;
}

static void *ends_with_it(void *unused) {
    EXPECT(0, lw_mutex_lock(&mutex));
    return unused;
}

static void one_wait_is_counted(const lw_mutex_options_t *options) {
    size_t length = 7;
    lw_wait_bin_t bin;
    lw_mutex_statistics_t now = seen();
    CHECK(now.sections == 0 && now.waits == 0 && now.holder == 0 && now.reserved == 0);
    EXPECT(0, lw_mutex_histogram(&mutex, NULL, 0, &length));
    CHECK(length == 0);
    EXPECT(0, lw_mutex_lock(&mutex));
    join(start(gives_up, NULL));
    if (options->recursive) {
        EXPECT(0, lw_mutex_lock(&mutex));
        EXPECT(0, lw_mutex_unlock(&mutex));
    }
    now = seen();
    CHECK(now.sections == 1 && now.waits == 0 && now.waiting == 0 && now.longest_section_ns == 0);
    waiter = 0;
    pthread_t thread = start(waits, NULL);
    struct timespec pause = ms(1);
    while (seen().waiting == 0) {
        nanosleep(&pause, NULL);
    }
    pause = ms(3);
    nanosleep(&pause, NULL);
    EXPECT(0, lw_mutex_unlock(&mutex));
    join(thread);
    EXPECT(0, lw_mutex_trylock(&mutex));
    EXPECT(0, lw_mutex_unlock(&mutex));
    now = seen();
    CHECK(now.sections == 3 && now.waits == 1 && now.waiting == 0);
    CHECK(now.longest_wait_ns >= 3000000 && now.total_wait_ns == now.longest_wait_ns);
    CHECK(now.longest_section_ns >= 3000000 && now.longest_by == self());
    CHECK(now.waiter == waiter && now.holder == self());
    CHECK(strcmp(now.waiter_name, "waiter") == 0 && now.holder_name[0] != 0);
    CHECK(strcmp(now.holder_name, now.longest_by_name) == 0);
    EXPECT(0, lw_mutex_histogram(&mutex, &bin, 1, &length));
    CHECK(length == 1 && bin.waits == 1 && bin.up_to_ns >= now.longest_wait_ns);
    CHECK(bin.up_to_ns - now.longest_wait_ns <= now.longest_wait_ns / 16);
}

static void a_condition_divides_a_section(void) {
    condition = 0;
    uint64_t before = seen().sections;
    pthread_t thread = start(waits_for_the_condition, NULL);
    uint32_t owner = 1;
    struct timespec pause = ms(1);
    while (seen().sections == before || owner != 0) {
        EXPECT(0, lw_mutex_owner(&mutex, &owner));
        nanosleep(&pause, NULL);
    }
    EXPECT(0, lw_mutex_lock(&mutex));
    condition = 1;
    EXPECT(0, lw_cond_signal(&cond));
    EXPECT(0, lw_mutex_unlock(&mutex));
    join(thread);
    /* A wait may return without a signal; then there is one more. */
    CHECK(seen().sections == before + 3 || seen().sections == before + 4);
    CHECK(seen().waiting == 0);
}

static void an_heir_is_counted(void) {
    uint64_t before = seen().sections;
    join(start(ends_with_it, NULL));
    EXPECT(EOWNERDEAD, lw_mutex_lock(&mutex));
    EXPECT(0, lw_mutex_make_consistent(&mutex));
    EXPECT(0, lw_mutex_unlock(&mutex));
    CHECK(seen().sections == before + 2);
}

static void misuse_is_refused(void) {
    static lw_mutex_t plain = LW_MUTEX_INITIALIZER, places[LW_MUTEX_COUNTED_MAX][512 / sizeof(lw_mutex_t)];
    lw_mutex_statistics_t statistics;
    lw_wait_bin_t bin;
    size_t length;
    lw_mutex_options_t options = {.counted = 1, .shared = 1};
    EXPECT(EINVAL, lw_mutex_init(&mutex, &options));
    options = (lw_mutex_options_t){.counted = 2};
    EXPECT(EINVAL, lw_mutex_init(&mutex, &options));
    EXPECT(EINVAL, lw_mutex_statistics(&plain, &statistics));
    EXPECT(EINVAL, lw_mutex_histogram(&plain, &bin, 1, &length));
    options.counted = 1;
    EXPECT(0, lw_mutex_init(&mutex, &options));
    EXPECT(EINVAL, lw_mutex_statistics(&mutex, NULL));
    EXPECT(EINVAL, lw_mutex_histogram(&mutex, NULL, 1, &length));
    EXPECT(EINVAL, lw_mutex_histogram(&mutex, &bin, 1, NULL));
    /* `mutex` has one of the places. */
    int last = LW_MUTEX_COUNTED_MAX - 1;
    for (int i = 0; i < last; i++) {
        EXPECT(0, lw_mutex_init(&places[i][0], &options));
    }
    EXPECT(ENOSPC, lw_mutex_init(&places[last][0], &options));
    EXPECT(EINVAL, lw_mutex_lock(&places[last][0]));
    /* The place of a destroyed mutex is free again, with all counts 0. */
    EXPECT(0, lw_mutex_lock(&places[7][0]));
    EXPECT(0, lw_mutex_unlock(&places[7][0]));
    EXPECT(0, lw_mutex_destroy(&places[7][0]));
    EXPECT(0, lw_mutex_init(&places[last][0], &options));
    EXPECT(0, lw_mutex_statistics(&places[last][0], &statistics));
    CHECK(statistics.sections == 0);
    EXPECT(0, lw_mutex_lock(&places[last][0]));
    EXPECT(0, lw_mutex_unlock(&places[last][0]));
    EXPECT(0, lw_mutex_statistics(&places[last][0], &statistics));
    CHECK(statistics.sections == 1);
    EXPECT(ENOSPC, lw_mutex_init(&places[7][0], &options));
    /* At an address that has a place, there is always a place. */
    EXPECT(0, lw_mutex_init(&mutex, &options));
}

int main(void) {
    begin_test();
    for (unsigned bits = 0; bits < 32; bits++) {
        for (uint32_t unlock = LW_UNLOCK_AUTO; unlock <= LW_UNLOCK_PARALLEL; unlock++) {
            lw_mutex_options_t options = {.unlock = unlock, .counted = 1};
            options.protocol = bits & 1 ? LW_PROTOCOL_NONE : LW_PROTOCOL_INHERIT;
            options.robust = bits >> 1 & 1;
            options.recursive = bits >> 2 & 1;
            options.unchecked = bits >> 3 & 1;
            options.kernel_owned = bits >> 4 & 1;
            EXPECT(0, lw_mutex_init(&mutex, &options));
            one_wait_is_counted(&options);
            a_condition_divides_a_section();
            if (options.robust) {
                an_heir_is_counted();
            }
            EXPECT(0, lw_mutex_destroy(&mutex));
        }
    }
    misuse_is_refused();
    return 0;
}
