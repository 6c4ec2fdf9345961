// Streams: waiting for them, capturing them, and their operations on memory.
#include "shim/capture.h"
#include "shim/hooks/hook.h"
#include "shim/hooks/lost.h"

using namespace fairlead::shim;

namespace {

template <typename Wait>
CUresult synchronise(Synchronisation point, Wait wait) {
  const CUresult result = wait();
  point.end(result);
  return note_result(result);
}

// The host has learnt that something is done, without having waited for a stream.
CUresult learnt(CUresult result) {
  if (result == CUDA_SUCCESS) {
    publish_launches();
    work_may_be_done();
  }
  return note_result(result);
}

CUresult begins_capture(CUstream stream, CUresult result) {
  if (result == CUDA_SUCCESS && !bypassed()) capture_began(stream);
  return result;
}

template <typename End>
CUresult end_capture(CUstream stream, End end) {
  const CUresult result = end();
  if (!bypassed()) capture_ended(stream);
  return result;
}

}  // namespace

HOOK cuStreamSynchronize(CUstream stream) {
  return synchronise(Synchronisation(stream), [&] { return FAIRLEAD_REAL(cuStreamSynchronize)(stream); });
}
HOOK cuStreamSynchronize_ptsz(CUstream stream) {
  return synchronise(Synchronisation(per_thread(stream)),
                     [&] { return FAIRLEAD_REAL(cuStreamSynchronize_ptsz)(stream); });
}
HOOK cuCtxSynchronize() {
  return synchronise(Synchronisation(), [] { return FAIRLEAD_REAL(cuCtxSynchronize)(); });
}
// Of a context that need not be the current one.
HOOK cuCtxSynchronize_v2(CUcontext context) {
  return learnt(FAIRLEAD_REAL(cuCtxSynchronize_v2)(context));
}
HOOK cuEventSynchronize(CUevent event) {
  return learnt(FAIRLEAD_REAL(cuEventSynchronize)(event));
}
HOOK cuEventQuery(CUevent event) {
  return learnt(FAIRLEAD_REAL(cuEventQuery)(event));
}
HOOK cuStreamQuery(CUstream stream) {
  return learnt(FAIRLEAD_REAL(cuStreamQuery)(stream));
}
HOOK cuStreamQuery_ptsz(CUstream stream) {
  return learnt(FAIRLEAD_REAL(cuStreamQuery_ptsz)(stream));
}

HOOK cuStreamDestroy(CUstream stream) {
  stream_destroyed(stream);
  return FAIRLEAD_REAL(cuStreamDestroy)(stream);
}
HOOK cuStreamDestroy_v2(CUstream stream) {
  stream_destroyed(stream);
  return FAIRLEAD_REAL(cuStreamDestroy_v2)(stream);
}

HOOK cuStreamBeginCapture(CUstream stream) {
  return begins_capture(stream, FAIRLEAD_REAL(cuStreamBeginCapture)(stream));
}
HOOK cuStreamBeginCapture_ptsz(CUstream stream) {
  return begins_capture(per_thread(stream), FAIRLEAD_REAL(cuStreamBeginCapture_ptsz)(stream));
}
HOOK cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begins_capture(stream, FAIRLEAD_REAL(cuStreamBeginCapture_v2)(stream, mode));
}
HOOK cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return begins_capture(per_thread(stream), FAIRLEAD_REAL(cuStreamBeginCapture_v2_ptsz)(stream, mode));
}
HOOK cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                 const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  return begins_capture(stream,
                        FAIRLEAD_REAL(cuStreamBeginCaptureToGraph)(stream, graph, dependencies, edges, count, mode));
}
HOOK cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                      const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  return begins_capture(per_thread(stream), FAIRLEAD_REAL(cuStreamBeginCaptureToGraph_ptsz)(stream, graph, dependencies,
                                                                                            edges, count, mode));
}
HOOK cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return end_capture(stream, [&] { return FAIRLEAD_REAL(cuStreamEndCapture)(stream, graph); });
}
HOOK cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return end_capture(per_thread(stream), [&] { return FAIRLEAD_REAL(cuStreamEndCapture_ptsz)(stream, graph); });
}

// Both versions, both stream modes.
#define VALUE_OPERATION(name, value_type)                                                              \
  QUEUED_BOTH(name, (CUstream stream, CUdeviceptr address, value_type value, unsigned int flags),      \
              (stream, address, value, flags))                                                         \
  QUEUED_BOTH(name##_v2, (CUstream stream, CUdeviceptr address, value_type value, unsigned int flags), \
              (stream, address, value, flags))

VALUE_OPERATION(cuStreamWaitValue32, cuuint32_t)
VALUE_OPERATION(cuStreamWriteValue32, cuuint32_t)
VALUE_OPERATION(cuStreamWaitValue64, cuuint64_t)
VALUE_OPERATION(cuStreamWriteValue64, cuuint64_t)

QUEUED_BOTH(cuStreamBatchMemOp,
            (CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations, unsigned int flags),
            (stream, count, operations, flags))
QUEUED_BOTH(cuStreamBatchMemOp_v2,
            (CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations, unsigned int flags),
            (stream, count, operations, flags))
