// Graphs with memory nodes: an allocation past the cap is refused when the node is made, what is there is counted when
// the graph has run.
#include "shim/hooks/graph_memory.h"
#include "shim/hooks/hook.h"
#include "shim/hooks/keys.h"
#include "shim/lock.h"
#include "shim/memory/memory.h"

namespace fairlead::shim {
namespace {

constinit std::atomic<bool> has_memory_nodes{false};
constinit Lock lock;  // of the difference between what is counted and what is reserved

bool fits(std::size_t bytes) {
  if (!memory::reserve(bytes)) return false;
  memory::unreserve(bytes);
  return true;
}

// `make` adds a node that allocates `bytes` whenever the graph runs.
template <typename Make>
CUresult add_memory_node(std::size_t bytes, Make make) {
  enter_process();
  if (!fits(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  expect_graph_memory();
  return make();
}

template <typename Real>
CUresult add_node(CUgraphNodeParams* parameters, Real real) {
  if (bypassed() || parameters == nullptr || parameters->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) return real();
  return add_memory_node(parameters->alloc.bytesize, real);
}

}  // namespace

void expect_graph_memory() {
  has_memory_nodes.store(true, std::memory_order_relaxed);
}

void count_graph_memory() {
  if (!has_memory_nodes.load(std::memory_order_relaxed) || bypassed()) return;
  const Bypass own_work;
  CUdevice device = 0;
  cuuint64_t reserved = 0;
  if (FAIRLEAD_REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return;
  const Guard guard(lock);
  if (FAIRLEAD_REAL(cuDeviceGetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) !=
      CUDA_SUCCESS) {
    return count_passed_through();
  }
  const std::uint64_t key = key_of(KeyKind::kGraphPool, static_cast<std::uint64_t>(device));
  memory::forget(key);
  if (reserved == 0) return;
  // It is there whether it fits or not; only what fits can be counted.
  if (memory::reserve(reserved)) {
    memory::record(key, reserved);
  } else {
    count_passed_through();
  }
}

}  // namespace fairlead::shim

using namespace fairlead::shim;

HOOK cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                            CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  const auto make = [&] { return FAIRLEAD_REAL(cuGraphAddMemAllocNode)(node, graph, dependencies, count, parameters); };
  if (bypassed() || parameters == nullptr) return make();
  return add_memory_node(parameters->bytesize, make);
}

HOOK cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                    CUgraphNodeParams* parameters) {
  return add_node(parameters,
                  [&] { return FAIRLEAD_REAL(cuGraphAddNode)(node, graph, dependencies, count, parameters); });
}

HOOK cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* edges,
                       size_t count, CUgraphNodeParams* parameters) {
  return add_node(parameters, [&] {
    return FAIRLEAD_REAL(cuGraphAddNode_v2)(node, graph, dependencies, edges, count, parameters);
  });
}

HOOK cuDeviceGraphMemTrim(CUdevice device) {
  const CUresult result = FAIRLEAD_REAL(cuDeviceGraphMemTrim)(device);
  count_graph_memory();
  return result;
}
