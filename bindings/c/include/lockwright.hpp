/*
 * Lockwright for C++11 and later: mutexes, a condition variable and a shared mutex that work with std::lock_guard,
 * std::unique_lock, std::scoped_lock and std::shared_lock; a semaphore, a barrier, and call_once; non-blocking buffers
 * and queues.
 *
 *     lockwright::mutex mutex;                    // the owner inherits the priority of its most urgent waiter
 *     lockwright::mutex ceiling(lockwright::protect(80));
 *
 *     std::lock_guard<lockwright::mutex> guard(mutex);
 *
 * An error number of lockwright.h is thrown as a std::system_error with that number. EOWNERDEAD is thrown as
 * lockwright::owner_died; the caller then holds the mutex. What lockwright.h requires of its callers holds here as
 * well. This header is all that C++ needs: link with -llockwright.
 */
#ifndef LOCKWRIGHT_HPP
#define LOCKWRIGHT_HPP

#include "lockwright.h"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <type_traits>
#include <utility>

namespace lockwright {

/*
 * The previous owner of a robust mutex ended while it held the mutex. The caller now holds the mutex, but no guard
 * owns it yet. Repair the protected data as follows:
 *
 *     catch (const lockwright::owner_died &) {
 *         std::unique_lock<lockwright::mutex> guard(mutex, std::adopt_lock);
 *         ...
 *         mutex.make_consistent();
 *     }
 *
 * (If condition_variable::wait throws this, its lock already owns the mutex.)
 */
class owner_died : public std::system_error {
public:
    owner_died()
        : std::system_error(EOWNERDEAD, std::generic_category(), "the owner of the mutex ended while it held it") {}
};

namespace detail {

inline void check(int error, const char *what) {
    if (error == EOWNERDEAD) {
        throw owner_died();
    }
    if (error != 0) {
        throw std::system_error(error, std::generic_category(), what);
    }
}

/* Returns whether a lock was taken: false after this refusal. */
inline bool is_taken(int error, int refusal, const char *what) {
    if (error == refusal) {
        return false;
    }
    check(error, what);
    return true;
}

/* Converts to a timespec, at least zero and at most 2^32 seconds. */
template <class Rep, class Period>
timespec time_of(std::chrono::duration<Rep, Period> time) {
    typedef std::chrono::duration<double> real_seconds;
    const std::chrono::seconds last(std::chrono::seconds::rep(1) << 32);
    timespec result = timespec();
    if (time <= time.zero()) {
        return result;
    }
    if (real_seconds(time) >= real_seconds(last)) {
        result.tv_sec = static_cast<time_t>(last.count());
        return result;
    }
    const std::chrono::seconds whole = std::chrono::duration_cast<std::chrono::seconds>(time);
    /* Round up, so that a wait never ends before its time. */
    std::chrono::nanoseconds rest = std::chrono::duration_cast<std::chrono::nanoseconds>(time - whole);
    if (rest < time - whole) {
        rest += std::chrono::nanoseconds(1);
    }
    result.tv_sec = static_cast<time_t>(whole.count() + rest.count() / 1000000000);
    result.tv_nsec = static_cast<long>(rest.count() % 1000000000);
    return result;
}

/* The clocks that the kernel can wait by, and their numbers. In all C++ libraries of Linux, steady_clock is
   CLOCK_MONOTONIC and system_clock is CLOCK_REALTIME. */
template <class Clock>
struct kernel_clock {
    static const bool is_one = false;
};
template <>
struct kernel_clock<std::chrono::steady_clock> {
    static const bool is_one = true;
    static const int number = 1;
};
template <>
struct kernel_clock<std::chrono::system_clock> {
    static const bool is_one = true;
    static const int number = 0;
};

/* Returns the time point `time` from now by the steady clock. The duration is limited as in time_of. */
template <class Rep, class Period>
std::chrono::steady_clock::time_point after(const std::chrono::duration<Rep, Period> &time) {
    typedef std::chrono::steady_clock clock;
    const timespec span = time_of(time);
    return clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::seconds(span.tv_sec)) +
           std::chrono::duration_cast<clock::duration>(std::chrono::nanoseconds(span.tv_nsec));
}

/* Calls wait(clock, time) until it returns another number than ETIMEDOUT, or until the time has come by its own
   clock. */
template <class Clock, class Duration, class Wait, bool = kernel_clock<Clock>::is_one>
struct until {
    static int call(const std::chrono::time_point<Clock, Duration> &time, Wait wait) {
        const timespec at = time_of(time.time_since_epoch());
        return wait(kernel_clock<Clock>::number, &at);
    }
};
template <class Clock, class Duration, class Wait>
struct until<Clock, Duration, Wait, false> {
    static int call(const std::chrono::time_point<Clock, Duration> &time, Wait wait) {
        for (;;) {
            const timespec at = time_of(after(time - Clock::now()).time_since_epoch());
            const int error = wait(kernel_clock<std::chrono::steady_clock>::number, &at);
            if (error != ETIMEDOUT || Clock::now() >= time) {
                return error;
            }
        }
    }
};

template <class Clock, class Duration, class Wait>
int wait_until(const std::chrono::time_point<Clock, Duration> &time, Wait wait) {
    return until<Clock, Duration, Wait>::call(time, wait);
}

} // namespace detail

