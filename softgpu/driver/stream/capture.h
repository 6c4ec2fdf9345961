// What streams and all who submit to them know of capture: operations are handed to a recorder instead of being executed.
//
// Every entry point that takes a stream asks, through capturable_stream() or healthy_stream(), whether the stream is being
// captured. What can be captured is described to the recorder; everything else is refused, and by CUDA's rule what is
// refused invalidates the capture. The recorder makes graphs (graph/capture.cc) and comes with the first capture of the
// process. Before that, asking is one load.
//
// All functions are thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "softgpu/driver/stream/stream_handle.h"

namespace softgpu {

struct KernelLaunch;

class CaptureRecorder {
 public:
  CaptureRecorder() = default;
  virtual ~CaptureRecorder() = default;
  CaptureRecorder(const CaptureRecorder&) = delete;
  CaptureRecorder& operator=(const CaptureRecorder&) = delete;

  // Sets use.capturing. STREAM_CAPTURE_INVALIDATED when the stream's capture is over but not ended;
  // STREAM_CAPTURE_IMPLICIT, which invalidates, for the legacy stream while a blocking stream of the context is captured.
  virtual CUresult find(StreamUse& use) = 0;
  // Each refuses by invalidating; refuse_capturing() and the three below say when.
  virtual CUresult refuse_capturing(const StreamUse& use) = 0;
  virtual CUresult refuse_unsafe_call() = 0;
  virtual CUresult refuse_synchronising(CUcontext context) = 0;
  virtual CUresult refuse_captured(CUevent event) = 0;

  // The operation becomes a node of the stream's graph. REQUIRES for all of them: use.capturing.
  virtual CUresult launch(const StreamUse& use, KernelLaunch kernel) = 0;
  virtual CUresult copy(const StreamUse& use, const CUDA_MEMCPY3D& shape) = 0;
  virtual CUresult fill(const StreamUse& use, const CUDA_MEMSET_NODE_PARAMS_v2& fill) = 0;
  virtual CUresult call_host(const StreamUse& use, const CUDA_HOST_NODE_PARAMS& call) = 0;
  virtual CUresult memory_operations(const StreamUse& use, std::vector<CUstreamBatchMemOpParams> operations,
                                     unsigned flags) = 0;
  virtual CUresult allocate(const StreamUse& use, std::uint64_t bytes, CUdeviceptr& address) = 0;
  virtual CUresult free(const StreamUse& use, CUdeviceptr address) = 0;
  // Record and wait as the graph's own operations (CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL).
  virtual CUresult record_external(const StreamUse& use, CUevent event) = 0;
  virtual CUresult wait_external(const StreamUse& use, CUevent event) = 0;

  // The event stands for what has been captured on the stream. REQUIRES: use.capturing.
  virtual CUresult record(const StreamUse& use, CUevent event) = 0;
  // Waiting for an event when the event or the stream is captured; `captured` says whether it was so. Errors:
  // STREAM_CAPTURE_ISOLATION (the event is not of the capture), _MERGE (of another), _IMPLICIT (the legacy stream).
  virtual CUresult wait(const StreamUse& use, CUevent event, bool& captured) = 0;

  // The stream is destroyed: a capture that it takes part in is invalidated.
  virtual void abandon_stream(const Stream& stream) = 0;
};

// Null until the first capture of the process begins; the same one ever after.
CaptureRecorder* capture_recorder();
// The recorder of a stream that is being captured. REQUIRES: `use.capturing`, which only a recorder sets.
inline CaptureRecorder& recorder_of(const StreamUse& /*capturing*/) {
  return *capture_recorder();
}
// To be called before a capture begins, with a recorder that lives as long as the process.
void set_capture_recorder(CaptureRecorder& recorder);

// For work that cannot be captured: STREAM_CAPTURE_UNSUPPORTED, which invalidates, or _IMPLICIT as find() has it.
CUresult refuse_capturing(const StreamUse& use);
// For calls that a graph would miss: STREAM_CAPTURE_UNSUPPORTED, which invalidates, as the thread's mode says.
CUresult refuse_unsafe_call();
// For waiting for all of a context: the same while any of its streams is captured.
CUresult refuse_synchronising(CUcontext context);
// For asking about an event: CAPTURED_EVENT, which invalidates, when it was last recorded in a capture.
CUresult refuse_captured(CUevent event);

}  // namespace softgpu
