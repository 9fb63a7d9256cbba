// Compiles the tests of taskset.c as C++.
#include "taskset.c"
