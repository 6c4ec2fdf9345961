// Graphs: captured and built node by node, launched many times, updated. What the documentation of cuGraph* states.
#include "softgpu/conformance/fields.h"
#include "softgpu/conformance/graph_scene.h"

namespace softgpu::conformance {
namespace {

constexpr int kCount = 512;

std::vector<unsigned> indices() {
  std::vector<unsigned> values(kCount);
  for (unsigned i = 0; i < kCount; ++i) values[i] = i;
  return values;
}

// Two streams: b begins after a's first kernel, and a ends after both.
void capture_fork_and_join(Test& test) {
  GraphScene scene(test);
  const CUstream a = scene.stream(CU_STREAM_NON_BLOCKING), b = scene.stream(CU_STREAM_NON_BLOCKING);
  const CUevent fork = scene.event(CU_EVENT_DISABLE_TIMING), join = scene.event(CU_EVENT_DISABLE_TIMING);
  const auto left = test.zeros<unsigned>(1), right = test.zeros<unsigned>(1);
  scene.begin(a);
  scene.launch("add_to", a, left, 1u);
  test.check(driver().cuEventRecord(fork, a), "cuEventRecord");
  test.check(driver().cuStreamWaitEvent(b, fork, 0), "cuStreamWaitEvent");
  scene.launch("add_to", b, right, 2u);
  scene.launch("add_to", a, left, 3u);
  test.check(driver().cuEventRecord(join, b), "cuEventRecord");
  test.check(driver().cuStreamWaitEvent(a, join, 0), "cuStreamWaitEvent");
  test.check(driver().cuMemcpyDtoDAsync(left.address, right.address, 4, a), "copy");
  const CUgraph graph = scene.end(a);
  test.equal("nothing ran", test.download(left), {0u});
  test.expect_value("nodes", static_cast<long long>(scene.nodes(graph)), 4);
  test.expect_value("edges", static_cast<long long>(scene.edges(graph)), 4);
  const CUgraphExec exec = scene.instantiate(graph);
  for (int i = 0; i < 3; ++i) scene.launch_graph(exec, a);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(a), CUDA_SUCCESS);
  test.equal("right", test.download(right), {26u});  // 2, 8, 26
  test.equal("left", test.download(left), {26u});
}

// Arguments are copied when a launch is captured.
void capture_copies_arguments(Test& test) {
  GraphScene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  const auto word = test.zeros<unsigned>(1);
  unsigned value = 4;
  CUdeviceptr address = word.address;
  void* parameters[] = {&address, &value};
  const CUfunction function = test.function("add_to");
  scene.begin(stream);
  test.check(driver().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), "cuLaunchKernel");
  value = 9, address = 0;
  const CUgraphExec exec = scene.instantiate(scene.end(stream));
  scene.launch_graph(exec, stream);
  scene.launch_graph(exec, stream);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.equal("4, then 16", test.download(word), {16u});
}

void count_call(void* data) {
  ++*static_cast<int*>(data);
}

// Fill, kernel, copy to the host, host function: each after the one before.
void explicit_nodes(Test& test) {
  GraphScene scene(test);
  const auto word = test.zeros<unsigned>(1);
  unsigned got = 0;
  int calls = 0;
  const CUgraph graph = scene.create();
  CUgraphNode fill = nullptr, copy = nullptr, call = nullptr;
  const CUDA_MEMSET_NODE_PARAMS_v1 fill_parameters{word.address, 0, 7, 4, 1, 1};
  test.check(driver().cuGraphAddMemsetNode(&fill, graph, nullptr, 0, &fill_parameters, scene.context()), "memset");
  const CUgraphNode kernel = scene.add_to_node(graph, {fill}, word.address, 2);
  CUDA_MEMCPY3D copy_parameters{};
  copy_parameters.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy_parameters.srcDevice = word.address;
  copy_parameters.dstMemoryType = CU_MEMORYTYPE_HOST, copy_parameters.dstHost = &got;
  copy_parameters.WidthInBytes = 4, copy_parameters.Height = 1, copy_parameters.Depth = 1;
  test.check(driver().cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &copy_parameters, scene.context()), "memcpy");
  const CUDA_HOST_NODE_PARAMS call_parameters{count_call, &calls};
  test.check(driver().cuGraphAddHostNode(&call, graph, &copy, 1, &call_parameters), "host");
  CUgraphNodeType type{};
  test.check(driver().cuGraphNodeGetType(call, &type), "cuGraphNodeGetType");
  test.expect_value("type", type, CU_GRAPH_NODE_TYPE_HOST);
  std::size_t roots = 0;
  test.check(driver().cuGraphGetRootNodes(graph, nullptr, &roots), "cuGraphGetRootNodes");
  test.expect_value("roots", static_cast<long long>(roots), 1);
  const CUgraphExec exec = scene.instantiate(graph);
  for (int i = 0; i < 5; ++i) scene.launch_graph(exec, nullptr);
  test.synchronize();
  test.expect_value("7 * 3 + 2", got, 23);
  test.expect_value("calls", calls, 5);
  test.expect(driver().cuGraphAddDependencies(graph, &fill, &kernel, nullptr, 1) != CUDA_SUCCESS,
              "an edge that exists is an error");
}

