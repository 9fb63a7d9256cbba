// The mutexes, shared mutexes and condition variables of the C++ library.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#define CHECK(holds) \
    do { \
        if (!(holds)) { \
            std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds); \
            std::_Exit(1); \
        } \
    } while (0)

using namespace std::chrono_literals;

/* All policies run at once, so a mutex is locked less often than alone. */
constexpr int ROUNDS = 4000;

template <class Mutex> void excludes()
{
    Mutex mutex;
    long counted = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            for (int k = 0; k < ROUNDS; k++) {
                std::lock_guard<Mutex> guard(mutex);
                counted++;
            }
        });
    for (auto &thread : threads)
        thread.join();
    CHECK(counted == 4 * ROUNDS);
}

template <class Mutex> void times_out()
{
    Mutex mutex;
    std::lock_guard<Mutex> guard(mutex);
    std::thread([&] {
        CHECK(!mutex.try_lock());
        CHECK(!mutex.try_lock_for(20ms));
        CHECK(!mutex.try_lock_until(std::chrono::steady_clock::now() + 20ms));
        CHECK(!mutex.try_lock_until(std::chrono::system_clock::now() + 20ms));
    }).join();
}

template <class Mutex> void shares()
{
    Mutex mutex;
    long one = 0, other = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 5; i++)
        threads.emplace_back([&, i] {
            for (int k = 0; k < 10000; k++) {
                if (i < 2) {
                    std::unique_lock<Mutex> lock(mutex);
                    one++;
                    other++;
                } else {
                    std::shared_lock<Mutex> lock(mutex);
                    CHECK(one == other);
                }
            }
        });
    for (auto &thread : threads)
        thread.join();
    CHECK(one == 20000 && other == 20000);
}

template <class Cond, class Lock> void waits()
{
    std::mutex mutex;
    Cond cond;
    int turn = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 5; i++)
        threads.emplace_back([&] {
            Lock lock(mutex);
            cond.wait(lock, [&] { return turn > 0; });
            turn--;
        });
    {
        Lock lock(mutex);
        CHECK(!cond.wait_for(lock, 20ms, [&] { return turn > 100; }));
        CHECK(!cond.wait_until(lock, std::chrono::steady_clock::now() + 20ms, [&] { return turn > 100; }));
        CHECK(!cond.wait_until(lock, std::chrono::system_clock::now() + 20ms, [&] { return turn > 100; }));
        turn = 5;
    }
    cond.notify_one();
    cond.notify_all();
    for (auto &thread : threads)
        thread.join();
    CHECK(turn == 0);
}

int main()
{
    excludes<std::mutex>();
    excludes<std::recursive_mutex>();
    excludes<std::timed_mutex>();
    excludes<std::recursive_timed_mutex>();
    excludes<std::shared_mutex>();
    excludes<std::shared_timed_mutex>();
    shares<std::shared_mutex>();
    shares<std::shared_timed_mutex>();
    times_out<std::timed_mutex>();
    times_out<std::recursive_timed_mutex>();
    times_out<std::shared_timed_mutex>();
    waits<std::condition_variable, std::unique_lock<std::mutex>>();
    waits<std::condition_variable_any, std::unique_lock<std::mutex>>();

    std::mutex a, b;
    std::thread one([&] { for (int i = 0; i < ROUNDS; i++) std::scoped_lock lock(a, b); });
    std::thread two([&] { for (int i = 0; i < ROUNDS; i++) std::scoped_lock lock(b, a); });
    one.join();
    two.join();
    CHECK(std::async(std::launch::async, [] { return 42; }).get() == 42);
    std::once_flag once;
    int calls = 0;
    // An exception leaves the call to the next caller.
    for (int attempt = 0; attempt < 3; attempt++) {
        try {
            std::call_once(once, [&] {
                if (++calls < 3)
                    throw calls;
            });
            CHECK(calls == 3);
        } catch (int thrown) {
            CHECK(thrown == calls && calls == attempt + 1);
        }
    }
    std::thread([&] { std::call_once(once, [&] { calls++; }); }).join();
    CHECK(calls == 3);
    return 0;
}
