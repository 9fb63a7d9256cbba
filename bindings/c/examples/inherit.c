/* Two threads share a mutex whose owner inherits the priority of its most urgent waiter. Then a thread runs into a
 * deadlock and prints its cycle.
 *
 *     cc inherit.c $(pkg-config --cflags --libs lockwright) -pthread && ./a.out
 */
#include <errno.h>
#include <lockwright.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static lw_mutex_t mutex = LW_MUTEX_INITIALIZER;
static long position;

static void *work(void *unused) {
    for (int i = 0; i < 1000; i++) {
        int error = lw_mutex_lock(&mutex);
        if (error != 0) {
            fprintf(stderr, "lock: %s\n", strerror(error));
            return unused;
        }
        position++;
        lw_mutex_unlock(&mutex);
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0) {
        return 1;
    }
    work(NULL);
    pthread_join(thread, NULL);
    printf("position %ld\n", position);

    lw_mutex_lock(&mutex);
    if (lw_mutex_lock(&mutex) == EDEADLK) {
        lw_deadlock_link_t links[64];
        size_t length;
        lw_deadlock_cycle(links, 64, &length);
        for (size_t i = 0; i < length; i++) {
            printf("thread %u (%s) waits for the mutex at %p, which thread %u holds\n", (unsigned)links[i].thread,
                   links[i].name, links[i].mutex, (unsigned)links[(i + 1) % length].thread);
        }
    }
    lw_mutex_unlock(&mutex);
    return position == 2000 ? 0 : 1;
}
