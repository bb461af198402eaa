// A small thread pool for compiled computations.
//
//   tfcompile::ThreadPool pool(4);                 // 4 workers: the calling thread and 3 more
//   computation.set_thread_pool(&pool);            // the pool must outlive its use
//
// Waiting threads spin for a moment, since the next piece of work of a run mostly comes within microseconds, and then
// sleep. A program whose threads share one pool is fine: while one run uses it, the others run on their own threads.

#ifndef TFCOMPILE_THREAD_POOL_H_
#define TFCOMPILE_THREAD_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "tfcompile/frame.h"

namespace tfcompile {
inline namespace tfcompile_v1 {

class ThreadPool {
 public:
  // As many workers as the machine has, for num_workers < 1.
  explicit ThreadPool(int num_workers = 0) {
    const int available = static_cast<int>(::std::thread::hardware_concurrency());
    if (num_workers < 1) num_workers = available > 0 ? available : 1;
    shares_ = ::std::vector<Share>(static_cast<::std::size_t>(num_workers));
    // Spinning with more threads than processors keeps the one that has the work from running.
    spins_ = available >= num_workers ? 4000 : 0;
    threads_.reserve(static_cast<::std::size_t>(num_workers - 1));
    for (int worker = 1; worker < num_workers; ++worker) threads_.emplace_back(&ThreadPool::Work, this, worker);
  }

  ~ThreadPool() {
    stop_.store(true);
    epoch_.fetch_add(1);
    WakeSleepers();
    for (::std::thread& thread : threads_) thread.join();
  }

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The calling thread included.
  int num_workers() const { return static_cast<int>(threads_.size()) + 1; }

  // Does items [0, count); see tfcompile_parallel_for.
  ::std::int32_t ParallelFor(::std::int64_t count, ::tfcompile_parallel_body body, void* data) {
    if (count <= 0) return 0;
    if (count == 1 || threads_.empty() || busy_.test_and_set(::std::memory_order_acquire)) {
      return body(data, 0, count, 0);
    }
    body_ = body;
    data_ = data;
    chunk_ = count / (8 * num_workers()) + 1;
    ::std::int64_t end = 0;
    for (::std::size_t worker = 0; worker < shares_.size(); ++worker) {
      shares_[worker].next.store(end, ::std::memory_order_relaxed);
      end += (count - end) / static_cast<::std::int64_t>(shares_.size() - worker);
      shares_[worker].end = end;
    }
    error_.store(0, ::std::memory_order_relaxed);
    entered_.store(kOpen, ::std::memory_order_release);
    epoch_.fetch_add(1);
    WakeSleepers();
    TakeChunks(0);
    // Whoever comes too late finds the work closed; whoever has entered is waited for.
    entered_.fetch_and(~kOpen, ::std::memory_order_acq_rel);
    for (int spin = 0; entered_.load(::std::memory_order_acquire) != 0;) {
      if (++spin > spins_) ::std::this_thread::yield();
    }
    const ::std::int32_t error = error_.load(::std::memory_order_relaxed);
    busy_.clear(::std::memory_order_release);
    return error;
  }

  // What a frame calls: `pool` is a ThreadPool.
  static ::std::int32_t Callback(void* pool, ::std::int64_t count, ::tfcompile_parallel_body body, void* data) {
    return static_cast<ThreadPool*>(pool)->ParallelFor(count, body, data);
  }

 private:
  // Low bit of entered_: workers may still enter. The rest counts those inside, times two.
  static constexpr ::std::uint32_t kOpen = 1;

  // Each worker begins with items of its own, the same ones whenever the number is the same: what it computed in one
  // loop is in its caches when the next one reads it. Then it helps the others.
  struct alignas(64) Share {
    ::std::atomic<::std::int64_t> next{0};
    ::std::int64_t end = 0;
  };

  void TakeChunks(int worker) {
    const ::std::size_t workers = shares_.size();
    for (::std::size_t i = 0; i < workers; ++i) {
      TakeChunksOf(shares_[(static_cast<::std::size_t>(worker) + i) % workers], worker);
    }
  }

  void TakeChunksOf(Share& share, int worker) {
    for (;;) {
      const ::std::int64_t begin = share.next.fetch_add(chunk_, ::std::memory_order_relaxed);
      if (begin >= share.end || error_.load(::std::memory_order_relaxed) != 0) return;
      const ::std::int64_t end = share.end - begin < chunk_ ? share.end : begin + chunk_;
      const ::std::int32_t error = body_(data_, begin, end, worker);
      if (error == 0) continue;
      ::std::int32_t none = 0;
      error_.compare_exchange_strong(none, error, ::std::memory_order_relaxed);
    }
  }

  bool Enter() {
    ::std::uint32_t entered = entered_.load(::std::memory_order_relaxed);
    while ((entered & kOpen) != 0) {
      if (entered_.compare_exchange_weak(entered, entered + 2, ::std::memory_order_acq_rel)) return true;
    }
    return false;
  }

  void Work(int worker) {
    ::std::uint64_t seen = 0;
    for (;;) {
      seen = AwaitEpochAfter(seen);
      if (stop_.load()) return;
      if (!Enter()) continue;
      TakeChunks(worker);
      entered_.fetch_sub(2, ::std::memory_order_acq_rel);
    }
  }

  ::std::uint64_t AwaitEpochAfter(::std::uint64_t seen) {
    for (int spin = 0; spin < spins_; ++spin) {
      const ::std::uint64_t epoch = epoch_.load(::std::memory_order_acquire);
      if (epoch != seen) return epoch;
      Pause();
    }
    ::std::unique_lock<::std::mutex> lock(mutex_);
    // Sequentially consistent with the other side, which first counts up the epoch and then looks for sleepers: one
    // of the two sees the other.
    sleepers_.fetch_add(1);
    while (epoch_.load() == seen) wake_.wait(lock);
    sleepers_.fetch_sub(1);
    return epoch_.load();
  }

  void WakeSleepers() {
    if (sleepers_.load() == 0) return;
    // Without the lock the notice could fall between a sleeper's look at the epoch and its wait.
    { const ::std::lock_guard<::std::mutex> lock(mutex_); }
    wake_.notify_all();
  }

  static void Pause() {
#if defined(__x86_64__) || defined(__i386__)
    __asm__ __volatile__("pause");
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
  }

  // The work at hand; written only while nobody is inside.
  ::tfcompile_parallel_body body_ = nullptr;
  void* data_ = nullptr;
  ::std::int64_t chunk_ = 1;
  ::std::vector<Share> shares_;
  ::std::atomic<::std::int32_t> error_{0};

  ::std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  ::std::atomic<::std::uint32_t> entered_{0};
  ::std::atomic<::std::uint64_t> epoch_{0};
  ::std::atomic<int> sleepers_{0};
  ::std::atomic<bool> stop_{false};
  ::std::mutex mutex_;
  ::std::condition_variable wake_;
  int spins_ = 0;
  ::std::vector<::std::thread> threads_;
};

// Makes a computation share its work out to the pool; null: back to the calling thread.
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
