/* A queue: a thread waits until the queue contains something.
 *
 *     cc condvar.c $(pkg-config --cflags --libs lockwright) -pthread && ./a.out
 */
#include <errno.h>
#include <lockwright.h>
#include <pthread.h>
#include <stdio.h>

enum { CAPACITY = 8, ITEMS = 100 };

static lw_mutex_t mutex = LW_MUTEX_INITIALIZER;
static lw_cond_t filled = LW_COND_INITIALIZER;
static lw_cond_t emptied = LW_COND_INITIALIZER;
static int items[CAPACITY], count;

static void *produce(void *unused) {
    for (int i = 1; i <= ITEMS; i++) {
        lw_mutex_lock(&mutex);
        while (count == CAPACITY) {
            lw_cond_wait(&emptied, &mutex);
        }
        items[count++] = i;
        lw_cond_signal(&filled);
        lw_mutex_unlock(&mutex);
    }
    return unused;
}

int main(void) {
    pthread_t producer;
    if (pthread_create(&producer, NULL, produce, NULL) != 0) {
        return 1;
    }
    long sum = 0;
    for (int i = 0; i < ITEMS; i++) {
        const struct timespec patience = {.tv_sec = 30};
        lw_mutex_lock(&mutex);
        while (count == 0) {
            if (lw_cond_wait_for(&filled, &mutex, &patience) == ETIMEDOUT) {
                return 1;
            }
        }
        sum += items[--count];
        lw_cond_signal(&emptied);
        lw_mutex_unlock(&mutex);
    }
    pthread_join(producer, NULL);
    printf("sum %ld\n", sum);
    return sum == (long)ITEMS * (ITEMS + 1) / 2 ? 0 : 1;
}
