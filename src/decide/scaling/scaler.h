// How many instances of a function there are, of what size, and in what state: the interface, and three that decide.
//
//   algorithm1   FaST-GShare's, mended (sizes.h) and filtered by the objective: every second, the last second's rate; instances start cold
//   has          HAS-GPU's rule: above 0.9 of the capacity quotas are raised first and instances added after; below 0.3 for 10 s the reverse
//   fleet        ours
//
// Idea of ours. There are two speeds. A start from nothing takes seconds, and a burst is over by then. An instance whose memory is parked in
// host memory is back in about a tenth of a second. So:
//
//   - as many are ready as the predicted rate needs, so that at most a part of requests waits longer than its objective allows (Erlang's C);
//   - where the rate rises, so many are started as are needed by the time that a start has ended (ahead_predictor);
//   - spares are parked on the host: the rate may grow `burst` times before anything has to start cold. They are started ahead, when the
//     peak of the last minutes has grown, never for a request that waits;
//   - a request that waits brings one back at once, on its event, before the next decision is due;
//   - who has been idle for `hold` is parked. Hold is some times what coming back costs: a stay is cheaper than a return that comes soon;
//   - who is parked is stopped when there are too many; where nothing is started ahead (a burst of 0), after some times what a start costs;
//   - nothing is called for `keep`: the last one goes, too, and the next request starts it, or brings it back.
//
// Example. ResNet at (12, 100) answers 37 per second in 27 ms. 200 per second need 8 ready; 32 more are parked. 800 per second come: 8 wait, 8
// return; 0.1 s later these run, and so on.
//
// Pure: state + event + now -> steps. Not thread-safe. Determinism: of the calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "decide/scaling/load_predictor.h"
#include "decide/scaling/sizes.h"

namespace fairlead {

// starting ──> ready <──> parked <── returning ... : a start, a stay on the device, the way to the host and back.
enum class InstanceStage { kStarting, kReady, kParked, kReturning };

struct ScaledInstance {
  InstanceId id;
  InstanceSize size;
  InstanceStage stage = InstanceStage::kReady;
  bool is_busy = false;
  Instant idle_since;  // where it is ready and not busy
};

struct ScalerView {
  std::vector<ScaledInstance> instances;  // in the order of their ids
  std::uint64_t arrived = 0;              // since the last decision
  std::size_t waiting = 0;                // requests without an instance
  Duration cold_start{0};                 // as measured; 0: as the settings have it
};

enum class ScalingVerb {
  kStart,        // a new one, from nothing, to be ready
  kStartParked,  // the same, to be parked as soon as it has started
  kReturn,       // its memory comes back
  kPark,         // its memory goes to the host
  kStop,
  kResize,  // its quota changes where it stands, if its device has room
};

struct ScalingStep {
  ScalingVerb verb = ScalingVerb::kStart;
  InstanceId instance;  // none for starts
  InstanceSize size;    // of starts and kResize
};

// What was decided, and for --explain what it was decided on.
struct ScalingDecision {
  std::vector<ScalingStep> steps;
  int needed = 0;                     // of fleet: instances that the expected rate needs; starts beyond them are spares
  std::string saw;                    // rate, capacity, who waits
  std::vector<std::string> rejected;  // what was not done, and why
};

struct ScalerSettings {
  FunctionTerms terms;
  std::vector<InstanceSize> sizes;                        // that may be chosen from
  Duration cold_start = std::chrono::seconds(5);          // from nothing to ready
  Duration return_time = std::chrono::milliseconds(120);  // from parked to ready
  std::string predictor = "ewma";
  double late_part = 0.02;  // of requests that may wait longer than the objective allows
  double burst = 5;         // how many times the usual rate spares are kept for
  // Of fleet: who says how many requests come by the time that a cold start has ended, and so how many begin to start now; "": nobody, only
  // what comes already counts.
  std::string ahead_predictor = {};
  double hold_returns = 2;  // idle for as many times the return time: it is parked
  double hold_starts =
      0;  // of fleet: who is parked and too many stays until it was idle for as many times a cold start
  bool keeps_one = false;                    // of fleet: one stays ready until nothing was called for `keep`
  Duration keep = std::chrono::minutes(10);  // nothing is called for as long: nothing stays
  double headroom = 1;                       // of algorithm1: times the expected rate
  int least = 0;                             // instances that are always ready
  int most = 1000;
};

class Scaler {
 public:
  virtual ~Scaler() = default;
  // How often decide() is to be called.
  virtual Duration period() const = 0;
  virtual ScalingDecision decide(Instant now, const ScalerView& view) = 0;
  // A request found no instance. Nothing by default: only the period counts.
  virtual ScalingDecision waits(Instant, const ScalerView&) { return {}; }
};

std::vector<std::string_view> scalers();
// kInvalidArgument names what is not known, or says that no size meets the objective.
Result<std::unique_ptr<Scaler>> make_scaler(std::string_view name, const ScalerSettings& settings);

// The least number of instances, each answering `rate_per_instance`, at which at most `late_part` of Poisson requests wait longer than
// `slack` before they run: Erlang's C, whose tail falls as that of a queue with constant service times.
int instances_for(double rate_per_s, double rate_per_instance, Duration slack, double late_part);

}  // namespace fairlead
