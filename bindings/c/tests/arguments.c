/* Every function returns EINVAL for an invalid argument and for memory that is not an initialised object. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"

#ifdef MUTANT
/* Destroying a mutex leaves it valid. */
#define lw_mutex_destroy(mutex) 0
#endif

static lw_mutex_t good = LW_MUTEX_INITIALIZER;
static lw_cond_t good_cond = LW_COND_INITIALIZER;

/* Calls every function that takes a mutex. */
static void refuse_mutex(lw_mutex_t *bad) {
    struct timespec time = ms(1), late = from_now(CLOCK_MONOTONIC, 1);
    uint32_t thread = 0;
    int ceiling = 0;
    EXPECT(EINVAL, lw_mutex_lock(bad));
    EXPECT(EINVAL, lw_mutex_trylock(bad));
    EXPECT(EINVAL, lw_mutex_lock_until(bad, CLOCK_MONOTONIC, &late));
    EXPECT(EINVAL, lw_mutex_lock_for(bad, &time));
    EXPECT(EINVAL, lw_mutex_unlock(bad));
    EXPECT(EINVAL, lw_mutex_make_consistent(bad));
    EXPECT(EINVAL, lw_mutex_owner(bad, &thread));
    EXPECT(0, lw_mutex_is_mine(bad));
    EXPECT(EINVAL, lw_mutex_ceiling(bad, &ceiling));
    EXPECT(EINVAL, lw_mutex_set_ceiling(bad, 10, &ceiling));
    EXPECT(EINVAL, lw_mutex_destroy(bad));
    EXPECT(EINVAL, lw_cond_wait(&good_cond, bad));
    EXPECT(EINVAL, lw_cond_wait_until(&good_cond, bad, CLOCK_MONOTONIC, &late));
    EXPECT(EINVAL, lw_cond_wait_for(&good_cond, bad, &time));
}

static void refuse_cond(lw_cond_t *bad) {
    struct timespec time = ms(1), late = from_now(CLOCK_MONOTONIC, 1);
    EXPECT(0, lw_mutex_lock(&good));
    EXPECT(EINVAL, lw_cond_wait(bad, &good));
    EXPECT(EINVAL, lw_cond_wait_until(bad, &good, CLOCK_MONOTONIC, &late));
    EXPECT(EINVAL, lw_cond_wait_for(bad, &good, &time));
    CHECK(lw_mutex_is_mine(&good));
    EXPECT(0, lw_mutex_unlock(&good));
    EXPECT(EINVAL, lw_cond_signal(bad));
    EXPECT(EINVAL, lw_cond_broadcast(bad));
    EXPECT(EINVAL, lw_cond_destroy(bad));
}

static void what_is_no_object(void) {
    static union {
        lw_mutex_t mutex;
        lw_cond_t cond;
        unsigned char bytes[sizeof(lw_mutex_t) + 8];
    } memory;
    refuse_mutex(NULL);
    refuse_cond(NULL);
    for (int offset = 1; offset < 8; offset++) {
        /* Misaligned pointers. Made from numbers, because the compiler would reject them otherwise. */
        refuse_mutex((lw_mutex_t *)((uintptr_t)memory.bytes + (uintptr_t)offset));
        refuse_cond((lw_cond_t *)((uintptr_t)memory.bytes + (uintptr_t)offset));
    }
    for (int byte = 0; byte < 256; byte++) {
        memset(&memory, byte, sizeof memory);
        refuse_mutex(&memory.mutex);
        refuse_cond(&memory.cond);
    }
    /* Pseudo-random garbage, the same in every run. */
    uint64_t state = 1;
    for (int round = 0; round < 10000; round++) {
        for (size_t i = 0; i < sizeof memory.bytes; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            memory.bytes[i] = (unsigned char)(state >> 56);
        }
        refuse_mutex(&memory.mutex);
        refuse_cond(&memory.cond);
    }
    /* An object of the other type. */
    EXPECT(0, lw_cond_init(&memory.cond, 0));
    refuse_mutex(&memory.mutex);
    EXPECT(0, lw_mutex_init(&memory.mutex, NULL));
    refuse_cond(&memory.cond);
    /* A mutex whose kind was overwritten. */
    for (int bit = 0; bit < 32; bit++) {
        EXPECT(0, lw_mutex_init(&memory.mutex, NULL));
        memory.mutex.lw_kind ^= 1u << bit;
        refuse_mutex(&memory.mutex);
    }
}

static void what_was_destroyed(void) {
    lw_mutex_t mutex;
    lw_cond_t cond;
    EXPECT(0, lw_mutex_init(&mutex, NULL));
    EXPECT(0, lw_cond_init(&cond, 0));
    EXPECT(0, lw_mutex_lock(&mutex));
    EXPECT(EBUSY, lw_mutex_destroy(&mutex));
    EXPECT(0, lw_mutex_unlock(&mutex));
    EXPECT(0, lw_mutex_destroy(&mutex));
    EXPECT(0, lw_cond_destroy(&cond));
    refuse_mutex(&mutex);
    refuse_cond(&cond);
    EXPECT(0, lw_mutex_init(&mutex, NULL));
    EXPECT(0, lw_mutex_lock(&mutex));
    EXPECT(0, lw_mutex_unlock(&mutex));
}

