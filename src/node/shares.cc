#include "node/shares.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "decide/pacing/place_scheduler.h"
#include "model/autoscale_tag.h"
#include "model/mig_tag.h"
#include "node/functions.h"

namespace fairlead {
namespace {

Shares::Asked asked_in(const FunctionRecord& record, bool is_kernel_task) {
  const GpuSettings settings = gpu_settings(record.config).value_or(GpuSettings());
  return {.share = settings.share,
          .replicas = settings.replicas,
          .seats = settings.seats(),
          .weight = settings.weight,
          .is_kernel_task = is_kernel_task,
          .mig_profile = settings.mig_profile,
          .is_scaled = autoscale_of(record.config).value_or(Autoscale::kOff) != Autoscale::kOff};
}

// Each needs a place in the pool, beside those that may have a slot.
std::size_t most_seats(std::size_t instances, std::size_t slots) {
  return instances > slots ? instances - slots : 0;
}

}  // namespace

void Shares::add_device(const Device& device, std::size_t instances, std::size_t slots) {
  const bool is_mps = options_.mode == SharingMode::kMps;
  book_.add_device(
      device.id,
      {.memory = device.memory, .clients = is_mps ? instances : 0, .reserve_percent = options_.reserve_percent},
      most_seats(instances, slots));
  uuids_[device.id] = device.uuid;
  profiles_[device.id] = profile_of(device);
}

Status Shares::set_slots(const std::map<GpuId, std::size_t>& slots, std::size_t instances) {
  for (const auto& [gpu, wanted] : slots) {
    const std::size_t seats = book_.seats_on(gpu);  // of a device that is not there: 0
    if (seats == 0 || seats + wanted <= instances) continue;
    return fail(Errc::kInvalidArgument,
                "--slots is {}; GPU {} has {} seats beside them and {} instances at most (--pool): {} slots are the "
                "most, until a function with gpu:replicas or gpu:quota-request is deleted or asks for fewer",
                wanted, gpu.value(), seats, instances, instances - std::min(seats, instances));
  }
  for (const auto& [gpu, wanted] : slots) {
    if (uuids_.contains(gpu)) book_.set_most_seats(gpu, most_seats(instances, wanted));
  }
  return {};
}

bool Shares::remove_device(GpuId gpu) {
  if (uuids_.erase(gpu) == 0) return false;
  book_.remove_device(gpu);
  profiles_.erase(gpu);
  return true;
}

void Shares::recover(const FunctionRecord& record, bool is_kernel_task) {
  entries_[flow_name(record)] = {.asked = asked_in(record, is_kernel_task), .last = record.seats};
}

void Shares::ask(const FunctionRecord& record, bool is_kernel_task) {
  entries_[flow_name(record)].asked = asked_in(record, is_kernel_task);
}

Status Shares::admit(FunctionRecord& record, bool is_kernel_task) {
  const Asked asked = asked_in(record, is_kernel_task);
  const std::string name = flow_name(record);
  const auto known = entries_.find(name);
  const bool is_known = known != entries_.end();
  // A weight is about nobody's room.
  const auto but_for_its_weight = [&](Asked before) {
    before.weight = asked.weight;
    return before == asked;
  };
  if (is_known && !asked.is_scaled && but_for_its_weight(known->second.asked)) {
    known->second.asked = asked;
    book_.hold(name, seats_asked(known->second).share, known->second.seats);
    record.seats = known->second.last;
    return {};
  }
  if (is_known && (known->second.asked == asked || (known->second.asked.is_scaled && asked.is_scaled))) {
    if (known->second.asked.mig_profile != asked.mig_profile) {
      if (Status there = check_profile(asked); !there) return there;
    }
    known->second.asked.mig_profile = asked.mig_profile;
    record.seats = known->second.last;
    return {};
  }
  if (Status kept = check_kept(asked); !kept) return kept;
  Entry entry{.asked = asked};
  if (is_known) entry.last = known->second.last;
  const auto seats = book_.find(name, seats_asked(entry));
  if (!seats) return fail(seats.error());
  entry.seats = *seats;
  entry.last.clear();
  for (const GpuId gpu : entry.seats) entry.last.push_back(uuids_.at(gpu));
  record.seats = entry.last;
  restore(name, std::move(entry));
  return {};
}

std::optional<Shares::Entry> Shares::entry(const std::string& function) const {
  const auto known = entries_.find(function);
  return known == entries_.end() ? std::nullopt : std::optional(known->second);
}

void Shares::restore(const std::string& function, const std::optional<Entry>& entry) {
  if (!entry) return release(function);
  Entry known = *entry;
  SeatsAsked asked = seats_asked(known);
  asked.first = known.seats;
  known.seats = book_.find_first(function, asked);
  book_.hold(function, asked.share, known.seats);
  entries_[function] = std::move(known);
}

void Shares::release(const std::string& function) {
  book_.release(function);
  entries_.erase(function);
}

Shares::Placed Shares::scale(const std::string& function, const Share& share, const Wanted& wanted) {
  Entry& entry = entries_.at(function);
  entry.asked.share = share;
  entry.asked.seats = 0;
  entry.last.clear();
  entry.lacking.clear();
  Placed placed;
  if (Status can = check_kept({.share = share, .seats = 1, .is_kernel_task = entry.asked.is_kernel_task}); !can) {
    placed.lacking = can.error().message;
    book_.hold(function, seats_asked(entry).share, {});
    entry.seats.clear();
    return placed;
  }
  SeatsAsked asked = seats_asked(entry);
  asked.first = wanted.kept;
  asked.seats = wanted.kept.size();
  ShareBook::Seats seats = book_.find_first(function, asked);
  asked.first = wanted.first;
  asked.seats = wanted.more;
  ShareBook::Most most = book_.find_most(function, asked, seats, wanted.serving);
  placed.added = std::move(most.seats);
  if (wanted.more > 0) placed.lacking = std::move(most.lacking);
  seats.insert(seats.end(), placed.added.begin(), placed.added.end());
  std::sort(seats.begin(), seats.end());
  entry.asked.seats = seats.size();
  entry.seats = seats;
  book_.hold(function, asked.share, std::move(seats));
  return placed;
}

std::vector<std::string> Shares::settle() {
  std::vector<std::string> changed;
  for (auto& [function, entry] : entries_) {
    if (keep(function, entry)) changed.push_back(function);
  }
  for (const bool with_devices : {true, false}) {
    for (auto& [function, entry] : entries_) {
      if (entry.last.empty() != with_devices && settle(function, entry)) changed.push_back(function);
    }
  }
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  return changed;
}

// Before anybody is given other seats: it sits where it sat, as far as that is there. `last` stays: the others may come back.
// True: its seats are others now.
bool Shares::keep(const std::string& function, Entry& entry) {
  const std::size_t held = book_.seats(function).size();
  if (held >= entry.asked.seats || !check_kept(entry.asked)) return false;
  const SeatsAsked asked = seats_asked(entry);
  ShareBook::Seats kept = book_.find_first(function, asked);
  if (kept.size() <= held) return false;
  const bool are_others = kept != entry.seats;
  entry.seats = std::move(kept);
  book_.hold(function, asked.share, entry.seats);
  return are_others;
}

// True: its seats are others now.
bool Shares::settle(const std::string& function, Entry& entry) {
  const ShareBook::Seats held = book_.seats(function);  // fewer than it knows where a device went
  const bool lost_some = held != entry.seats;
  entry.seats = held;
  if (held.size() >= entry.asked.seats) {
    entry.lacking.clear();
    return lost_some;
  }
  const Status kept = check_kept(entry.asked);
  Result<ShareBook::Seats> seats = kept ? book_.find(function, seats_asked(entry)) : fail(kept.error());
  if (!seats) {
    if (entry.lacking != seats.error().message) {
      spdlog::warn("function {} has {} of {} seats and is best effort beyond them: {}", function, held.size(),
                   entry.asked.seats, seats.error().message);
    }
    entry.lacking = seats.error().message;
    return lost_some;
  }
  entry.lacking.clear();
  entry.seats = *std::move(seats);
  entry.last.clear();
  for (const GpuId gpu : entry.seats) entry.last.push_back(uuids_.at(gpu));
  book_.hold(function, seats_asked(entry).share, entry.seats);
  return true;
}

void Shares::describe(const std::string& function, FlowSpec& spec) const {
  const auto known = entries_.find(function);
  if (known == entries_.end()) return;
  const Entry& entry = known->second;
  const PacedShare share = paced_share(FlowId(), entry.asked.share, entry.asked.weight, widths(entry.asked));
  spec.seats = entry.seats;
  spec.most_instances = entry.asked.replicas.most;
  spec.parks = entry.asked.is_scaled;
  spec.request_percent = share.request_percent;
  spec.width_percent = share.width_percent;
}

void Shares::describe_seatless(const Share& share, bool is_kernel_task, FlowSpec& spec) const {
  const Asked asked{.share = share, .is_kernel_task = is_kernel_task};
  spec.width_percent = paced_share(FlowId(), asked.share, asked.weight, widths(asked)).width_percent;
}

PacedShare Shares::paced_seatless(const Share& share, bool is_kernel_task, FlowId flow) const {
  FlowSpec spec;
  describe_seatless(share, is_kernel_task, spec);
  return {.flow = flow, .width_percent = spec.width_percent};
}

ShareStatus Shares::status(const std::string& function, FlowId flow) const {
  const auto known = entries_.find(function);
  if (known == entries_.end()) return {};
  ShareStatus status{.seats = known->second.seats, .lacking = known->second.lacking};
  if (status.lacking.empty()) {
    if (Status there = check_profile(known->second.asked); !there) status.lacking = there.error().message;
  }
  if (measure_) measure_(flow, status);
  return status;
}

PacedShare Shares::paced(const std::string& function, FlowId flow, bool entitled) const {
  const auto known = entries_.find(function);
  if (known == entries_.end()) return {.flow = flow};
  const Asked& asked = known->second.asked;
  PacedShare share = paced_share(flow, asked.share, asked.weight, widths(asked));
  if (!entitled) share.request_percent = 0;
  return share;
}

// Processes take turns on the whole device unless they are MPS's clients. A kernel task whose kernels are wider than its author says is kept to
// that part of the SMs, or refused (device_servers.h).
Widths Shares::widths(const Asked& asked) const {
  const bool has_widths = asked.is_kernel_task ? options_.has_task_widths : options_.mode == SharingMode::kMps;
  return has_widths ? Widths::kByAuthor : Widths::kWhole;
}

SeatsAsked Shares::seats_asked(const Entry& entry) const {
  const PacedShare share = paced_share(FlowId(), entry.asked.share, entry.asked.weight, widths(entry.asked));
  SeatsAsked asked{.share = share, .seats = entry.asked.seats};
  if (!entry.asked.mig_profile.empty()) {
    asked.may = [this, wanted = entry.asked.mig_profile](GpuId gpu) {
      const auto known = profiles_.find(gpu);
      return known != profiles_.end() && is_of_profile(known->second, wanted);
    };
  }
  for (const std::string& uuid : entry.last) {
    const auto is_it = [&](const auto& device) { return device.second == uuid; };
    const auto device = std::find_if(uuids_.begin(), uuids_.end(), is_it);
    if (device != uuids_.end()) asked.first.push_back(device->first);
  }
  return asked;
}

// A node that knows no device yet refuses nothing.
Status Shares::check_profile(const Asked& asked) const {
  const auto suits = [&](const auto& device) { return is_of_profile(device.second, asked.mig_profile); };
  if (!profiles_.empty() && std::none_of(profiles_.begin(), profiles_.end(), suits)) {
    std::set<std::string> there;
    for (const auto& [gpu, profile] : profiles_) there.insert(profile.empty() ? "whole GPUs" : profile);
    return fail(Errc::kInvalidArgument,
                "{} is {}; the node has no such slice, but {}: ask for one of these, or cut a GPU (nvidia-smi mig)",
                kMigProfileTag, asked.mig_profile, fmt::join(there, ", "));
  }
  return {};
}

Status Shares::check_kept(const Asked& asked) const {
  if (Status there = check_profile(asked); !there) return there;
  const int width = asked.share.width_percent.value_or(kWholeDevice);
  if (width < kWholeDevice && asked.is_kernel_task && !options_.has_task_widths) {
    return fail(Errc::kInvalidArgument,
                "gpu:compute-percent is {}; with --sharing {} and a process for each tenant's kernel tasks it must be "
                "100, as these processes take turns on all SMs: start the node with --sharing mps or --task-isolation "
                "fence, or leave it out",
                width, sharing_mode_name(options_.mode));
  }
  if (width < kWholeDevice && !asked.is_kernel_task && options_.mode != SharingMode::kMps) {
    return fail(
        Errc::kInvalidArgument,
        "gpu:compute-percent is {}; with --sharing {} it must be 100, as kernels take turns on all SMs: start the "
        "node with --sharing mps, or leave it out. gpu:quota-limit bounds a function's time in every mode",
        width, sharing_mode_name(options_.mode));
  }
  const bool has_quota = asked.share.request_percent > 0 || asked.share.limit_percent < 100;
  if (has_quota && options_.pool > kMostPlaces) {
    return fail(Errc::kInvalidArgument,
                "gpu:quota-request is {} and gpu:quota-limit is {}; the pool (--pool) is {} instances of a GPU, and {} "
                "is the most that keep to quotas: start the node with a smaller --pool, or leave both out",
                asked.share.request_percent, asked.share.limit_percent, options_.pool, kMostPlaces);
  }
  if (asked.seats > 0 && !options_.keeps_instances) {
    return fail(
        Errc::kInvalidArgument,
        "gpu:quota-request is {} and gpu:replicas keeps {} instances; policy '{}' keeps none: start the node with "
        "another --policy, or leave both out",
        asked.share.request_percent, asked.seats, options_.policy);
  }
  return {};
}

}  // namespace fairlead
