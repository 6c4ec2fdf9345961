// From the parameters of the driver's calls to descriptions of nodes (payload.h). Each of them checks everything that can
// be checked without the graph: the errors are those of the operation itself.
#pragma once

#include "softgpu/driver/graph/graph.h"

namespace softgpu::graph {

CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1& parameters);

// `attributes` are kept: parameters and attributes of a kernel node are set apart.
CUresult read_kernel(const CUDA_KERNEL_NODE_PARAMS_v2* parameters, LaunchAttributes attributes, Payload& payload);
// A null context is the current one.
CUresult read_copy(const CUDA_MEMCPY3D* parameters, CUcontext context, Payload& payload);
CUresult read_fill(const CUDA_MEMSET_NODE_PARAMS_v1* parameters, CUcontext context, Payload& payload);
CUresult read_host(const CUDA_HOST_NODE_PARAMS* parameters, Payload& payload);
CUresult read_operations(const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters, Payload& payload);
CUresult read_event(CUevent event, bool record, Payload& payload);
// Also takes the memory, and says where in parameters->dptr. OUT_OF_MEMORY when the device is full.
CUresult read_allocate(CUgraph graph, CUDA_MEM_ALLOC_NODE_PARAMS* parameters, Payload& payload);
// Also notes that a node of `graph` frees the memory.
CUresult read_free(CUgraph graph, CUdeviceptr address, Payload& payload);
// With `move` the graph becomes the node's, else a clone of it does.
CUresult read_child(CUgraph parent, CUgraph child, bool move, Payload& payload);

// Parameters of any type. `old` is the node's description when it exists already: its type may not change.
CUresult read_any(CUgraph graph, CUgraphNodeParams* parameters, const Payload* old, Payload& payload);

}  // namespace softgpu::graph
