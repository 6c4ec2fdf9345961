// The MIG slices of modelled A100 80 GB GPUs: who has which, and for how long each and each GPU was active.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decide/pipeline/planner.h"

namespace fairlead::sim {

// Types of an A100 80 GB in the order of their size, without the whole GPU and the double-memory 1g: what the paper's partitions are made of.
std::vector<SliceType> paper_types();
// Each GPU's slices, by type: "p1" 4g + 2g + 1g, "p2" 3g + 2g + 2g, "hybrid" the paper's eight GPUs in turns (Table 7). kInvalidArgument.
Result<std::vector<std::vector<int>>> partition_named(std::string_view name, int gpus);
std::vector<int> all_slices(const std::vector<std::vector<int>>& gpus);

class SlicePool {
 public:
  explicit SlicePool(const std::vector<std::vector<int>>& gpus);

  const std::vector<int>& free() const { return free_; }  // by type
  // A free slice of the type, of the GPU of which the most is in use. REQUIRES: one is free.
  std::size_t take(std::size_t type);
  void give_back(std::size_t slice);
  std::size_t type_of(std::size_t slice) const { return slices_[slice].type; }
  void note_busy(std::size_t slice, Instant from, Instant to);

  struct Active {
    double mig_s = 0, gpu_s = 0;  // slices, and GPUs of which any slice is active, in seconds
  };
  Active active() const;

 private:
  struct Slice {
    std::size_t gpu = 0, type = 0;
    bool is_free = true;
    std::vector<std::pair<Instant, Instant>> busy;
  };
  std::vector<Slice> slices_;
  std::vector<int> free_, in_use_;  // by type, by GPU
};

}  // namespace fairlead::sim
