// Graphs through the driver's calls: structure, nodes, execution, updates.
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "softgpu/driver/driver_testing.h"

namespace {

using softgpu::testing::Gate;
using softgpu::testing::make_stream;
using softgpu::testing::make_words;
using softgpu::testing::test_function;
using softgpu::testing::use_device;
using softgpu::testing::word_at;

CUgraph make_graph() {
  CUgraph graph = nullptr;
  EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  return graph;
}

CUDA_KERNEL_NODE_PARAMS_v2 kernel(const char* name, void** parameters) {
  return {test_function(name), 1, 1, 1, 1, 1, 1, 0, parameters, nullptr, nullptr, nullptr};
}

CUgraphNode add_one(CUgraph graph, CUdeviceptr word, std::vector<CUgraphNode> after = {}) {
  CUgraphNode node = nullptr;
  void* parameters[] = {&word};
  const auto described = kernel("add_one", parameters);
  EXPECT_EQ(cuGraphAddKernelNode_v2(&node, graph, after.data(), after.size(), &described), CUDA_SUCCESS);
  return node;
}

CUDA_MEMSET_NODE_PARAMS_v1 fill_words(CUdeviceptr words, unsigned value, std::size_t count) {
  return {words, 0, value, 4, count, 1};
}

CUgraphNode add_fill(CUgraph graph, CUdeviceptr words, unsigned value, std::vector<CUgraphNode> after = {}) {
  CUgraphNode node = nullptr;
  const auto described = fill_words(words, value, 1);
  EXPECT_EQ(cuGraphAddMemsetNode(&node, graph, after.data(), after.size(), &described, nullptr), CUDA_SUCCESS);
  return node;
}

CUDA_MEMCPY3D copy_words(CUdeviceptr target, CUdeviceptr source, std::size_t count) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = source;
  copy.dstDevice = target;
  copy.WidthInBytes = 4 * count;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUgraphNode add_host(CUgraph graph, std::string* text, std::vector<CUgraphNode> after = {}) {
  CUgraphNode node = nullptr;
  const CUDA_HOST_NODE_PARAMS call = {[](void* to) { static_cast<std::string*>(to)->push_back('h'); }, text};
  EXPECT_EQ(cuGraphAddHostNode(&node, graph, after.data(), after.size(), &call), CUDA_SUCCESS);
  return node;
}

CUgraphExec instantiate(CUgraph graph, unsigned long long flags = 0) {
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, flags), CUDA_SUCCESS);
  return exec;
}

void launch_and_wait(CUgraphExec exec, CUstream stream = nullptr) {
  EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
}

