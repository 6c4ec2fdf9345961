// Nodes: making them, reading and setting their parameters.
#include <algorithm>
#include <set>

#include "softgpu/driver/code/module.h"
#include "softgpu/driver/graph/parameters.h"

using softgpu::KernelLaunch;
using softgpu::LaunchAttributes;
using softgpu::graph::Allocate;
using softgpu::graph::check_graph;
using softgpu::graph::check_node;
using softgpu::graph::ChildGraph;
using softgpu::graph::Copy;
using softgpu::graph::Empty;
using softgpu::graph::EventRecord;
using softgpu::graph::EventWait;
using softgpu::graph::Fill;
using softgpu::graph::Free;
using softgpu::graph::HostCall;
using softgpu::graph::MemoryOperations;
using softgpu::graph::Payload;
using softgpu::graph::payload_of;

namespace {

// The arguments that all calls have which add a node.
struct Place {
  CUgraphNode* node = nullptr;
  CUgraph graph = nullptr;
  const CUgraphNode* dependencies = nullptr;
  size_t count = 0;
  const CUgraphEdgeData* data = nullptr;
};

bool has_duplicates(const std::vector<softgpu::graph::Topology::Link>& links) {
  std::set<softgpu::graph::NodeId> seen;
  return !std::all_of(links.begin(), links.end(), [&](const auto& link) { return seen.insert(link.node).second; });
}

// Adds a node with the description that `read` makes; nothing of it stays when there is an error.
template <typename Read>
CUresult add(const Place& place, Read read) {
  Payload payload;
  std::vector<softgpu::graph::Topology::Link> links;
  if (place.node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(check_graph(place.graph));
  SOFTGPU_TRY(softgpu::graph::read_links(place.graph, place.dependencies, place.data, place.count, links));
  if (has_duplicates(links)) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(read(payload));
  return softgpu::graph::add_node(place.graph, links, std::move(payload), *place.node);
}

// The node's parameters as the program sees them: pointers into the description, which lives as long as the node does
// and is not changed.
template <typename Parameters>
void write_kernel(CUgraphNode node, const KernelLaunch& launch, Parameters& out) {
  const auto& info = launch.function->kernel->info();
  node->parameter_pointers.clear();
  for (const auto& parameter : info.parameters) {
    const auto* bytes = launch.parameters.data() + parameter.offset;
    node->parameter_pointers.push_back(const_cast<std::byte*>(bytes));
  }
  out = {};
  out.func = launch.function;
  out.gridDimX = launch.shape.gridDimX;
  out.gridDimY = launch.shape.gridDimY;
  out.gridDimZ = launch.shape.gridDimZ;
  out.blockDimX = launch.shape.blockDimX;
  out.blockDimY = launch.shape.blockDimY;
  out.blockDimZ = launch.shape.blockDimZ;
  out.sharedMemBytes = launch.shape.sharedMemBytes;
  out.kernelParams = node->parameter_pointers.empty() ? nullptr : node->parameter_pointers.data();
}

template <typename Parameters>
CUresult get_kernel(CUgraphNode node, Parameters* parameters) {
  KernelLaunch* launch = nullptr;
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(payload_of(node, launch));
  if (!softgpu::Functions::valid(launch->function)) return CUDA_ERROR_INVALID_HANDLE;
  write_kernel(node, *launch, *parameters);
  return CUDA_SUCCESS;
}

}  // namespace

// ---- Any type ----

CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* data, size_t count, CUgraphNodeParams* parameters) {
  return add({node, graph, dependencies, count, data},
             [&](Payload& payload) { return softgpu::graph::read_any(graph, parameters, nullptr, payload); });
}

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                        CUgraphNodeParams* parameters) {
  return cuGraphAddNode_v2(node, graph, dependencies, nullptr, count, parameters);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* parameters) {
  SOFTGPU_TRY(check_node(node));
  return softgpu::graph::read_any(node->graph, parameters, &node->payload, node->payload);
}

// ---- Kernels ----

CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
  return add({node, graph, dependencies, count},
             [&](Payload& payload) { return softgpu::graph::read_kernel(parameters, {}, payload); });
}

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = softgpu::graph::widen(*parameters);
  return cuGraphAddKernelNode_v2(node, graph, dependencies, count, &wide);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
  SOFTGPU_TRY(get_kernel(node, parameters));
  parameters->ctx = parameters->func->module->context;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return get_kernel(node, parameters);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
  KernelLaunch* launch = nullptr;
  SOFTGPU_TRY(payload_of(node, launch));
  return softgpu::graph::read_kernel(parameters, launch->attributes, node->payload);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = softgpu::graph::widen(*parameters);
  return cuGraphKernelNodeSetParams_v2(node, &wide);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUlaunchAttributeID attribute, CUlaunchAttributeValue* value) {
  KernelLaunch* launch = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(payload_of(node, launch));
  const auto found = launch->attributes.find(attribute);
  if (found == launch->attributes.end()) return softgpu::default_attribute(attribute, *value);
  *value = found->second;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUlaunchAttributeID attribute,
                                       const CUlaunchAttributeValue* value) {
  KernelLaunch* launch = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(payload_of(node, launch));
  SOFTGPU_TRY(softgpu::check_attribute(attribute, *value));
  if (softgpu::records_events({{attribute, *value}})) return CUDA_ERROR_NOT_SUPPORTED;
  launch->attributes[attribute] = *value;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode target, CUgraphNode source) {
  KernelLaunch* to = nullptr;
  KernelLaunch* from = nullptr;
  SOFTGPU_TRY(payload_of(target, to));
  SOFTGPU_TRY(payload_of(source, from));
  to->attributes = from->attributes;
  return CUDA_SUCCESS;
}

