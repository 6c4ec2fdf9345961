// What the queue asks while it chooses: could this flow's next invocation begin now, where, and what keeps it from that? The answers
// are noted, because the first flow that could not is the one for which slots idle (idle_slots.h).
//
// Example: D = 2 and one slot is free. The policy asks about A, whose instance is busy (kItself), then about B, whose memory does not
// fit beside what runs (kMemory), and chooses nobody. The slot idles for memory: B is the first that waits for more than itself.
//
// Threads: the core's.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "decide/core/start_planner.h"
#include "decide/core/tables.h"
#include "decide/placement/placer.h"
#include "decide/queueing/placeable.h"
#include "decide/residency/residency.h"

namespace fairlead {

// What the policy heard when it found nothing (more) to run, or to start.
class DispatchAnswers {
 public:
  void note_run(FlowId flow, Obstacle obstacle) {
    one_could_run_ |= obstacle == Obstacle::kNothing;
    if (obstacle != Obstacle::kNothing && note(run_, obstacle)) waits_ = flow;
  }
  void note_start(Obstacle obstacle) {
    if (obstacle != Obstacle::kNothing) note(start_, obstacle);
  }
  void note_kept() { one_is_kept_ = true; }
  void note_patience(Instant until) { patient_until_ = std::min(patient_until_, until); }

  // Of the first flow that the policy asked about and that waits for more than itself, if any.
  std::optional<Obstacle> run() const { return run_; }
  std::optional<Obstacle> start() const { return start_; }
  FlowId waits() const { return waits_; }  // whose answer run() is
  bool one_could_run() const { return one_could_run_; }
  bool one_is_kept() const { return one_is_kept_; }  // it could, and the policy has its reasons
  // Until when flows have no further instance started, since one of theirs is expected to be free before.
  Instant patient_until() const { return patient_until_; }

 private:
  static bool note(std::optional<Obstacle>& first, Obstacle obstacle) {
    const bool is_first = !first || first == Obstacle::kItself;
    if (is_first) first = obstacle;
    return is_first;
  }

  std::optional<Obstacle> run_, start_;
  FlowId waits_;
  bool one_could_run_ = false, one_is_kept_ = false;
  Instant patient_until_ = Instant::max();
};

class Dispatchable final : public Placeable {
 public:
  Dispatchable(const CoreTables& tables, const Residency& residency, const Placer& placer, const StartPlanner& planner)
      : tables_(tables), residency_(residency), placer_(placer), planner_(planner) {}

  // A choice begins: nothing was asked yet.
  void begin() { answers_ = {}; }
  const DispatchAnswers& answers() const { return answers_; }
  void note_start(FlowId flow, Obstacle obstacle) const;

  // Noted.
  bool can_run(FlowId flow) const override;
  std::vector<Place> places(FlowId flow) const override;
  void is_kept(FlowId) const override { answers_.note_kept(); }

  Obstacle obstacle(FlowId flow) const override;
  std::optional<Place> place(FlowId flow, GpuId gpu) const override;
  std::vector<GpuId> free_gpus() const override;

 private:
  bool can_run_on(FlowId flow, GpuId only) const;  // none: on any
  bool may_begin_with_a_start(FlowId flow) const;
  Obstacle obstacle_to_run(FlowId flow) const;
  bool is_patient(FlowId flow) const;

  const CoreTables& tables_;
  const Residency& residency_;
  const Placer& placer_;
  const StartPlanner& planner_;
  mutable DispatchAnswers answers_;  // of the dispatch that is under way; asking notes them
};

}  // namespace fairlead
