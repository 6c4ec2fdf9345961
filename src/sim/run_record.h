// What is written down of a simulated run while it goes on: latencies, starts, gaps of service, samples, the hash.
//
//   arrived ──> queued (gap) ──> Deliver: ran since (gap), how long the head waited ──> Complete: latency, kind of start
//
// It looks at a run and changes nothing. The hash is of every action in order: equal runs have equal hashes.
#pragma once

#include <vector>

#include "base/rng.h"
#include "decide/core/core.h"
#include "sim/open_work.h"
#include "sim/result.h"
#include "sim/scenario.h"
#include "sim/service_gaps.h"

namespace fairlead::sim {

class RunRecord {
 public:
  // `scenario` must outlive this.
  RunRecord(const Scenario& scenario, std::uint64_t seed);

  // What follows happened at `now`; times do not fall.
  void moment(Instant now) {  // before each event
    if (now >= next_sample_) sample(now);
  }
  // One of that kind, about that instance or invocation; 0: about none.
  void action(Instant now, std::size_t kind, std::uint64_t subject) {
    hash(now, kind);
    if (subject != 0) hash(now, subject);
  }
  void arrived(Instant now, std::size_t function);
  void refused(Instant now, std::size_t function);
  void delivered(Instant now, const OpenInvocation& invocation);
  void completed(Instant now, const OpenInvocation& invocation, const Complete& complete);
  // The node restarted: what it knew of the invocation is gone. `comes_again`: from disk.
  void forgotten(Instant now, const OpenInvocation& invocation);
  void failed_by_restart(std::size_t function) { ++result_.functions[function].failed; }
  void comes_again(std::size_t function);

  RunResult take(Instant now, const CoreCounters& counters, double busy_seconds);

 private:
  void hash(Instant now, std::uint64_t value) {
    const auto at = static_cast<std::uint64_t>(now.time_since_epoch().count());
    result_.state_hash = Rng(result_.state_hash ^ value ^ at << 7).next();
  }
  void sample(Instant now);

  const Scenario& scenario_;
  RunResult result_;
  ServiceGaps gaps_;
  std::vector<Instant> last_delivered_;  // by function
  std::size_t queued_ = 0;
  Instant next_sample_{};
};

}  // namespace fairlead::sim
