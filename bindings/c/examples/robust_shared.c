/* A robust mutex in memory that two processes share. One process is killed while it holds the mutex, and the other
 * repairs the data that it left.
 *
 *     cc robust_shared.c $(pkg-config --cflags --libs lockwright) && ./a.out
 */
#define _GNU_SOURCE
#include <errno.h>
#include <lockwright.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct account {
    lw_mutex_t mutex;
    long left, right; /* The sum is 100. */
};

int main(void) {
    struct account *account = mmap(NULL, sizeof *account, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (account == MAP_FAILED) {
        return 1;
    }
    lw_mutex_options_t options = {.robust = 1, .shared = 1};
    if (lw_mutex_init(&account->mutex, &options) != 0) {
        return 1;
    }
    account->left = 100;

    pid_t child = fork();
    if (child < 0) {
        return 1;
    }
    if (child == 0) {
        lw_mutex_lock(&account->mutex);
        account->left -= 30;
        raise(SIGKILL); /* Before it adds 30 to the right. */
    }
    waitpid(child, NULL, 0);

    if (lw_mutex_lock(&account->mutex) != EOWNERDEAD) {
        return 1;
    }
    printf("after the end of the owner: %ld and %ld\n", account->left, account->right);
    account->right = 100 - account->left;
    lw_mutex_make_consistent(&account->mutex);
    lw_mutex_unlock(&account->mutex);
    printf("repaired: %ld and %ld\n", account->left, account->right);
    return lw_mutex_lock(&account->mutex) == 0 && account->left + account->right == 100 ? 0 : 1;
}
