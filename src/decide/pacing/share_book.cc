#include "decide/pacing/share_book.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace fairlead {
namespace {

// How far a device is from holding the share: 1.1 where the set is a tenth too large for it.
double distance(const Lacking& lacking) {
  return lacking.bound > 0 ? lacking.value / lacking.bound : std::numeric_limits<double>::max();
}

bool may_sit(const SeatsAsked& asked, GpuId gpu) {
  return !asked.may || asked.may(gpu);
}

std::string what_is_asked(const SeatsAsked& asked) {
  return fmt::format("{} of gpu:quota-request {} %, gpu:compute-percent {} %, gpu:memory-mib {:.0f}",
                     asked.seats == 1 ? "one instance" : fmt::format("{} instances", asked.seats),
                     asked.share.request_percent, asked.share.width_percent, asked.share.memory.mib());
}

}  // namespace

void ShareBook::add_device(GpuId gpu, const DeviceRoom& room, std::size_t most_seats) {
  const bool is_new = devices_.try_emplace(gpu, DeviceBook{room, Admission(room), most_seats}).second;
  FL_CHECK(is_new, "GPU {} is there already", gpu.value());
}

void ShareBook::set_most_seats(GpuId gpu, std::size_t most_seats) {
  devices_.at(gpu).most_seats = most_seats;
}

void ShareBook::remove_device(GpuId gpu) {
  if (devices_.erase(gpu) == 0) return;
  for (auto& [function, held] : held_) std::erase(held.seats, gpu);
}

Result<ShareBook::Seats> ShareBook::find(const std::string& function, const SeatsAsked& asked) {
  if (Status sound = check(asked.share); !sound) return fail(sound.error());
  if (asked.seats > 0 && devices_.empty()) {
    return fail(Errc::kInvalidArgument, "no GPU is there to keep {}; deploy it again once one is (fairlead doctor)",
                what_is_asked(asked));
  }
  std::map<GpuId, std::vector<PacedShare>> taken;
  for (const auto& [gpu, device] : devices_) taken[gpu] = shares_on(gpu, function);
  Seats seats;
  std::optional<Lacking> nearest;
  GpuId nearest_gpu;
  const auto try_on = [&](GpuId gpu) {
    if (!may_sit(asked, gpu)) return false;
    std::vector<PacedShare> shares = taken.at(gpu);
    shares.push_back(asked.share);
    const auto lacking = lacking_on(devices_.at(gpu), shares);
    if (lacking) {
      if (!nearest || distance(*lacking) < distance(*nearest)) nearest = lacking, nearest_gpu = gpu;
      return false;
    }
    taken.at(gpu) = std::move(shares);
    seats.push_back(gpu);
    return true;
  };
  for (const GpuId gpu : asked.first) {
    if (seats.size() < asked.seats && devices_.contains(gpu)) try_on(gpu);
  }
  while (seats.size() < asked.seats) {
    nearest.reset();
    const bool found =
        std::any_of(devices_.begin(), devices_.end(), [&](const auto& device) { return try_on(device.first); });
    if (found) continue;
    if (!nearest) {
      return fail(Errc::kInvalidArgument, "{}: none of the node's GPUs and slices may have it (gpu:mig-profile)",
                  what_is_asked(asked));
    }
    return fail(
        Errc::kInvalidArgument,
        "{}: no GPU has room for {}. GPU {} comes nearest: {}. Ask for less, or delete or shrink a function that "
        "has a share (fairlead status lists them)",
        what_is_asked(asked), seats.empty() ? "it" : fmt::format("number {}", seats.size() + 1), nearest_gpu.value(),
        nearest->message);
  }
  std::sort(seats.begin(), seats.end());
  return seats;
}

