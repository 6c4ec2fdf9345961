// Which slices a GPU may be cut into: tables as data, and whether idle slices are worth cutting anew.
//
// A placement is a first memory slice and a number of them; two placements of a GPU do not overlap. A100: 4g only at 0, 3g at 0 and 4, 2g at 0,
// 2 and 4, 1g at 0 to 6. So 4g + 4g is impossible, 3g + 3g leaves a compute slice idle, and 7 x 1g leaves a memory slice idle.
// Placement sets to which nothing can be added: 18 of an A100 without the whole GPU, which are the paper's.
//
// Re-slicing (ours, off by default). An idle slice can be destroyed and made anew in about a second, beside busy neighbours that are not
// touched. It pays where what the new slices answer within `horizon`, less that second, is more than what the old ones would have.
//
// Source: NVML placements of A100, A30, H100; H200's are those of the same die. Pure values. Threads: any.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decide/pipeline/pipeline_model.h"

namespace fairlead {

struct MigProfile {
  SliceType type;
  int memory_slices = 1;
  std::vector<int> starts;
  std::string name;  // "1g.10gb"
};

struct MigGeometry {
  std::string gpu;  // "a100-80"
  int compute_slices = 7, memory_slices = 8;
  std::vector<MigProfile> profiles;  // smallest first; the double-memory 1g, "1g2x", after the 1g

  std::vector<SliceType> types() const;
  std::optional<std::size_t> find(std::string_view type) const;  // "4g" or "4g.40gb"
};

const std::vector<MigGeometry>& mig_geometries();
// kInvalidArgument names those that are known.
Result<const MigGeometry*> mig_geometry(std::string_view gpu);

struct MigPlacement {
  std::size_t profile = 0;
  int start = 0;
  bool operator==(const MigPlacement&) const = default;
};

// Placement sets to which nothing can be added beside `fixed`, in the order of their starts; `fixed` is part of each. Profiles for which `may`
// is false are not used.
std::vector<std::vector<MigPlacement>> maximal_placements(const MigGeometry& geometry,
                                                          const std::vector<MigPlacement>& fixed,
                                                          const std::function<bool(const MigProfile&)>& may);

// "4g,2g,1g" or "2x4g,1g": slices of each type. kInvalidArgument names what is not known.
Result<std::vector<int>> slices_from_text(const MigGeometry& geometry, std::string_view text);

struct MigSlice {
  MigPlacement placement;
  bool is_idle = false;
};
struct ResliceTerms {
  Duration takes = std::chrono::seconds(1);
  Duration horizon = std::chrono::seconds(10);  // for how long what is wanted now is expected to be wanted
  double least_gain = 1.1;                      // the new rate over the old one
};
// What the idle slices of one GPU become; nothing: they stay. Of equal rates that which leaves most slices as they are. `rate_of` says what
// slices of each type answer per second.
std::optional<std::vector<MigPlacement>> reslice(const MigGeometry& geometry, const std::vector<MigSlice>& slices,
                                                 const std::function<double(const std::vector<int>&)>& rate_of,
                                                 const ResliceTerms& terms = {});

}  // namespace fairlead
