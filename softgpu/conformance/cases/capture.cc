// What stream capture forbids, and how it ends. The section "Prohibited and Unhandled Operations" of the programming guide
// and the documentation of cuStreamBeginCapture and cuStreamEndCapture.
#include <thread>

#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/graph_scene.h"

namespace softgpu::conformance {
namespace {

void expect_end(Test& test, CUstream stream, CUresult want) {
  CUgraph graph = nullptr;
  test.expect_code("cuStreamEndCapture", driver().cuStreamEndCapture(stream, &graph), want);
  test.expect(graph == nullptr, "no graph");
  CUstreamCaptureStatus status{};
  test.expect_code("cuStreamIsCapturing", driver().cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
  test.expect_value("the capture is over", status, CU_STREAM_CAPTURE_STATUS_NONE);
}

// Waiting for a captured stream is illegal and invalidates the capture.
void no_waiting(Test& test) {
  GraphScene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  const auto word = test.zeros<unsigned>(1);
  scene.begin(stream);
  scene.launch("add_to", stream, word, 1u);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUstreamCaptureStatus status{};
  test.check(driver().cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing");
  test.expect_value("status", status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  expect_end(test, stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  scene.launch("add_to", stream, word, 5u);
  test.expect_code("the stream is usable again", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.equal("only that ran", test.download(word), {5u});
}

void no_queries(Test& test) {
  GraphScene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  scene.begin(stream);
  test.expect_code("cuStreamQuery", driver().cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_end(test, stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

// An event recorded in a capture is a node of the graph, not a moment that can be waited for.
void captured_events(Test& test) {
  GraphScene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = scene.event(CU_EVENT_DISABLE_TIMING);
  scene.begin(stream);
  test.check(driver().cuEventRecord(event, stream), "cuEventRecord");
  test.expect_code("cuEventQuery", driver().cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  CUgraph graph = nullptr;
  const CUresult ended = driver().cuStreamEndCapture(stream, &graph);
  test.observe("cuStreamEndCapture after that", name_of(ended));
  if (graph != nullptr) driver().cuGraphDestroy(graph);
}

// A stream that joined the capture must come back to where it began.
void unjoined(Test& test) {
  GraphScene scene(test);
  const CUstream a = scene.stream(CU_STREAM_NON_BLOCKING), b = scene.stream(CU_STREAM_NON_BLOCKING);
  const CUevent fork = scene.event(CU_EVENT_DISABLE_TIMING);
  const auto word = test.zeros<unsigned>(1);
  scene.begin(a);
  test.check(driver().cuEventRecord(fork, a), "cuEventRecord");
  test.check(driver().cuStreamWaitEvent(b, fork, 0), "cuStreamWaitEvent");
  scene.launch("add_to", b, word, 1u);
  expect_end(test, a, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

void wrong_stream(Test& test) {
  GraphScene scene(test);
  const CUstream a = scene.stream(CU_STREAM_NON_BLOCKING), b = scene.stream(CU_STREAM_NON_BLOCKING);
  const CUevent fork = scene.event(CU_EVENT_DISABLE_TIMING);
  CUgraph graph = nullptr;
  test.expect_code("no capture", driver().cuStreamEndCapture(a, &graph), CUDA_ERROR_ILLEGAL_STATE);
  scene.begin(a);
  test.check(driver().cuEventRecord(fork, a), "cuEventRecord");
  test.check(driver().cuStreamWaitEvent(b, fork, 0), "cuStreamWaitEvent");
  test.expect_code("a stream that joined", driver().cuStreamEndCapture(b, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  graph = nullptr;
  driver().cuStreamEndCapture(a, &graph);
  if (graph != nullptr) driver().cuGraphDestroy(graph);
}

// Unless it is relaxed, a capture ends in the thread that began it.
void wrong_thread(Test& test) {
  GraphScene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  scene.begin(stream);
  CUresult result = CUDA_SUCCESS;
  std::thread([&] {
    CUgraph graph = nullptr;
    driver().cuCtxSetCurrent(scene.context());
    result = driver().cuStreamEndCapture(stream, &graph);
  }).join();
  test.expect_code("cuStreamEndCapture elsewhere", result, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  CUgraph graph = nullptr;
  driver().cuStreamEndCapture(stream, &graph);
  if (graph != nullptr) driver().cuGraphDestroy(graph);
}

// A capture that is not relaxed forbids calls that may wait for the device, such as cuMemAlloc.
void unsafe_calls(Test& test) {
  GraphScene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr address = 0;
  scene.begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  test.expect_code("relaxed: cuMemAlloc", driver().cuMemAlloc(&address, 4096), CUDA_SUCCESS);
  scene.end(stream);
  test.expect_code("cuMemFree", driver().cuMemFree(address), CUDA_SUCCESS);
  for (const CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    scene.begin(stream, mode);
    test.expect_code("cuMemAlloc", driver().cuMemAlloc(&address, 4096), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    expect_end(test, stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  // A thread may say that it knows better.
  scene.begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  test.check(driver().cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode");
  test.expect_code("as an exception", driver().cuMemAlloc(&address, 4096), CUDA_SUCCESS);
  test.check(driver().cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode");
  test.expect_value("it was relaxed", mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  scene.end(stream);
  test.expect_code("cuMemFree", driver().cuMemFree(address), CUDA_SUCCESS);
}

// The legacy stream cannot be captured, and using it would make blocking streams under capture wait.
void legacy_stream(Test& test) {
  GraphScene scene(test);
  const auto word = test.zeros<unsigned>(1);
  test.expect_code("the legacy stream",
                   driver().cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                   CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  const CUstream blocking = scene.stream(CU_STREAM_DEFAULT);
  const CUfunction function = test.function("add_to");
  CUdeviceptr address = word.address;
  unsigned value = 1;
  void* parameters[] = {&address, &value};
  scene.begin(blocking);
  test.expect_code("a launch there meanwhile",
                   driver().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
                   CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  expect_end(test, blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

// Two captures may not meet.
void merged_captures(Test& test) {
  GraphScene scene(test);
  const CUstream a = scene.stream(CU_STREAM_NON_BLOCKING), b = scene.stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = scene.event(CU_EVENT_DISABLE_TIMING);
  scene.begin(a);
  scene.begin(b);
  test.check(driver().cuEventRecord(event, a), "cuEventRecord");
  test.expect_code("cuStreamWaitEvent", driver().cuStreamWaitEvent(b, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  expect_end(test, a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  expect_end(test, b, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

constexpr Case kCases[] = {
    {"no_waiting", "driver", no_waiting},          {"no_queries", nullptr, no_queries},
    {"captured_events", nullptr, captured_events}, {"unjoined", "driver", unjoined},
    {"wrong_stream", nullptr, wrong_stream},       {"wrong_thread", nullptr, wrong_thread},
    {"unsafe_calls", nullptr, unsafe_calls},       {"legacy_stream", "driver", legacy_stream},
    {"merged_captures", nullptr, merged_captures},
};

}  // namespace

const Field kCapture{"capture", kCases};

}  // namespace softgpu::conformance