static void options_that_do_not_exist(void) {
    lw_mutex_t mutex;
    lw_mutex_options_t options;
    EXPECT(EINVAL, lw_mutex_init(NULL, NULL));
    EXPECT(EINVAL, lw_mutex_init((lw_mutex_t *)((uintptr_t)&mutex + 4), NULL));
    EXPECT(EINVAL, lw_mutex_init(&mutex, (lw_mutex_options_t *)((uintptr_t)&options + 1)));
    for (size_t field = 0; field < sizeof options / sizeof(uint32_t); field++) {
        memset(&options, 0, sizeof options);
        EXPECT(0, lw_mutex_init(&mutex, &options));
        ((uint32_t *)&options)[field] = 3;
        EXPECT(EINVAL, lw_mutex_init(&mutex, &options));
        ((uint32_t *)&options)[field] = 0xffffffff;
        EXPECT(EINVAL, lw_mutex_init(&mutex, &options));
    }
    const uint32_t ceilings[] = {0, 100, 256 + 50, 0xffffffff};
    for (size_t i = 0; i < sizeof ceilings / sizeof *ceilings; i++) {
        lw_mutex_options_t protect = {.protocol = LW_PROTOCOL_PROTECT, .ceiling = ceilings[i]};
        EXPECT(EINVAL, lw_mutex_init(&mutex, &protect));
    }
    lw_cond_t cond;
    EXPECT(EINVAL, lw_cond_init(&cond, 2));
    EXPECT(EINVAL, lw_cond_init(&cond, -1));
    EXPECT(EINVAL, lw_cond_init(NULL, 0));
    lw_mutex_t no_level[] = {LW_MUTEX_PROTECT_INITIALIZER(0), LW_MUTEX_PROTECT_INITIALIZER(100),
                             LW_MUTEX_PROTECT_INITIALIZER(-1), LW_MUTEX_PROTECT_INITIALIZER(256 + 50)};
    for (int i = 0; i < 4; i++) {
        refuse_mutex(&no_level[i]);
    }
}

static void times_that_do_not_exist(void) {
    lw_mutex_t mutex = LW_MUTEX_INITIALIZER;
    const long nanoseconds[] = {-1, 1000000000, INT64_MAX, INT64_MIN};
    struct timespec time = ms(1);
    for (size_t i = 0; i < sizeof nanoseconds / sizeof *nanoseconds; i++) {
        struct timespec bad = {.tv_sec = 1, .tv_nsec = nanoseconds[i]};
        EXPECT(EINVAL, lw_mutex_lock_until(&mutex, CLOCK_MONOTONIC, &bad));
        EXPECT(EINVAL, lw_mutex_lock_for(&mutex, &bad));
    }
    struct timespec negative = {.tv_sec = -1, .tv_nsec = 0};
    EXPECT(EINVAL, lw_mutex_lock_for(&mutex, &negative));
    EXPECT(EINVAL, lw_mutex_lock_until(&mutex, CLOCK_MONOTONIC, NULL));
    EXPECT(EINVAL, lw_mutex_lock_for(&mutex, NULL));
    EXPECT(EINVAL, lw_mutex_lock_for(&mutex, (struct timespec *)((uintptr_t)&time + 1)));
    const int clocks[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_BOOTTIME, -1, 1000};
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        EXPECT(EINVAL, lw_mutex_lock_until(&mutex, clocks[i], &time));
        EXPECT(EINVAL, lw_cond_wait_until(&good_cond, &mutex, clocks[i], &time));
    }
    EXPECT(0, lw_mutex_lock(&mutex));
    /* Times that have passed, and a time that never comes. */
    struct timespec ancient = {.tv_sec = INT64_MIN, .tv_nsec = 0}, never = {.tv_sec = INT64_MAX, .tv_nsec = 999999999};
    EXPECT(ETIMEDOUT, lw_cond_wait_until(&good_cond, &mutex, CLOCK_MONOTONIC, &ancient));
    EXPECT(ETIMEDOUT, lw_cond_wait_until(&good_cond, &mutex, CLOCK_REALTIME, &ancient));
    EXPECT(0, lw_mutex_unlock(&mutex));
    EXPECT(0, lw_mutex_lock_until(&mutex, CLOCK_MONOTONIC, &never));
    EXPECT(0, lw_mutex_unlock(&mutex));
    EXPECT(0, lw_mutex_lock_for(&mutex, &never));
    EXPECT(0, lw_mutex_unlock(&mutex));
}

