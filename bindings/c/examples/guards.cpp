// Lockwright's mutex with the guards of the standard library.
//
//     c++ guards.cpp $(pkg-config --cflags --libs lockwright) -pthread && ./a.out
#include <cstdio>
#include <lockwright.hpp>
#include <thread>

class sensor {
public:
    void write(int value) {
        std::lock_guard<lockwright::mutex> guard(mutex_);
        value_ = value;
        is_new_ = true;
        written_.notify_one();
    }

    int read() {
        std::unique_lock<lockwright::mutex> lock(mutex_);
        written_.wait(lock, [this] { return is_new_; });
        is_new_ = false;
        return value_;
    }

private:
    lockwright::mutex mutex_;
    lockwright::condition_variable written_;
    int value_ = 0;
    bool is_new_ = false;
};

int main() {
    sensor sensor;
    std::thread writer([&] { sensor.write(42); });
    const int value = sensor.read();
    writer.join();
    std::printf("read %d\n", value);
    return value == 42 ? 0 : 1;
}