/* Returns the options of a mutex with a ceiling, a level of SCHED_FIFO from 1 to 99. */
inline lw_mutex_options_t protect(unsigned ceiling) {
    lw_mutex_options_t options = lw_mutex_options_t();
    options.protocol = LW_PROTOCOL_PROTECT;
    options.ceiling = ceiling;
    return options;
}

/* Returns the options of a mutex that survives the end of its owner. */
inline lw_mutex_options_t robust() {
    lw_mutex_options_t options = lw_mutex_options_t();
    options.robust = 1;
    return options;
}

/* A mutex: BasicLockable, Lockable and TimedLockable. It owns no memory, so a mutex in static storage may still be
   used while the program ends. */
class mutex {
public:
    typedef lw_mutex_t *native_handle_type;

    /* Makes a mutex with priority inheritance and deadlock detection. A static one is initialised before any code
       executes. */
    constexpr mutex() noexcept : mutex_ LW_MUTEX_INITIALIZER {}

    /* Makes a mutex with these options. Throws EINVAL if an option has an invalid value. */
    explicit mutex(const lw_mutex_options_t &options) : mutex_() {
        detail::check(lw_mutex_init(&mutex_, &options), "lockwright::mutex");
    }

    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;

    void lock() { detail::check(lw_mutex_lock(&mutex_), "lockwright::mutex::lock"); }

    bool try_lock() { return detail::is_taken(lw_mutex_trylock(&mutex_), EBUSY, "lockwright::mutex::try_lock"); }

    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &time) {
        return try_lock_until(detail::after(time));
    }

    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        lw_mutex_t *const mutex = &mutex_;
        const int error = detail::wait_until(
            time, [mutex](int clock, const timespec *at) { return lw_mutex_lock_until(mutex, clock, at); });
        return detail::is_taken(error, ETIMEDOUT, "lockwright::mutex::try_lock_until");
    }

    /* Unlocks the mutex. Throws EPERM if the caller does not hold it. */
    void unlock() { detail::check(lw_mutex_unlock(&mutex_), "lockwright::mutex::unlock"); }

    /* Declares, after owner_died, that the protected data is consistent again. */
    void make_consistent() { detail::check(lw_mutex_make_consistent(&mutex_), "lockwright::mutex::make_consistent"); }

    bool is_mine() const noexcept { return lw_mutex_is_mine(&mutex_) == 1; }

    native_handle_type native_handle() noexcept { return &mutex_; }

private:
    lw_mutex_t mutex_;
};

/* A condition variable for lockwright::mutex. If a wait throws, its lock owns the mutex exactly if the caller holds
   it. */
class condition_variable {
public:
    typedef lw_cond_t *native_handle_type;

    constexpr condition_variable() noexcept : cond_ LW_COND_INITIALIZER {}

    /* Waits for woken waiters to leave, except for those that wait for a mutex that the caller holds: unlock that
       mutex first. */
    ~condition_variable() { (void)lw_cond_destroy(&cond_); }

    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;

