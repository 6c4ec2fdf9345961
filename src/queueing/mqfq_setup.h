// MQFQ by set-up cost: the window of MQFQ-Sticky, and within it the flow that gets most done per second of device time.
//
// Idea. Serving a flow costs its set-up once (a cold start; nothing where a warm instance is free; there, for a kernel
// task, the time to bring evicted constants back) and then tau per invocation. With n queued, one invocation costs
// setup / n + tau on average; the flow where that is least goes first
// (the batch index of polling systems). So cold flows wait until enough is queued to be worth the start, or until the
// window closes for the others; short and warm flows do not queue behind long ones. Fairness is the window's: no flow
// gets further ahead than T, whatever the order within it.
//
// Example, T = 10 s: A is warm, tau 2 s, one queued: 2 s. B is cold, set-up 9 s, tau 0.3 s: with one queued 9.3 s, so A
// goes first; with six queued 1.8 s, so B does.
//
// Where flows have data on GPUs (kernel tasks: set_setup_on), flow and GPU are chosen together by what is there
// (residency_index.h); such a flow and the others meet in the same order. Flows without are as ever.
//
// Measured (docs/ablation.md): the best mean at the paper's fairness where instances start ahead of the slot, so that the
// order decides what starts, not what waits for a start. Where a cold start holds its slot, the warm first is better
// (mqfq_warm.h).
#pragma once

#include "queueing/mqfq_sticky.h"
#include "queueing/residency_index.h"

namespace fairlead {

class MqfqSetup final : public MqfqSticky {
 public:
  explicit MqfqSetup(const PolicyOptions& options) : MqfqSticky(options), residency_(options.patience_reloads) {}
  std::string_view name() const override { return "mqfq-setup"; }
  void set_setup_on(FlowId flow, GpuId gpu, std::optional<Duration> setup) override;
  void remove_flow(FlowId flow) override;
  std::optional<Choice> choose(Instant now, const Placeable& placeable) override;
  void on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service) override;
  void on_requeue(Instant now, FlowId flow, InvocationId invocation) override;
  void on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration held) override;
  std::optional<Instant> next_chance() const override;

 protected:
  Preference preference(const Flow& flow) const override { return preference(flow, flow.setup); }
  std::optional<Pick> pick_place(Instant now, const Placeable& placeable) override;
  std::optional<GpuId> place_beyond_window(Row row, const Placeable& placeable) override;
  // Flows that have a place may want another one.
  std::optional<Row> find_indexed(const std::function<bool(Row)>& accept) override {
    return residency_.find_first(accept);
  }
  void on_eligible(Row row) override;
  void on_ineligible(Row row) override;

 private:
  static Preference preference(const Flow& flow, Duration setup);
  void note_end(Instant now, FlowId flow);
  std::optional<Pick> pick_start(const Placeable& placeable);
  Obstacle look_at_unpicked(const Placeable& placeable, Row row);

  ResidencyIndex residency_;            // eligible flows that have data on GPUs; preferred_ has the others
  bool data_waits_for_memory_ = false;  // one of these does, as of the last choice that found nobody within the window
};

}  // namespace fairlead
