// Executable graphs.
#include <cstring>

#include "softgpu/driver/graph/captures.h"
#include "softgpu/driver/graph/executable.h"
#include "softgpu/driver/graph/parameters.h"

using softgpu::KernelLaunch;
using softgpu::StreamUse;
using softgpu::graph::check_graph;
using softgpu::graph::ChildGraph;
using softgpu::graph::Copy;
using softgpu::graph::Executable;
using softgpu::graph::Executables;
using softgpu::graph::Payload;

namespace {

constexpr cuuint64_t kInstantiateFlags = 15;

CUresult check_executable(CUgraphExec exec) {
  if (softgpu::Process::get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return Executables::valid(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_flags(cuuint64_t flags) {
  if ((flags & ~kInstantiateFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == 0) return CUDA_SUCCESS;
  const bool both = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  return both ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult instantiate(CUgraphExec* exec, CUgraph graph, cuuint64_t flags, softgpu::graph::InstantiateError& error) {
  std::unique_ptr<Executable> made;
  error.result = CUDA_GRAPH_INSTANTIATE_ERROR;
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_graph(graph));
  SOFTGPU_TRY(check_flags(flags));
  SOFTGPU_TRY(Executable::make(graph, flags, made, error));
  *exec = Executables::take();
  (*exec)->executable = std::move(made);
  return CUDA_SUCCESS;
}

// The description that the executable graph has for the node, of the wanted type.
template <typename Wanted>
CUresult current(CUgraphExec exec, CUgraphNode node, Payload& payload) {
  SOFTGPU_TRY(check_executable(exec));
  SOFTGPU_TRY(exec->executable->get_payload(node, payload));
  return std::holds_alternative<Wanted>(payload) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  softgpu::graph::InstantiateError error;
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = instantiate(exec, graph, parameters->flags, error);
  parameters->result_out = error.result;
  parameters->hErrNode_out = error.node;
  SOFTGPU_TRY(result);
  const bool upload = (parameters->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
  return upload ? cuGraphUpload(*exec, parameters->hUploadStream) : CUDA_SUCCESS;
}

// Without a stream there is nowhere to upload to.
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  softgpu::graph::InstantiateError error;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return CUDA_ERROR_INVALID_VALUE;
  return instantiate(exec, graph, flags, error);
}

CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log, size_t log_bytes) {
  softgpu::graph::InstantiateError error;
  const CUresult result = instantiate(exec, graph, 0, error);
  if (error_node != nullptr) *error_node = error.node;
  if (log != nullptr && log_bytes != 0) {
    const char* text = error.result == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE ? "the graph has a cycle" : "";
    std::strncpy(log, text, log_bytes);
    log[log_bytes - 1] = '\0';
  }
  return result;
}

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log, size_t log_bytes) {
  return cuGraphInstantiate_v2(exec, graph, error_node, log, log_bytes);
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  SOFTGPU_TRY(check_executable(exec));
  const std::shared_ptr<Executable> gone = std::move(exec->executable);
  Executables::give_back(exec);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_executable(exec));
  *flags = exec->executable->flags();
  return CUDA_SUCCESS;
}

// There is nothing to bring to the device.
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  StreamUse use;
  SOFTGPU_TRY(check_executable(exec));
  return softgpu::healthy_stream(stream, use);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  StreamUse use;
  SOFTGPU_TRY(check_executable(exec));
  SOFTGPU_TRY(softgpu::capturable_stream(stream, use));
  if (!use.capturing) return exec->executable->launch(use);
  CUgraph child = exec->executable->as_graph();
  if (child->owns_memory()) {
    softgpu::graph::destroy_graph(child);
    return softgpu::refuse_capturing(use);
  }
  child->child = true;
  return softgpu::graph::capture_operation(use, ChildGraph{child});
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
  SOFTGPU_TRY(check_executable(exec));
  SOFTGPU_TRY(check_graph(graph));
  return exec->executable->update(graph, *info);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node, CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info;
  if (error_node == nullptr || result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult error = cuGraphExecUpdate_v2(exec, graph, &info);
  *error_node = info.errorNode;
  *result = info.result;
  return error;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  SOFTGPU_TRY(check_executable(exec));
  return exec->executable->set_enabled(node, enabled != 0);
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled) {
  bool is_enabled = false;
  if (enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_executable(exec));
  SOFTGPU_TRY(exec->executable->get_enabled(node, is_enabled));
  *enabled = is_enabled ? 1 : 0;
  return CUDA_SUCCESS;
}

// ---- Parameters of one node ----

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
  Payload payload;
  SOFTGPU_TRY(current<KernelLaunch>(exec, node, payload));
  SOFTGPU_TRY(softgpu::graph::read_kernel(parameters, std::get<KernelLaunch>(payload).attributes, payload));
  return exec->executable->set_payload(node, std::move(payload));
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = softgpu::graph::widen(*parameters);
  return cuGraphExecKernelNodeSetParams_v2(exec, node, &wide);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* parameters,
                                        CUcontext context) {
  Payload payload;
  SOFTGPU_TRY(current<Copy>(exec, node, payload));
  const bool was_linear = softgpu::graph::is_linear(std::get<Copy>(payload).shape);
  SOFTGPU_TRY(softgpu::graph::read_copy(parameters, context, payload));
  if (!was_linear || !softgpu::graph::is_linear(*parameters)) return CUDA_ERROR_INVALID_VALUE;
  return exec->executable->set_payload(node, std::move(payload));
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS_v1* parameters, CUcontext context) {
  Payload payload;
  SOFTGPU_TRY(current<softgpu::graph::Fill>(exec, node, payload));
  SOFTGPU_TRY(softgpu::graph::read_fill(parameters, context, payload));
  return exec->executable->set_payload(node, std::move(payload));
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* parameters) {
  Payload payload;
  SOFTGPU_TRY(current<softgpu::graph::HostCall>(exec, node, payload));
  SOFTGPU_TRY(softgpu::graph::read_host(parameters, payload));
  return exec->executable->set_payload(node, std::move(payload));
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
  Payload payload;
  SOFTGPU_TRY(current<softgpu::graph::MemoryOperations>(exec, node, payload));
  SOFTGPU_TRY(softgpu::graph::read_operations(parameters, payload));
  return exec->executable->set_payload(node, std::move(payload));
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  Payload payload;
  SOFTGPU_TRY(current<softgpu::graph::EventRecord>(exec, node, payload));
  SOFTGPU_TRY(softgpu::graph::read_event(event, true, payload));
  return exec->executable->set_payload(node, std::move(payload));
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  Payload payload;
  SOFTGPU_TRY(current<softgpu::graph::EventWait>(exec, node, payload));
  SOFTGPU_TRY(softgpu::graph::read_event(event, false, payload));
  return exec->executable->set_payload(node, std::move(payload));
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  SOFTGPU_TRY(check_executable(exec));
  SOFTGPU_TRY(check_graph(child));
  return exec->executable->set_child(node, child);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* parameters) {
  Payload payload;
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (parameters->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    return cuGraphExecChildGraphNodeSetParams(exec, node, parameters->graph.graph);
  }
  SOFTGPU_TRY(check_executable(exec));
  SOFTGPU_TRY(exec->executable->get_payload(node, payload));
  const Payload old = payload;
  SOFTGPU_TRY(softgpu::graph::read_any(node->graph, parameters, &old, payload));
  return exec->executable->set_payload(node, std::move(payload));
}