    void notify_one() noexcept { (void)lw_cond_signal(&cond_); }
    void notify_all() noexcept { (void)lw_cond_broadcast(&cond_); }

    void wait(std::unique_lock<mutex> &lock) { settle(lock, lw_cond_wait(&cond_, handle(lock))); }

    template <class Predicate>
    void wait(std::unique_lock<mutex> &lock, Predicate predicate) {
        while (!predicate()) {
            wait(lock);
        }
    }

    template <class Clock, class Duration>
    std::cv_status wait_until(std::unique_lock<mutex> &lock, const std::chrono::time_point<Clock, Duration> &time) {
        lw_cond_t *const cond = &cond_;
        lw_mutex_t *const mutex = handle(lock);
        const int error = detail::wait_until(
            time, [cond, mutex](int clock, const timespec *at) { return lw_cond_wait_until(cond, mutex, clock, at); });
        return settle(lock, error);
    }

    template <class Clock, class Duration, class Predicate>
    bool wait_until(std::unique_lock<mutex> &lock, const std::chrono::time_point<Clock, Duration> &time,
                    Predicate predicate) {
        while (!predicate()) {
            if (wait_until(lock, time) == std::cv_status::timeout) {
                return predicate();
            }
        }
        return true;
    }

    template <class Rep, class Period>
    std::cv_status wait_for(std::unique_lock<mutex> &lock, const std::chrono::duration<Rep, Period> &time) {
        return wait_until(lock, detail::after(time));
    }

    template <class Rep, class Period, class Predicate>
    bool wait_for(std::unique_lock<mutex> &lock, const std::chrono::duration<Rep, Period> &time, Predicate predicate) {
        return wait_until(lock, detail::after(time), predicate);
    }

    native_handle_type native_handle() noexcept { return &cond_; }

private:
    static lw_mutex_t *handle(std::unique_lock<mutex> &lock) {
        if (!lock.owns_lock()) {
            throw std::system_error(EPERM, std::generic_category(), "lockwright::condition_variable::wait");
        }
        return lock.mutex()->native_handle();
    }

    static std::cv_status settle(std::unique_lock<mutex> &lock, int error) {
        if (error == ETIMEDOUT) {
            return std::cv_status::timeout;
        }
        if (error != 0 && !lock.mutex()->is_mine()) {
            lock.release();
        }
        detail::check(error, "lockwright::condition_variable::wait");
        return std::cv_status::no_timeout;
    }

    lw_cond_t cond_;
};

/* A mutex that serves its users in the order of their requests: BasicLockable, Lockable and TimedLockable. It owns no
   memory, as mutex. */
class fifo_mutex {
public:
    typedef lw_fifo_mutex_t *native_handle_type;

    constexpr fifo_mutex() noexcept : mutex_ LW_FIFO_MUTEX_INITIALIZER {}

    fifo_mutex(const fifo_mutex &) = delete;
    fifo_mutex &operator=(const fifo_mutex &) = delete;

    void lock() { detail::check(lw_fifo_mutex_lock(&mutex_), "lockwright::fifo_mutex::lock"); }

    bool try_lock() {
        return detail::is_taken(lw_fifo_mutex_trylock(&mutex_), EBUSY, "lockwright::fifo_mutex::try_lock");
    }

    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &time) {
        return try_lock_until(detail::after(time));
    }

    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        lw_fifo_mutex_t *const mutex = &mutex_;
        const int error = detail::wait_until(
            time, [mutex](int clock, const timespec *at) { return lw_fifo_mutex_lock_until(mutex, clock, at); });
        return detail::is_taken(error, ETIMEDOUT, "lockwright::fifo_mutex::try_lock_until");
    }

    /* Unlocks the mutex. Throws EPERM if the caller does not hold it. */
    void unlock() { detail::check(lw_fifo_mutex_unlock(&mutex_), "lockwright::fifo_mutex::unlock"); }

    bool is_mine() const noexcept { return lw_fifo_mutex_is_mine(&mutex_) == 1; }

    native_handle_type native_handle() noexcept { return &mutex_; }