void long_chain(Test& test) {
  GraphScene scene(test);
  const auto word = test.zeros<unsigned>(1);
  const CUgraph graph = scene.create();
  std::vector<CUgraphNode> last;
  for (unsigned i = 0; i < 50; ++i) last = {scene.add_to_node(graph, last, word.address, i)};
  const CUgraphExec exec = scene.instantiate(graph);
  unsigned want = 0;
  for (int launch = 0; launch < 20; ++launch) {
    scene.launch_graph(exec, nullptr);
    for (unsigned i = 0; i < 50; ++i) want = want * 3 + i;
  }
  test.equal("1000 kernels in order", test.download(word), {want});
}

// New arguments for one node of an executable graph; the graph it came from keeps its own.
void update_of_a_node(Test& test) {
  GraphScene scene(test);
  const auto word = test.zeros<unsigned>(1), other = test.zeros<unsigned>(1);
  const CUgraph graph = scene.create();
  const CUgraphNode node = scene.add_to_node(graph, {}, word.address, 1);
  const CUgraphExec exec = scene.instantiate(graph);
  scene.launch_graph(exec, nullptr);
  KernelNode changed(test.function("add_to"), other.address, 5);
  test.expect_code("cuGraphExecKernelNodeSetParams",
                   driver().cuGraphExecKernelNodeSetParams(exec, node, changed.parameters()), CUDA_SUCCESS);
  scene.launch_graph(exec, nullptr);
  const CUgraphExec fresh = scene.instantiate(graph);
  scene.launch_graph(fresh, nullptr);
  test.equal("the graph's own", test.download(word), {4u});
  test.equal("the update", test.download(other), {5u});
  test.expect_code("cuGraphNodeSetEnabled", driver().cuGraphNodeSetEnabled(exec, node, 0), CUDA_SUCCESS);
  scene.launch_graph(exec, nullptr);
  test.equal("a node that is off does nothing", test.download(other), {5u});
}

