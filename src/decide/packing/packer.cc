#include "decide/packing/packer.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {

Admission& Packer::admission_of(const DeviceRoom& room) {
  for (KnownRoom& known : rooms_) {
    if (known.room == room) return *known.admission;
  }
  return *rooms_.emplace_back(KnownRoom{room, std::make_unique<Admission>(room)}).admission;
}

void Packer::add_device(GpuId gpu, const DeviceRoom& room) {
  const bool added =
      devices_.try_emplace(gpu, options_.rule, room, options_.most_free_rectangles, admission_of(room)).second;
  FL_CHECK(added, "device {} is added twice", gpu.value());
}

std::vector<PackedInstance> Packer::remove_device(GpuId gpu) {
  const auto found = devices_.find(gpu);
  FL_CHECK(found != devices_.end(), "device {} is not there", gpu.value());
  std::vector<PackedInstance> stood = found->second.instances();
  for (const PackedInstance& one : stood) where_.erase(one.id);
  devices_.erase(found);
  return stood;
}

GpuId Packer::best_device(const PacedShare& share, bool in_use, GpuId but) const {
  GpuId best;
  double least = 0;
  for (const auto& [gpu, bin] : devices_) {
    if (gpu == but || bin.instances().empty() == in_use) continue;
    const std::optional<double> misfit = bin.misfit(share);
    if (!misfit || (best && *misfit >= least)) continue;
    best = gpu;
    least = *misfit;
    if (!in_use) break;  // empty devices: the first that holds it
  }
  return best;
}

Placement Packer::place(const PackedInstance& instance) {
  FL_CHECK(!where_.contains(instance.id), "instance {} is placed twice", instance.id.value());
  Placement made;
  made.gpu = best_device(instance.share, true, {});
  if (!made.gpu) {
    RoomMade room = make_room(instance.share);
    for (const InstanceMove& move : room.moves) carry_out(move);
    made.gpu = room.gpu;
    made.moves = std::move(room.moves);
  }
  if (!made.gpu) {
    made.lacking = why_not(instance.share);
    made.gpu = best_device(instance.share, false, {});
    made.was_empty = static_cast<bool>(made.gpu);
  }
  if (!made.gpu) return made;
  devices_.at(made.gpu).put(instance);
  where_[instance.id] = made.gpu;
  return made;
}

bool Packer::put(const PackedInstance& instance, GpuId gpu) {
  FL_CHECK(!where_.contains(instance.id), "instance {} is placed twice", instance.id.value());
  DeviceBin& bin = devices_.at(gpu);
  if (!bin.misfit(instance.share)) return false;
  bin.put(instance);
  where_[instance.id] = gpu;
  return true;
}

std::vector<DeviceLack> Packer::why_not(const PacedShare& share) const {
  std::vector<DeviceLack> lacking;
  for (const auto& [gpu, bin] : devices_) {
    if (!bin.misfit(share)) lacking.push_back({gpu, bin.what_lacks(share)});
  }
  return lacking;
}

// Where `leave` find room, one after the other, on other devices in use; none where one of them finds none.
std::vector<InstanceMove> Packer::to_leave(GpuId gpu, const std::vector<PackedInstance>& leave) const {
  std::vector<InstanceMove> moves;
  std::map<GpuId, std::vector<PacedShare>> sent;  // to a device already
  for (const PackedInstance& one : leave) {
    GpuId best;
    double least = 0;
    for (const auto& [other, bin] : devices_) {
      if (other == gpu || bin.instances().empty()) continue;
      const std::optional<double> misfit = bin.misfit(one.share, {}, sent[other]);
      if (!misfit || (best && *misfit >= least)) continue;
      best = other;
      least = *misfit;
    }
    if (!best) return {};
    sent[best].push_back(one.share);
    moves.push_back({one.id, gpu, best});
  }
  return moves;
}

