// Loops whose turns run on XLA's own threads, beside the thread that waits for them.
#ifndef PHLOX_KERNELS_PARALLEL_H_
#define PHLOX_KERNELS_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "xla/ffi/api/ffi.h"

namespace phlox_kernels {

class Threads {
 public:
  // Fewer than `worth` of all `elements` are not worth waking a thread, which takes some 20 microseconds.
  Threads(xla::ffi::ThreadPool& pool, size_t elements, size_t worth)
      : pool_(pool),
        count_(std::min({size_t(std::max<int64_t>(pool.num_threads(), 1)), processors(), 1 + elements / worth})) {}

  size_t count() const { return count_; }

  // turn(0) ... turn(count - 1), each once. The caller takes turns until none is left, and then waits for those that
  // have begun elsewhere only: programs cannot block each other, however busy the threads are.
  // Throws std::bad_alloc if a turn did.
  template <typename Turn>
  void run(size_t count, const Turn& turn) {
    run_turns(count, [](const void* turn, size_t i) { (*static_cast<const Turn*>(turn))(i); }, &turn);
  }

 private:
  // XLA has as many threads as devices, which may be more than there are processors. To wake one takes 5 microseconds.
  static size_t processors() {
    static const size_t count = std::max(1u, std::thread::hardware_concurrency());
    return count;
  }

  // Compiled once, for turns of all types.
  void run_turns(size_t count, void (*call)(const void* turn, size_t i), const void* turn) {
    size_t helpers = std::min(count_, count) - (count > 0);
    if (helpers == 0) {
      for (size_t i = 0; i < count; ++i) call(turn, i);
      return;
    }
    struct State {
      std::atomic<size_t> next{0}, done{0};
      std::atomic<bool> failed{false};
      std::mutex mutex;
      std::condition_variable finished;
    };
    // Helpers that start late find no turn left; `turn` is gone by then, and only the state is looked at.
    auto state = std::make_shared<State>();
    auto work = [state, count, call, turn] {
      for (size_t i; (i = state->next.fetch_add(1)) < count;) {
        try {
          call(turn, i);
        } catch (const std::bad_alloc&) {
          state->failed = true;
        }
        if (state->done.fetch_add(1) + 1 == count) {
          std::lock_guard<std::mutex> lock(state->mutex);
          state->finished.notify_all();
        }
      }
    };
    for (size_t i = 0; i < helpers; ++i) pool_.Schedule([work] { work(); });
    work();
    std::unique_lock<std::mutex> lock(state->mutex);
    state->finished.wait(lock, [&] { return state->done == count; });
    if (state->failed) throw std::bad_alloc();
  }

  xla::ffi::ThreadPool& pool_;
  size_t count_;
};

}  // namespace phlox_kernels

#endif  // PHLOX_KERNELS_PARALLEL_H_
