// Faults for a simulated node. For each run every kind is first activated or not, at a rate of its own, and then strikes
// at random: runs with few kinds at high rates reach deeper than runs with all kinds at a low one.
//
// Threads: not thread-safe. Determinism: the same seed and the same questions give the same answers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/rng.h"
#include "base/units.h"

namespace fairlead::sim {

enum class Fault {
  kStartFails,    // the instance exits before it is ready
  kStartHangs,    // it never is
  kStartSlow,     // it is after many times as long
  kRunCrashes,    // the instance exits in the middle of an invocation
  kRunHangs,      // no answer
  kNeverReturns,  // it answers and does not ask for the next
  kToldTwice,     // an event is reported twice
  kMoveLost,      // a move of memory is done and never reported: the shim's connection was cut
  kMoveFails,     // a move is refused
  kMoveSlow,
  kReportLost,    // what an instance holds is not reported
  kNoMemory,      // an allocation fails though the books have room
  kDeviceLost,    // all instances of a GPU end at once
  kClockJumps,    // minutes pass between two events
  kCancelled,     // a client gives up
  kUpdated,       // new code or limits for a function
  kDeviceGoes,    // a device is taken away, for good; another comes within a minute
  kNodeRestarts,  // the core is gone; instances die; asynchronous invocations come again from disk
  kCount,
};
std::string_view fault_name(Fault fault);

class Faults {
 public:
  static constexpr auto kKinds = static_cast<std::size_t>(Fault::kCount);

  explicit Faults(std::uint64_t seed);

  // Whether it happens now. Rates are per occasion, those of kClockJumps and below per simulated event.
  bool strikes(Fault fault);
  std::uint64_t below(std::uint64_t bound) { return rng_.below(bound); }
  Duration up_to(Duration most) {
    return Duration(1 + static_cast<Duration::rep>(rng_.below(static_cast<std::uint64_t>(most.count()))));
  }

  using Counts = std::array<std::uint64_t, kKinds>;
  const Counts& struck() const { return struck_; }

 private:
  Rng rng_;
  std::array<double, kKinds> rates_{};
  Counts struck_{};
};

}  // namespace fairlead::sim