private:
    lw_fifo_mutex_t mutex_;
};

/* A reader-writer lock with the members of std::shared_timed_mutex. It owns no memory, as mutex. A thread that holds it
   must not lock it again, not even to read. */
class shared_mutex {
public:
    typedef lw_rwlock_t *native_handle_type;

    constexpr shared_mutex() noexcept : rwlock_ LW_RWLOCK_INITIALIZER {}

    shared_mutex(const shared_mutex &) = delete;
    shared_mutex &operator=(const shared_mutex &) = delete;

    void lock() { detail::check(lw_rwlock_wrlock(&rwlock_), "lockwright::shared_mutex::lock"); }

    bool try_lock() { return detail::is_taken(lw_rwlock_trywrlock(&rwlock_), EBUSY, "lockwright::shared_mutex::try_lock"); }

    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &time) {
        return try_lock_until(detail::after(time));
    }

    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        lw_rwlock_t *const rwlock = &rwlock_;
        const int error = detail::wait_until(
            time, [rwlock](int clock, const timespec *at) { return lw_rwlock_wrlock_until(rwlock, clock, at); });
        return detail::is_taken(error, ETIMEDOUT, "lockwright::shared_mutex::try_lock_until");
    }

    void unlock() { detail::check(lw_rwlock_unlock(&rwlock_), "lockwright::shared_mutex::unlock"); }

    void lock_shared() { detail::check(lw_rwlock_rdlock(&rwlock_), "lockwright::shared_mutex::lock_shared"); }

    bool try_lock_shared() {
        return detail::is_taken(lw_rwlock_tryrdlock(&rwlock_), EBUSY, "lockwright::shared_mutex::try_lock_shared");
    }

    template <class Rep, class Period>
    bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &time) {
        return try_lock_shared_until(detail::after(time));
    }

    template <class Clock, class Duration>
    bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &time) {
        lw_rwlock_t *const rwlock = &rwlock_;
        const int error = detail::wait_until(
            time, [rwlock](int clock, const timespec *at) { return lw_rwlock_rdlock_until(rwlock, clock, at); });
        return detail::is_taken(error, ETIMEDOUT, "lockwright::shared_mutex::try_lock_shared_until");
    }

    void unlock_shared() { unlock(); }

    native_handle_type native_handle() noexcept { return &rwlock_; }

private:
    lw_rwlock_t rwlock_;
};

/* A semaphore with the members of std::counting_semaphore. It owns no memory, as mutex. */
template <std::ptrdiff_t LeastMaxValue = 0x7fffffff>
class counting_semaphore {
    static_assert(LeastMaxValue >= 0 && LeastMaxValue <= 0x7fffffff, "a semaphore has at most 2,147,483,647 units");

public:
    typedef lw_sem_t *native_handle_type;

    static constexpr std::ptrdiff_t max() noexcept { return 0x7fffffff; }

    /* Makes a semaphore with this number of units. With a number that is negative or above max(), each use throws EINVAL. */
    constexpr explicit counting_semaphore(std::ptrdiff_t desired) noexcept : sem_ LW_SEM_INITIALIZER(desired) {}

    counting_semaphore(const counting_semaphore &) = delete;
    counting_semaphore &operator=(const counting_semaphore &) = delete;

    /* Adds units. Throws EOVERFLOW if there would be more than max(). */
    void release(std::ptrdiff_t update = 1) {
        const bool fits = update >= 0 && update <= max();
        detail::check(fits ? lw_sem_post_many(&sem_, static_cast<unsigned>(update)) : EOVERFLOW,
                      "lockwright::counting_semaphore::release");
    }

    void acquire() { detail::check(lw_sem_wait(&sem_), "lockwright::counting_semaphore::acquire"); }

    bool try_acquire() {
        return detail::is_taken(lw_sem_trywait(&sem_), EAGAIN, "lockwright::counting_semaphore::try_acquire");
    }

    template <class Rep, class Period>
    bool try_acquire_for(const std::chrono::duration<Rep, Period> &time) {
        return try_acquire_until(detail::after(time));
    }

