// lockwright.hpp with the guards and locks of the standard library.
#include "lockwright.hpp"

#include "check.h"
#include <atomic>
#include <fstream>
#include <iterator>
#include <shared_mutex>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#ifdef MUTANT
// A guard that locks nothing.
template <class T>
struct guard_of {
    explicit guard_of(T &) {}
};
#else
template <class T>
using guard_of = std::lock_guard<T>;
#endif

using namespace std::chrono_literals;

static lockwright::mutex global;
static long count;

static void nothing_is_lost() {
    std::vector<std::thread> threads;
    std::atomic<int> begun(0);
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&begun] {
            // Together, also on a busy machine where one could be done before the next begins.
            for (begun++; begun < 4;) {
                std::this_thread::yield();
            }
            for (int round = 0; round < 5000; round++) {
                guard_of<lockwright::mutex> guard(global);
                volatile long *place = &count;
                const long seen = *place;
                if (round % 16 == 0) {
                    std::this_thread::yield();
                }
                *place = seen + 1;
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(count == 4 * 5000);
}

// A clock that the kernel does not have.
struct half_clock {
    typedef std::chrono::microseconds duration;
    typedef duration::rep rep;
    typedef duration::period period;
    typedef std::chrono::time_point<half_clock> time_point;
    static const bool is_steady = true;
    static time_point now() {
        const auto time = std::chrono::steady_clock::now().time_since_epoch() / 2;
        return time_point(std::chrono::duration_cast<duration>(time));
    }
};

static void time_outs() {
    std::unique_lock<lockwright::mutex> mine(global);
    std::thread([] {
        CHECK(!global.try_lock());
        const auto begin = std::chrono::steady_clock::now();
        CHECK(!global.try_lock_for(10ms));
        CHECK(!global.try_lock_for(-10ms));
        CHECK(!global.try_lock_until(std::chrono::system_clock::now() + 10ms));
        CHECK(!global.try_lock_until(std::chrono::system_clock::time_point::min()));
        CHECK(std::chrono::steady_clock::now() - begin >= 20ms);
        const auto half = half_clock::now() + 10ms;
        CHECK(!global.try_lock_until(half));
        CHECK(half_clock::now() >= half);
        std::unique_lock<lockwright::mutex> lock(global, 1ms);
        CHECK(!lock.owns_lock());
    }).join();
    mine.unlock();
    CHECK(global.try_lock_for(std::chrono::hours::max()));
    global.unlock();
    CHECK(global.try_lock_until(std::chrono::steady_clock::time_point::max()));
    global.unlock();
    CHECK(global.try_lock_for(std::chrono::duration<double>(0.5)));
    global.unlock();
}

static int error_of(void (*body)()) {
    try {
        body();
    } catch (const std::system_error &error) {
        return error.code().value();
    }
    return 0;
}

static void errors() {
    EXPECT(EPERM, error_of([] { global.unlock(); }));
    EXPECT(EINVAL, error_of([] { lockwright::mutex wrong(lockwright::protect(100)); }));
    EXPECT(EDEADLK, error_of([] {
               std::lock_guard<lockwright::mutex> guard(global);
               global.lock();
           }));
    EXPECT(EPERM, error_of([] {
               lockwright::condition_variable condition;
               std::unique_lock<lockwright::mutex> lock(global, std::defer_lock);
               condition.wait(lock);
           }));
    CHECK(global.try_lock());
    global.unlock();
}

static void owners_that_end() {
    lockwright::mutex robust(lockwright::robust());
    std::thread([&] { robust.lock(); }).join();
    bool is_told = false;
    try {
        std::lock_guard<lockwright::mutex> guard(robust);
    } catch (const lockwright::owner_died &) {
        std::unique_lock<lockwright::mutex> guard(robust, std::adopt_lock);
        robust.make_consistent();
        is_told = true;
    }
    CHECK(is_told);
    CHECK(robust.try_lock());
    robust.unlock();
}

static void conditions() {
    lockwright::condition_variable condition;
    int stage = 0;
    std::thread other([&] {
        std::unique_lock<lockwright::mutex> lock(global);
        condition.wait(lock, [&] { return stage == 1; });
        CHECK(lock.owns_lock() && global.is_mine());
        stage = 2;
        condition.notify_all();
    });
    {
        std::unique_lock<lockwright::mutex> lock(global);
        stage = 1;
        condition.notify_one();
        CHECK(condition.wait_for(lock, 30s, [&] { return stage == 2; }));
        CHECK(condition.wait_for(lock, 5ms) == std::cv_status::timeout);
        CHECK(condition.wait_until(lock, std::chrono::system_clock::now() + 5ms) == std::cv_status::timeout);
        CHECK(!condition.wait_until(lock, half_clock::now() + 5ms, [] { return false; }));
        CHECK(lock.owns_lock() && global.is_mine());
    }
    other.join();
    // Two mutexes at once, by std::lock and std::scoped_lock.
    lockwright::mutex second;
    std::scoped_lock<lockwright::mutex, lockwright::mutex> both(global, second);
    CHECK(global.is_mine() && second.is_mine());
}

static lockwright::fifo_mutex in_turn;

static void requests_wait_in_turn() {
    long total = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) {
        threads.emplace_back([&] {
            for (int round = 0; round < 5000; round++) {
                std::lock_guard<lockwright::fifo_mutex> guard(in_turn);
                total++;
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(total == 3 * 5000);
    std::unique_lock<lockwright::fifo_mutex> guard(in_turn);
    CHECK(in_turn.is_mine());
    std::thread([] {
        CHECK(!in_turn.try_lock());
        CHECK(!in_turn.try_lock_for(5ms));
        CHECK(!in_turn.try_lock_until(half_clock::now() + 5ms));
        EXPECT(EPERM, error_of([] { in_turn.unlock(); }));
    }).join();
    EXPECT(EDEADLK, error_of([] { in_turn.lock(); }));
}

static lockwright::shared_mutex shared;

static void readers_share() {
    long one = 0, other = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&, i] {
            for (int round = 0; round < 5000; round++) {
                if (i % 2 == 0) {
                    std::lock_guard<lockwright::shared_mutex> guard(shared);
                    one++;
                    other++;
                } else {
                    std::shared_lock<lockwright::shared_mutex> guard(shared);
                    CHECK(one == other);
                }
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(one == 2 * 5000 && other == 2 * 5000);
    {
        std::shared_lock<lockwright::shared_mutex> guard(shared);
        CHECK(shared.try_lock_shared());
        shared.unlock_shared();
        CHECK(!shared.try_lock());
        CHECK(!shared.try_lock_for(5ms));
        CHECK(shared.try_lock_shared_for(5ms));
        shared.unlock_shared();
    }
    std::unique_lock<lockwright::shared_mutex> guard(shared, 5ms);
    CHECK(guard.owns_lock());
    std::thread([] {
        CHECK(!shared.try_lock_shared());
        CHECK(!shared.try_lock_shared_for(5ms));
        CHECK(!shared.try_lock_shared_until(half_clock::now() + 5ms));
    }).join();
    EXPECT(EDEADLK, error_of([] { shared.lock_shared(); }));
}

static lockwright::counting_semaphore<> units(2);
static lockwright::binary_semaphore no_units(0);

static void semaphores_count() {
    units.acquire();
    CHECK(units.try_acquire());
    CHECK(!units.try_acquire());
    CHECK(!units.try_acquire_for(1ms));
    units.release(2);
    CHECK(units.try_acquire_until(std::chrono::system_clock::now() + 1s));
    std::thread other([] { no_units.release(); });
    no_units.acquire();
    other.join();
    for (std::ptrdiff_t update : {std::ptrdiff_t(-1), units.max()}) {
        try {
            units.release(update);
            CHECK(!"it is refused");
        } catch (const std::system_error &error) {
            CHECK(error.code().value() == EOVERFLOW);
        }
    }
}

static void barriers_have_one_leader() {
    int leaders = 0;
    {
        lockwright::barrier barrier(3);
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; i++) {
            threads.emplace_back([&] {
                for (int round = 0; round < 100; round++) {
                    if (barrier.arrive_and_wait()) {
                        leaders++;
                    }
                }
            });
        }
        for (std::thread &thread : threads) {
            thread.join();
        }
    }
    CHECK(leaders == 100);
}

static void destroying_a_barrier_is_no_cancellation_point() {
    alignas(lockwright::barrier) static unsigned char place[sizeof(lockwright::barrier)];
    static lockwright::barrier *barrier = new (place) lockwright::barrier(2);
    static std::atomic<bool> destroys(false);
    static std::atomic<long> arriving(0);
    std::thread arrives([] {
        arriving = syscall(SYS_gettid);
        barrier->arrive_and_wait();
    });
    for (std::string status; status.find("State:\tS") == std::string::npos;) {
        std::ifstream file("/proc/self/task/" + std::to_string(arriving) + "/status");
        status.assign(std::istreambuf_iterator<char>(file), {});
    }
    pthread_t destroyer;
    CHECK(pthread_create(&destroyer, nullptr, [](void *) -> void * {
        destroys = true;
        barrier->~barrier();
        return nullptr;
    }, nullptr) == 0);
    while (!destroys) {
        std::this_thread::yield();
    }
    CHECK(pthread_cancel(destroyer) == 0);
    std::this_thread::sleep_for(20ms);
    CHECK(lw_barrier_wait(barrier->native_handle(), nullptr) == 0);
    arrives.join();
    void *result = barrier;
    CHECK(pthread_join(destroyer, &result) == 0 && result == nullptr);
}

static lockwright::once_flag flag;

static void calls_are_repeated_until_one_returns() {
    int calls = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        try {
            lockwright::call_once(flag, [&](int thrown) {
                calls++;
                throw thrown;
            }, 7);
            CHECK(!"it throws");
        } catch (int thrown) {
            CHECK(thrown == 7);
        }
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) {
        threads.emplace_back([&] { lockwright::call_once(flag, [&] { calls++; }); });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(calls == 3);
    lockwright::once_flag own;
    try {
        lockwright::call_once(own, [&] { lockwright::call_once(own, [] {}); });
        CHECK(!"it throws");
    } catch (const std::system_error &error) {
        CHECK(error.code().value() == EDEADLK);
    }
}

int main() {
    begin_test();
    nothing_is_lost();
    requests_wait_in_turn();
    readers_share();
    time_outs();
    errors();
    owners_that_end();
    conditions();
    semaphores_count();
    barriers_have_one_leader();
    destroying_a_barrier_is_no_cancellation_point();
    calls_are_repeated_until_one_returns();
    return 0;
}
