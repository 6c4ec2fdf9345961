// Stream capture through the driver's calls: what becomes a node, and every rule that a program can break.
#include <cstring>
#include <thread>
#include <vector>

#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::make_stream;
using softgpu::testing::make_words;
using softgpu::testing::run_kernel;
using softgpu::testing::store_index;
using softgpu::testing::use_device;
using softgpu::testing::word_at;

constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr auto kThreadLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

CUstream begin(CUstreamCaptureMode mode = kGlobal, unsigned flags = CU_STREAM_NON_BLOCKING) {
  softgpu::testing::test_module();  // may not be loaded during the capture
  CUstream stream = make_stream(flags);
  EXPECT_EQ(cuStreamBeginCapture_v2(stream, mode), CUDA_SUCCESS);
  return stream;
}

CUevent make_event() {
  CUevent event = nullptr;
  EXPECT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  return event;
}

CUresult add_one(CUdeviceptr word, CUstream stream) {
  void* parameters[] = {&word};
  return run_kernel("add_one", parameters, stream);
}

CUgraph end(CUstream stream) {
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  return graph;
}

// Ends a capture that must have been invalidated.
void expect_invalidated(CUstream stream) {
  CUstreamCaptureStatus status;
  EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  EXPECT_EQ(cuLaunchHostFunc(
                stream, [](void*) {}, nullptr),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  auto* graph = reinterpret_cast<CUgraph>(1);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
}

void launch_and_wait(CUgraph graph, CUstream stream) {
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

std::vector<CUgraphNodeType> types_of(CUgraph graph) {
  size_t count = 0;
  cuGraphGetNodes(graph, nullptr, &count);
  std::vector<CUgraphNode> nodes(count);
  cuGraphGetNodes(graph, nodes.data(), &count);
  std::vector<CUgraphNodeType> types(count);
  for (size_t i = 0; i < count; ++i) cuGraphNodeGetType(nodes[i], &types[i]);
  return types;
}

DRIVER_TEST(Capture, OperationsBecomeNodesAndDoNotRun) {
  use_device();
  const CUdeviceptr words = make_words(4);
  std::string text;
  CUstream stream = begin();
  EXPECT_EQ(cuMemsetD32Async(words, 41, 1, stream), CUDA_SUCCESS);
  EXPECT_EQ(add_one(words, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(words + 8, words, 4, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchHostFunc(
                stream, [](void* to) { static_cast<std::string*>(to)->push_back('h'); }, &text),
            CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWriteValue32_v2(stream, words + 12, 9, 0), CUDA_SUCCESS);
  CUgraph graph = end(stream);
  EXPECT_EQ(text, "");
  EXPECT_EQ(word_at(words), 0U);
  EXPECT_EQ(types_of(graph), (std::vector<CUgraphNodeType>{CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_KERNEL,
                                                           CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_HOST,
                                                           CU_GRAPH_NODE_TYPE_BATCH_MEM_OP}));
  launch_and_wait(graph, stream);
  EXPECT_EQ(text, "h");
  EXPECT_EQ(word_at(words + 8), 42U);
  EXPECT_EQ(word_at(words + 12), 9U);
}

DRIVER_TEST(Capture, StreamsForkAndJoinThroughEvents) {
  use_device();
  const CUdeviceptr words = make_words(2);
  CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
  CUevent fork = make_event();
  CUevent join = make_event();
  CUstream stream = begin();
  EXPECT_EQ(cuMemsetD32Async(words, 1, 2, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(fork, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(other, fork, 0), CUDA_SUCCESS);
  CUstreamCaptureStatus status;
  EXPECT_EQ(cuStreamIsCapturing(other, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(add_one(words + 4, other), CUDA_SUCCESS);
  EXPECT_EQ(add_one(words, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(join, other), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(stream, join, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(words, words + 4, 4, stream), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  graph = end(stream);
  size_t edges = 0;
  EXPECT_EQ(cuGraphGetEdges(graph, nullptr, nullptr, &edges), CUDA_SUCCESS);
  EXPECT_EQ(edges, 4U);
  EXPECT_EQ(cuStreamIsCapturing(other, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  launch_and_wait(graph, stream);
  EXPECT_EQ(word_at(words), 2U);
}

DRIVER_TEST(Capture, UnjoinedWorkIsAnError) {
  use_device();
  const CUdeviceptr words = make_words(1);
  CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
  CUevent fork = make_event();
  CUstream stream = begin();
  EXPECT_EQ(cuEventRecord(fork, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(other, fork, 0), CUDA_SUCCESS);
  EXPECT_EQ(add_one(words, other), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(add_one(words, other), CUDA_SUCCESS);  // runs
  EXPECT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
  EXPECT_EQ(word_at(words), 1U);
}

DRIVER_TEST(Capture, BeginsAndEndsWhereItMay) {
  use_device();
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamBeginCapture_v2(nullptr, kGlobal), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUstream stream = begin();
  EXPECT_EQ(cuStreamBeginCapture_v2(stream, kGlobal), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuStreamBeginCapture_v2(stream, static_cast<CUstreamCaptureMode>(3)), CUDA_ERROR_INVALID_VALUE);
  std::thread([&] { EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD); }).join();
  EXPECT_EQ(cuGraphDestroy(end(stream)), CUDA_SUCCESS);
  CUstream relaxed = begin(kRelaxed);
  std::thread([&] { EXPECT_EQ(cuStreamEndCapture(relaxed, &graph), CUDA_SUCCESS); }).join();
  EXPECT_EQ(cuStreamEndCapture(make_stream(0), &graph), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, kGlobal), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph), CUDA_SUCCESS);
}

DRIVER_TEST(Capture, UnsafeCallsAreRefusedAndInvalidate) {
  use_device();
  const CUdeviceptr words = make_words(1);
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  unsigned value = 0;
  const auto refuses = [&](auto call) {
    CUstream stream = begin();
    EXPECT_EQ(call(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    expect_invalidated(stream);
  };
  refuses([&] { return cuMemAlloc_v2(&address, 4); });
  refuses([&] { return cuMemFree_v2(words); });
  refuses([&] { return cuMemcpyHtoD_v2(words, &value, 4); });
  refuses([&] { return cuMemsetD32_v2(words, 1, 1); });
  refuses([&] { return cuCtxSynchronize(); });
  refuses([&] { return cuEventQuery(make_event()); });
  void* host = nullptr;
  refuses([&] { return cuMemHostAlloc(&host, 4, 0); });
  refuses([&] { return cuMemAllocManaged(&address, 4, CU_MEM_ATTACH_GLOBAL); });
  refuses([&] { return cuMemAllocPitch_v2(&address, &pitch, 4, 4, 4); });
  refuses([&] { return cuMemHostRegister_v2(&value, 4, 0); });
  const CUDA_ARRAY_DESCRIPTOR flat = {4, 4, CU_AD_FORMAT_FLOAT, 1};
  const CUDA_ARRAY3D_DESCRIPTOR deep = {4, 4, 4, CU_AD_FORMAT_FLOAT, 1, 0};
  CUarray array = nullptr;
  ASSERT_EQ(cuArrayCreate_v2(&array, &flat), CUDA_SUCCESS);
  CUarray refused = nullptr;
  refuses([&] { return cuArrayCreate_v2(&refused, &flat); });
  refuses([&] { return cuArray3DCreate_v2(&refused, &deep); });
  refuses([&] { return cuArrayDestroy(array); });
  EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  refuses([&] { return cuIpcOpenMemHandle_v2(&address, {}, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS); });
  refuses([&] { return cuIpcCloseMemHandle(words); });
  CUmodule module = nullptr;
  refuses([&] { return cuModuleLoadData(&module, softgpu::testing::kTestPtx); });
}

DRIVER_TEST(Capture, ModesSayWhoIsDisturbed) {
  CUcontext context = use_device();
  CUdeviceptr address = 0;
  CUgraph graph = nullptr;
  CUstream stream = begin(kRelaxed);
  EXPECT_EQ(cuMemAlloc_v2(&address, 4), CUDA_SUCCESS);
  end(stream);
  stream = begin(kThreadLocal);
  const auto allocate_elsewhere = [&](CUstreamCaptureMode mode) {
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
      cuCtxSetCurrent(context);
      EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
      EXPECT_EQ(mode, kGlobal);  // what a thread begins with
      result = cuMemAlloc_v2(&address, 4);
    }).join();
    return result;
  };
  EXPECT_EQ(allocate_elsewhere(kGlobal), CUDA_SUCCESS);
  CUstreamCaptureMode mode = kRelaxed;
  EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&address, 4), CUDA_SUCCESS);
  EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&address, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  stream = begin(kGlobal);
  EXPECT_EQ(allocate_elsewhere(kThreadLocal), CUDA_SUCCESS);
  EXPECT_EQ(allocate_elsewhere(kGlobal), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_invalidated(stream);
}

DRIVER_TEST(Capture, SynchronisingWithIt) {
  use_device();
  CUstream stream = begin(kRelaxed);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_invalidated(stream);
  stream = begin(kRelaxed);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_invalidated(stream);
  stream = begin(kRelaxed);
  EXPECT_EQ(cuStreamAddCallback(
                stream, [](CUstream, CUresult, void*) {}, nullptr, 0),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_invalidated(stream);
  CUevent event = make_event();
  stream = begin(kRelaxed);
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  expect_invalidated(stream);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
}

DRIVER_TEST(Capture, TheLegacyStreamWouldDependOnABlockingStream) {
  use_device();
  const CUdeviceptr words = make_words(1);
  CUstreamCaptureStatus status;
  CUstream harmless = begin(kRelaxed);
  EXPECT_EQ(add_one(words, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamIsCapturing(nullptr, &status), CUDA_SUCCESS);
  end(harmless);
  CUstream stream = begin(kRelaxed, CU_STREAM_DEFAULT);
  EXPECT_EQ(cuStreamIsCapturing(nullptr, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(add_one(words, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  expect_invalidated(stream);
  CUevent event = make_event();
  stream = begin(kRelaxed);
  EXPECT_EQ(cuEventRecord(event, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(nullptr, event, 0), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  expect_invalidated(stream);
}

DRIVER_TEST(Capture, DependenciesDoNotCrossItsBoundary) {
  use_device();
  CUevent outside = make_event();
  CUstream plain = make_stream(CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(cuEventRecord(outside, plain), CUDA_SUCCESS);
  CUstream stream = begin(kRelaxed);
  EXPECT_EQ(cuStreamWaitEvent(stream, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  expect_invalidated(stream);
  CUstream first = begin(kRelaxed);
  CUstream second = begin(kRelaxed);
  CUevent event = make_event();
  EXPECT_EQ(cuEventRecord(event, first), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(second, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  expect_invalidated(first);
  expect_invalidated(second);
  EXPECT_EQ(cuStreamWaitEvent(plain, event, 0), CUDA_ERROR_CAPTURED_EVENT);  // its capture is over
}

DRIVER_TEST(Capture, ExternalEventsBecomeNodes) {
  use_device();
  CUevent event = make_event();
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuEventRecordWithFlags(event, stream, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamBeginCapture_v2(stream, kGlobal), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL), CUDA_SUCCESS);
  CUgraph graph = end(stream);
  EXPECT_EQ(types_of(graph),
            (std::vector<CUgraphNodeType>{CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_EVENT_RECORD}));
  launch_and_wait(graph, stream);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
}

DRIVER_TEST(Capture, StreamOrderedMemoryBecomesGraphMemory) {
  use_device();
  const CUdeviceptr words = make_words(1);
  CUdeviceptr scratch = 0;
  CUstream stream = begin();
  EXPECT_EQ(cuMemAllocAsync(&scratch, 4, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32Async(scratch, 6, 1, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(words, scratch, 4, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(scratch, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(words, stream), CUDA_ERROR_INVALID_VALUE);  // no graph's
  CUgraph graph = end(stream);
  EXPECT_EQ(types_of(graph).back(), CU_GRAPH_NODE_TYPE_MEM_FREE);
  launch_and_wait(graph, stream);
  EXPECT_EQ(word_at(words), 6U);
}

DRIVER_TEST(Capture, LaunchedGraphsBecomeChildren) {
  use_device();
  const CUdeviceptr words = make_words(1);
  CUgraphExec exec = nullptr;
  CUstream stream = begin();
  add_one(words, stream);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, end(stream), 0), CUDA_SUCCESS);
  stream = begin();
  EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(add_one(words, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  CUgraph graph = end(stream);
  EXPECT_EQ(types_of(graph)[0], CU_GRAPH_NODE_TYPE_GRAPH);
  launch_and_wait(graph, stream);
  EXPECT_EQ(word_at(words), 3U);
}

DRIVER_TEST(Capture, CanAddToAGraphThatExists) {
  use_device();
  softgpu::testing::test_module();  // loading is refused during a capture
  const CUdeviceptr words = make_words(2);
  CUgraph graph = nullptr;
  CUgraphNode root = nullptr;
  CUgraphExec exec = nullptr;
  cuGraphCreate(&graph, 0);
  cuGraphAddEmptyNode(&root, graph, nullptr, 0);
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(cuStreamBeginCaptureToGraph(stream, graph, &root, nullptr, 1, kGlobal), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(add_one(words, stream), CUDA_SUCCESS);
  EXPECT_EQ(end(stream), graph);
  size_t count = 0;
  EXPECT_EQ(cuGraphNodeGetDependentNodes(root, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1U);
  launch_and_wait(graph, stream);
  EXPECT_EQ(word_at(words), 1U);
}

DRIVER_TEST(Capture, InformationAndDependenciesCanBeReadAndSet) {
  use_device();
  softgpu::testing::test_module();  // loading is refused during a capture
  const CUdeviceptr words = make_words(1);
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(cuStreamUpdateCaptureDependencies(stream, nullptr, 0, 0), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(cuStreamBeginCapture_v2(stream, kGlobal), CUDA_SUCCESS);
  add_one(words, stream);
  CUstreamCaptureStatus status;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  size_t count = 0;
  EXPECT_EQ(cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes, &count), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_NE(id, 0U);
  ASSERT_EQ(count, 1U);
  CUgraphNode first = nodes[0];
  CUgraphNode own = nullptr;
  EXPECT_EQ(cuGraphAddEmptyNode(&own, graph, &first, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamUpdateCaptureDependencies(stream, &own, 1, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamUpdateCaptureDependencies(stream, &own, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamGetCaptureInfo_v3(stream, &status, nullptr, nullptr, &nodes, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(cuStreamUpdateCaptureDependencies(stream, &own, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES), CUDA_SUCCESS);
  add_one(words, stream);
  EXPECT_EQ(cuStreamGetCaptureInfo(stream, &status, &id), CUDA_SUCCESS);
  EXPECT_EQ(end(stream), graph);
}

DRIVER_TEST(Capture, DestroyingAStreamEndsItsCapture) {
  use_device();
  CUdeviceptr address = 0;
  CUstream stream = begin();
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&address, 4), CUDA_SUCCESS);  // nothing is captured any more
}

DRIVER_TEST(Capture, ResettingTheDeviceEndsItsCaptures) {
  use_device();
  CUdeviceptr address = 0;
  CUgraph graph = nullptr;
  CUstream stream = begin();
  EXPECT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  use_device();
  EXPECT_EQ(cuMemAlloc_v2(&address, 4), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

DRIVER_TEST(Capture, AKernelKeepsThePriorityOfItsStream) {
  use_device();
  const CUdeviceptr words = make_words(1);
  softgpu::testing::test_module();  // may not be loaded during the capture
  CUstream urgent = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  size_t count = 1;
  CUlaunchAttributeValue value = {};
  EXPECT_EQ(cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, -2), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamBeginCapture_v2(urgent, kGlobal), CUDA_SUCCESS);
  EXPECT_EQ(add_one(words, urgent), CUDA_SUCCESS);
  graph = end(urgent);
  EXPECT_EQ(cuGraphGetNodes(graph, &node, &count), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
  EXPECT_EQ(value.priority, -2);
}

DRIVER_TEST(Capture, LaunchesThatRecordEventsCannotBeCaptured) {
  use_device();
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
  CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, nullptr, &attribute, 1};
  CUfunction empty = softgpu::testing::test_function("empty");
  EXPECT_EQ(cuLaunchKernelEx(&config, empty, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  attribute.value.launchCompletionEvent = {make_event(), 0};
  config.hStream = begin();
  EXPECT_EQ(cuLaunchKernelEx(&config, empty, nullptr, nullptr), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_invalidated(config.hStream);
}

DRIVER_TEST(Capture, AMistakeInACallLeavesItValid) {
  use_device();
  CUstream stream = begin();
  EXPECT_EQ(cuMemsetD32Async(4096, 1, 1, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_NE(end(stream), nullptr);
}

DRIVER_TEST(Capture, WorkOnOtherStreamsGoesOn) {
  use_device();
  const CUdeviceptr words = make_words(8);
  CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
  CUstream stream = begin();
  EXPECT_EQ(store_index(words, 8, other), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(other), CUDA_SUCCESS);
  end(stream);
  EXPECT_EQ(word_at(words + 28), 7U);
}

}  // namespace
