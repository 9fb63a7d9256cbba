// The same in C++.
#include "taskset.c"
