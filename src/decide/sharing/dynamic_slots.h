// Dynamic D (MQFQ-Sticky section 4.2): how many invocations may run on one GPU at the same time, from what the monitor
// sees of it every 200 ms. D grows by one while invocations wait for a slot and the GPU has room for one more, by both
// of the paper's inputs:
//
//   utilisation   its moving average leaves 1/D_max below the threshold: average <= threshold - 1/D_max
//   memory        what runs, and one more like it, fits into the device
//
// and shrinks by one when the average is above the threshold or what runs outgrows the device. Between the two bars lies
// a band 1/D_max wide, as much as one more of D_max equal invocations adds, so that one step cannot cross it.
//
// Example, D_max = 8 and threshold 0.9: D grows up to 0.775 and shrinks from 0.9. Functions that use a tenth of the GPU
// each get to D = 8; of those that use 30 % each, three run (0.9); one that fills the GPU keeps D = 1.
//
// Invocations may be larger than 1/D_max, and then a step does cross the band: at 60 % each, D = 1 is below the lower bar
// and D = 2 above the upper one. So a step that had to be taken back within kProbation is not tried again for kFirstHold,
// then twice as long each time, up to kLongestHold: the controller probes ever more rarely instead of oscillating.
//
// Time: handed in. Threads: not thread-safe. One per GPU.
#pragma once

#include <cstddef>

#include "base/units.h"

namespace fairlead {

class DynamicSlots {
 public:
  static constexpr double kThreshold = 0.9;
  static constexpr double kWeight = 0.2;                           // of the newest sample in the moving average
  static constexpr Duration kSettle = std::chrono::seconds(1);     // after a step, before the next
  static constexpr Duration kProbation = std::chrono::seconds(5);  // a step taken back within it was one too many
  static constexpr Duration kFirstHold = std::chrono::seconds(5);
  static constexpr Duration kLongestHold = std::chrono::seconds(80);

  struct Sample {
    double utilisation = 0;        // 0-1 over the last period
    std::size_t slots_in_use = 0;  // at its end
    bool waiting = false;          // invocations are queued on the node
    Bytes memory_running{0};       // expected of the invocations that run
    Bytes memory_total{0};         // of the device; 0: not known, not counted
  };

  // Starts at one slot. REQUIRES: max >= 1.
  explicit DynamicSlots(std::size_t max);

  // One monitor period has passed. Returns slots().
  std::size_t update(Instant now, const Sample& sample);

  std::size_t slots() const { return slots_; }
  double average_utilisation() const { return average_; }

 private:
  bool may_grow(Instant now, const Sample& sample) const;
  bool must_shrink(Instant now, const Sample& sample) const;
  void grow(Instant now);
  void shrink(Instant now, std::size_t slots_in_use);

  const std::size_t max_;
  std::size_t slots_ = 1;
  double average_ = 0;
  Instant changed_;     // the last step, up or down
  Instant grown_;       // the last step up
  Instant held_until_;  // no step up before
  Duration hold_ = kFirstHold;
};

}  // namespace fairlead
