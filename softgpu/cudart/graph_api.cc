// Graphs: capture, instantiation, launch.
#include "softgpu/cudart/api.h"

using softgpu::cudart::Driver;
using softgpu::cudart::in_context;
using softgpu::cudart::with_driver;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return in_context([&](const Driver& driver) { return driver.cuStreamBeginCapture(stream, mode); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return in_context([&](const Driver& driver) { return driver.cuStreamEndCapture(stream, graph); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  int value = cudaStreamCaptureStatusNone;
  const cudaError_t error =
      in_context([&](const Driver& driver) { return driver.cuStreamIsCapturing(stream, &value); });
  if (status != nullptr) *status = static_cast<cudaStreamCaptureStatus>(value);
  return error;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (mode == nullptr) return softgpu::cudart::report(cudaErrorInvalidValue);
  int value = *mode;
  const cudaError_t error =
      with_driver([&](const Driver& driver) { return driver.cuThreadExchangeStreamCaptureMode(&value); });
  *mode = static_cast<cudaStreamCaptureMode>(value);
  return error;
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return in_context([&](const Driver& driver) { return driver.cuGraphCreate(graph, flags); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return in_context([&](const Driver& driver) { return driver.cuGraphDestroy(graph); });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return in_context([&](const Driver& driver) { return driver.cuGraphClone(clone, graph); });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return in_context([&](const Driver& driver) { return driver.cuGraphGetNodes(graph, nodes, count); });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return in_context([&](const Driver& driver) { return driver.cuGraphGetRootNodes(graph, nodes, count); });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                  size_t count) {
  return in_context([&](const Driver& driver) { return driver.cuGraphAddEmptyNode(node, graph, dependencies, count); });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return in_context([&](const Driver& driver) { return driver.cuGraphDestroyNode(node); });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return in_context([&](const Driver& driver) { return driver.cuGraphInstantiateWithFlags(executable, graph, flags); });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(executable, graph, flags);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result) {
  return in_context([&](const Driver& driver) { return driver.cuGraphExecUpdate(executable, graph, result); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return in_context([&](const Driver& driver) { return driver.cuGraphExecDestroy(executable); });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  return in_context([&](const Driver& driver) { return driver.cuGraphUpload(executable, stream); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return in_context([&](const Driver& driver) { return driver.cuGraphLaunch(executable, stream); });
}