DRIVER_TEST(Graph, StructureIsListedAsItWasBuilt) {
  use_device();
  CUgraph graph = make_graph();
  CUgraphNode a = nullptr;
  CUgraphNode b = nullptr;
  CUgraphNode c = nullptr;
  EXPECT_EQ(cuGraphAddEmptyNode(&a, graph, nullptr, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphAddEmptyNode(&b, graph, &a, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphAddEmptyNode(&c, graph, nullptr, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphAddDependencies(graph, &a, &c, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphAddDependencies(graph, &a, &c, 1), CUDA_ERROR_INVALID_VALUE);
  CUgraphNode nodes[4] = {c, c, c, c};
  size_t count = 4;
  EXPECT_EQ(cuGraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(nodes[0], a);
  EXPECT_EQ(nodes[3], nullptr);
  EXPECT_EQ(cuGraphGetRootNodes(graph, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1U);
  CUgraphNode from[2];
  CUgraphNode to[2];
  count = 2;
  EXPECT_EQ(cuGraphGetEdges(graph, from, to, &count), CUDA_SUCCESS);
  EXPECT_EQ(to[1], c);
  count = 4;
  EXPECT_EQ(cuGraphNodeGetDependentNodes(a, nodes, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(cuGraphRemoveDependencies(graph, &a, &c, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphRemoveDependencies(graph, &a, &c, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphDestroyNode(b), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroyNode(b), CUDA_ERROR_INVALID_VALUE);
  CUgraphNodeType type;
  EXPECT_EQ(cuGraphNodeGetType(b, &type), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphNodeGetType(c, &type), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_EMPTY);
}

DRIVER_TEST(Graph, WrongHandlesAndDependenciesAreRefused) {
  use_device();
  CUgraph graph = make_graph();
  CUgraph other = make_graph();
  CUgraphNode a = nullptr;
  CUgraphNode made = nullptr;
  ASSERT_EQ(cuGraphAddEmptyNode(&a, graph, nullptr, 0), CUDA_SUCCESS);
  CUgraphNode twice[] = {a, a};
  EXPECT_EQ(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddEmptyNode(&made, graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddEmptyNode(&made, other, &a, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddEmptyNode(&made, graph, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddDependencies(graph, &a, &a, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphDestroy(other), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(other), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddEmptyNode(&made, other, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Graph, EdgeDataIsKeptAndNotLostSilently) {
  use_device();
  CUgraph graph = make_graph();
  CUgraphNode a = nullptr;
  CUgraphNode b = nullptr;
  cuGraphAddEmptyNode(&a, graph, nullptr, 0);
  cuGraphAddEmptyNode(&b, graph, nullptr, 0);
  const CUgraphEdgeData data = {1, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
  EXPECT_EQ(cuGraphAddDependencies_v2(graph, &a, &b, &data, 1), CUDA_SUCCESS);
  CUgraphNode from = nullptr;
  CUgraphNode to = nullptr;
  CUgraphEdgeData read = {};
  size_t count = 1;
  EXPECT_EQ(cuGraphGetEdges(graph, &from, &to, &count), CUDA_ERROR_LOSSY_QUERY);
  EXPECT_EQ(cuGraphGetEdges_v2(graph, &from, &to, &read, &count), CUDA_SUCCESS);
  EXPECT_EQ(read.from_port, 1);
  EXPECT_EQ(cuGraphNodeGetDependencies(b, &from, &count), CUDA_ERROR_LOSSY_QUERY);
  EXPECT_EQ(cuGraphNodeGetDependencies_v2(b, &from, &read, &count), CUDA_SUCCESS);
  EXPECT_EQ(from, a);
}

DRIVER_TEST(Graph, ACycleIsRefusedAtInstantiation) {
  use_device();
  CUgraph graph = make_graph();
  CUgraphNode nodes[2];
  CUgraphExec exec = nullptr;
  cuGraphAddEmptyNode(&nodes[0], graph, nullptr, 0);
  cuGraphAddEmptyNode(&nodes[1], graph, &nodes[0], 1);
  EXPECT_EQ(cuGraphAddDependencies(graph, &nodes[1], &nodes[0], 1), CUDA_SUCCESS);
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {};
  EXPECT_EQ(cuGraphInstantiateWithParams(&exec, graph, &parameters), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(parameters.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  EXPECT_NE(parameters.hErrNode_out, nullptr);
  char log[64] = "";
  EXPECT_EQ(cuGraphInstantiate_v2(&exec, graph, nullptr, log, sizeof log), CUDA_ERROR_INVALID_VALUE);
  EXPECT_STREQ(log, "the graph has a cycle");
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, make_graph(), 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, make_graph(), CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH),
            CUDA_ERROR_NOT_SUPPORTED);
}

DRIVER_TEST(Graph, RunsEveryTypeOfNodeInOrder) {
  use_device();
  CUgraph graph = make_graph();
  const CUdeviceptr words = make_words(4);
  std::string text;
  CUgraphNode copy = nullptr;
  CUgraphNode filled = add_fill(graph, words, 41);
  CUgraphNode added = add_one(graph, words, {filled});
  const auto described = copy_words(words + 8, words, 1);
  EXPECT_EQ(cuGraphAddMemcpyNode(&copy, graph, &added, 1, &described, nullptr), CUDA_SUCCESS);
  add_host(graph, &text, {copy});
  CUstreamBatchMemOpParams write = {};
  write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  write.writeValue.address = words + 12;
  write.writeValue.value = 7;
  const CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {nullptr, 1, &write, 0};
  CUgraphNode wrote = nullptr;
  EXPECT_EQ(cuGraphAddBatchMemOpNode(&wrote, graph, &copy, 1, &batch), CUDA_SUCCESS);
  CUgraphExec exec = instantiate(graph);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);  // the executable graph needs it no more
  for (int i = 0; i < 3; ++i) launch_and_wait(exec);
  EXPECT_EQ(word_at(words + 8), 42U);
  EXPECT_EQ(word_at(words + 12), 7U);
  EXPECT_EQ(text, "hhh");
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Graph, WideGraphsForkAndJoin) {
  use_device();
  CUgraph graph = make_graph();
  const CUdeviceptr words = make_words(20);
  CUgraphNode root = add_fill(graph, words, 5);
  std::vector<CUgraphNode> middle;
  for (unsigned i = 1; i < 20; ++i) {
    CUgraphNode copy = nullptr;
    const auto described = copy_words(words + 4 * i, words, 1);
    EXPECT_EQ(cuGraphAddMemcpyNode(&copy, graph, &root, 1, &described, nullptr), CUDA_SUCCESS);
    middle.push_back(add_one(graph, words + 4 * i, {copy}));
  }
  add_fill(graph, words, 9, middle);
  CUgraphExec exec = instantiate(graph);
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(word_at(words), 9U);
  for (unsigned i = 1; i < 20; ++i) EXPECT_EQ(word_at(words + 4 * i), 6U);
}

DRIVER_TEST(Graph, LaunchesKeepTheStreamsOrderAndFollowEachOther) {
  use_device();
  CUgraph graph = make_graph();
  CUgraph waits = make_graph();
  const CUdeviceptr words = make_words(1);
  CUstream first = make_stream(CU_STREAM_NON_BLOCKING);
  CUstream second = make_stream(CU_STREAM_NON_BLOCKING);
  Gate gate;
  void* parameters[] = {&gate.address};
  CUgraphNode node = nullptr;
  const auto described = kernel("wait_flag", parameters);
  EXPECT_EQ(cuGraphAddKernelNode_v2(&node, waits, nullptr, 0, &described), CUDA_SUCCESS);
  add_one(waits, words, {node});
  add_one(graph, words);
  CUgraphExec waiting = instantiate(waits);
  CUgraphExec other = instantiate(graph);
  EXPECT_EQ(cuGraphLaunch(waiting, first), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(waiting, second), CUDA_SUCCESS);  // behind the launch on the other stream
  EXPECT_EQ(cuGraphLaunch(other, second), CUDA_SUCCESS);
  gate.wait_until_closed();
  EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuGraphExecDestroy(waiting), CUDA_SUCCESS);  // while it runs
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(second), CUDA_SUCCESS);
  EXPECT_EQ(word_at(words), 3U);
}

DRIVER_TEST(Graph, ChildGraphsAreClonesThatRunInPlace) {
  use_device();
  CUgraph inner = make_graph();
  CUgraph outer = make_graph();
  const CUdeviceptr words = make_words(2);
  CUgraphNode inner_fill = add_fill(inner, words, 10);
  add_one(inner, words, {inner_fill});
  CUgraphNode before = add_fill(outer, words, 1);
  CUgraphNode child = nullptr;
  EXPECT_EQ(cuGraphAddChildGraphNode(&child, outer, &before, 1, inner), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphAddChildGraphNode(&child, outer, &before, 1, outer), CUDA_ERROR_INVALID_VALUE);
  add_one(outer, words, {child});
  const auto changed = fill_words(words, 100, 1);
  EXPECT_EQ(cuGraphMemsetNodeSetParams(inner_fill, &changed), CUDA_SUCCESS);  // not in the clone
  CUgraphExec exec = instantiate(outer);
  launch_and_wait(exec);
  EXPECT_EQ(word_at(words), 12U);
  EXPECT_EQ(cuGraphExecChildGraphNodeSetParams(exec, child, inner), CUDA_SUCCESS);
  launch_and_wait(exec);
  EXPECT_EQ(word_at(words), 102U);
  EXPECT_EQ(cuGraphExecChildGraphNodeSetParams(exec, child, outer), CUDA_ERROR_INVALID_VALUE);
  CUgraph embedded = nullptr;
  EXPECT_EQ(cuGraphChildGraphNodeGetGraph(child, &embedded), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(embedded), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Graph, AnEmptyGraphAndAnEmptyChildRun) {
  use_device();
  CUgraph outer = make_graph();
  CUgraphNode child = nullptr;
  EXPECT_EQ(cuGraphAddChildGraphNode(&child, outer, nullptr, 0, make_graph()), CUDA_SUCCESS);
  launch_and_wait(instantiate(outer));
  launch_and_wait(instantiate(make_graph()));
}

DRIVER_TEST(Graph, ClonesAreIndependentAndTheirNodesAreFound) {
  use_device();
  CUgraph graph = make_graph();
  CUgraph clone = nullptr;
  const CUdeviceptr words = make_words(1);
  CUgraphNode original = add_fill(graph, words, 3);
  EXPECT_EQ(cuGraphClone(&clone, graph), CUDA_SUCCESS);
  CUgraphNode found = nullptr;
  EXPECT_EQ(cuGraphNodeFindInClone(&found, original, clone), CUDA_SUCCESS);
  EXPECT_NE(found, original);
  EXPECT_EQ(cuGraphNodeFindInClone(&found, original, make_graph()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  launch_and_wait(instantiate(clone));
  EXPECT_EQ(word_at(words), 3U);
}

DRIVER_TEST(GraphNode, ParametersComeBackAsTheyWereSet) {
  use_device();
  CUgraph graph = make_graph();
  const CUdeviceptr words = make_words(2);
  CUgraphNode node = add_one(graph, words);
  CUDA_KERNEL_NODE_PARAMS_v2 read = {};
  EXPECT_EQ(cuGraphKernelNodeGetParams_v2(node, &read), CUDA_SUCCESS);
  EXPECT_EQ(read.func, test_function("add_one"));
  EXPECT_EQ(*static_cast<CUdeviceptr*>(read.kernelParams[0]), words);
  read.gridDimX = 0;
  EXPECT_EQ(cuGraphKernelNodeSetParams_v2(node, &read), CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMSET_NODE_PARAMS_v1 fill = {};
  EXPECT_EQ(cuGraphMemsetNodeGetParams(node, &fill), CUDA_ERROR_INVALID_VALUE);  // of another type
  CUgraphNode filled = add_fill(graph, words, 8);
  EXPECT_EQ(cuGraphMemsetNodeGetParams(filled, &fill), CUDA_SUCCESS);
  EXPECT_EQ(fill.value, 8U);
  fill.elementSize = 3;
  EXPECT_EQ(cuGraphMemsetNodeSetParams(filled, &fill), CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY3D beyond = copy_words(words, words + 4, 2);  // one word beyond the end
  EXPECT_EQ(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &beyond, nullptr), CUDA_ERROR_INVALID_VALUE);
  beyond.Depth = 0;
  EXPECT_EQ(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &beyond, nullptr), CUDA_ERROR_INVALID_VALUE);
  const CUDA_HOST_NODE_PARAMS nothing = {nullptr, nullptr};
  EXPECT_EQ(cuGraphAddHostNode(&node, graph, nullptr, 0, &nothing), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddEventRecordNode(&node, graph, nullptr, 0, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

DRIVER_TEST(GraphNode, GenericParametersMakeTypedNodes) {
  use_device();
  CUgraph graph = make_graph();
  const CUdeviceptr words = make_words(1);
  CUgraphNode node = nullptr;
  CUgraphNodeType type;
  CUgraphNodeParams parameters = {};
  parameters.type = CU_GRAPH_NODE_TYPE_MEMSET;
  parameters.memset = {words, 0, 6, 4, 1, 1, nullptr};
  EXPECT_EQ(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &parameters), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphNodeGetType(node, &type), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEMSET);
  CUgraphExec exec = instantiate(graph);
  parameters.memset.value = 7;
  EXPECT_EQ(cuGraphExecNodeSetParams(exec, node, &parameters), CUDA_SUCCESS);
  launch_and_wait(exec);
  EXPECT_EQ(word_at(words), 7U);
  parameters.type = CU_GRAPH_NODE_TYPE_HOST;
  EXPECT_EQ(cuGraphNodeSetParams(node, &parameters), CUDA_ERROR_INVALID_VALUE);
  parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  EXPECT_EQ(cuGraphAddNode(&node, graph, nullptr, 0, &parameters), CUDA_ERROR_NOT_SUPPORTED);
  parameters.reserved0[0] = 1;
  EXPECT_EQ(cuGraphAddNode(&node, graph, nullptr, 0, &parameters), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(GraphNode, KernelAttributesAreKeptCopiedAndChecked) {
  use_device();
  CUgraph graph = make_graph();
  const CUdeviceptr words = make_words(1);
  CUgraphNode first = add_one(graph, words);
  CUgraphNode second = add_one(graph, words);
  CUlaunchAttributeValue value = {};
  value.priority = -3;
  EXPECT_EQ(cuGraphKernelNodeSetAttribute(first, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphKernelNodeCopyAttributes(second, first), CUDA_SUCCESS);
  value.priority = 0;
  EXPECT_EQ(cuGraphKernelNodeGetAttribute(second, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS);
  EXPECT_EQ(value.priority, -3);
  EXPECT_EQ(cuGraphKernelNodeGetAttribute(second, static_cast<CUlaunchAttributeID>(99), &value),
            CUDA_ERROR_INVALID_VALUE);
  value.clusterDim = {2, 1, 1};
  EXPECT_EQ(cuGraphKernelNodeSetAttribute(first, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value),
            CUDA_ERROR_NOT_SUPPORTED);
}

DRIVER_TEST(GraphEvent, RecordAndWaitNodesOrderOtherStreams) {
  use_device();
  CUgraph graph = make_graph();
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
  Gate before;
  Gate after;
  CUevent recorded = nullptr;
  CUevent waited = nullptr;
  cuEventCreate(&recorded, 0);
  cuEventCreate(&waited, 0);
  CUgraphNode wait = nullptr;
  CUgraphNode record = nullptr;
  CUgraphNode last = nullptr;
  EXPECT_EQ(cuGraphAddEventWaitNode(&wait, graph, nullptr, 0, waited), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphAddEventRecordNode(&record, graph, &wait, 1, recorded), CUDA_SUCCESS);
  void* parameters[] = {&after.address};
  const auto described = kernel("wait_flag", parameters);
  EXPECT_EQ(cuGraphAddKernelNode_v2(&last, graph, &record, 1, &described), CUDA_SUCCESS);
  before.close(other);
  EXPECT_EQ(cuEventRecord(waited, other), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(instantiate(graph), stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(recorded), CUDA_ERROR_NOT_READY);
  before.open();
  EXPECT_EQ(cuEventSynchronize(recorded), CUDA_SUCCESS);  // in the middle of the graph
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  after.open();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
}

DRIVER_TEST(GraphUpdate, ParametersOfOneNodeChangeForLaterLaunches) {
  use_device();
  CUgraph graph = make_graph();
  const CUdeviceptr words = make_words(4);
  CUgraphNode filled = add_fill(graph, words, 1);
  CUgraphNode added = add_one(graph, words, {filled});
  CUgraphNode copied = nullptr;
  auto copy = copy_words(words + 4, words, 1);
  EXPECT_EQ(cuGraphAddMemcpyNode(&copied, graph, &added, 1, &copy, nullptr), CUDA_SUCCESS);
  CUgraphExec exec = instantiate(graph);
  const auto fill = fill_words(words, 10, 1);
  EXPECT_EQ(cuGraphExecMemsetNodeSetParams(exec, filled, &fill, nullptr), CUDA_SUCCESS);
  copy = copy_words(words + 12, words, 1);
  EXPECT_EQ(cuGraphExecMemcpyNodeSetParams(exec, copied, &copy, nullptr), CUDA_SUCCESS);
  launch_and_wait(exec);
  EXPECT_EQ(word_at(words + 4), 0U);
  EXPECT_EQ(word_at(words + 12), 11U);
  unsigned enabled = 9;
  EXPECT_EQ(cuGraphNodeSetEnabled(exec, added, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphNodeGetEnabled(exec, added, &enabled), CUDA_SUCCESS);
  EXPECT_EQ(enabled, 0U);
  launch_and_wait(exec);
  EXPECT_EQ(word_at(words + 12), 10U);
  EXPECT_EQ(cuGraphExecMemsetNodeSetParams(exec, added, &fill, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphExecMemsetNodeSetParams(exec, add_fill(graph, words, 0), &fill, nullptr), CUDA_ERROR_INVALID_VALUE);
  copy.Height = 2;
  copy.srcPitch = copy.dstPitch = 4;
  copy.dstDevice = words;
  EXPECT_EQ(cuGraphExecMemcpyNodeSetParams(exec, copied, &copy, nullptr), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(GraphUpdate, ALaunchInFlightIsNotChanged) {
  use_device();
  CUgraph graph = make_graph();
  const CUdeviceptr words = make_words(2);
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  Gate gate;
  CUgraphNode filled = add_fill(graph, words, 1);
  CUgraphExec exec = instantiate(graph);
  gate.close(stream);
  EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  const auto fill = fill_words(words + 4, 2, 1);
  EXPECT_EQ(cuGraphExecMemsetNodeSetParams(exec, filled, &fill, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(word_at(words), 1U);
  EXPECT_EQ(word_at(words + 4), 2U);
}

DRIVER_TEST(GraphUpdate, WholeGraphsUpdateOrSayWhyNot) {
  use_device();
  const CUdeviceptr words = make_words(2);
  CUgraph graph = make_graph();
  add_one(graph, words, {add_fill(graph, words, 1)});
  CUgraphExec exec = instantiate(graph);
  CUgraph same = make_graph();
  add_one(same, words + 4, {add_fill(same, words + 4, 20)});
  CUgraphExecUpdateResultInfo info = {};
  EXPECT_EQ(cuGraphExecUpdate_v2(exec, same, &info), CUDA_SUCCESS);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  launch_and_wait(exec);
  EXPECT_EQ(word_at(words), 0U);
  EXPECT_EQ(word_at(words + 4), 21U);
  CUgraph longer = make_graph();
  add_one(longer, words, {add_one(longer, words, {add_fill(longer, words, 1)})});
  EXPECT_EQ(cuGraphExecUpdate_v2(exec, longer, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  EXPECT_EQ(info.errorNode, nullptr);
  CUgraph other_type = make_graph();
  CUgraphNode wrong = add_one(other_type, words);
  add_one(other_type, words, {wrong});
  EXPECT_EQ(cuGraphExecUpdate_v2(exec, other_type, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  EXPECT_EQ(info.errorNode, wrong);
  CUgraph unconnected = make_graph();
  add_fill(unconnected, words, 1);
  CUgraphNode loose = add_one(unconnected, words);
  CUgraphNode error_node = nullptr;
  CUgraphExecUpdateResult result;
  EXPECT_EQ(cuGraphExecUpdate(exec, unconnected, &error_node, &result), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  EXPECT_EQ(error_node, loose);
}

CUDA_MEM_ALLOC_NODE_PARAMS allocation(std::size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS parameters = {};
  parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  parameters.bytesize = bytes;
  return parameters;
}

DRIVER_TEST(GraphMemory, BelongsToTheGraphAndIsFreedOnce) {
  use_device();
  CUgraph graph = make_graph();
  const CUdeviceptr words = make_words(1);
  auto parameters = allocation(4);
  CUgraphNode allocated = nullptr;
  CUgraphNode copied = nullptr;
  CUgraphNode freed = nullptr;
  EXPECT_EQ(cuGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &parameters), CUDA_SUCCESS);
  CUgraphNode filled = add_fill(graph, parameters.dptr, 77, {allocated});
  const auto copy = copy_words(words, parameters.dptr, 1);
  EXPECT_EQ(cuGraphAddMemcpyNode(&copied, graph, &filled, 1, &copy, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphAddMemFreeNode(&freed, graph, &copied, 1, words), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddMemFreeNode(&freed, graph, &copied, 1, parameters.dptr), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphAddMemFreeNode(&freed, graph, &copied, 1, parameters.dptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddMemFreeNode(&freed, make_graph(), nullptr, 0, parameters.dptr), CUDA_ERROR_INVALID_VALUE);
  CUgraph clone = nullptr;
  CUgraphExec second = nullptr;
  EXPECT_EQ(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuGraphDestroyNode(filled), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec exec = instantiate(graph);
  EXPECT_EQ(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_INVALID_VALUE);
  for (int i = 0; i < 2; ++i) launch_and_wait(exec);
  EXPECT_EQ(word_at(words), 77U);
  EXPECT_EQ(cuMemFree_v2(parameters.dptr), CUDA_ERROR_INVALID_VALUE);
  cuuint64_t reserved = 0;
  EXPECT_EQ(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved), CUDA_SUCCESS);
  EXPECT_EQ(reserved, 4U);
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved), CUDA_SUCCESS);
  EXPECT_EQ(reserved, 0U);
}

cuuint64_t graph_memory_used() {
  cuuint64_t used = 0;
  EXPECT_EQ(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
  return used;
}

DRIVER_TEST(GraphMemory, StaysMappedBetweenLaunchesUntilItIsTrimmed) {
  use_device();
  CUgraph graph = make_graph();
  auto parameters = allocation(4);
  CUgraphNode allocated = nullptr;
  CUgraphNode freed = nullptr;
  ASSERT_EQ(cuGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &parameters), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddMemFreeNode(&freed, graph, &allocated, 1, parameters.dptr), CUDA_SUCCESS);
  CUgraphExec exec = instantiate(graph);
  EXPECT_EQ(graph_memory_used(), 0U);
  for (int i = 0; i < 3; ++i) {
    launch_and_wait(exec);
    EXPECT_EQ(graph_memory_used(), 4U);
  }
  EXPECT_EQ(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
  EXPECT_EQ(graph_memory_used(), 0U);
  launch_and_wait(exec);
  EXPECT_EQ(graph_memory_used(), 4U);
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(graph_memory_used(), 0U);
}

DRIVER_TEST(GraphMemory, WhatALaunchLeavesAllocatedMustBeFreedBeforeTheNext) {
  use_device();
  CUgraph graph = make_graph();
  auto parameters = allocation(4);
  CUgraphNode allocated = nullptr;
  EXPECT_EQ(cuGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &parameters), CUDA_SUCCESS);
  add_fill(graph, parameters.dptr, 5, {allocated});
  CUgraphExec exec = instantiate(graph);
  launch_and_wait(exec);
  EXPECT_EQ(word_at(parameters.dptr), 5U);
  EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeAsync(parameters.dptr, nullptr), CUDA_SUCCESS);
  launch_and_wait(exec);
  CUgraph frees = make_graph();
  CUgraphNode freed = nullptr;
  EXPECT_EQ(cuGraphAddMemFreeNode(&freed, frees, nullptr, 0, parameters.dptr), CUDA_SUCCESS);
  CUgraphExec freeing = instantiate(frees);
  launch_and_wait(freeing);
  EXPECT_EQ(cuGraphLaunch(freeing, nullptr), CUDA_ERROR_INVALID_VALUE);  // nothing to free
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  for (int i = 0; i < 2; ++i) launch_and_wait(exec);
  cuuint64_t used = graph_memory_used();
  EXPECT_EQ(used, 4U);
  EXPECT_EQ(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used), CUDA_ERROR_INVALID_VALUE);
  used = 0;
  EXPECT_EQ(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &used), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
  EXPECT_EQ(graph_memory_used(), 4U);  // not freed yet
  EXPECT_EQ(cuDeviceGraphMemTrim(7), CUDA_ERROR_INVALID_DEVICE);
  parameters.poolProps.location.id = 7;
  EXPECT_EQ(cuGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &parameters), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(GraphMemory, AGraphOfAnEndedContextTakesNobodysMemory) {
  use_device();
  CUgraph old_graph = make_graph();
  CUgraph graph = make_graph();
  CUgraphNode node = nullptr;
  auto old_memory = allocation(4);
  auto memory = allocation(4);
  ASSERT_EQ(cuGraphAddMemAllocNode(&node, old_graph, nullptr, 0, &old_memory), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  use_device();
  ASSERT_EQ(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &memory), CUDA_SUCCESS);
  ASSERT_EQ(memory.dptr, old_memory.dptr);
  launch_and_wait(instantiate(graph));
  EXPECT_EQ(cuGraphDestroy(old_graph), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(memory.dptr, nullptr), CUDA_SUCCESS);
}

DRIVER_TEST(UserObject, LivesAsLongAsAGraphOrALaunchNeedsIt) {
  use_device();
  int destroyed = 0;
  CUuserObject object = nullptr;
  const CUhostFn destroy = [](void* count) { ++*static_cast<int*>(count); };
  EXPECT_EQ(cuUserObjectCreate(&object, &destroyed, destroy, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuUserObjectCreate(&object, &destroyed, destroy, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
            CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuUserObjectCreate(&object, &destroyed, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), CUDA_SUCCESS);
  CUgraph graph = make_graph();
  add_fill(graph, make_words(1), 1);
  EXPECT_EQ(cuUserObjectRetain(object, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphReleaseUserObject(graph, object, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuUserObjectRelease(object, 1), CUDA_SUCCESS);
  CUgraphExec exec = instantiate(graph);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  Gate gate;
  gate.close(stream);
  EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(destroyed, 0);  // the launch has not run
  gate.open();
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
}

DRIVER_TEST(Graph, FaultsAndResetsReachLaunches) {
  use_device();
  CUgraph graph = make_graph();
  CUgraphNode node = nullptr;
  const auto described = kernel("trapping", nullptr);
  EXPECT_EQ(cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &described), CUDA_SUCCESS);
  CUgraphExec exec = instantiate(graph);
  EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  use_device();
  EXPECT_EQ(cuGraphLaunch(exec, nullptr), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

DRIVER_TEST(Graph, PrintsItselfForGraphviz) {
  use_device();
  CUgraph graph = make_graph();
  const CUdeviceptr words = make_words(1);
  add_one(graph, words, {add_fill(graph, words, 1)});
  const std::string path = std::string(::getenv("SOFTGPU_HOME")) + "-graph.dot";
  EXPECT_EQ(cuGraphDebugDotPrint(graph, path.c_str(), CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE), CUDA_SUCCESS);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_NE(text.str().find("add_one<<<(1, 1, 1)"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find(" -> "), std::string::npos);
  ::remove(path.c_str());
  EXPECT_EQ(cuGraphDebugDotPrint(graph, "/nonexistent/x.dot", 0), CUDA_ERROR_OPERATING_SYSTEM);
}

}  // namespace
