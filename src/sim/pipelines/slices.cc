#include "sim/pipelines/slices.h"

#include <algorithm>

#include "base/check.h"
#include "decide/pipeline/mig_geometry.h"

namespace fairlead::sim {

std::vector<SliceType> paper_types() {
  std::vector<SliceType> types;
  for (const SliceType& one : (*mig_geometry("a100-80"))->types()) {
    if (one.name != "1g2x" && one.name != "7g") types.push_back(one);
  }
  return types;
}

Result<std::vector<std::vector<int>>> partition_named(std::string_view name, int gpus) {
  std::vector<std::vector<int>> cycle;  // 1g, 2g, 3g, 4g
  if (name == "p1") cycle = {{1, 1, 0, 1}};
  if (name == "p2") cycle = {{0, 2, 1, 0}};
  if (name == "hybrid") {
    cycle = {{7, 0, 0, 0}, {1, 3, 0, 0}, {1, 3, 0, 0}, {0, 0, 1, 1},
             {0, 0, 1, 1}, {0, 0, 1, 1}, {0, 0, 1, 1}, {1, 1, 0, 1}};
  }
  if (cycle.empty() || gpus < 1) {
    return fail(Errc::kInvalidArgument, "partition is \"{}\" of {} GPUs, it must be p1, p2 or hybrid of at least one",
                name, gpus);
  }
  std::vector<std::vector<int>> all;
  for (int i = 0; i < gpus; ++i) all.push_back(cycle[static_cast<std::size_t>(i) % cycle.size()]);
  return all;
}

std::vector<int> all_slices(const std::vector<std::vector<int>>& gpus) {
  std::vector<int> all(gpus.front().size());
  for (const auto& gpu : gpus) {
    for (std::size_t type = 0; type < all.size(); ++type) all[type] += gpu[type];
  }
  return all;
}

SlicePool::SlicePool(const std::vector<std::vector<int>>& gpus) : free_(all_slices(gpus)), in_use_(gpus.size()) {
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    for (std::size_t type = 0; type < gpus[gpu].size(); ++type) {
      for (int i = 0; i < gpus[gpu][type]; ++i) slices_.push_back({.gpu = gpu, .type = type, .busy = {}});
    }
  }
}

std::size_t SlicePool::take(std::size_t type) {
  std::size_t best = slices_.size();
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    if (!slices_[i].is_free || slices_[i].type != type) continue;
    if (best == slices_.size() || in_use_[slices_[i].gpu] > in_use_[slices_[best].gpu]) best = i;
  }
  FL_CHECK(best < slices_.size(), "no slice of type {} is free", type);
  slices_[best].is_free = false;
  --free_[type];
  ++in_use_[slices_[best].gpu];
  return best;
}

void SlicePool::give_back(std::size_t slice) {
  FL_CHECK(!slices_[slice].is_free, "slice {} has no owner", slice);
  slices_[slice].is_free = true;
  ++free_[slices_[slice].type];
  --in_use_[slices_[slice].gpu];
}

void SlicePool::note_busy(std::size_t slice, Instant from, Instant to) {
  auto& busy = slices_[slice].busy;
  FL_CHECK(busy.empty() || from >= busy.back().second, "slice {} runs two things at a time", slice);
  if (!busy.empty() && from == busy.back().second) {
    busy.back().second = to;
  } else {
    busy.emplace_back(from, to);
  }
}

SlicePool::Active SlicePool::active() const {
  Active found;
  for (std::size_t gpu = 0; gpu < in_use_.size(); ++gpu) {
    std::vector<std::pair<Instant, Instant>> all;
    for (const Slice& one : slices_) {
      if (one.gpu != gpu) continue;
      for (const auto& [from, to] : one.busy) found.mig_s += to_seconds(to - from);
      all.insert(all.end(), one.busy.begin(), one.busy.end());
    }
    std::sort(all.begin(), all.end());
    Instant reached{};
    for (const auto& [from, to] : all) {
      if (to > reached) found.gpu_s += to_seconds(to - std::max(from, reached));
      reached = std::max(reached, to);
    }
  }
  return found;
}

}  // namespace fairlead::sim
