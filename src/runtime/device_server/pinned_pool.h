// Pinned host memory for what travels inside calls, in blocks of powers of two that are used again and again.
//
// Threads: not thread-safe.
#pragma once

#include <map>
#include <vector>

#include "gpu/context.h"

namespace fairlead {

class PinnedPool {
 public:
  struct Block {
    char* data = nullptr;
    std::uint64_t bytes = 0;
  };
  explicit PinnedPool(CudaContext& cuda) : cuda_(cuda) {}

  Result<Block> take(std::uint64_t bytes);
  void give_back(Block block);

 private:
  CudaContext& cuda_;
  std::map<std::uint64_t, std::vector<char*>> free_;  // by size
};

}  // namespace fairlead
