// How many calls of kernel tasks run on one GPU at the same time (its lanes), decided from what running together costs them.
// A call of a kernel task is the same graph of kernels every time. So what it takes longer beside others is what they cost it.
//
//   T(k)    how long a call takes while k run, itself among them
//   added   what the k-th adds to the time of k - 1, in runs: (T(k) - T(k-1)) / (T(k-1) / (k-1))
//           0: it runs for nothing; 1: it only makes the others wait, and one after the other they would end as soon
//
// Lane k pays while `added` is at most kMostAdded. T is kept task by task, so that a GPU which serves long and short tasks
// compares each with itself; `added` is a moving average over all of them.
//
// Example: kernels that fill the SMs in 4.3 calls, 52 ms each. T(2) to T(4) are 52 ms, nothing is added. T(5) is 60 ms: 8 ms
// over 13 ms a run, 0.65: the fifth lane pays. T(6) is 73 ms: 12 over 12 ms, 1: five lanes. Kernels that fill them in 1.6 calls
// of 39 ms: T(2) is 49 ms, 0.25; T(3) is 73 ms, 1: two lanes.
//
// A lane that was never tried is tried once all below it pay and were in use. One that did not pay is tried again after
// kRetry: tasks come and go. Trying costs what it is there to measure, for kEnough calls.
//
// Only calls that met the same number of others from their beginning to their end say what that number costs: the mean number
// is within kCrisp of a whole one.
//
// Time: handed in. Threads: not thread-safe. One per GPU. Determinism: the same calls give the same lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/id_map.h"
#include "base/ids.h"
#include "base/units.h"

namespace fairlead {

class MeasuredLanes {
 public:
  static constexpr std::size_t kMost = 8;    // by default
  static constexpr double kMostAdded = 0.8;  // of a run
  static constexpr int kEnough = 8;          // calls that say what a lane adds, before that is believed
  static constexpr double kCrisp = 0.15;     // of a call
  static constexpr double kNewest = 0.1;     // weight of the newest call in a mean
  static constexpr Duration kRetry = std::chrono::seconds(60);

  struct Options {
    std::size_t least = 2;
    std::size_t most = kMost;
  };

  // REQUIRES: 1 <= least <= most.
  explicit MeasuredLanes(const Options& options);

  // A call of the task computes from now on: what it needs is on the device. REQUIRES: it does not yet.
  void begin(Instant now, InvocationId call, FlowId task);
  // It is over. Not known: no effect.
  void end(Instant now, InvocationId call);
  // It is over, and how long it took says nothing: it failed, or was stopped.
  void abandon(Instant now, InvocationId call);
  void forget(FlowId task) { times_.erase(task); }

  std::size_t lanes() const { return lanes_; }
  std::size_t running() const { return calls_.size(); }

 private:
  struct Call {
    FlowId task;
    Instant began;
    std::int64_t area = 0;
  };
  struct Mean {
    double value = 0;
    int samples = 0;
    void add(double sample);
  };
  struct Lane {      // the k-th
    Mean stretch;    // T(k) / T(k-1)
    int in_use = 0;  // calls that met k, of tasks that had met it before
    Instant judged;
  };

  void pass_time(Instant now);
  void record(Instant now, FlowId task, std::size_t level, Duration took);
  bool is_known(std::size_t lane) const { return lane_[lane].stretch.samples >= kEnough; }
  double added(std::size_t lane) const;
  void decide(Instant now);

  const Options options_;
  std::size_t lanes_;
  std::vector<Lane> lane_;                  // [0] and [1] say nothing
  IdMap<FlowId, std::vector<Mean>> times_;  // of a task, T by level
  IdMap<InvocationId, Call> calls_;         // that compute
  std::int64_t area_ = 0;                   // calls that computed times nanoseconds, up to updated_
  Instant updated_{};
};

}  // namespace fairlead
