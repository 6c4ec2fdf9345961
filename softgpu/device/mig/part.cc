#include "softgpu/device/mig/part.h"

#include <unistd.h>

#include <algorithm>

#include "softgpu/device/control.h"

namespace softgpu {
namespace {

std::string gpu_files(const Machine& machine, unsigned gpu) {
  return machine.path("device" + std::to_string(gpu));
}

std::string instance_files(const Machine& machine, unsigned gpu, unsigned gpu_instance) {
  return gpu_files(machine, gpu) + ".gi" + std::to_string(gpu_instance);
}

std::string compute_files(const Machine& machine, unsigned gpu, const Part::MigIds& ids) {
  return instance_files(machine, gpu, ids.gpu_instance) + ".ci" + std::to_string(ids.compute_instance);
}

}  // namespace

std::uint64_t Part::page_count() const {
  return std::max<std::uint64_t>(memory_bytes / kPageBytes, 1);
}

std::string Part::uuid_text() const {
  return (mig ? "MIG-" : "GPU-") + uuid_string(uuid);
}

Part whole_gpu(const Machine& machine, unsigned gpu) {
  Part part;
  part.gpu = gpu;
  part.profile = machine.profile(gpu);
  part.memory_bytes = machine.memory_bytes(gpu);
  part.uuid = device_uuid(machine, gpu);
  part.gpu_files = gpu_files(machine, gpu);
  part.gpu_page_count = part.page_count();
  part.memory_files = part.gpu_files;
  part.compute_files = part.memory_files;
  return part;
}

Part mig_part(const Machine& machine, unsigned gpu, const GpuInstance& instance, const ComputeInstance& compute) {
  const MigProfile& slice = *instance.profile;
  const MigGeometry& geometry = mig_geometry(machine, gpu);
  Part part = whole_gpu(machine, gpu);
  part.mig = Part::MigIds{instance.id, compute.id};
  part.uuid = compute.uuid;
  part.memory_files = instance_files(machine, gpu, instance.id);
  part.compute_files = compute_files(machine, gpu, *part.mig);
  part.memory_bytes = (slice.memory_mib << 20) / machine.memory_scale;
  Profile& profile = part.profile;
  const auto share = [&](std::uint64_t whole) {
    return std::max<std::uint64_t>(whole * slice.memory_slices / geometry.memory_slices, 1);
  };
  profile.name += " MIG " + instance_name(instance, compute);
  profile.sm_count = geometry.compute_sm_count(slice, compute.slices);
  profile.memory_mib = slice.memory_mib;
  profile.memory_bandwidth_gb_s = share(profile.memory_bandwidth_gb_s);
  profile.memory_bus_bits = share(profile.memory_bus_bits);
  profile.l2_kib = share(profile.l2_kib);
  return part;
}

std::vector<Part> mig_parts(const Machine& machine, unsigned gpu, const MigState& mig) {
  std::vector<Part> parts;
  for (const GpuInstance& instance : mig.instances()) {
    for (const ComputeInstance& compute : instance.compute) {
      parts.push_back(mig_part(machine, gpu, instance, compute));
    }
  }
  return parts;
}

void remove_mig_files(const Machine& machine, unsigned gpu, unsigned gpu_instance) {
  const std::string files = instance_files(machine, gpu, gpu_instance);
  ::unlink((files + ".control").c_str());
  ::unlink((files + ".memory").c_str());
}

void remove_mig_files(const Machine& machine, unsigned gpu, const Part::MigIds& ids) {
  ::unlink((compute_files(machine, gpu, ids) + ".control").c_str());
}

}  // namespace softgpu
