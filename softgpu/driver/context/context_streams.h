// The streams of a context and the order between them: what the legacy stream's rule demands, and calls that concern all.
//
// CUDA's rule: the legacy stream waits for all blocking streams, and each of them for it. Example: A is blocking, B is not.
// A kernel on A, then one on the legacy stream, then one on A and one on B: the second waits for the first, the third for
// the second, the fourth for nobody.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "softgpu/driver/context/stream.h"
#include "softgpu/mutex.h"

namespace softgpu {

// Thread-safe.
class ContextStreams {
 public:
  ContextStreams();

  // Of all activations of the context: other threads may be in the midst of a call.
  const std::shared_ptr<Stream>& legacy() const { return legacy_; }
  std::shared_ptr<Stream> make(Stream::Kind kind, int priority);
  void close(const std::shared_ptr<Stream>& stream);
  // The context is activated, and ends.
  void reopen() { legacy_->reopen(); }
  void close_all();

  // Appends `run` to the stream, after what the rules of the legacy stream demand and after `after`.
  Point submit(Stream& stream, std::function<void()> run, std::vector<Point> after = {});
  // Whether everything submitted to the stream has completed; for the legacy stream, to all blocking ones.
  bool idle(const Stream& stream);
  // Whether nothing is pending on any stream.
  bool idle() const { return pending_.load(std::memory_order_acquire) == 0; }
  // Waits for everything submitted so far; may run some of it on the calling thread.
  void wait_helping();

  // Queues `run` behind everything submitted so far, and makes everything submitted later wait for `point`.
  Point submit_after_all(std::function<void()> run);
  void hold_all(const Point& point);

 private:
  std::vector<Point> legacy_order(const Stream& stream) SOFTGPU_REQUIRES(mutex_);
  // The last operation of every stream that has been made.
  std::vector<Point> last_of_all() SOFTGPU_REQUIRES(mutex_);

  std::atomic<std::uint64_t> pending_{0};
  const std::shared_ptr<Stream> legacy_;
  Mutex mutex_;  // also of the order of submissions
  std::vector<std::shared_ptr<Stream>> streams_ SOFTGPU_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Stream>> closed_ SOFTGPU_GUARDED_BY(mutex_);  // destroyed by the program with work left
  std::uint64_t next_ SOFTGPU_GUARDED_BY(mutex_) = 1;
  std::shared_ptr<Stream> join_ SOFTGPU_GUARDED_BY(mutex_);  // executes submit_after_all(); made when first needed
};

}  // namespace softgpu
