#include "sim/scaling/packing_runs.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "sim/shares/share_sets.h"

namespace fairlead::sim {
namespace {

PacedShare kind(int number) {
  const int width = number == 0 ? 12 : number == 1 ? 24 : 50;
  return {.width_percent = width, .request_percent = number == 2 ? 60 : 40};
}

class ChurnRun {
 public:
  explicit ChurnRun(const ChurnOptions& options) : options_(options), packer_(options.packer), rng_(options.seed) {}

  Churn run() {
    const std::uint64_t warm_up = options_.events / 5;
    for (std::uint64_t event = 0; event < options_.events + warm_up; ++event) {
      const auto here = static_cast<double>(live_.size());
      if (event >= warm_up) count(1 / (options_.live + here));
      draw_idle();
      const bool comes = rng_.uniform() * (options_.live + here) < options_.live;
      const std::size_t moves = comes ? come() : go();
      if (event >= warm_up) moves_ += moves;
    }
    return {.devices = devices_ / time_,
            .least_devices = least_ / time_,
            .moves_per_event = static_cast<double>(moves_) / static_cast<double>(options_.events),
            .state_hash = hash_};
  }

 private:
  void count(double time) {
    double area = 0, memory = 0;
    for (const PackedInstance& one : live_) {
      area += one.share.width_percent * one.share.request_percent / 1e4;
      memory += static_cast<double>(one.share.memory.count());
    }
    const double by_area = area / (1 - options_.room.reserve_percent / 100);
    const double by_memory =
        options_.room.memory > Bytes(0) ? memory / static_cast<double>(options_.room.memory.count()) : 0;
    least_ += time * std::max(by_area, by_memory);
    devices_ += time * static_cast<double>(packer_.devices_in_use());
    time_ += time;
  }

  void draw_idle() {
    for (const PackedInstance& one : live_) packer_.set_may_move(one.id, rng_.uniform() < options_.idle_part);
  }

  std::size_t come() {
    PacedShare share = random_share(options_.mix, rng_);
    if (options_.most_memory > Bytes(0)) {
      const auto most = static_cast<double>(options_.most_memory.count());
      share.memory = Bytes(static_cast<std::int64_t>(most * (0.125 + 0.875 * rng_.uniform())));
    }
    if (packer_.devices().size() == packer_.devices_in_use()) packer_.add_device(GpuId(++last_device_), options_.room);
    live_.push_back({.id = InstanceId(++last_instance_), .share = share});
    const Placement made = packer_.place(live_.back());
    hash_ = hash_ * 31 + made.gpu.value();
    return made.moves.size();
  }

  std::size_t go() {
    const std::size_t who = rng_.below(live_.size());
    packer_.remove(live_[who].id);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(who));
    const auto moves = packer_.consolidate();
    for (const InstanceMove& move : moves) hash_ = hash_ * 31 + move.to.value();
    return moves.size();
  }

  const ChurnOptions& options_;
  Packer packer_;
  Rng rng_;
  std::vector<PackedInstance> live_;
  std::uint64_t last_device_ = 0, last_instance_ = 0, moves_ = 0, hash_ = 0;
  double devices_ = 0, least_ = 0, time_ = 0;
};

}  // namespace

Orders papers_orders(const PackerOptions& options, double reserve_percent) {
  std::vector<int> kinds = {0, 0, 0, 0, 1, 1, 2, 2};
  Orders found;
  do {
    Packer packer(options);
    packer.add_device(GpuId(1), {.reserve_percent = reserve_percent});
    std::uint64_t placed = 0;
    for (const int one : kinds) {
      if (packer.place({.id = InstanceId(placed + 1), .share = kind(one)}).gpu) ++placed;
    }
    ++found.orders;
    found.all_placed += placed == kinds.size() ? 1 : 0;
  } while (std::next_permutation(kinds.begin(), kinds.end()));
  return found;
}

Churn churn(const ChurnOptions& options) {
  return ChurnRun(options).run();
}

}  // namespace fairlead::sim
