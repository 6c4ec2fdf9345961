// Stream capture: operations on streams become nodes of a graph instead of being executed.
//
// Every entry point that takes a stream asks, through capturable_stream() or healthy_stream(), whether the stream is being
// captured. What can be captured hands its description to capture_operation(); everything else is refused, and by CUDA's
// rule what is refused invalidates the capture. While no capture is going on in the process, asking is one load.
//
// All functions are thread-safe.
#pragma once

#include "softgpu/driver/graph/capture_state.h"
#include "softgpu/driver/graph/payload.h"
#include "softgpu/driver/stream/stream_handle.h"

namespace softgpu::graph {

// Sets use.capturing. STREAM_CAPTURE_INVALIDATED when the stream's capture is over but not ended;
// STREAM_CAPTURE_IMPLICIT, which invalidates, for the legacy stream while a blocking stream of the context is captured.
CUresult find_capture(StreamUse& use);

// For work that cannot be captured: STREAM_CAPTURE_UNSUPPORTED, which invalidates, or _IMPLICIT as above.
CUresult refuse_capturing(const StreamUse& use);
// For calls that a graph would miss: STREAM_CAPTURE_UNSUPPORTED, which invalidates, as the thread's mode says.
CUresult refuse_unsafe_call();
// For waiting for all of a context: the same while any of its streams is captured.
CUresult refuse_synchronising(CUcontext context);
// For asking about an event: CAPTURED_EVENT, which invalidates, when it was last recorded in a capture.
CUresult refuse_captured(CUevent event);

// Adds the operation to the graph of the stream's capture. REQUIRES: use.capturing.
CUresult capture_operation(const StreamUse& use, Payload payload);
// cuMemAllocAsync and cuMemFreeAsync as nodes. REQUIRES: use.capturing.
CUresult capture_allocate(const StreamUse& use, std::uint64_t bytes, CUdeviceptr& address);
CUresult capture_free(const StreamUse& use, CUdeviceptr address);
// The event stands for what has been captured on the stream. REQUIRES: use.capturing.
CUresult capture_record(const StreamUse& use, CUevent event);
// Waiting for an event when the event or the stream is captured; `captured` says whether it was so. Errors:
// STREAM_CAPTURE_ISOLATION (the event is not of the capture), _MERGE (of another), _IMPLICIT (the legacy stream).
CUresult capture_wait(const StreamUse& use, CUevent event, bool& captured);

// The stream is destroyed: a capture that it takes part in is invalidated.
void abandon_stream(const Stream& stream);
// The context ends, and with it all captures that began in it.
void abandon_context(const CUctx_st& context);

}  // namespace softgpu::graph