void update_of_a_graph(Test& test) {
  GraphScene scene(test);
  const auto word = test.zeros<unsigned>(1);
  const CUgraph first = scene.create(), same_shape = scene.create(), longer = scene.create();
  scene.add_to_node(first, {}, word.address, 1);
  scene.add_to_node(same_shape, {}, word.address, 10);
  scene.add_to_node(longer, {scene.add_to_node(longer, {}, word.address, 1)}, word.address, 1);
  const CUgraphExec exec = scene.instantiate(first);
  CUgraphExecUpdateResultInfo info{};
  test.expect_code("the same shape", driver().cuGraphExecUpdate(exec, same_shape, &info), CUDA_SUCCESS);
  test.expect_value("result", info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  scene.launch_graph(exec, nullptr);
  test.equal("the new argument", test.download(word), {10u});
  test.expect_code("another shape", driver().cuGraphExecUpdate(exec, longer, &info),
                   CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  test.expect_value("result", info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  scene.launch_graph(exec, nullptr);
  test.equal("it still runs as it was", test.download(word), {40u});
}

// A child graph is cloned when it is added: what its graph becomes later does not matter.
void child_graph(Test& test) {
  GraphScene scene(test);
  const auto word = test.zeros<unsigned>(1);
  const CUgraph child = scene.create(), graph = scene.create();
  scene.add_to_node(child, {scene.add_to_node(child, {}, word.address, 2)}, word.address, 3);
  const CUgraphNode before = scene.add_to_node(graph, {}, word.address, 1);
  CUgraphNode node = nullptr;
  test.check(driver().cuGraphAddChildGraphNode(&node, graph, &before, 1, child), "cuGraphAddChildGraphNode");
  scene.add_to_node(child, {}, word.address, 100);
  scene.add_to_node(graph, {node}, word.address, 4);
  scene.launch_graph(scene.instantiate(graph), nullptr);
  test.equal("1, 5, 18, 58", test.download(word), {58u});
}

// Memory of a graph has one address for all launches, and is there from its allocation to its release.
// Bytes that graphs have mapped. They stay mapped between launches; how large the pieces are is the driver's business.
cuuint64_t mapped_by_graphs(Test& test) {
  cuuint64_t bytes = 0;
  test.check(driver().cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &bytes), "used memory");
  return bytes;
}

void memory_nodes(Test& test) {
  if (test.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0) return test.skip("no memory pools");
  GraphScene scene(test);
  constexpr std::size_t kBytes = 1 << 20;
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING);
  const auto out = test.zeros<unsigned>(kCount);
  CUdeviceptr address = 0;
  scene.begin(stream);
  test.check(driver().cuMemAllocAsync(&address, kBytes, stream), "cuMemAllocAsync");
  Shape shape{2, 256};
  shape.stream = stream;
  test.launch("store_index", shape, kCount, Buffer<unsigned>{address, kCount});
  test.check(driver().cuMemcpyDtoDAsync(out.address, address, 4 * kCount, stream), "copy");
  test.check(driver().cuMemFreeAsync(address, stream), "cuMemFreeAsync");
  const CUgraph graph = scene.end(stream);
  test.expect_value("nodes", static_cast<long long>(scene.nodes(graph)), 4);
  const CUgraphExec exec = scene.instantiate(graph);
  const cuuint64_t before = mapped_by_graphs(test);
  scene.launch_graph(exec, stream);
  test.expect_code("the first launch", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  const cuuint64_t mapped = mapped_by_graphs(test);
  test.expect(mapped >= before + kBytes, "the graph's memory stays mapped after a launch");
  test.observe("bytes that the graph maps", std::to_string(mapped - before));
  for (int i = 0; i < 3; ++i) scene.launch_graph(exec, stream);
  test.expect_code("cuStreamSynchronize", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
  test.equal("values", test.download(out), indices());
  test.expect(mapped_by_graphs(test) == mapped, "more launches map no more");
  test.expect_code("cuDeviceGraphMemTrim", driver().cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
  test.observe("bytes that are mapped after a trim", std::to_string(mapped_by_graphs(test)));
  scene.launch_graph(exec, stream);
  test.expect_code("a launch after the trim", driver().cuStreamSynchronize(stream), CUDA_SUCCESS);
}

// An event recorded in a graph is seen outside it, and a graph waits for events.
void event_nodes(Test& test) {
  GraphScene scene(test);
  const CUstream stream = scene.stream(CU_STREAM_NON_BLOCKING), other = scene.stream(CU_STREAM_NON_BLOCKING);
  const CUevent begin = scene.event(CU_EVENT_DISABLE_TIMING), end = scene.event(CU_EVENT_DISABLE_TIMING);
  const auto word = test.zeros<unsigned>(1);
  const CUgraph graph = scene.create();
  CUgraphNode wait = nullptr, record = nullptr;
  test.check(driver().cuGraphAddEventWaitNode(&wait, graph, nullptr, 0, begin), "cuGraphAddEventWaitNode");
  const CUgraphNode kernel = scene.add_to_node(graph, {wait}, word.address, 6);
  test.check(driver().cuGraphAddEventRecordNode(&record, graph, &kernel, 1, end), "cuGraphAddEventRecordNode");
  const CUgraphExec exec = scene.instantiate(graph);
  scene.hold(other);
  scene.launch("add_to", other, word, 1u);
  test.check(driver().cuEventRecord(begin, other), "cuEventRecord");
  scene.launch_graph(exec, stream);
  test.expect_code("the graph waits", driver().cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  test.expect_code("the event of the graph", driver().cuEventQuery(end), CUDA_ERROR_NOT_READY);
  scene.release();
  test.expect_code("cuEventSynchronize", driver().cuEventSynchronize(end), CUDA_SUCCESS);
  test.equal("1, then 9", test.download(word), {9u});
}

void clones(Test& test) {
  GraphScene scene(test);
  const auto word = test.zeros<unsigned>(1);
  const CUgraph graph = scene.create();
  const CUgraphNode node = scene.add_to_node(graph, {}, word.address, 1);
  CUgraph clone = nullptr;
  CUgraphNode cloned = nullptr;
  if (!test.check(driver().cuGraphClone(&clone, graph), "cuGraphClone")) return;
  test.expect_code("cuGraphNodeFindInClone", driver().cuGraphNodeFindInClone(&cloned, node, clone), CUDA_SUCCESS);
  KernelNode changed(test.function("add_to"), word.address, 8);
  test.expect_code("cuGraphKernelNodeSetParams", driver().cuGraphKernelNodeSetParams(cloned, changed.parameters()),
                   CUDA_SUCCESS);
  scene.launch_graph(scene.instantiate(graph), nullptr);
  scene.launch_graph(scene.instantiate(clone), nullptr);
  test.equal("1, then 11", test.download(word), {11u});
  test.expect_code("cuGraphDestroy", driver().cuGraphDestroy(clone), CUDA_SUCCESS);
}

constexpr Case kCases[] = {
    {"capture_fork_and_join", "driver", capture_fork_and_join},
    {"capture_copies_arguments", "driver", capture_copies_arguments},
    {"explicit_nodes", "driver", explicit_nodes},
    {"long_chain", "driver", long_chain},
    {"update_of_a_node", "driver", update_of_a_node},
    {"update_of_a_graph", "driver", update_of_a_graph},
    {"child_graph", "driver", child_graph},
    {"memory_nodes", "driver", memory_nodes},
    {"event_nodes", "driver", event_nodes},
    {"clones", "driver", clones},
};

}  // namespace

const Field kGraphs{"graphs", kCases};

}  // namespace softgpu::conformance
