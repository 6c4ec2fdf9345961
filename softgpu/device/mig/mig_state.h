// Which MIG instances exist on one GPU and what may be created where: a pure state machine, without files or clocks.
//
// GPU instances hold memory and SMs; compute instances within them share that memory and split the SMs; a program sees a
// compute instance as a device. Whether processes use an instance is not known here: the caller says so.
//
// An instance goes to the start that leaves the most possible starts of any profile for those that follow, the lowest
// of equals. Example, A100: the first 1g goes to 6 (it costs the starts 6 of 1g and 1g double, 4 of 3g, 0 of 7g), the
// next to 4, 5, 0, 1, 2, 3; the first 3g goes to 4, because 0 would cost 4g too. The vendor's tool prints the same.
//
// Ids come from the position, as if the slices were the leaves of a binary tree numbered from its root: 7g is 0, the
// halves are 1 and 2, the quarters 3 to 6, the slices 7 and on. They are reused; a UUID is new with every creation.
#pragma once

#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "softgpu/device/mig/mig_profile.h"
#include "softgpu/device/uuid.h"

namespace softgpu {

enum class MigError {
  kNotSupported,   // the GPU has no MIG
  kNotEnabled,     // MIG mode is off
  kInvalid,        // no such profile, start or id
  kInsufficient,   // it does not fit beside what exists
  kInUse,          // instances, or processes, are in the way
  kResetRequired,  // pending until the GPU is reset
  kNotFound,
  kState,  // the machine's state cannot be read or written
};
// The error in words, for users.
const char* text_of(MigError error);

template <typename T>
using MigResult = tl::expected<T, MigError>;

struct ComputeInstance {
  unsigned id = 0;
  unsigned start = 0;  // compute slice within the GPU instance
  unsigned slices = 0;
  Uuid uuid = {};
};

struct GpuInstance {
  unsigned id = 0;
  const MigProfile* profile = nullptr;
  unsigned start = 0;                    // memory slice
  std::vector<ComputeInstance> compute;  // by id

  const ComputeInstance* find(unsigned id) const;
};

// Not thread-safe. Refers to `geometry`, which must outlive it.
class MigState {
 public:
  explicit MigState(const MigGeometry& geometry) : geometry_(&geometry) {}

  const MigGeometry& geometry() const { return *geometry_; }
  bool enabled() const { return enabled_; }
  bool pending() const { return pending_; }                                 // the mode after the next reset
  const std::vector<GpuInstance>& instances() const { return instances_; }  // by id
  const GpuInstance* find(unsigned id) const;

  // Turns MIG on or off. With `needs_reset` (before Hopper) a GPU in use keeps its mode and kResetRequired tells that
  // the new one is pending; later GPUs refuse with kInUse. kInUse also while instances exist.
  MigResult<void> set_mode(bool on, bool in_use, bool needs_reset);
  // What a reset of the idle GPU does: the pending mode begins. Instances survive.
  void reset() { enabled_ = pending_; }

  // Where an instance of `profile` could begin now, ascending.
  std::vector<unsigned> free_starts(const MigProfile& profile) const;
  // How many more of `profile` fit beside what exists.
  unsigned remaining(const MigProfile& profile) const;

  // Creates an instance without compute instances, at `start` or where it leaves the most room.
  MigResult<unsigned> create(const MigProfile& profile, std::optional<unsigned> start = {});
  // Creates all of them or none, at starts where all fit. The ids, in the order of `profiles`.
  MigResult<std::vector<unsigned>> create_all(const std::vector<const MigProfile*>& profiles);
  // kInUse while it has compute instances.
  MigResult<void> destroy(unsigned id);

  // Where a compute instance of `slices` could begin in `instance` now; those in `possible` regardless of others.
  static std::vector<unsigned> possible_compute_starts(const GpuInstance& instance, unsigned slices);
  static std::vector<unsigned> free_compute_starts(const GpuInstance& instance, unsigned slices);
  MigResult<unsigned> create_compute(unsigned gpu_instance, unsigned slices, const Uuid& uuid,
                                     std::optional<unsigned> start = {});
  MigResult<void> destroy_compute(unsigned gpu_instance, unsigned id);

  // For reading a stored state back: as set_mode, without its conditions.
  void restore_mode(bool enabled, bool pending);
  // As create_compute, with the id given.
  MigResult<void> restore_compute(unsigned gpu_instance, const ComputeInstance& compute);

 private:
  unsigned id_at(const MigProfile& profile, unsigned start) const;
  std::size_t freedom() const;
  bool place_all(const std::vector<const MigProfile*>& profiles, const std::vector<std::size_t>& order,
                 std::size_t next, std::vector<unsigned>& ids);
  GpuInstance* find_mutable(unsigned id);
  std::vector<unsigned> starts_by_freedom(const MigProfile& profile);

  const MigGeometry* geometry_;
  bool enabled_ = false;
  bool pending_ = false;
  std::vector<GpuInstance> instances_;
};

// The instance's name as a program sees it: "3g.20gb", or "1c.3g.20gb" for a part of its SMs.
std::string instance_name(const GpuInstance& gpu, const ComputeInstance& compute);

}  // namespace softgpu
