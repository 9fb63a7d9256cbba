/* Task sets: invalid objects, sets that cannot be built, and the texts of the errors. Compiled as C and as C++. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "lockwright.h"

#include "check.h"
#include <sched.h>

#ifdef MUTANT
/* Destroying a task set leaves it valid. */
#define lw_taskset_destroy(set) 0
#endif

static char text[2048];

/* The text of the last error contains both strings. */
static void said(const char *first, const char *second) {
    EXPECT(0, lw_task_error(text, sizeof text));
    if (!strstr(text, first) || !strstr(text, second)) {
        fprintf(stderr, "\"%s\" and \"%s\" must both be in \"%s\"\n", first, second, text);
        CHECK(0);
    }
}

static void refuse(lw_taskset_t *bad) {
    uint32_t number = 0;
    EXPECT(EINVAL, lw_taskset_resource(bad, "bus", -1, &number));
    EXPECT(EINVAL, lw_taskset_task(bad, "control", 0, 1, NULL, 0, &number));
    EXPECT(EINVAL, lw_taskset_build(bad));
    EXPECT(EINVAL, lw_taskset_find_task(bad, "control", &number));
    EXPECT(EINVAL, lw_taskset_find_resource(bad, "bus", &number));
    EXPECT(EINVAL, lw_task_join(bad, 0));
    said("not point to a task set", "lw_taskset_init");
    EXPECT(EINVAL, (lw_taskset_destroy)(bad));
}

static void what_is_none(void) {
    lw_taskset_t set, copy;
    memset(&set, 0, sizeof set);
    refuse(&set);
    memset(&set, 0xa5, sizeof set);
    refuse(&set);
    refuse(NULL);
    refuse((lw_taskset_t *)((uintptr_t)&set + 1));
    EXPECT(EINVAL, lw_taskset_init(NULL, "dpcp"));
    EXPECT(EINVAL, lw_taskset_init((lw_taskset_t *)((uintptr_t)&set + 4), "dpcp"));
    EXPECT(EINVAL, lw_taskset_init(&set, NULL));
    EXPECT(0, lw_taskset_init(&set, "dpcp"));
    memcpy(&copy, &set, sizeof set);
    refuse(&copy);
    EXPECT(0, lw_taskset_destroy(&set));
    refuse(&set);
    CHECK(sizeof set == 32);
}

static void what_is_no_protocol(void) {
    lw_taskset_t set;
    memset(&set, 0, sizeof set);
    EXPECT(EINVAL, lw_taskset_init(&set, "dpc"));
    said("no protocol `dpc`", "did you mean `dpcp`?");
    EXPECT(EINVAL, lw_taskset_init(&set, "elephants"));
    said("no protocol `elephants`", "fmlp_long, fmlp_plus");
    EXPECT(EINVAL, lw_taskset_init(&set, "\xff"));
    said("not UTF-8", "");
    EXPECT(EINVAL, lw_taskset_read(&set, "/dev/null", "DPCP"));
    said("no protocol `DPCP`", "did you mean `dpcp`?");
    refuse(&set);
}

static void built_one_by_one(void) {
    static const char *const protocols[] = {"none",      "pip",       "icpp",       "pcp",  "srp",  "mpcp", "mpcp_vs", "dpcp", "dflp",
                                            "fmlp_long", "fmlp_plus", "fmlp_short", "msrp", "mrsp", "omlp", "phase_fair", "task_fair"};
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
        lw_taskset_t set;
        uint32_t bus = 9, map = 9, control = 9, logging = 9, found = 9;
        EXPECT(0, lw_taskset_init(&set, protocols[i]));
        EXPECT(0, lw_taskset_resource(&set, "bus", -1, &bus));
        EXPECT(0, lw_taskset_resource(&set, "map", 0, &map));
        const uint32_t both[] = {bus, map};
        EXPECT(0, lw_taskset_task(&set, "control", 0, 65535, both, 2, &control));
        EXPECT(0, lw_taskset_task(&set, "logging", 0, 0, NULL, 0, &logging));
        EXPECT(EINVAL, lw_taskset_find_task(&set, "control", &found));
        said("not complete", "lw_taskset_build");
        EXPECT(EINVAL, lw_task_join(&set, control));
        EXPECT(0, lw_taskset_build(&set));
        EXPECT(0, lw_taskset_find_task(&set, "logging", &found));
        CHECK(found == logging && logging == 1);
        EXPECT(0, lw_taskset_find_resource(&set, "map", &found));
        CHECK(found == map && map == 1);
        EXPECT(ENOENT, lw_taskset_find_resource(&set, "mop", &found));
        said("no resource `mop`", "");
        EXPECT(ENOENT, lw_taskset_find_task(&set, "", &found));
        EXPECT(EINVAL, lw_taskset_find_task(&set, NULL, &found));
        EXPECT(EINVAL, lw_taskset_find_task(&set, "logging", NULL));
        EXPECT(EBUSY, lw_taskset_build(&set));
        EXPECT(EBUSY, lw_taskset_resource(&set, "late", -1, &found));
        EXPECT(EBUSY, lw_taskset_task(&set, "late", 0, 1, NULL, 0, &found));
        EXPECT(EINVAL, lw_task_join(&set, 2));
        said("no such task", "");
        EXPECT(EINVAL, lw_task_join(&set, 65536));
        EXPECT(0, lw_taskset_destroy(&set));
    }
}

