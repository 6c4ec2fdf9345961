#include "node/gpu_pacers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/log.h"

namespace fairlead {
namespace {

void name(InstanceId instance, const std::string& what) {
  spdlog::warn("instance {} {}", instance.value(), what);
}

// The pacers count by powers of two of a microsecond, people are told by powers of four.
GateWaits in_buckets(const WaitHistogram& waits) {
  GateWaits told{.total = waits.total()};
  if (waits.count() == 0) return told;
  constexpr std::size_t kBounds = std::size(kGateWaitBucketsSeconds);
  told.histogram.assign(kBounds + 1, 0);
  for (std::size_t i = 0; i < WaitHistogram::kBuckets; ++i) {
    told.histogram[std::min((i + 1) / 2, kBounds)] += waits.buckets()[i];
  }
  return told;
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
  if (const auto pacer = pacers_.find(gpu); pacer != pacers_.end()) {
    pace(*pacer->second, instance, share_of(found->second));
  }
  suit(gpu);
}

void GpuPacers::size(InstanceId instance, const KernelSize& kernels) {
  const auto found = instances_.find(instance);
  if (found == instances_.end()) return;
  found->second.kernels = kernels;
  resize(found->second.gpu);
}

PacedShare GpuPacers::share_of(const Instance& instance) const {
  PacedShare share = instance.share;
  if (!instance.kernels) return share;
  share.width_percent =
      may_be_narrow(instance.gpu) ? std::min(share.width_percent, instance.kernels->width_percent) : kWholeDevice;
  return share;
}

// Two servers are two processes: where those take turns a kernel has all of the device in its turn, and nobody may count on the rest.
bool GpuPacers::may_be_narrow(GpuId gpu) const {
  if (are_side_by_side_) return true;
  std::optional<std::uint64_t> server;
  return std::ranges::all_of(instances_, [&](const auto& entry) {
    const Instance& instance = entry.second;
    if (instance.gpu != gpu || !instance.kernels) return true;
    return std::exchange(server, instance.kernels->server).value_or(instance.kernels->server) ==
           instance.kernels->server;
  });
}

// Those who were told another width: whether they may be narrow depends on all that are there.
void GpuPacers::resize(GpuId gpu) {
  const auto pacer = pacers_.find(gpu);
  if (pacer == pacers_.end()) return;
  for (auto& [id, instance] : instances_) {
    if (instance.gpu == gpu && instance.kernels) pace(*pacer->second, id, share_of(instance));
  }
}

void GpuPacers::gone(InstanceId instance) {
  const auto found = instances_.extract(instance);
  if (found.empty()) return;
  const GpuId gpu = found.mapped().gpu;
  named_.erase(instance);
  told_.erase(instance);
  std::erase_if(processes_, [&](const auto& process) { return process.second.instance == instance; });
  if (const auto pacer = pacers_.find(gpu); pacer != pacers_.end()) {
    keep_waits(*pacer->second, instance);
    pacer->second->remove_instance(instance);
  }
  resize(gpu);
  suit(gpu);
}

void GpuPacers::process_came(InstanceId instance, std::uint64_t number, PaceDriver::Page page,
                             PaceDriver::LetIn let_in) {
  const auto found = instances_.find(instance);
  if (found == instances_.end()) return;
  const Process& process = processes_[number] = {instance, std::move(page), std::move(let_in)};
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
    if (const auto pacer = pacers_.find(gpu); pacer != pacers_.end()) keep_waits(*pacer->second, std::nullopt);
    pacers_.erase(gpu);
    without_thread_.erase(gpu);
    return;
  }
  PaceDriver* const pacer = pacer_of(gpu);
  if (pacer == nullptr) return;
  for (const auto& [id, instance] : instances_) {
    if (instance.gpu == gpu && !pacer->knows(id)) pace(*pacer, id, share_of(instance));
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
  if (const auto told = told_.find(instance); !is_new && told != told_.end() && told->second == share) return;
  if (Status set = pacer.set_share(instance, share); !set) {
    warn_once(instance, set.error().message);
    return;
  }
  told_[instance] = share;
  if (!is_new) return;
  for (const auto& [number, process] : processes_) {
    if (process.instance == instance) pace(pacer, number, process);
  }
}

void GpuPacers::pace(PaceDriver& pacer, std::uint64_t number, const Process& process) {
  if (Status added = pacer.add_page(process.instance, number, process.page, process.let_in); !added) {
    warn_once(process.instance, added.error().message);
  }
}

std::vector<std::pair<GpuId, PaceSnapshot>> GpuPacers::snapshot() const {
  std::vector<std::pair<GpuId, PaceSnapshot>> all;
  for (const auto& [gpu, pacer] : pacers_) all.emplace_back(gpu, pacer->snapshot());
  return all;
}

std::optional<std::string> GpuPacers::device_worked(InstanceId id, Duration busy) {
  const auto found = instances_.find(id);
  if (found == instances_.end() || named_.contains(id)) return std::nullopt;
  found->second.device += busy;
  const auto pacer = pacers_.find(found->second.gpu);
  if (pacer == pacers_.end()) return std::nullopt;
  std::optional<std::string> stopped;
  for (const LivePlaces::Finding& finding : pacer->second->device_says(id, found->second.device)) {
    name(finding.instance, finding.text);
    const auto of = instances_.find(finding.instance);
    if (of == instances_.end()) continue;
    TurnsEvaded& evaded = ledgers_[of->second.share.flow].evaded;
    evaded.last = fmt::format("instance {} {}", finding.instance.value(), finding.text);
    ++(finding.is_over ? evaded.stopped : evaded.named);
    if (finding.is_over && finding.instance == id) stopped = finding.text;
  }
  return stopped;
}

// Those who go, and pacers that go, leave their counts: what is counted never falls.
void GpuPacers::keep_waits(const PaceDriver& pacer, std::optional<InstanceId> instance) {
  for (const DeliveredService& one : pacer.delivered()) {
    if (!instance || one.instance == *instance) ledgers_[one.share.flow].waits.add(one.waits);
  }
}

void GpuPacers::measure(FlowId flow, ShareStatus& status) const {
  const auto is_of_flow = [&](const auto& instance) { return instance.second.share.flow == flow; };
  WaitHistogram waits;
  if (const auto ledger = ledgers_.find(flow); ledger != ledgers_.end()) {
    waits = ledger->second.waits;
    status.evaded = ledger->second.evaded;
  }
  std::optional<DeliveredService> least;
  const bool is_there = std::any_of(instances_.begin(), instances_.end(), is_of_flow);
  for (const auto& [gpu, pacer] : pacers_) {
    if (!is_there) break;
    for (const DeliveredService& one : pacer->delivered()) {
      if (one.share.flow != flow) continue;
      waits.add(one.waits);
      const bool had_work = one.state != PlaceState::kIdle || one.last_second > Duration(0);
      // Beside one that is promised something, those that take what they get do not matter.
      const auto rank = [](const DeliveredService& of) {
        return std::pair(of.share.request_percent == 0, of.last_second);
      };
      if (had_work && (!least || rank(one) < rank(*least))) least = one;
    }
  }
  status.waits = in_buckets(waits);
  if (!least) return;
  status.delivery = ShareDelivery{.window = std::chrono::seconds(1),
                                  .delivered_percent = 100 * to_seconds(least->last_second),
                                  .last_minute_percent = 100 * to_seconds(least->last_minute) / 60,
                                  .credit = least->credit};
}

}  // namespace fairlead
