// The memory of models on one device: blocks that other processes can map, and the hash of what lies in them.
//
// Example: a tensor of 150 MiB is three blocks of 64, 64 and 22 MiB, zeroed before anybody gets them: what lay there before
// may have been another tenant's. Programs write into them; hash() reads them back from the device, 16 MiB at a time.
//
// Threads: not thread-safe.
#pragma once

#include <sodium.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/context.h"
#include "gpu/shareable_memory.h"
#include "runtime/model_server/frames.h"

namespace fairlead::model_server {

class TensorMemory {
 public:
  static Result<std::unique_ptr<TensorMemory>> create(CudaContext& cuda, ShareableMemory shareable);
  ~TensorMemory();

  // Descriptors of its blocks, in order. kResourceExhausted: the device is full, and nothing was taken.
  Result<std::vector<UniqueFd>> add(std::uint64_t tensor, std::uint64_t bytes);
  void drop(std::uint64_t tensor);

  // Reads one piece of a tensor on: empty until the last. Of several tensors in any order.
  using Digest = std::array<std::uint8_t, 32>;
  Result<std::optional<Digest>> hash_on(std::uint64_t tensor);

 private:
  struct Block {
    CUmemGenericAllocationHandle memory;
    std::uint64_t bytes;
  };
  struct Tensor {
    std::uint64_t bytes = 0;
    std::vector<Block> blocks;
  };
  struct Hashing {
    std::uint64_t done = 0;
    crypto_generichash_state state;
  };

  TensorMemory(CudaContext& cuda, ShareableMemory shareable) : cuda_(cuda), shareable_(std::move(shareable)) {}
  // Calls use(address) while the block is mapped in the window.
  template <typename Use>
  Status with_mapped(const Block& block, Use use);
  Result<Block> make_block(std::uint64_t bytes);

  CudaContext& cuda_;
  ShareableMemory shareable_;
  CUdeviceptr window_ = 0;        // kBlockBytes of addresses
  bool is_window_stuck_ = false;  // a block could not be unmapped: the next needs other addresses
  CUstream stream_ = nullptr;
  char* staging_ = nullptr;  // pinned
  std::map<std::uint64_t, Tensor> tensors_;
  std::map<std::uint64_t, Hashing> hashing_;  // by tensor, from the first piece to the last
};

}  // namespace fairlead::model_server
