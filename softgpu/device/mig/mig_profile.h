// What a GPU can be cut into: the GPU instance profiles of one GPU type, from the `mig_` lines of its profile.
//
// A GPU has memory slices (8 on an A100) and slightly fewer compute slices (7). A GPU instance of a profile takes
// `memory_slices` neighbouring memory slices from one of its `starts` on, and `compute_slices` of the SMs. Two instances
// exclude each other exactly when their memory slices overlap: the starts are chosen so that the SMs then suffice.
//
// Example: on an A100-40, 3g.20gb takes slices 0-3 or 4-7. With one at 4, a 2g.10gb fits at 0 or 2, but no longer at 4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "softgpu/device/key_value.h"
#include "softgpu/device/result.h"

namespace softgpu {

struct MigProfile {
  std::string name;  // "3g.20gb"
  unsigned id = 0;   // as tools number it on this GPU type
  unsigned compute_slices = 0;
  unsigned memory_slices = 0;
  unsigned sm_count = 0;
  std::uint64_t memory_mib = 0;
  unsigned copy_engines = 0;
  unsigned decoders = 0;
  std::vector<unsigned> starts;  // ascending

  // Whether it has the GPU's media engines ("+me"), which only one instance can have.
  bool has_media() const { return name.ends_with("+me"); }
  // How many fit on an empty GPU.
  unsigned max_instances() const { return has_media() ? 1 : static_cast<unsigned>(starts.size()); }
};

struct MigGeometry {
  unsigned memory_slices = 0;        // 0: the GPU has no MIG
  std::vector<MigProfile> profiles;  // by compute slices, then memory

  bool supported() const { return memory_slices != 0; }
  const MigProfile* find(std::string_view name) const;
  const MigProfile* find_id(unsigned id) const;
  // SMs of a compute instance of `slices` in an instance of `profile`: all of it, or as many single slices.
  unsigned compute_sm_count(const MigProfile& profile, unsigned slices) const;
};

// Takes the `mig_` lines out of a profile's. Error: the key, and what is wrong.
Result<MigGeometry> take_mig_geometry(KeyValues& values);

}  // namespace softgpu
