// What stream and event handles point to, and how a handle given by a program becomes a stream.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "softgpu/device/shared_events.h"
#include "softgpu/driver/context/context.h"
#include "softgpu/driver/context/green_streams.h"
#include "softgpu/driver/handle.h"
#include "softgpu/mutex.h"

namespace softgpu {
struct CapturedRecord;  // the recorder's (capture.h)

}  // namespace softgpu

struct CUstream_st {
  static constexpr std::uint32_t kMagic = 0x7374726D;  // "strm"
  std::atomic<std::uint32_t> magic{0};
  CUcontext context = nullptr;
  std::uint64_t context_id = 0;
  std::shared_ptr<softgpu::Stream> stream;
  // Of a stream of a green context, which is one of the primary context whose kernels are on fewer SMs; else null.
  std::shared_ptr<softgpu::GreenStreams> green;
};

struct CUevent_st {
  static constexpr std::uint32_t kMagic = 0x65766E74;  // "evnt"
  // One recording; the operation that completes it and the handle share it.
  struct Record {
    softgpu::Point point;
    std::atomic<std::uint64_t> time_ns{0};
  };
  std::atomic<std::uint32_t> magic{0};
  unsigned flags = 0;
  CUcontext context = nullptr;
  std::optional<softgpu::SharedEvents::Name> shared;  // of an event that other processes may open; fixed when made
  softgpu::Mutex mutex;
  std::shared_ptr<Record> record SOFTGPU_GUARDED_BY(mutex);                     // null until recorded
  std::shared_ptr<softgpu::CapturedRecord> captured SOFTGPU_GUARDED_BY(mutex);  // set when last recorded in a capture

  std::shared_ptr<Record> last_record() {
    const softgpu::LockGuard guard(mutex);
    return record;
  }
};

namespace softgpu {

using Streams = HandlePool<CUstream_st>;
using Events = HandlePool<CUevent_st>;

struct StreamUse {
  CUcontext context = nullptr;
  std::shared_ptr<Stream> stream;
  bool capturing = false;                      // set by capturable_stream()
  std::uint64_t most_sms = ~std::uint64_t{0};  // of a green context's stream
  const GreenStreams* green = nullptr;         // of such a stream, while its handle is there
};

// The stream a handle names, which may be one of the default streams of the current context, and its context. Errors:
// INVALID_HANDLE, STREAM_DETACHED, those of current_context(). Does not look at the context's fault.
CUresult resolve_stream(CUstream handle, StreamUse& use);
// The same, for work that cannot be captured: also the context's fault, and an error when the stream is being captured
// (STREAM_CAPTURE_UNSUPPORTED) or is the legacy stream beside one that is (STREAM_CAPTURE_IMPLICIT).
CUresult healthy_stream(CUstream handle, StreamUse& use);
// The same, for work that can be captured: `use.capturing` says that it must be, to the recorder (capture.h).
CUresult capturable_stream(CUstream handle, StreamUse& use);
// healthy_context(), for calls that are not ordered by a stream and would be missing from a capture's graph:
// STREAM_CAPTURE_UNSUPPORTED where cuThreadExchangeStreamCaptureMode() says so.
CUresult uncaptured_context(CUcontext& context);

// While it lives, the null stream of the calling thread is its per-thread default stream: the _ptsz and _ptds entry
// points.
class PerThreadDefault {
 public:
  PerThreadDefault();
  ~PerThreadDefault();
  PerThreadDefault(const PerThreadDefault&) = delete;
  PerThreadDefault& operator=(const PerThreadDefault&) = delete;
};

}  // namespace softgpu
