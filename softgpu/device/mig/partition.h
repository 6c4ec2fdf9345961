// Changes of a GPU's MIG partition and compute mode in the machine that all processes share. Each call is one change
// under the lock of the machine's folder: it happens as a whole or not at all, also when the process is killed half-way.
#pragma once

#include "softgpu/device/clients.h"
#include "softgpu/device/mig/gpu_settings.h"
#include "softgpu/device/mig/part.h"

namespace softgpu {

// Thread-safe. Refers to its arguments, which must outlive it. kState: the settings cannot be read or written, which
// is explained on stderr.
class Partition {
 public:
  Partition(const Machine& machine, const Clients& clients, unsigned gpu)
      : machine_(machine), clients_(clients), gpu_(gpu) {}

  // See MigState::set_mode. In use: by any process with a context on the GPU.
  MigResult<void> set_mode(bool on);
  // The pending MIG mode begins. kInUse while a process has a context on the GPU.
  MigResult<void> reset();
  MigResult<void> set_compute_mode(ComputeMode mode);

  MigResult<unsigned> create(const MigProfile& profile, std::optional<unsigned> start);
  // GPU instances of these profiles, each with one compute instance of all its SMs; all or none. Their ids.
  MigResult<std::vector<unsigned>> create_all(const std::vector<const MigProfile*>& profiles);
  MigResult<unsigned> create_compute(unsigned gpu_instance, unsigned slices, std::optional<unsigned> start);
  // kInUse while it has compute instances.
  MigResult<void> destroy(unsigned gpu_instance);
  // kInUse while a process has a context on it.
  MigResult<void> destroy_compute(const Part::MigIds& ids);
  // The GPU instance and its compute instances, together.
  MigResult<void> destroy_with_compute(unsigned gpu_instance);

 private:
  template <typename Change>
  auto changed(Change change) -> decltype(change(std::declval<GpuSettings&>()));
  MigResult<bool> in_use(const Part& part) const;
  MigResult<bool> gpu_in_use(const GpuSettings& settings) const;
  MigResult<void> remove_compute(MigState& mig, const Part::MigIds& ids);

  const Machine& machine_;
  const Clients& clients_;
  const unsigned gpu_;
};

}  // namespace softgpu