    template <class Clock, class Duration>
    bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &time) {
        lw_sem_t *const sem = &sem_;
        const int error = detail::wait_until(
            time, [sem](int clock, const timespec *at) { return lw_sem_wait_until(sem, clock, at); });
        return detail::is_taken(error, ETIMEDOUT, "lockwright::counting_semaphore::try_acquire_until");
    }

    native_handle_type native_handle() noexcept { return &sem_; }

private:
    lw_sem_t sem_;
};

typedef counting_semaphore<1> binary_semaphore;

/* A barrier on which threads arrive and wait, as std::barrier without a completion function. */
class barrier {
public:
    typedef lw_barrier_t *native_handle_type;

    /* Makes a barrier for this number of threads. With 0, each use throws EINVAL. */
    constexpr explicit barrier(unsigned expected) noexcept : barrier_ LW_BARRIER_INITIALIZER(expected) {}

    /* Waits for the other threads to leave arrive_and_wait, however long that takes. It sleeps meanwhile, and is not a
       cancellation point. */
    ~barrier() {
        int cancel_state = PTHREAD_CANCEL_ENABLE;
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
        while (lw_barrier_destroy(&barrier_) == EBUSY) {
            const timespec nap = {0, 1000000};
            (void)nanosleep(&nap, nullptr);
        }
        (void)pthread_setcancelstate(cancel_state, nullptr);
    }

    barrier(const barrier &) = delete;
    barrier &operator=(const barrier &) = delete;

    /* Waits until all have arrived. Returns true to one thread of each round. */
    bool arrive_and_wait() {
        int is_leader = 0;
        detail::check(lw_barrier_wait(&barrier_, &is_leader), "lockwright::barrier::arrive_and_wait");
        return is_leader != 0;
    }

    native_handle_type native_handle() noexcept { return &barrier_; }

private:
    lw_barrier_t barrier_;
};

/* Tells call_once whether a call has returned. */
class once_flag {
public:
    typedef lw_once_t *native_handle_type;

    constexpr once_flag() noexcept : once_ LW_ONCE_INITIALIZER {}

    once_flag(const once_flag &) = delete;
    once_flag &operator=(const once_flag &) = delete;

    native_handle_type native_handle() noexcept { return &once_; }

private:
    lw_once_t once_;
};

namespace detail {

template <class Function>
struct once_call {
    Function &function;
    std::exception_ptr thrown;

    static int routine(void *argument) {
        once_call &call = *static_cast<once_call *>(argument);
        try {
            call.function();
            return 0;
#ifdef __GLIBCXX__
        } catch (abi::__forced_unwind &) {
            throw; /* The thread is cancelled and ends. */
#endif
        } catch (...) {
            call.thrown = std::current_exception();
        }
        return 1;
    }
};

} // namespace detail

/* Calls `function` with the arguments, unless a call with this flag has returned already. Other callers wait meanwhile,
   and lend their priority to the thread that calls. If `function` throws, the exception goes to its caller, and the
   next caller calls its own function. Throws EDEADLK if the caller would wait for its own call. */
template <class Function, class... Arguments>
void call_once(once_flag &flag, Function &&function, Arguments &&...arguments) {
    auto bound = [&] { (void)std::forward<Function>(function)(std::forward<Arguments>(arguments)...); };
    detail::once_call<decltype(bound)> call = {bound, nullptr};
    const int error = lw_once_call(flag.native_handle(), detail::once_call<decltype(bound)>::routine, &call);
    if (call.thrown) {
        std::rethrow_exception(call.thrown);
    }
    detail::check(error, "lockwright::call_once");
}

/* A buffer with one value, zeros at first, which any thread may read and replace without waiting for another one. Each
   thread uses a slot of its own, a number below LW_OBJECT_SLOTS. `kind` is LW_OBJECT_LOCK_FREE or LW_OBJECT_WAIT_FREE. */
template <class T>
class buffer {
    static_assert(std::is_trivially_copyable<T>::value, "a value is copied byte by byte");
    static_assert(std::is_default_constructible<T>::value, "a value is read into a new object");
    static_assert(sizeof(T) <= LW_BUFFER_BYTES, "a value has at most LW_BUFFER_BYTES bytes");

public:
    typedef lw_buffer_t *native_handle_type;