static void what_cannot_be_built(void) {
    lw_taskset_t set;
    uint32_t bus, number;
    EXPECT(0, lw_taskset_init(&set, "mpcp"));
    EXPECT(EINVAL, lw_taskset_build(&set));
    EXPECT(0, lw_taskset_resource(&set, "bus", -1, &bus));
    const uint32_t none[] = {bus + 1}, one[] = {bus};
    EXPECT(EINVAL, lw_taskset_task(&set, "a", 0, 1, none, 1, &number));
    said("no resource 1", "lw_taskset_resource");
    const int both[] = {0, 1}, beyond[] = {0, 64}, negative[] = {-1};
    EXPECT(EINVAL, lw_taskset_task_in_cluster(&set, "a", NULL, 1, 1, NULL, 0, &number));
    EXPECT(EINVAL, lw_taskset_task_in_cluster(&set, "a", both, SIZE_MAX, 1, NULL, 0, &number));
    EXPECT(EINVAL, lw_taskset_task_in_cluster(&set, "a", negative, 1, 1, NULL, 0, &number));
    EXPECT(EINVAL, lw_taskset_task(&set, "a", 0, 1, NULL, 1, &number));
    EXPECT(EINVAL, lw_taskset_task(&set, "a", 0, 1, one, SIZE_MAX, &number));
    EXPECT(EINVAL, lw_taskset_task(&set, "a", 0, 1, one, 1, NULL));
    EXPECT(EINVAL, lw_taskset_task(&set, NULL, 0, 1, one, 1, &number));
    EXPECT(EINVAL, lw_taskset_task(&set, "a", -1, 1, one, 1, &number));
    EXPECT(EINVAL, lw_taskset_task(&set, "a", 0, -1, one, 1, &number));
    EXPECT(EINVAL, lw_taskset_task(&set, "a", 0, 65536, one, 1, &number));
    said("the priority is 65536", "from 0 to 65535");
    EXPECT(EINVAL, lw_taskset_resource(&set, "map", -2, &number));
    EXPECT(EINVAL, lw_taskset_resource(&set, "map", -1, NULL));
    EXPECT(0, lw_taskset_task(&set, "a", 0, 1, one, 1, &number));
    EXPECT(0, lw_taskset_task(&set, "a", 0, 2, one, 1, &number));
    EXPECT(EINVAL, lw_taskset_build(&set));
    said("`a`", "unique");
    EXPECT(0, lw_taskset_destroy(&set));

    EXPECT(0, lw_taskset_init(&set, "omlp"));
    EXPECT(0, lw_taskset_task_in_cluster(&set, "a", beyond, 2, 1, NULL, 0, &number));
    EXPECT(EINVAL, lw_taskset_build(&set));
    EXPECT(0, lw_taskset_destroy(&set));
    EXPECT(0, lw_taskset_init(&set, "omlp"));
    EXPECT(0, lw_taskset_task_in_cluster(&set, "a", both, 2, 1, NULL, 0, &number));
    EXPECT(0, lw_taskset_task(&set, "b", 1, 1, NULL, 0, &number));
    EXPECT(EINVAL, lw_taskset_build(&set));
    EXPECT(0, lw_taskset_destroy(&set));

    EXPECT(0, lw_taskset_init(&set, "mpcp"));
    EXPECT(0, lw_taskset_task(&set, "far", 4000, 1, NULL, 0, &number));
    EXPECT(EINVAL, lw_taskset_build(&set));
    for (uint32_t i = 1; i < 1024; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", (unsigned)i);
        EXPECT(0, lw_taskset_task(&set, name, 0, 1, NULL, 0, &number));
        CHECK(number == i);
    }
    EXPECT(ERANGE, lw_taskset_task(&set, "one more", 0, 1, NULL, 0, &number));
    said("too many tasks", "1024");
    for (uint32_t i = 0; i < 256; i++) {
        EXPECT(0, lw_taskset_resource(&set, "r", -1, &number));
    }
    EXPECT(ERANGE, lw_taskset_resource(&set, "r", -1, &number));
    EXPECT(0, lw_taskset_destroy(&set));

    /* The error names a CPU that no system has as the program gave it. */
    EXPECT(0, lw_taskset_init(&set, "mpcp"));
    EXPECT(0, lw_taskset_task(&set, "beyond", 77, 1, NULL, 0, &number));
    EXPECT(EINVAL, lw_taskset_build(&set));
    said("task `beyond` is on CPU 77", "at most 64 are supported");
    EXPECT(0, lw_taskset_destroy(&set));
    EXPECT(0, lw_taskset_init(&set, "omlp"));
    const int far[] = {0, 99};
    EXPECT(0, lw_taskset_task_in_cluster(&set, "wide", far, 2, 1, NULL, 0, &number));
    EXPECT(EINVAL, lw_taskset_build(&set));
    said("task `wide` may execute on CPU 99", "at most 64 are supported");
    EXPECT(0, lw_taskset_destroy(&set));
    EXPECT(0, lw_taskset_init(&set, "dpcp"));
    EXPECT(0, lw_taskset_resource(&set, "away", 64, &number));
    EXPECT(EINVAL, lw_taskset_build(&set));
    said("resource `away` is at home on CPU 64", "at most 64 are supported");
    EXPECT(0, lw_taskset_destroy(&set));

    /* Needs more CPUs than the test machine has. */
    cpu_set_t cpus;
    CHECK(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
    if (CPU_COUNT(&cpus) < 64) {
        EXPECT(0, lw_taskset_init(&set, "mpcp"));
        EXPECT(0, lw_taskset_task(&set, "far", 63, 1, NULL, 0, &number));
        EXPECT(ERANGE, lw_taskset_build(&set));
        said("has 64 CPUs", "taskset");
        EXPECT(0, lw_taskset_destroy(&set));
    }
}

static char path[] = "/tmp/lockwright-taskset-XXXXXX";

static void put(const char *content) {
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(content, file) >= 0 && fclose(file) == 0);
}

