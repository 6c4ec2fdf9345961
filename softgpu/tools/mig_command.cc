// softgpu mig: MIG mode and the instances of a GPU.
#include <cstdio>
#include <sstream>

#include "softgpu/device/clients.h"
#include "softgpu/device/key_value.h"
#include "softgpu/device/mig/partition.h"
#include "softgpu/tools/command.h"

namespace softgpu::tools {
namespace {

constexpr char kUsage[] =
    "usage: softgpu mig enable | disable | reset [--gpu N]\n"
    "       softgpu mig list | list-profiles [--gpu N]\n"
    "       softgpu mig create [--gpu N] PROFILE,PROFILE...     all of them, or none\n"
    "       softgpu mig destroy [--gpu N] ID,ID... | all        GPU instances by id";

// What every subcommand needs: the machine, its clients and the GPU.
struct Target {
  Machine machine;
  Clients clients;
  unsigned gpu = 0;

  Partition partition() const { return Partition(machine, clients, gpu); }
  const MigGeometry& geometry() const { return mig_geometry(machine, gpu); }
};

int report(MigError error) {
  return fail(text_of(error));
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

int set_mode(const Target& target, bool on) {
  const auto changed = target.partition().set_mode(on);
  if (changed) return 0;
  if (changed.error() == MigError::kResetRequired) {
    return fail("the GPU is in use: the mode is pending; end its processes, then `softgpu mig reset`");
  }
  return report(changed.error());
}

int reset_gpu(const Target& target) {
  const auto done = target.partition().reset();
  return done ? 0 : report(done.error());
}

int list_profiles(const Target& target) {
  const auto settings = read_settings(target.machine, target.gpu);
  if (!settings) return fail(settings.error());
  if (!target.geometry().supported()) return report(MigError::kNotSupported);
  std::printf("%-15s %3s %10s %5s %11s  %s\n", "profile", "id", "free/total", "SMs", "memory", "starts : size");
  for (const MigProfile& profile : target.geometry().profiles) {
    std::string starts;
    for (const unsigned start : profile.starts) starts += (starts.empty() ? "" : ",") + std::to_string(start);
    std::printf("%-15s %3u %6u/%-3u %5u %7llu MiB  {%s} : %u\n", profile.name.c_str(), profile.id,
                settings->mig.enabled() ? settings->mig.remaining(profile) : 0, profile.max_instances(),
                profile.sm_count, static_cast<unsigned long long>(profile.memory_mib), starts.c_str(),
                profile.memory_slices);
  }
  return 0;
}

int list(const Target& target) {
  const auto settings = read_settings(target.machine, target.gpu);
  if (!settings) return fail(settings.error());
  std::printf("GPU %u: MIG %s%s\n", target.gpu, settings->mig.enabled() ? "on" : "off",
              settings->mig.enabled() != settings->mig.pending() ? ", changes with the next reset" : "");
  for (const GpuInstance& instance : settings->mig.instances()) {
    std::printf("  GPU instance %2u  %-14s start %u, size %u\n", instance.id, instance.profile->name.c_str(),
                instance.start, instance.profile->memory_slices);
    for (const ComputeInstance& compute : instance.compute) {
      std::printf("    compute instance %u  %-14s MIG-%s\n", compute.id, instance_name(instance, compute).c_str(),
                  uuid_string(compute.uuid).c_str());
    }
  }
  return 0;
}

int create(const Target& target, const std::string& names) {
  std::vector<const MigProfile*> profiles;
  for (const std::string& name : split(names)) {
    const MigProfile* profile = target.geometry().find(name);
    if (profile == nullptr) return fail("'" + name + "' is no profile of this GPU: see `softgpu mig list-profiles`");
    profiles.push_back(profile);
  }
  const auto created = target.partition().create_all(profiles);
  return created ? list(target) : report(created.error());
}

int destroy(const Target& target, const std::string& ids) {
  const auto settings = read_settings(target.machine, target.gpu);
  if (!settings) return fail(settings.error());
  std::vector<unsigned> wanted;
  if (ids == "all") {
    for (const GpuInstance& instance : settings->mig.instances()) wanted.push_back(instance.id);
  } else {
    for (const std::string& text : split(ids)) {
      const auto id = parse_number("the id", text, 0, UINT32_MAX);
      if (!id) return fail(id.error());
      wanted.push_back(static_cast<unsigned>(*id));
    }
  }
  for (const unsigned id : wanted) {
    const auto destroyed = target.partition().destroy_with_compute(id);
    if (!destroyed) return fail("GPU instance " + std::to_string(id) + ": " + text_of(destroyed.error()));
  }
  return 0;
}

int run(const Target& target, const std::vector<std::string>& words) {
  const std::string& command = words.front();
  if (words.size() == 1) {
    if (command == "enable") return set_mode(target, true);
    if (command == "disable") return set_mode(target, false);
    if (command == "reset") return reset_gpu(target);
    if (command == "list") return list(target);
    if (command == "list-profiles") return list_profiles(target);
  } else if (words.size() == 2) {
    if (command == "create") return create(target, words[1]);
    if (command == "destroy") return destroy(target, words[1]);
  }
  return fail(kUsage);
}

}  // namespace

int mig(Arguments arguments) {
  const auto line = parse_command_line(arguments, {"gpu"});
  if (!line) return fail(line.error());
  if (line->words.empty()) return fail(kUsage);
  auto machine = open_machine();
  if (!machine) return fail(machine.error());
  const auto gpu = gpu_of(*line, *machine);
  if (!gpu) return fail(gpu.error());
  const auto clients = Clients::open(*machine);
  if (!clients) return fail(clients.error());
  const Target target{std::move(*machine), *clients, *gpu};
  return run(target, line->words);
}

}  // namespace softgpu::tools
