#include "softgpu/driver/graph/parameters.h"

#include <algorithm>
#include <iterator>

#include "softgpu/driver/memory/graph_memory.h"

namespace softgpu::graph {
namespace {

static_assert(sizeof(CUgraphNodeParams) == 256);

// Keeps the description when it can be executed.
CUresult accept(Payload made, Payload& payload) {
  std::function<void()> run;
  SOFTGPU_TRY(prepare(made, run));
  payload = std::move(made);
  return CUDA_SUCCESS;
}

CUresult given_or_current(CUcontext& context) {
  if (context == nullptr) return current_context(context);
  return check_context(context);
}

CUresult check_pool(const CUDA_MEM_ALLOC_NODE_PARAMS& parameters) {
  const CUmemPoolProps& pool = parameters.poolProps;
  if (parameters.bytesize == 0 || (parameters.accessDescCount != 0 && parameters.accessDescs == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return pool.handleTypes == CU_MEM_HANDLE_TYPE_NONE ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

// A context on the device: the current one, else any.
CUresult context_on(int ordinal, CUcontext& context) {
  DriverDevice* device = nullptr;
  if (get_device(ordinal, device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(healthy_context(context));
  if (&context->owner() != device) context = find_context([&](CUctx_st& any) { return &any.owner() == device; });
  return context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1& p) {
  return {p.func,      p.gridDimX,       p.gridDimY,     p.gridDimZ, p.blockDimX, p.blockDimY,
          p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra,    nullptr,     nullptr};
}

CUresult read_kernel(const CUDA_KERNEL_NODE_PARAMS_v2* parameters, LaunchAttributes attributes, Payload& payload) {
  if (parameters == nullptr || (parameters->func == nullptr && parameters->kern == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUDA_KERNEL_NODE_PARAMS_v2& p = *parameters;
  const CUlaunchConfig shape = {p.gridDimX,  p.gridDimY,       p.gridDimZ, p.blockDimX, p.blockDimY,
                                p.blockDimZ, p.sharedMemBytes, nullptr,    nullptr,     0};
  KernelLaunch launch;
  if (p.func != nullptr) {
    SOFTGPU_TRY(describe_launch(shape, p.func, p.kernelParams, p.extra, std::move(attributes), launch));
  } else {  // a kernel of a library means a function once the context is known
    CUcontext context = p.ctx;
    SOFTGPU_TRY(given_or_current(context));
    context_stack().push_back(context);
    const CUresult result = describe_launch(shape, reinterpret_cast<CUfunction>(p.kern), p.kernelParams, p.extra,
                                            std::move(attributes), launch);
    context_stack().pop_back();
    SOFTGPU_TRY(result);
  }
  if (const auto* before = std::get_if<KernelLaunch>(&payload)) launch.most_sms = before->most_sms;
  payload = std::move(launch);
  return CUDA_SUCCESS;
}

CUresult read_copy(const CUDA_MEMCPY3D* parameters, CUcontext context, Payload& payload) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(given_or_current(context));
  return accept(Copy{*parameters, context}, payload);
}

CUresult read_fill(const CUDA_MEMSET_NODE_PARAMS_v1* parameters, CUcontext context, Payload& payload) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(given_or_current(context));
  const auto& p = *parameters;
  return accept(Fill{p.dst, p.pitch, p.value, p.elementSize, p.width, p.height, context}, payload);
}

CUresult read_host(const CUDA_HOST_NODE_PARAMS* parameters, Payload& payload) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return accept(*parameters, payload);
}

CUresult read_operations(const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters, Payload& payload) {
  if (parameters == nullptr || parameters->paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUcontext context = parameters->ctx;
  SOFTGPU_TRY(given_or_current(context));
  const auto* first = parameters->paramArray;
  return accept(MemoryOperations{context, {first, first + parameters->count}, parameters->flags}, payload);
}

CUresult read_event(CUevent event, bool record, Payload& payload) {
  return record ? accept(EventRecord{event}, payload) : accept(EventWait{event}, payload);
}

CUresult read_allocate(CUgraph graph, CUDA_MEM_ALLOC_NODE_PARAMS* parameters, Payload& payload) {
  CUcontext context = nullptr;
  if (parameters == nullptr || graph->child) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_pool(*parameters));
  SOFTGPU_TRY(context_on(parameters->poolProps.location.id, context));
  Allocate made;
  made.memory = GraphMemory::allocate(context, parameters->bytesize);
  if (made.memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made.memory->owner_key = graph->key;
  parameters->dptr = made.memory->address();
  std::copy_n(parameters->accessDescs, parameters->accessDescCount, std::back_inserter(made.access));
  made.parameters = *parameters;
  payload = std::move(made);
  return CUDA_SUCCESS;
}

CUresult read_free(CUgraph graph, CUdeviceptr address, Payload& payload) {
  const auto memory = GraphMemory::find(address);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool owner = memory->owner_key == graph->key;
  if (memory->freed_by_owner || (owner && memory->freed_by_others)) return CUDA_ERROR_INVALID_VALUE;
  const bool again = std::any_of(graph->nodes.begin(), graph->nodes.end(), [&](const auto& entry) {
    const auto* other = std::get_if<Free>(&entry.second->payload);
    return other != nullptr && other->address == address;
  });
  if (again) return CUDA_ERROR_INVALID_VALUE;
  (owner ? memory->freed_by_owner : memory->freed_by_others) = true;
  payload = Free{address, memory};
  return CUDA_SUCCESS;
}

CUresult read_child(CUgraph parent, CUgraph child, bool move, Payload& payload) {
  SOFTGPU_TRY(check_graph(child));
  if (child == parent || child->capturing || (move && child->child) || (!move && child->owns_memory())) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUgraph own = move ? child : clone_graph(child);
  own->child = true;
  payload = ChildGraph{own};
  return CUDA_SUCCESS;
}

CUresult read_any(CUgraph graph, CUgraphNodeParams* parameters, const Payload* old, Payload& payload) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const int reserved : parameters->reserved0) {
    if (reserved != 0) return CUDA_ERROR_INVALID_VALUE;
  }
  if (old != nullptr && type_of(*old) != parameters->type) return CUDA_ERROR_INVALID_VALUE;
  switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const auto* kernel = old != nullptr ? std::get_if<KernelLaunch>(old) : nullptr;
      return read_kernel(&parameters->kernel, kernel != nullptr ? kernel->attributes : LaunchAttributes(), payload);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return read_copy(&parameters->memcpy.copyParams, parameters->memcpy.copyCtx, payload);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& p = parameters->memset;
      const CUDA_MEMSET_NODE_PARAMS_v1 first = {p.dst, p.pitch, p.value, p.elementSize, p.width, p.height};
      return read_fill(&first, p.ctx, payload);
    }
    case CU_GRAPH_NODE_TYPE_HOST: return read_host(&parameters->host, payload);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return read_event(parameters->eventWait.event, false, payload);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return read_event(parameters->eventRecord.event, true, payload);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return read_operations(&parameters->memOp, payload);
    case CU_GRAPH_NODE_TYPE_EMPTY: payload = Empty{}; return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      if (old != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
      return read_child(graph, parameters->graph.graph,
                        parameters->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, payload);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return old == nullptr ? read_allocate(graph, &parameters->alloc, payload) : CUDA_ERROR_NOT_SUPPORTED;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return old == nullptr ? read_free(graph, parameters->free.dptr, payload) : CUDA_ERROR_NOT_SUPPORTED;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace softgpu::graph
