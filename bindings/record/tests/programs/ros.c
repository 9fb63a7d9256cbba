/* An executor of ROS 2, imitated: it calls a timer each 5 ms, and the subscriber of a camera behind each fourth timer. With
   -DLIBRARY this is the library of the functions by which the client libraries are traced. */
#ifdef LIBRARY

#include <stdbool.h>

int ros_traced;

void ros_trace_callback_start(const void *callback, const bool is_within_process)
{
    (void)callback;
    ros_traced += !is_within_process;
}

void ros_trace_callback_end(const void *callback)
{
    (void)callback;
    ros_traced++;
}

void ros_trace_rclcpp_callback_register(const void *callback, const char *name)
{
    (void)callback;
    ros_traced += name[0] != 0;
}

#else

#include "check.h"
#include <stdbool.h>

void ros_trace_callback_start(const void *callback, const bool is_within_process);
void ros_trace_callback_end(const void *callback);
void ros_trace_rclcpp_callback_register(const void *callback, const char *name);
extern int ros_traced;

enum { CALLS = 24 };

pthread_mutex_t pose = PTHREAD_MUTEX_INITIALIZER;
static char timer, camera;

static void call(const void *callback, long us)
{
    ros_trace_callback_start(callback, false);
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    pthread_mutex_lock(&pose);
    pthread_mutex_unlock(&pose);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < us);
    ros_trace_callback_end(callback);
}

int main(void)
{
    ros_trace_rclcpp_callback_register(&timer, "Controller::on_timer()");
    ros_trace_rclcpp_callback_register(&camera,
        "std::_Bind<void (Localizer::*(Localizer*, std::_Placeholder<1>))(sensor_msgs::msg::Image const&)>");
    /* The thread waits before each call, also on a busy machine. */
    struct timespec pause = { 0, 5000000 };
    for (int job = 0; job < CALLS; job++) {
        call(&timer, 300);
        if (job % 4 == 0)
            call(&camera, 900);
        syscall(SYS_nanosleep, &pause, NULL);
    }
    /* The functions of the library are called all the same. */
    CHECK(ros_traced == 2 + 2 * (CALLS + CALLS / 4));
    return 0;
}

#endif