// The fewest moves that let the share in on a device in use, and that device; of as many, the device that is fullest then.
Packer::RoomMade Packer::make_room(const PacedShare& share) const {
  RoomMade best;
  double least = 0;
  const auto consider = [&](GpuId gpu, const DeviceBin& bin, const std::vector<PackedInstance>& leave) {
    std::vector<InstanceId> without;
    for (const PackedInstance& one : leave) without.push_back(one.id);
    const std::optional<double> misfit = bin.misfit(share, without);
    if (!misfit || (best.gpu && *misfit >= least)) return;
    std::vector<InstanceMove> moves = to_leave(gpu, leave);
    if (moves.empty()) return;
    best = {gpu, std::move(moves)};
    least = *misfit;
  };
  const int most = options_.rule == PackingRule::kExact ? options_.most_moves : 0;
  for (int count = 1; count <= most && !best.gpu && count * options_.move_price < 1; ++count) {
    for (const auto& [gpu, bin] : devices_) {
      const std::vector<PackedInstance> may = movable(bin);
      for (std::size_t i = 0; i < may.size(); ++i) {
        if (count == 1) consider(gpu, bin, {may[i]});
        for (std::size_t k = i + 1; k < may.size() && count == 2; ++k) consider(gpu, bin, {may[i], may[k]});
      }
    }
  }
  return best;
}

std::vector<InstanceMove> Packer::consolidate() {
  if (options_.rule != PackingRule::kExact || options_.most_moves == 0) return {};
  std::vector<std::pair<double, GpuId>> order;  // the emptiest first
  for (const auto& [gpu, bin] : devices_) {
    if (!bin.instances().empty()) order.emplace_back(bin.area_percent(), gpu);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [area, gpu] : order) {
    const std::vector<PackedInstance>& all = devices_.at(gpu).instances();
    if (static_cast<double>(all.size()) * options_.move_price >= 1) continue;
    if (movable(devices_.at(gpu)).size() < all.size()) continue;
    std::vector<InstanceMove> moves = to_leave(gpu, all);
    for (const InstanceMove& move : moves) carry_out(move);
    if (!moves.empty()) return moves;
  }
  return {};
}

void Packer::carry_out(const InstanceMove& move) {
  const PackedInstance taken = devices_.at(move.from).take(move.instance);
  FL_CHECK(taken.may_move, "instance {} runs and is moved", move.instance.value());
  devices_.at(move.to).put(taken);
  where_[move.instance] = move.to;
}

std::vector<PackedInstance> Packer::movable(const DeviceBin& bin) {
  std::vector<PackedInstance> may;
  for (const PackedInstance& one : bin.instances()) {
    if (one.may_move) may.push_back(one);
  }
  return may;
}

std::optional<PackedInstance> Packer::remove(InstanceId id) {
  const auto found = where_.find(id);
  if (found == where_.end()) return std::nullopt;
  PackedInstance taken = devices_.at(found->second).take(id);
  where_.erase(found);
  return taken;
}

bool Packer::resize(InstanceId id, const PacedShare& share) {
  DeviceBin& bin = devices_.at(where_.at(id));
  const PackedInstance before = bin.take(id);
  PackedInstance after = before;
  after.share = share;
  const bool fits = bin.misfit(share).has_value();
  if (!fits) FL_CHECK(bin.misfit(before.share), "instance {} does not fit where it stood", id.value());
  bin.put(fits ? after : before);
  return fits;
}

void Packer::set_may_move(InstanceId id, bool may_move) {
  if (const auto found = where_.find(id); found != where_.end()) devices_.at(found->second).set_may_move(id, may_move);
}

GpuId Packer::where(InstanceId id) const {
  const auto found = where_.find(id);
  return found == where_.end() ? GpuId() : found->second;
}

std::size_t Packer::devices_in_use() const {
  std::size_t in_use = 0;
  for (const auto& [gpu, bin] : devices_) in_use += bin.instances().empty() ? 0 : 1;
  return in_use;
}

}  // namespace fairlead
