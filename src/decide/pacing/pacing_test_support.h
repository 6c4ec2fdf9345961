// Instances that do as a gate does, for tests of schedulers of places: busy all the time, they end a little after their place does.
#pragma once

#include <functional>
#include <map>

#include "decide/pacing/place_scheduler.h"

namespace fairlead {

class BusyDevice {
 public:
  struct Busy {
    PacedShare share;
    Duration drain{0};  // past the end of its place
    Duration total{0};  // for which it had the device
    std::optional<Instant> until;
    Instant counted;
  };

  BusyDevice(PlaceScheduler& scheduler, const std::vector<PacedShare>& shares,
             std::function<Duration(std::size_t)> drain)
      : scheduler_(scheduler), drain_(std::move(drain)) {
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const InstanceId id(i + 1);
      busy[id].share = shares[i];
      (void)scheduler_.set_share(now, id, shares[i], actions_);
    }
    for (auto& [id, one] : busy) scheduler_.asks(now, id, std::nullopt, actions_);
    carry_out();
  }

  // `after`: once for each thing that happens.
  void run_until(
      Instant end, const std::function<void()>& after = [] {}) {
    while (true) {
      Instant next = scheduler_.next_tick().value_or(end);
      InstanceId ends;
      for (const auto& [id, one] : busy) {
        if (one.until && *one.until + one.drain < next) {
          next = *one.until + one.drain;
          ends = id;
        }
      }
      if (next >= end) break;
      now = std::max(now, next);
      for (auto& [id, one] : busy) count(id, one);
      if (ends) {
        busy[ends].until.reset();
        scheduler_.drained(now, ends, actions_);
        scheduler_.asks(now, ends, std::nullopt, actions_);
      } else {
        scheduler_.tick(now, actions_);
      }
      carry_out();
      after();
    }
    now = end;
    for (auto& [id, one] : busy) count(id, one);
  }

  Instant now{std::chrono::seconds(1)};
  std::map<InstanceId, Busy> busy;
  std::uint64_t opened = 0;

 private:
  void count(InstanceId id, Busy& one) {
    if (!one.until) return;
    one.total += now - one.counted;
    scheduler_.used(now, id, now - one.counted);
    one.counted = now;
  }
  void carry_out() {
    for (const PlaceAction& action : actions_) {
      Busy& one = busy.at(action.instance);
      if (action.kind == PlaceAction::Kind::kOpen) {
        if (!one.until) {
          one.counted = now;
          ++opened;
        }
        one.until = action.until;
        one.drain = drain_(action.instance.value() - 1);
      } else if (one.until) {
        one.until = std::min(*one.until, now);
      }
    }
    actions_.clear();
  }

  PlaceScheduler& scheduler_;
  std::function<Duration(std::size_t)> drain_;
  PlaceActions actions_;
};

}  // namespace fairlead