ShareBook::Seats ShareBook::find_first(const std::string& function, const SeatsAsked& asked) {
  Seats seats;
  if (!check(asked.share)) return seats;
  std::map<GpuId, std::vector<PacedShare>> taken;
  for (const GpuId gpu : asked.first) {
    const auto device = devices_.find(gpu);
    if (device == devices_.end() || seats.size() == asked.seats || !may_sit(asked, gpu)) continue;
    std::vector<PacedShare> shares = taken.contains(gpu) ? taken.at(gpu) : shares_on(gpu, function);
    shares.push_back(asked.share);
    if (lacking_on(device->second, shares)) continue;
    taken[gpu] = std::move(shares);
    seats.push_back(gpu);
  }
  std::sort(seats.begin(), seats.end());
  return seats;
}

ShareBook::Most ShareBook::find_most(const std::string& function, const SeatsAsked& asked, const Seats& kept,
                                     const std::vector<GpuId>& among) {
  Most most;
  if (Status sound = check(asked.share); !sound) return most.lacking = sound.error().message, most;
  std::map<GpuId, std::vector<PacedShare>> open;  // those that may have room
  for (const GpuId gpu : among) {
    if (!devices_.contains(gpu) || !may_sit(asked, gpu)) continue;
    open[gpu] = shares_on(gpu, function);
    open[gpu].insert(open[gpu].end(), static_cast<std::size_t>(std::count(kept.begin(), kept.end(), gpu)), asked.share);
  }
  std::optional<Lacking> nearest;
  GpuId nearest_gpu;
  const auto try_on = [&](GpuId gpu) {
    const auto device = open.find(gpu);
    if (device == open.end() || most.seats.size() >= asked.seats) return false;
    device->second.push_back(asked.share);
    if (const auto lacking = lacking_on(devices_.at(gpu), device->second)) {
      if (!nearest || distance(*lacking) < distance(*nearest)) nearest = lacking, nearest_gpu = gpu;
      open.erase(device);
      return false;
    }
    most.seats.push_back(gpu);
    return true;
  };
  for (const GpuId gpu : asked.first) try_on(gpu);
  for (const GpuId gpu : among) {
    while (try_on(gpu)) {
    }
  }
  std::sort(most.seats.begin(), most.seats.end());
  if (most.seats.size() >= asked.seats) return most;
  most.lacking =
      nearest ? fmt::format(
                    "{}: no GPU has room for number {}. GPU {} comes nearest: {}. Ask for less, or delete "
                    "or shrink a function that has a share (fairlead status lists them)",
                    what_is_asked(asked), kept.size() + most.seats.size() + 1, nearest_gpu.value(), nearest->message)
              : "no GPU that serves is there";
  return most;
}

void ShareBook::hold(const std::string& function, const PacedShare& share, Seats seats) {
  if (seats.empty()) return release(function);
  std::sort(seats.begin(), seats.end());
  held_[function] = {share, std::move(seats)};
}

void ShareBook::release(const std::string& function) {
  held_.erase(function);
}

const ShareBook::Seats& ShareBook::seats(const std::string& function) const {
  static const Seats none;
  const auto found = held_.find(function);
  return found == held_.end() ? none : found->second.seats;
}

std::size_t ShareBook::seats_on(GpuId gpu) const {
  return shares_on(gpu, "").size();
}

std::vector<PacedShare> ShareBook::shares_on(GpuId gpu, const std::string& except) const {
  std::vector<PacedShare> shares;
  for (const auto& [function, held] : held_) {
    if (function == except) continue;
    shares.insert(shares.end(), static_cast<std::size_t>(std::count(held.seats.begin(), held.seats.end(), gpu)),
                  held.share);
  }
  return shares;
}

std::optional<Lacking> ShareBook::lacking_on(DeviceBook& device, const std::vector<PacedShare>& shares) {
  if (shares.size() > device.most_seats) {
    return Lacking{.field = "gpu:replicas",
                   .value = static_cast<double>(shares.size()),
                   .bound = static_cast<double>(device.most_seats),
                   .message = fmt::format("gpu:replicas keeps {} instances on it, {} is the most: its pool (--pool) "
                                          "less its slots (--slots)",
                                          shares.size(), device.most_seats)};
  }
  ++tests_;
  return device.admission.ask(shares).lacking;
}

}  // namespace fairlead
