// A list of the streams whose capture began here. Whether one still captures is asked of the driver, which may have ended
// a capture on its own (an error, the stream destroyed, ended through a stream that was joined).
#include "shim/capture.h"

#include <atomic>

#include "shim/driver.h"
#include "shim/gate.h"
#include "shim/lock.h"

namespace fairlead::shim {
namespace {

constexpr int kMostCaptures = 64;  // at once; more are not followed, and counted as passed through

constinit Lock lock;
constinit CUstream streams[kMostCaptures] FL_GUARDED_BY(lock);  // the first `count`
constinit std::atomic<int> count{0};                            // changed under lock

bool still_captures(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return FAIRLEAD_REAL(cuStreamIsCapturing)(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void remove_at(int index) FL_REQUIRES(lock) {
  const int last = count.load() - 1;
  streams[index] = streams[last];
  count.store(last);
}

}  // namespace

bool capturing() {
  if (count.load(std::memory_order_relaxed) == 0) return false;
  const Bypass own_work;
  const Guard guard(lock);
  for (int i = count.load() - 1; i >= 0; --i) {
    if (!still_captures(streams[i])) remove_at(i);
  }
  return count.load() != 0;
}

void capture_began(CUstream stream) {
  const Guard guard(lock);
  const int index = count.load();
  if (index == kMostCaptures) return count_passed_through();
  streams[index] = stream;
  count.store(index + 1);
}

void capture_ended(CUstream stream) {
  const Guard guard(lock);
  for (int i = 0; i < count.load(); ++i) {
    if (streams[i] == stream) return remove_at(i);
  }
}

void forget_captures() {
  lock.reset();
  count.store(0);
}

}  // namespace fairlead::shim