    explicit buffer(uint32_t kind = LW_OBJECT_LOCK_FREE) {
        detail::check(lw_buffer_init(&buffer_, kind), "lockwright::buffer");
    }

    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;

    T read(uint32_t slot) {
        T value;
        detail::check(lw_buffer_read(&buffer_, slot, &value, sizeof value), "lockwright::buffer::read");
        return value;
    }

    void write(uint32_t slot, const T &value) {
        detail::check(lw_buffer_write(&buffer_, slot, &value, sizeof value), "lockwright::buffer::write");
    }

    native_handle_type native_handle() noexcept { return &buffer_; }

private:
    lw_buffer_t buffer_;
};

/* A FIFO queue of up to LW_QUEUE_CAPACITY values. Kinds and slots are those of a buffer. */
template <class T>
class queue {
    static_assert(std::is_trivially_copyable<T>::value, "a value is copied byte by byte");
    static_assert(sizeof(T) <= sizeof(uint64_t), "a value has at most 8 bytes");

public:
    typedef lw_queue_t *native_handle_type;

    explicit queue(uint32_t kind = LW_OBJECT_LOCK_FREE) {
        detail::check(lw_queue_init(&queue_, kind), "lockwright::queue");
    }

    queue(const queue &) = delete;
    queue &operator=(const queue &) = delete;

    /* Appends a value. Returns false if the queue is full. */
    bool push(uint32_t slot, const T &value) {
        uint64_t word = 0;
        std::memcpy(&word, &value, sizeof value);
        return detail::is_taken(lw_queue_push(&queue_, slot, word), ENOSPC, "lockwright::queue::push");
    }

    /* Removes the oldest value. Returns false if the queue is empty. */
    bool pop(uint32_t slot, T &value) {
        uint64_t word;
        const bool is_popped = detail::is_taken(lw_queue_pop(&queue_, slot, &word), ENODATA, "lockwright::queue::pop");
        if (is_popped) {
            std::memcpy(&value, &word, sizeof value);
        }
        return is_popped;
    }

    native_handle_type native_handle() noexcept { return &queue_; }

private:
    lw_queue_t queue_;
};

/* A priority queue of up to LW_PQUEUE_CAPACITY integers. Kinds and slots are those of a buffer. */
template <class T>
class priority_queue {
    static_assert(std::is_integral<T>::value && sizeof(T) <= sizeof(uint64_t), "a value is an integer of at most 64 bits");

public:
    typedef lw_pqueue_t *native_handle_type;

    explicit priority_queue(uint32_t kind = LW_OBJECT_LOCK_FREE) {
        detail::check(lw_pqueue_init(&queue_, kind), "lockwright::priority_queue");
    }

    priority_queue(const priority_queue &) = delete;
    priority_queue &operator=(const priority_queue &) = delete;

    /* Inserts a value. Returns false if the queue is full. */
    bool insert(uint32_t slot, T value) {
        const uint64_t word = static_cast<uint64_t>(value) ^ SIGN;
        return detail::is_taken(lw_pqueue_insert(&queue_, slot, word), ENOSPC, "lockwright::priority_queue::insert");
    }

    /* Removes the greatest value. Returns false if the queue is empty. */
    bool extract_max(uint32_t slot, T &value) {
        uint64_t word;
        const int error = lw_pqueue_extract_max(&queue_, slot, &word);
        const bool is_extracted = detail::is_taken(error, ENODATA, "lockwright::priority_queue::extract_max");
        if (is_extracted) {
            value = static_cast<T>(word ^ SIGN);
        }
        return is_extracted;
    }

    native_handle_type native_handle() noexcept { return &queue_; }

private:
    /* Negative numbers are below all others. */
    static const uint64_t SIGN = std::is_signed<T>::value ? UINT64_C(1) << 63 : 0;

    lw_pqueue_t queue_;
};

} // namespace lockwright

#endif /* LOCKWRIGHT_HPP */
