// Memory that belongs to graphs: its address is fixed when the allocation node is made and stays across launches.
//
// The memory is taken from the device when the node is made and given back when nothing names it any more: no node, no
// executable graph, no launch that left it allocated. Whether it is *live*, allocated by a launch and not freed yet, is
// kept in the order of the calls. Accesses outside that time are not caught.
//
// CU_GRAPH_MEM_ATTR_USED_MEM_* count what is *mapped*: from the first launch on, between launches too, until
// cuDeviceGraphMemTrim finds it not live or it is given back (CUDA programming guide, graph memory nodes, physical memory
// footprint). Example: a graph that allocates and frees 1 MiB uses 0 before its first launch, 1 MiB after it and after
// every other, 0 after a trim. Hardware counts in larger pieces, an H200 in 32 MiB.
#pragma once

#include <cstdint>
#include <memory>

#include "softgpu/driver/context/context.h"

namespace softgpu {

class GraphMemory {
 public:
  // Null when the device is full.
  static std::shared_ptr<GraphMemory> allocate(CUcontext context, std::uint64_t bytes);
  // The graph memory that begins at `address`, or null.
  static std::shared_ptr<GraphMemory> find(std::uint64_t address);
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  std::uint64_t address() const { return address_; }

  // Which graphs free it: its own, or others, and either only once.
  std::uint64_t owner_key = 0;  // of the graph that allocates it
  bool freed_by_owner = false;
  bool freed_by_others = false;

  bool live() const;
  // A launch allocates it, and maps it if it is not. REQUIRES: !live().
  void begin_life();
  // False when it is not live.
  bool end_life();

 private:
  GraphMemory(CUcontext context, std::uint64_t address, std::uint64_t bytes);

  const CUcontext context_;
  const std::uint64_t context_id_;
  const std::uint64_t address_;
  const std::uint64_t bytes_;
  std::shared_ptr<GraphMemory>
      self_;             // while live: the program may have destroyed the graph; under the registry's lock
  bool mapped_ = false;  // the same
  friend struct GraphMemoryRegistry;
};

// cuMemFree and cuMemFreeAsync on graph memory: it is no longer live; INVALID_VALUE when it was not.
CUresult free_graph_memory(std::uint64_t address);

}  // namespace softgpu
