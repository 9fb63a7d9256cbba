/* What the recorded programs share beside the checks of the preloaded programs. */
#ifndef RECORD_CHECK_H
#define RECORD_CHECK_H

#include "../../../pthread/tests/programs/check.h"
#include <fcntl.h>

/* A pause that is not recorded. */
static inline void pause_ms(long ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
    syscall(SYS_nanosleep, &time, NULL);
}

/* Returns when a thread has stored its id and sleeps in the kernel: it waits. Nothing of this is recorded. */
static inline void until_waits(atomic_int *id)
{
    for (int seen = 0; seen < 3; pause_ms(2)) {
        char path[64], text[256] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(id));
        int file = open(path, O_RDONLY);
        if (file < 0)
            continue;
        syscall(SYS_read, file, text, sizeof text - 1);
        close(file);
        const char *name = strrchr(text, ')');
        seen = name != NULL && name[2] == 'S' ? seen + 1 : 0;
    }
}

#endif
