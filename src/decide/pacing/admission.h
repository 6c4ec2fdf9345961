// Whether a set of shares fits one device, and what is lacking when it does not.
//
// Idea. Four dimensions, each by itself:
//
//   time and SMs   the least time in which every instance gets its request (concurrent_sets.h) is at most 100 % less a reserve
//   memory         the sum over instances
//   MPS clients    one per instance
//   the share      is valid at all
//
// The reserve pays for drains: kernels cannot be taken back, and room that waits for the last of them serves nobody. With kernels of up
// to 0.4 ms and frames of 2 ms, 3 % is enough (docs/explanation/pacer.md).
//
// Example: the paper's eight instances need 100.0 % of the time. They fit a device with a reserve of 0; with one of 2 % they lack
// "gpu:quota-request is 100.0 % of the device's time at best, 98.0 % is the most".
//
// Which instance came first is never asked: a set that fits, fits in every order of arrival.
//
// Threads: not thread-safe. Determinism: the answer depends on the set alone, never on its order or on earlier questions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "decide/pacing/concurrent_sets.h"
#include "decide/pacing/paced_share.h"

namespace fairlead {

struct DeviceRoom {
  Bytes memory{0};             // 0: not known, not counted
  std::size_t clients = 48;    // that an MPS daemon serves; 0: no MPS, not counted
  double reserve_percent = 3;  // of the time, 0 to 50
  bool operator==(const DeviceRoom&) const = default;
};

// The dimension that does not hold.
struct Lacking {
  std::string field;  // the tag
  double value = 0;
  double bound = 0;
  std::string message;  // with field, value and bound
};

struct AdmissionAnswer {
  std::optional<Lacking> lacking;  // none: the set fits
  double time_percent = 0;         // that some schedule needs; the least where the set does not fit
  bool fits() const { return !lacking; }
};

class Admission {
 public:
  static constexpr std::size_t kMostCached = 1024;  // sets whose time is remembered; the oldest is forgotten

  explicit Admission(const DeviceRoom& room) : room_(room) {}

  // Of shares that are not valid (check() in paced_share.h) the first is what is lacking.
  AdmissionAnswer ask(const std::vector<PacedShare>& shares);

  struct Counters {
    std::uint64_t questions = 0;
    std::uint64_t from_cache = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Known {
    double percent = 0;
    std::uint64_t number = 0;  // of the question that found it
  };
  double time_of(const std::vector<PacedShare>& shares);

  const DeviceRoom room_;
  std::map<std::vector<QuotaRow>, Known> known_;
  std::map<std::uint64_t, std::vector<QuotaRow>> by_age_;
  Counters counters_;
};

}  // namespace fairlead
