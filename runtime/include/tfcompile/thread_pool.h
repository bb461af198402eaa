// A small thread pool for compiled computations.
//
//   tfcompile::ThreadPool pool(4);                 // 4 workers: the calling thread and 3 more
//   computation.set_thread_pool(&pool);            // the pool must outlive its use
//
// Waiting threads spin briefly, since the next piece of work of a run usually comes within
// microseconds, and then sleep. Threads of a program may share one pool: while one run uses it,
// other runs use only their own threads.

#ifndef TFCOMPILE_THREAD_POOL_H_
#define TFCOMPILE_THREAD_POOL_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "tfcompile/frame.h"

namespace tfcompile {
inline namespace tfcompile_v1 {

class ThreadPool {
 public:
  // Creates one worker per processor if num_workers < 1. If the system refuses to start a thread,
  // the pool consists of those that it started; see num_workers().
  explicit ThreadPool(int num_workers = 0) {
    const int available = static_cast<int>(::std::thread::hardware_concurrency());
    if (num_workers < 1) num_workers = available > 0 ? available : 1;
    shares_ = ::std::vector<Share>(static_cast<::std::size_t>(num_workers));
    // With more threads than processors, spinning would delay the thread that has work.
    spins_ = available >= num_workers;
    threads_.reserve(static_cast<::std::size_t>(num_workers - 1));
    for (int worker = 1; worker < num_workers && Start(worker);) ++worker;
  }

  ~ThreadPool() {
    {
      const ::std::lock_guard<::std::mutex> lock(mutex_);
      stop_.store(true);
    }
    wake_.notify_all();
    for (::std::thread& thread : threads_) thread.join();
  }

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Number of workers, including the calling thread.
  int num_workers() const { return static_cast<int>(threads_.size()) + 1; }

  // Processes items [0, count); see tfcompile_parallel_for.
  ::std::int32_t ParallelFor(::std::int64_t count, ::tfcompile_parallel_body body, void* data) {
    if (count <= 0) return 0;
    if (count == 1 || threads_.empty() || busy_.test_and_set(::std::memory_order_acquire)) {
      return body(data, 0, count, 0);
    }
    const Job job = Offer(body, data, count);
    ::std::uint64_t done = 0;
    TakeShare(job, 0, 0, &done);
    if (!AwaitOthers(job, done, kPatience)) {
      Help(job, 0, &done);
      AwaitOthers(job, done, -1);
    }
    const ::std::int32_t error = error_.load(::std::memory_order_relaxed);
    if (error != 0) error_.store(0, ::std::memory_order_relaxed);
    busy_.clear(::std::memory_order_release);
    return error;
  }

  // Callback for a frame. `pool` is a ThreadPool.
  static ::std::int32_t Callback(void* pool, ::std::int64_t count, ::tfcompile_parallel_body body, void* data) {
    return static_cast<ThreadPool*>(pool)->ParallelFor(count, body, data);
  }

 private:
  // Returns false if the system refuses to start another thread. Without exceptions, that ends the
  // process.
  bool Start(int worker) {
#ifdef __cpp_exceptions
    try {
#endif
      threads_.emplace_back(&ThreadPool::Work, this, worker);
      return true;
#ifdef __cpp_exceptions
    } catch (const ::std::system_error&) {
      return false;
    }
#endif
  }

  // Time that a thread spins for work before it sleeps.
  static constexpr ::std::int64_t kSpinMicroseconds = 200;
  // Number of checks for completion before the caller yields its processor.
  static constexpr int kLooks = 1000;
  // Number of checks for completion of the others' shares before a finished worker helps them. This
  // takes a few microseconds. Workers of a balanced job finish within a shorter time of each other,
  // and looking at another worker's counter would only delay that worker.
  static constexpr int kPatience = 64;
  // Number of chunks per share, so that workers that finish early can help.
  static constexpr ::std::int64_t kChunks = 8;
  // Bits of a chunk counter. The higher bits hold the number of its job.
  static constexpr int kCounterBits = 16;
  static constexpr ::std::uint64_t kCounterMask = (::std::uint64_t{1} << kCounterBits) - 1;

  // A job, and its division into fixed shares of items, one per participating worker.
  struct Job {
    Job(::std::uint64_t number, ::tfcompile_parallel_body body, void* data, ::std::int64_t count, ::std::int64_t pool)
        : number(number), body(body), data(data), count(count) {
      // The number of workers depends on the work: each gets at least two items.
      workers = (count + 1) / 2 < pool ? (count + 1) / 2 : pool;
      if (workers < 2) workers = 2;
      chunk = (count + workers * kChunks - 1) / (workers * kChunks);
    }
    // First item of a share. For the share after the last, the number of items.
    ::std::int64_t First(::std::int64_t worker) const {
      const ::std::int64_t more = count % workers;
      return count / workers * worker + (worker < more ? worker : more);
    }
    // Number of chunks of a share.
    ::std::uint64_t Chunks(::std::int64_t worker) const {
      return static_cast<::std::uint64_t>((First(worker + 1) - First(worker) + chunk - 1) / chunk);
    }
    // First item of a chunk, which is also the end of the preceding chunk.
    ::std::int64_t Begin(::std::int64_t worker, ::std::uint64_t number_of_chunk) const {
      const ::std::int64_t begin = First(worker) + static_cast<::std::int64_t>(number_of_chunk) * chunk;
      return begin < First(worker + 1) ? begin : First(worker + 1);
    }

    ::std::uint64_t number;
    ::tfcompile_parallel_body body;
    void* data;
    ::std::int64_t count;
    ::std::int64_t workers;
    ::std::int64_t chunk;
  };

  // Each worker begins with its own items, which are the same whenever `count` is the same: results
  // of one loop are still in its caches when the next loop reads them. Then it helps the others.
  // Fields of different writers are two cache lines apart: processors fetch lines in pairs.
  struct alignas(128) Share {
    // Number of claimed chunks of the share in the job whose number is in the higher bits; zero for
    // later jobs. A job ends when all its chunks are done. Threads that come later find nothing to
    // claim, so no thread waits for them.
    ::std::atomic<::std::uint64_t> taken{0};
    // Number of chunks of all shares that the worker has done in the job whose number is in the
    // higher bits.
    alignas(128)::std::atomic<::std::uint64_t> done{0};
  };

  // Publishes a job. The number is odd while the other fields are being written, so that concurrent
  // readers notice. Each store is ordered before the following ones.
  Job Offer(::tfcompile_parallel_body body, void* data, ::std::int64_t count) {
    const ::std::uint64_t number = number_.load(::std::memory_order_relaxed) + 2;
    number_.store(number - 1, ::std::memory_order_relaxed);
    body_.store(body, ::std::memory_order_release);
    data_.store(data, ::std::memory_order_release);
    count_.store(count, ::std::memory_order_release);
    number_.store(number, ::std::memory_order_release);
    // A thread that falls asleep at this moment is not notified. The work is done without it.
    if (sleepers_.load(::std::memory_order_relaxed) > 0) {
      // Without the lock, the notification could fall between a sleeper's check of the number and
      // its wait.
      { const ::std::lock_guard<::std::mutex> lock(mutex_); }
      wake_.notify_all();
    }
    return Job(number, body, data, count, num_workers());
  }

  // Processes the remaining chunks of a share and counts them.
  void TakeShare(const Job& job, int worker, ::std::int64_t owner, ::std::uint64_t* done) {
    Share& share = shares_[static_cast<::std::size_t>(owner)];
    const ::std::uint64_t chunks = job.Chunks(owner);
    const ::std::uint64_t before = *done;
    for (::std::uint64_t chunk = 0; const ::std::uint64_t count = Take(share, job.number, chunks, &chunk);) {
      DoChunks(job, job.Begin(owner, chunk), job.Begin(owner, chunk + count), worker);
      *done += count;
    }
    if (*done != before) {
      shares_[static_cast<::std::size_t>(worker)].done.store(job.number << kCounterBits | *done,
                                                            ::std::memory_order_release);
    }
  }

  // Processes the remaining chunks of the others' shares.
  void Help(const Job& job, int worker, ::std::uint64_t* done) {
    for (::std::int64_t i = 1; i < job.workers; ++i) {
      const ::std::int64_t owner = worker + i < job.workers ? worker + i : worker + i - job.workers;
      TakeShare(job, worker, owner, done);
    }
  }

  // Claims half of the chunks of a share that are left, at least one. Returns their number and the
  // first of them, or zero if none is left.
  static ::std::uint64_t Take(Share& share, ::std::uint64_t job, ::std::uint64_t chunks, ::std::uint64_t* chunk) {
    ::std::uint64_t taken = share.taken.load(::std::memory_order_relaxed);
    ::std::uint64_t count = 0;
    do {
      const ::std::uint64_t of = taken >> kCounterBits;
      *chunk = of < job ? 0 : taken & kCounterMask;
      if (of > job || *chunk >= chunks) return 0;
      count = (chunks - *chunk + 1) / 2;
    } while (!share.taken.compare_exchange_weak(taken, (job << kCounterBits) + *chunk + count,
                                                ::std::memory_order_relaxed));
    return count;
  }

  void DoChunks(const Job& job, ::std::int64_t begin, ::std::int64_t end, int worker) {
    if (error_.load(::std::memory_order_relaxed) != 0) return;
    const ::std::int32_t error = job.body(job.data, begin, end, worker);
    ::std::int32_t none = 0;
    if (error != 0) error_.compare_exchange_strong(none, error, ::std::memory_order_relaxed);
  }

  // Returns true if the others have done all chunks except `done`. Returns false after `looks`
  // checks; waits indefinitely if `looks` is negative.
  bool AwaitOthers(const Job& job, ::std::uint64_t done, int looks) {
    ::std::uint64_t all = 0;
    for (::std::int64_t worker = 0; worker < job.workers; ++worker) all += job.Chunks(worker);
    for (int look = 0; done < all;) {
      ::std::uint64_t sum = done;
      for (::std::int64_t worker = 1; worker < job.workers; ++worker) {
        const ::std::uint64_t of = shares_[static_cast<::std::size_t>(worker)].done.load(::std::memory_order_acquire);
        if (of >> kCounterBits == job.number) sum += of & kCounterMask;
      }
      if (sum >= all) break;
      if (look == looks) return false;
      if (look < kLooks) ++look;
      if (spins_ && look < kLooks) {
        Pause();
      } else {
        ::std::this_thread::yield();
      }
    }
    return true;
  }

  void Work(int worker) {
    ::std::uint64_t seen = 0;
    while (AwaitJobAfter(seen)) {
      const ::std::uint64_t number = number_.load(::std::memory_order_acquire);
      const ::tfcompile_parallel_body body = body_.load(::std::memory_order_acquire);
      void* const data = data_.load(::std::memory_order_acquire);
      const ::std::int64_t count = count_.load(::std::memory_order_acquire);
      // Written during the read: retry.
      if (number % 2 != 0 || number_.load(::std::memory_order_relaxed) != number) continue;
      seen = number;
      const Job job(number, body, data, count, num_workers());
      if (worker >= job.workers) continue;
      ::std::uint64_t done = 0;
      TakeShare(job, worker, worker, &done);
      for (int look = 0; look < kPatience && number_.load(::std::memory_order_relaxed) == number; ++look) Pause();
      if (number_.load(::std::memory_order_relaxed) == number) Help(job, worker, &done);
    }
  }

  // Returns false at shutdown.
  bool AwaitJobAfter(::std::uint64_t seen) {
    if (spins_ && SpinAfter(seen)) return true;
    ::std::unique_lock<::std::mutex> lock(mutex_);
    sleepers_.fetch_add(1);
    while (number_.load() == seen && !stop_.load()) wake_.wait(lock);
    sleepers_.fetch_sub(1);
    return !stop_.load();
  }

  // Returns true if a job arrived in time.
  bool SpinAfter(::std::uint64_t seen) {
    ::std::chrono::steady_clock::time_point start;
    for (int round = 0;; ++round) {
      for (int spin = 0; spin < 64; ++spin) {
        const ::std::uint64_t number = number_.load(::std::memory_order_acquire);
        if (number != seen && number % 2 == 0) return true;
        Pause();
      }
      const ::std::chrono::steady_clock::time_point now = ::std::chrono::steady_clock::now();
      if (round == 0) start = now;
      if (now - start > ::std::chrono::microseconds(kSpinMicroseconds) || stop_.load()) return false;
    }
  }

  static void Pause() {
#if defined(__x86_64__) || defined(__i386__)
    __asm__ __volatile__("pause");
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
  }

  // The current job. Written by the caller that holds `busy_`.
  alignas(128)::std::atomic<::std::uint64_t> number_{0};
  ::std::atomic<::tfcompile_parallel_body> body_{nullptr};
  ::std::atomic<void*> data_{nullptr};
  ::std::atomic<::std::int64_t> count_{0};

  // Set while a caller uses the threads. Each job writes it; the members after it change rarely.
  alignas(128)::std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  alignas(128)::std::atomic<::std::int32_t> error_{0};
  ::std::atomic<int> sleepers_{0};
  ::std::atomic<bool> stop_{false};
  bool spins_ = false;
  ::std::vector<Share> shares_;
  ::std::mutex mutex_;
  ::std::condition_variable wake_;
  ::std::vector<::std::thread> threads_;
};

// Makes a computation run on the pool. Null selects the calling thread.
template <class Computation>
void SetThreadPool(Computation& computation, ThreadPool* pool) {
  if (pool == nullptr) {
    computation.set_parallel_for(nullptr, nullptr, 1);
  } else {
    computation.set_parallel_for(&ThreadPool::Callback, pool, pool->num_workers());
  }
}

}  // namespace tfcompile_v1
}  // namespace tfcompile

#endif  // TFCOMPILE_THREAD_POOL_H_
