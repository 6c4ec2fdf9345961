// What a graph's nodes do: one description per type of node, the same that a captured operation is turned into.
//
// A description is checked when the node is made, kept as the program gave it (the getters return it), and prepared, into
// something to call, when the graph is instantiated.
#pragma once

#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "softgpu/driver/launch/launch.h"

namespace softgpu {
class GraphMemory;
}

namespace softgpu::graph {

struct Copy {
  CUDA_MEMCPY3D shape = {};
  CUcontext context = nullptr;
};

struct ChildGraph {
  CUgraph graph = nullptr;  // owned by the node
};

struct Empty {};

struct EventRecord {
  CUevent event = nullptr;
};

struct EventWait {
  CUevent event = nullptr;
};

struct Allocate {
  CUDA_MEM_ALLOC_NODE_PARAMS parameters = {};
  std::vector<CUmemAccessDesc> access;
  std::shared_ptr<GraphMemory> memory;  // shared by the nodes and executable graphs that use it
};

struct Free {
  CUdeviceptr address = 0;
  std::shared_ptr<GraphMemory> memory;
};

struct MemoryOperations {
  CUcontext context = nullptr;
  std::vector<CUstreamBatchMemOpParams> operations;
  unsigned flags = 0;
};

using Payload = std::variant<Empty, KernelLaunch, Copy, CUDA_MEMSET_NODE_PARAMS_v2, CUDA_HOST_NODE_PARAMS, ChildGraph,
                             EventRecord, EventWait, Allocate, Free, MemoryOperations>;
using Fill = CUDA_MEMSET_NODE_PARAMS_v2;
using HostCall = CUDA_HOST_NODE_PARAMS;

CUgraphNodeType type_of(const Payload& payload);

// What executes the node, empty when there is nothing to call: structure, events and memory are the executable graph's.
// The error when the description is wrong, or has become so.
CUresult prepare(const Payload& payload, std::function<void()>& run);

}  // namespace softgpu::graph