#define TASKS                                                                                                          \
    "[[resource]]\nname = \"bus\"\n"                                                                                   \
    "[[task]]\nname = \"camera\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\nrequests = [{ resource = \"bus\", length = \"15 us\" }]\n"

#define NESTING(name, cpu)                                                                                             \
    "[[task]]\nname = \"" name "\"\ncpu = " cpu "\nperiod = \"10 ms\"\nbody = [{ lock = \"outer\" }, { run = \"1 us\" }, "     \
    "{ lock = \"inner\" }, { run = \"1 us\" }, { unlock = \"inner\" }, { unlock = \"outer\" }]\n"

static void out_of_a_file(void) {
    lw_taskset_t set;
    uint32_t number = 9;
    memset(&set, 0, sizeof set);
    int file = mkstemp(path);
    CHECK(file >= 0 && close(file) == 0);
    put(TASKS);
    EXPECT(0, lw_taskset_read(&set, path, NULL));
    EXPECT(0, lw_taskset_find_task(&set, "camera", &number));
    CHECK(number == 0);
    EXPECT(EBUSY, lw_taskset_resource(&set, "late", -1, &number));
    EXPECT(EBUSY, lw_taskset_build(&set));
    EXPECT(0, lw_taskset_destroy(&set));
    EXPECT(0, lw_taskset_read(&set, path, "fmlp_long"));
    EXPECT(0, lw_taskset_destroy(&set));
    put("[platform]\nscheduler = \"p-edf\"\n" TASKS);
    EXPECT(0, lw_taskset_read(&set, path, NULL));
    EXPECT(0, lw_taskset_destroy(&set));

    put(TASKS "[[task]]\nname = \"motor\"\nperiod = \"5 ms\"\nwect = \"1 ms\"\n");
    EXPECT(EINVAL, lw_taskset_read(&set, path, NULL));
    said(":11:1: ", "did you mean `wcet`?");
    CHECK(strncmp(text, path, strlen(path)) == 0);
    /* A text that does not fit is cut, and the function says so. */
    char little[16];
    EXPECT(ERANGE, lw_task_error(little, sizeof little));
    CHECK(strlen(little) == sizeof little - 1 && strncmp(little, text, sizeof little - 1) == 0);
    EXPECT(ERANGE, lw_task_error(little, 1));
    CHECK(little[0] == 0);
    EXPECT(EINVAL, lw_task_error(little, 0));
    EXPECT(EINVAL, lw_task_error(NULL, 1));

    put("{ \"tasks\": {} }");
    EXPECT(EINVAL, lw_taskset_read(&set, path, NULL));
    said("rt-app", "lockwright import rt-app ");
    CHECK(!strchr(text, '\n'));
    put("<taskset>\n<task period=\"10\"/>\n</taskset>\n");
    EXPECT(EINVAL, lw_taskset_read(&set, path, NULL));
    said("looks like XML", "docs/task-set.md");
    CHECK(!strchr(text, '\n'));
    put("tasks:\n  - name: camera\n    period: 10 ms\n");
    EXPECT(EINVAL, lw_taskset_read(&set, path, NULL));
    said("looks like YAML", "docs/task-set.md");
    CHECK(!strchr(text, '\n'));
    put("[platform]\nscheduler = \"g-edf\"\n" TASKS);
    EXPECT(ENOTSUP, lw_taskset_read(&set, path, NULL));
    said("g-edf", "p-fp");
    put("[platform]\ncpus = 2\n[[resource]]\nname = \"outer\"\n[[resource]]\nname = \"inner\"\n" NESTING("a", "0")
            NESTING("b", "1"));
    EXPECT(ENOTSUP, lw_taskset_read(&set, path, "dpcp"));
    said("no nested requests", "while it holds");
    put("[platform]\ncpus = 1\n" TASKS);
    EXPECT(ENOTSUP, lw_taskset_read(&set, path, "ics"));
    said("under `ics`", "lw_ics_");
    put("name = \"\xff\"\n");
    EXPECT(EINVAL, lw_taskset_read(&set, path, NULL));
    said(":1:9: ", "UTF-8");
    CHECK(unlink(path) == 0);
    EXPECT(ENOENT, lw_taskset_read(&set, path, NULL));
    said(path, "cannot read");
    EXPECT(EISDIR, lw_taskset_read(&set, "/tmp", NULL));
    EXPECT(EINVAL, lw_taskset_read(&set, NULL, NULL));
    EXPECT(EINVAL, lw_taskset_read(NULL, path, NULL));
    refuse(&set);
}

static int is_read;

static void *is_cancelled(void *unused) {
    lw_taskset_t set;
    CHECK(pthread_cancel(pthread_self()) == 0);
    EXPECT(EINVAL, lw_taskset_read(&set, "/dev/null", NULL));
    is_read = 1;
    pthread_testcancel();
    CHECK(0);
    return unused;
}

static void not_a_point_of_cancellation(void) {
    join(start(is_cancelled, NULL));
    CHECK(is_read);
}

static void who_has_not_joined(void) {
    EXPECT(EPERM, lw_task_begin());
    EXPECT(EPERM, lw_task_lock(0));
    EXPECT(EPERM, lw_task_unlock(0));
    EXPECT(EPERM, lw_task_end());
    EXPECT(EPERM, lw_task_leave());
    said("not a task", "lw_task_join");
}

int main(void) {
    begin_test();
    EXPECT(0, lw_task_error(text, sizeof text));
    CHECK(text[0] == 0);
    what_is_none();
    what_is_no_protocol();
    built_one_by_one();
    what_cannot_be_built();
    out_of_a_file();
    not_a_point_of_cancellation();
    who_has_not_joined();
    return 0;
}