static void results_without_a_place(void) {
    uint32_t thread;
    int ceiling;
    size_t length;
    EXPECT(EINVAL, lw_mutex_owner(&good, NULL));
    EXPECT(EINVAL, lw_mutex_owner(&good, (uint32_t *)((uintptr_t)&thread + 1)));
    EXPECT(EINVAL, lw_mutex_ceiling(&good, &ceiling));
    EXPECT(EINVAL, lw_mutex_set_ceiling(&good, 10, &ceiling));
    lw_mutex_t protect = LW_MUTEX_PROTECT_INITIALIZER(20);
    EXPECT(EINVAL, lw_mutex_ceiling(&protect, NULL));
    EXPECT(0, lw_mutex_ceiling(&protect, &ceiling));
    CHECK(ceiling == 20);
    const int no_levels[] = {0, -1, 100, 256 + 50};
    for (size_t i = 0; i < sizeof no_levels / sizeof *no_levels; i++) {
        EXPECT(EINVAL, lw_mutex_set_ceiling(&protect, no_levels[i], NULL));
    }
    EXPECT(EINVAL, lw_mutex_set_ceiling(&protect, 30, (int *)((uintptr_t)&ceiling + 1)));
    EXPECT(EINVAL, lw_deadlock_cycle(NULL, 0, NULL));
    EXPECT(EINVAL, lw_deadlock_cycle(NULL, 1, &length));
    EXPECT(0, lw_deadlock_cycle(NULL, 0, &length));
    CHECK(length == 0);
    EXPECT(EINVAL, lw_section_eager_open(100));
    EXPECT(EINVAL, lw_section_eager_open(-1));
    EXPECT(EINVAL, lw_section_lazy_open(1u << 30));
    EXPECT(EPERM, lw_section_eager_enter());
    EXPECT(EPERM, lw_section_eager_leave());
    EXPECT(EPERM, lw_section_eager_close());
    EXPECT(EPERM, lw_section_lazy_enter());
    EXPECT(EPERM, lw_section_lazy_leave());
    EXPECT(EPERM, lw_section_lazy_look());
    EXPECT(EPERM, lw_section_lazy_sleep_until(NULL));
    EXPECT(EPERM, lw_section_lazy_close());
    EXPECT(EPERM, lw_section_extended_enter());
    EXPECT(EPERM, lw_section_extended_leave());
    EXPECT(EPERM, lw_section_extended_close());
}

/* The macros of the header equal what lw_mutex_init and lw_cond_init make. */
static void initialisers(void) {
    const lw_mutex_t macros[] = {LW_MUTEX_INITIALIZER, LW_MUTEX_RECURSIVE_INITIALIZER, LW_MUTEX_ROBUST_INITIALIZER,
                                 LW_MUTEX_NONE_INITIALIZER, LW_MUTEX_PROTECT_INITIALIZER(42)};
    const lw_mutex_options_t options[] = {{0},
                                          {.recursive = 1},
                                          {.robust = 1},
                                          {.protocol = LW_PROTOCOL_NONE},
                                          {.protocol = LW_PROTOCOL_PROTECT, .ceiling = 42}};
    for (int i = 0; i < 5; i++) {
        lw_mutex_t mutex;
        memset(&mutex, 0xa5, sizeof mutex);
        EXPECT(0, lw_mutex_init(&mutex, &options[i]));
        CHECK(memcmp(&mutex, &macros[i], sizeof mutex) == 0);
    }
    const lw_cond_t macro = LW_COND_INITIALIZER;
    lw_cond_t cond;
    memset(&cond, 0xa5, sizeof cond);
    EXPECT(0, lw_cond_init(&cond, 0));
    CHECK(memcmp(&cond, &macro, sizeof cond) == 0);
    const lw_rwlock_t rwlock_macro = LW_RWLOCK_INITIALIZER;
    lw_rwlock_t rwlock;
    memset(&rwlock, 0xa5, sizeof rwlock);
    EXPECT(0, lw_rwlock_init(&rwlock, 0));
    CHECK(memcmp(&rwlock, &rwlock_macro, sizeof rwlock) == 0);
    CHECK(sizeof(lw_mutex_t) == 64 && _Alignof(lw_mutex_t) == 8);
    CHECK(sizeof(lw_cond_t) == 64 && _Alignof(lw_cond_t) == 8);
    const lw_fifo_mutex_t fifo_macro = LW_FIFO_MUTEX_INITIALIZER;
    static lw_fifo_mutex_t fifo;
    memset(&fifo, 0xa5, sizeof fifo);
    EXPECT(0, lw_fifo_mutex_init(&fifo));
    CHECK(fifo.lw_check == fifo_macro.lw_check);
    CHECK(memcmp(fifo.lw_words, fifo_macro.lw_words, 6 * sizeof fifo.lw_words[0]) == 0);
    CHECK(sizeof(lw_fifo_mutex_t) == 784 && _Alignof(lw_fifo_mutex_t) == 4);
    CHECK(sizeof(lw_rwlock_t) == 64 && _Alignof(lw_rwlock_t) == 8);
}

int main(void) {
    begin_test();
    what_is_no_object();
    what_was_destroyed();
    options_that_do_not_exist();
    times_that_do_not_exist();
    results_without_a_place();
    initialisers();
    return 0;
}
