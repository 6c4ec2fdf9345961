// A scene with graphs: capture, nodes, executable graphs, which end with it.
#pragma once

#include "softgpu/conformance/scene.h"

namespace softgpu::conformance {

// The parameters of a node that launches add_to(address, value) once. They live as long as the object.
class KernelNode {
 public:
  KernelNode(CUfunction function, CUdeviceptr address, unsigned value) : address_(address), value_(value) {
    node_.func = function;
    node_.gridDimX = node_.gridDimY = node_.gridDimZ = 1;
    node_.blockDimX = node_.blockDimY = node_.blockDimZ = 1;
    node_.kernelParams = arguments_;
  }
  KernelNode(const KernelNode&) = delete;
  KernelNode& operator=(const KernelNode&) = delete;
  const CUDA_KERNEL_NODE_PARAMS_v2* parameters() const { return &node_; }

 private:
  CUdeviceptr address_;
  unsigned value_;
  void* arguments_[2] = {&address_, &value_};
  CUDA_KERNEL_NODE_PARAMS_v2 node_{};
};

class GraphScene : public Scene {
 public:
  explicit GraphScene(Test& test) : Scene(test), test_(test) { driver().cuCtxGetCurrent(&context_); }
  ~GraphScene() {
    release();
    driver().cuCtxSynchronize();
    for (const CUgraphExec exec : execs_) driver().cuGraphExecDestroy(exec);
    for (const CUgraph graph : graphs_) driver().cuGraphDestroy(graph);
  }
  GraphScene(const GraphScene&) = delete;
  GraphScene& operator=(const GraphScene&) = delete;

  CUcontext context() const { return context_; }
  CUgraph create() {
    CUgraph graph = nullptr;
    if (test_.check(driver().cuGraphCreate(&graph, 0), "cuGraphCreate")) graphs_.push_back(graph);
    return graph;
  }
  void begin(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    if (test_.ok()) test_.check(driver().cuStreamBeginCapture(stream, mode), "cuStreamBeginCapture");
  }
  CUgraph end(CUstream stream) {
    CUgraph graph = nullptr;
    const CUresult result = driver().cuStreamEndCapture(stream, &graph);
    if (graph != nullptr) graphs_.push_back(graph);
    test_.check(result, "cuStreamEndCapture");
    return graph;
  }
  CUgraphNode add_to_node(CUgraph graph, const std::vector<CUgraphNode>& after, CUdeviceptr address, unsigned value) {
    const KernelNode parameters(test_.function("add_to"), address, value);
    CUgraphNode node = nullptr;
    if (test_.ok()) {
      test_.check(driver().cuGraphAddKernelNode(&node, graph, after.data(), after.size(), parameters.parameters()),
                  "cuGraphAddKernelNode");
    }
    return node;
  }
  std::size_t nodes(CUgraph graph) {
    std::size_t count = 0;
    if (test_.ok()) test_.check(driver().cuGraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes");
    return count;
  }
  std::size_t edges(CUgraph graph) {
    std::size_t count = 0;
    if (test_.ok()) test_.check(driver().cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count), "cuGraphGetEdges");
    return count;
  }
  CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    if (test_.ok() && test_.check(driver().cuGraphInstantiate(&exec, graph, 0), "cuGraphInstantiate")) {
      execs_.push_back(exec);
    }
    return exec;
  }
  void launch_graph(CUgraphExec exec, CUstream stream) {
    if (test_.ok()) test_.check(driver().cuGraphLaunch(exec, stream), "cuGraphLaunch");
  }

 private:
  Test& test_;
  CUcontext context_ = nullptr;
  std::vector<CUgraph> graphs_;
  std::vector<CUgraphExec> execs_;
};

}  // namespace softgpu::conformance
