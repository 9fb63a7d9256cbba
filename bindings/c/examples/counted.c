/* A counted mutex: how often threads waited for it, for how long, and behind whom.
 *
 *     cc counted.c $(pkg-config --cflags --libs lockwright) -pthread && ./a.out
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <lockwright.h>
#include <pthread.h>
#include <stdio.h>

enum { SECTIONS = 200 };

static lw_mutex_t bus;

static void *use_the_bus(void *name) {
    const struct timespec access = {.tv_nsec = 20000}, pause = {.tv_nsec = 50000};
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < SECTIONS; i++) {
        lw_mutex_lock(&bus);
        nanosleep(&access, NULL);
        lw_mutex_unlock(&bus);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

int main(void) {
    const lw_mutex_options_t options = {.counted = 1};
    pthread_t control, logging;
    if (lw_mutex_init(&bus, &options) != 0 || pthread_create(&control, NULL, use_the_bus, "control") != 0 ||
        pthread_create(&logging, NULL, use_the_bus, "logging") != 0) {
        return 1;
    }
    pthread_join(control, NULL);
    pthread_join(logging, NULL);

    lw_mutex_statistics_t seen;
    if (lw_mutex_statistics(&bus, &seen) != 0) {
        return 1;
    }
    printf("%" PRIu64 " sections, the longest %" PRIu64 " ns in %s\n", seen.sections, seen.longest_section_ns,
           seen.longest_by_name);
    printf("%" PRIu64 " waits, %" PRIu64 " ns together\n", seen.waits, seen.total_wait_ns);
    if (seen.waits > 0) {
        printf("the longest: %s waited %" PRIu64 " ns for %s\n", seen.waiter_name, seen.longest_wait_ns,
               seen.holder_name);
    }
    return seen.sections == 2 * SECTIONS ? 0 : 1;
}