// ---- Copies and fills ----

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMCPY3D* parameters, CUcontext context) {
  return add({node, graph, dependencies, count},
             [&](Payload& payload) { return softgpu::graph::read_copy(parameters, context, payload); });
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* parameters) {
  Copy* copy = nullptr;
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(payload_of(node, copy));
  *parameters = copy->shape;
  return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* parameters) {
  Copy* copy = nullptr;
  SOFTGPU_TRY(payload_of(node, copy));
  return softgpu::graph::read_copy(parameters, copy->context, node->payload);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS_v1* parameters, CUcontext context) {
  return add({node, graph, dependencies, count},
             [&](Payload& payload) { return softgpu::graph::read_fill(parameters, context, payload); });
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v1* parameters) {
  Fill* fill = nullptr;
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(payload_of(node, fill));
  *parameters = {fill->dst, fill->pitch, fill->value, fill->elementSize, fill->width, fill->height};
  return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1* parameters) {
  Fill* fill = nullptr;
  SOFTGPU_TRY(payload_of(node, fill));
  return softgpu::graph::read_fill(parameters, fill->ctx, node->payload);
}

// ---- Host functions and memory operations ----

CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                            const CUDA_HOST_NODE_PARAMS* parameters) {
  return add({node, graph, dependencies, count},
             [&](Payload& payload) { return softgpu::graph::read_host(parameters, payload); });
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* parameters) {
  HostCall* call = nullptr;
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(payload_of(node, call));
  *parameters = *call;
  return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* parameters) {
  HostCall* call = nullptr;
  SOFTGPU_TRY(payload_of(node, call));
  return softgpu::graph::read_host(parameters, node->payload);
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
  return add({node, graph, dependencies, count},
             [&](Payload& payload) { return softgpu::graph::read_operations(parameters, payload); });
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
  MemoryOperations* batch = nullptr;
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(payload_of(node, batch));
  const auto count = static_cast<unsigned>(batch->operations.size());
  *parameters = {batch->context, count, batch->operations.data(), batch->flags};
  return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
  MemoryOperations* batch = nullptr;
  SOFTGPU_TRY(payload_of(node, batch));
  return softgpu::graph::read_operations(parameters, node->payload);
}

// ---- Structure ----

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                  CUgraph child) {
  return add({node, graph, dependencies, count},
             [&](Payload& payload) { return softgpu::graph::read_child(graph, child, false, payload); });
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  ChildGraph* child = nullptr;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(payload_of(node, child));
  *graph = child->graph;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count) {
  return add({node, graph, dependencies, count}, [](Payload&) { return CUDA_SUCCESS; });
}

// ---- Events ----

CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                   CUevent event) {
  return add({node, graph, dependencies, count},
             [&](Payload& payload) { return softgpu::graph::read_event(event, true, payload); });
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                 CUevent event) {
  return add({node, graph, dependencies, count},
             [&](Payload& payload) { return softgpu::graph::read_event(event, false, payload); });
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  EventRecord* record = nullptr;
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(payload_of(node, record));
  *event = record->event;
  return CUDA_SUCCESS;
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  EventWait* wait = nullptr;
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(payload_of(node, wait));
  *event = wait->event;
  return CUDA_SUCCESS;
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  EventRecord* record = nullptr;
  SOFTGPU_TRY(payload_of(node, record));
  return softgpu::graph::read_event(event, true, node->payload);
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  EventWait* wait = nullptr;
  SOFTGPU_TRY(payload_of(node, wait));
  return softgpu::graph::read_event(event, false, node->payload);
}

// ---- Memory ----

CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  return add({node, graph, dependencies, count},
             [&](Payload& payload) { return softgpu::graph::read_allocate(graph, parameters, payload); });
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  Allocate* allocate = nullptr;
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(payload_of(node, allocate));
  *parameters = allocate->parameters;
  parameters->accessDescs = allocate->access.data();
  return CUDA_SUCCESS;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                               CUdeviceptr address) {
  return add({node, graph, dependencies, count},
             [&](Payload& payload) { return softgpu::graph::read_free(graph, address, payload); });
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  Free* free = nullptr;
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SOFTGPU_TRY(payload_of(node, free));
  *address = free->address;
  return CUDA_SUCCESS;
}
