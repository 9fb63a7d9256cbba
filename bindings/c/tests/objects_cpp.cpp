// The buffers and queues of lockwright.hpp.
#include "lockwright.hpp"

#include "check.h"
#include <thread>

struct pose {
    double x, y;
    int angle;
};

static lockwright::buffer<pose> poses(LW_OBJECT_WAIT_FREE);
static lockwright::queue<int> numbers;
static lockwright::priority_queue<int64_t> deadlines;

template <class Call>
static int error_of(Call call) {
    try {
        call();
    } catch (const std::system_error &error) {
        return error.code().value();
    }
    return 0;
}

int main() {
    begin_test();
    pose last = poses.read(1);
    CHECK(last.x == 0 && last.angle == 0);
    poses.write(0, pose{0.5, 1.5, -7});
    last = poses.read(1);
    CHECK(last.x == 0.5 && last.y == 1.5 && last.angle == -7);

    std::thread producer([] {
        for (int i = 0; i < 5000; i++) {
            while (!numbers.push(2, -i)) {
                std::this_thread::yield();
            }
        }
    });
    for (int i = 0; i < 5000; i++) {
        int number = 1;
        while (!numbers.pop(3, number)) {
            std::this_thread::yield();
        }
#ifdef MUTANT
        number++;
#endif
        CHECK(number == -i);
    }
    producer.join();

    int64_t deadline = 5;
    CHECK(!deadlines.extract_max(0, deadline) && deadline == 5);
    CHECK(deadlines.insert(0, -3) && deadlines.insert(0, 9) && deadlines.insert(0, -40));
    CHECK(deadlines.extract_max(0, deadline) && deadline == 9);
    CHECK(deadlines.extract_max(0, deadline) && deadline == -3);
    for (uint32_t i = 1; i < LW_PQUEUE_CAPACITY; i++) {
        CHECK(deadlines.insert(0, i));
    }
    CHECK(!deadlines.insert(0, 0));

    EXPECT(EINVAL, error_of([] { numbers.push(LW_OBJECT_SLOTS, 1); }));
    EXPECT(EINVAL, error_of([] { poses.read(LW_OBJECT_SLOTS); }));
    EXPECT(EINVAL, error_of([] { lockwright::queue<int> other(7); }));
    return 0;
}
