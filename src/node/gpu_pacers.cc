#include "node/gpu_pacers.h"

#include <algorithm>
#include <system_error>

#include "base/log.h"

namespace fairlead {
namespace {

void name(InstanceId instance, const std::string& what) {
  spdlog::warn("instance {} {}", instance.value(), what);
}

}  // namespace

GpuPacers::GpuPacers()
    : GpuPacers([](PaceDriverOptions options) { return std::make_unique<PaceDriver>(std::move(options)); }) {}

void GpuPacers::started(InstanceId instance, GpuId gpu, const PacedShare& share) {
  instances_[instance] = {gpu, share};
  suit(gpu);
}

void GpuPacers::set_share(InstanceId instance, const PacedShare& share) {
  const auto found = instances_.find(instance);
  if (found == instances_.end()) return;
  found->second.share = share;
  const GpuId gpu = found->second.gpu;
  if (const auto pacer = pacers_.find(gpu); pacer != pacers_.end()) pace(*pacer->second, instance, share);
  suit(gpu);
}

void GpuPacers::gone(InstanceId instance) {
  const auto found = instances_.extract(instance);
  if (found.empty()) return;
  const GpuId gpu = found.mapped().gpu;
  named_.erase(instance);
  std::erase_if(processes_, [&](const auto& process) { return process.second.instance == instance; });
  if (const auto pacer = pacers_.find(gpu); pacer != pacers_.end()) pacer->second->remove_instance(instance);
  suit(gpu);
}

void GpuPacers::process_came(InstanceId instance, std::uint64_t number, PaceDriver::Page page) {
  const auto found = instances_.find(instance);
  if (found == instances_.end()) return;
  const Process& process = processes_[number] = {instance, std::move(page)};
  if (const auto pacer = pacers_.find(found->second.gpu); pacer != pacers_.end()) pace(*pacer->second, number, process);
}

void GpuPacers::process_left(std::uint64_t number) {
  const auto found = processes_.extract(number);
  if (found.empty()) return;
  const auto instance = instances_.find(found.mapped().instance);
  if (instance == instances_.end()) return;
  if (const auto pacer = pacers_.find(instance->second.gpu); pacer != pacers_.end()) pacer->second->remove_page(number);
}

void GpuPacers::suit(GpuId gpu) {
  const bool is_wanted = std::any_of(instances_.begin(), instances_.end(), [&](const auto& instance) {
    return instance.second.gpu == gpu && has_quota(instance.second.share);
  });
  if (!is_wanted) {
    pacers_.erase(gpu);
    without_thread_.erase(gpu);
    return;
  }
  PaceDriver* const pacer = pacer_of(gpu);
  if (pacer == nullptr) return;
  for (const auto& [id, instance] : instances_) {
    if (instance.gpu == gpu && !pacer->knows(id)) pace(*pacer, id, instance.share);
  }
}

PaceDriver* GpuPacers::pacer_of(GpuId gpu) {
  if (const auto found = pacers_.find(gpu); found != pacers_.end()) return found->second.get();
  try {
    PaceDriver* const made = (pacers_[gpu] = make_({.named = name})).get();
    without_thread_.erase(gpu);
    return made;
  } catch (const std::system_error& error) {
    pacers_.erase(gpu);
    if (!without_thread_.insert(gpu).second) return nullptr;
    spdlog::error("device {} is not paced, quotas on it are not kept: no thread: {}; raise the limit of threads",
                  gpu.value(), error.what());
    return nullptr;
  }
}

void GpuPacers::warn_once(InstanceId instance, const std::string& why) {
  if (named_.insert(instance).second) spdlog::warn("instance {} is not paced: {}", instance.value(), why);
}

void GpuPacers::pace(PaceDriver& pacer, InstanceId instance, const PacedShare& share) {
  const bool is_new = !pacer.knows(instance);
  if (Status set = pacer.set_share(instance, share); !set) {
    warn_once(instance, set.error().message);
    return;
  }
  if (!is_new) return;
  for (const auto& [number, process] : processes_) {
    if (process.instance == instance) pace(pacer, number, process);
  }
}

void GpuPacers::pace(PaceDriver& pacer, std::uint64_t number, const Process& process) {
  if (Status added = pacer.add_page(process.instance, number, process.page); !added) {
    warn_once(process.instance, added.error().message);
  }
}

std::vector<std::pair<GpuId, PaceSnapshot>> GpuPacers::snapshot() const {
  std::vector<std::pair<GpuId, PaceSnapshot>> all;
  for (const auto& [gpu, pacer] : pacers_) all.emplace_back(gpu, pacer->snapshot());
  return all;
}

std::optional<ShareDelivery> GpuPacers::delivery(FlowId flow) const {
  const auto is_of_flow = [&](const auto& instance) { return instance.second.share.flow == flow; };
  if (std::none_of(instances_.begin(), instances_.end(), is_of_flow)) return std::nullopt;
  std::optional<DeliveredService> least;
  for (const auto& [gpu, pacer] : pacers_) {
    for (const DeliveredService& one : pacer->delivered()) {
      const bool had_work = one.state != PlaceState::kIdle || one.last_second > Duration(0);
      if (one.share.flow != flow || !had_work) continue;
      // Beside one that is promised something, those that take what they get do not matter.
      const auto rank = [](const DeliveredService& of) {
        return std::pair(of.share.request_percent == 0, of.last_second);
      };
      if (!least || rank(one) < rank(*least)) least = one;
    }
  }
  if (!least) return std::nullopt;
  return ShareDelivery{std::chrono::seconds(1), 100 * to_seconds(least->last_second)};
}

}  // namespace fairlead
