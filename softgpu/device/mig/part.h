// A part of the machine that programs see as one device: a whole GPU, or a compute instance of a GPU in MIG mode.
//
// Every part has files of its own. Compute instances share the memory of their GPU instance and nothing else; so the
// page table and the memory belong to the GPU instance (deviceN.giG.*), turn, users and statistics to the compute
// instance (deviceN.giG.ciC.control). For a whole GPU both are deviceN.*.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "softgpu/device/mig/gpu_settings.h"

namespace softgpu {

struct Part {
  struct MigIds {
    unsigned gpu_instance = 0;
    unsigned compute_instance = 0;
    bool operator==(const MigIds&) const = default;
  };

  unsigned gpu = 0;
  std::optional<MigIds> mig;       // nothing: the whole GPU
  Profile profile;                 // of the part: name, SMs, memory and bandwidth are its own
  std::uint64_t memory_bytes = 0;  // scaled
  Uuid uuid = {};
  std::string gpu_files;  // paths without their endings
  std::uint64_t gpu_page_count = 0;
  std::string memory_files;
  std::string compute_files;

  std::uint64_t page_count() const;
  // As tools write it: GPU-... or MIG-...
  std::string uuid_text() const;
};

Part whole_gpu(const Machine& machine, unsigned gpu);
Part mig_part(const Machine& machine, unsigned gpu, const GpuInstance& instance, const ComputeInstance& compute);
// All compute instances of a GPU, by ids.
std::vector<Part> mig_parts(const Machine& machine, unsigned gpu, const MigState& mig);

// Removes the files of a GPU instance, or of one compute instance of it, so that the next of that id starts afresh.
// What a process has mapped stays usable for it.
void remove_mig_files(const Machine& machine, unsigned gpu, unsigned gpu_instance);
void remove_mig_files(const Machine& machine, unsigned gpu, const Part::MigIds& ids);

}  // namespace softgpu
