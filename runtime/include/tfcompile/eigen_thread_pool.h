// Runs a compiled computation on an Eigen thread pool.
//
//   #define EIGEN_USE_THREADS
//   #include <unsupported/Eigen/CXX11/Tensor>
//   #include "tfcompile/eigen_thread_pool.h"
//
//   Eigen::ThreadPool pool(4);
//   Eigen::ThreadPoolDevice device(&pool, pool.NumThreads());
//   computation.set_thread_pool(&device);  // the device must outlive its use
//
// Everything is a template over the device's type, so this header needs no Eigen header. If Eigen's
// ThreadPoolDevice is included before this header, set_thread_pool() of every computation uses it.
// tfcompile::SetThreadPool() accepts any such device.

#ifndef TFCOMPILE_EIGEN_THREAD_POOL_H_
#define TFCOMPILE_EIGEN_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "tfcompile/frame.h"
#include "tfcompile/xla_compiled_cpu_function.h"

namespace tfcompile {
inline namespace tfcompile_v1 {

// Work in progress. Pool threads that start after the work is done find no items and access only
// this object. A pool that is busy elsewhere, even with the caller itself, therefore causes no
// delay.
class EigenParallelWork {
 public:
  EigenParallelWork(::std::int64_t count, ::std::int64_t workers, ::tfcompile_parallel_body body, void* data)
      : count_(count), chunk_(count / (8 * workers) + 1), body_(body), data_(data) {}

  void TakeChunks(::std::int64_t worker) {
    for (;;) {
      const ::std::int64_t begin = next_.fetch_add(chunk_, ::std::memory_order_relaxed);
      if (begin >= count_) return;
      const ::std::int64_t end = count_ - begin < chunk_ ? count_ : begin + chunk_;
      // After an error, the remaining items are only counted.
      if (error_.load(::std::memory_order_relaxed) == 0) {
        const ::std::int32_t error = body_(data_, begin, end, worker);
        ::std::int32_t none = 0;
        if (error != 0) error_.compare_exchange_strong(none, error, ::std::memory_order_relaxed);
      }
      done_.fetch_add(end - begin, ::std::memory_order_acq_rel);
    }
  }

  ::std::int32_t Await() const {
    while (done_.load(::std::memory_order_acquire) != count_) ::std::this_thread::yield();
    return error_.load(::std::memory_order_relaxed);
  }

 private:
  const ::std::int64_t count_;
  const ::std::int64_t chunk_;
  const ::tfcompile_parallel_body body_;
  void* const data_;
  ::std::atomic<::std::int64_t> next_{0};
  ::std::atomic<::std::int64_t> done_{0};
  ::std::atomic<::std::int32_t> error_{0};
};

// A tfcompile_parallel_for whose context is a `const Device`: an Eigen::ThreadPoolDevice, or a
// class with numThreads() and enqueueNoNotification(). The calling thread is worker 0.
template <class Device>
::std::int32_t EigenParallelFor(void* context, ::std::int64_t count, ::tfcompile_parallel_body body, void* data) {
  const Device* const device = static_cast<const Device*>(context);
  const ::std::int64_t workers = static_cast<::std::int64_t>(device->numThreads()) + 1;
  if (count <= 0) return 0;
  if (count == 1 || workers == 1) return body(data, 0, count, 0);
  const auto work = ::std::make_shared<EigenParallelWork>(count, workers, body, data);
  for (::std::int64_t worker = 1; worker < workers && worker < count; ++worker) {
    device->enqueueNoNotification([work, worker] { work->TakeChunks(worker); });
  }
  work->TakeChunks(0);
  return work->Await();
}

// Makes a computation run on the device's pool. Null selects the calling thread.
template <class Computation, class Device>
void SetThreadPool(Computation& computation, const Device* device) {
  if (device == nullptr) {
    computation.set_parallel_for(nullptr, nullptr, 1);
  } else {
    computation.set_parallel_for(&EigenParallelFor<Device>, const_cast<Device*>(device),
                                 static_cast<::std::int64_t>(device->numThreads()) + 1);
  }
}

#if defined(EIGEN_USE_THREADS) && defined(EIGEN_CXX11_TENSOR_TENSOR_DEVICE_THREAD_POOL_H)
inline bool UseEigenPools() {
  ::tensorflow::XlaCompiledCpuFunction::eigen_pool_user() =
      &SetThreadPool<::tensorflow::XlaCompiledCpuFunction, ::Eigen::ThreadPoolDevice>;
  return true;
}
inline const bool kUsesEigenPools = UseEigenPools();
#endif

}  // namespace tfcompile_v1
}  // namespace tfcompile

#endif  // TFCOMPILE_EIGEN_THREAD_POOL_H_
