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
// Measured (docs/ablation.md): the best mean at the paper's fairness where instances start ahead of the token, so that the
// order decides what starts, not what waits for a start. Where a cold start holds its token, the warm first is better
// (mqfq_warm.h).
#pragma once

#include "queueing/mqfq_sticky.h"

namespace fairlead {

class MqfqSetup final : public MqfqSticky {
 public:
  using MqfqSticky::MqfqSticky;
  std::string_view name() const override { return "mqfq-setup"; }

 protected:
  Preference preference(const Flow& flow) const override {
    const Duration each =
        flow.setup / static_cast<Duration::rep>(flow.queue.size()) + flow.service.value_or(Duration(0));
    return objectives_first(flow, static_cast<std::uint64_t>(each.count()));
  }
};

}  // namespace fairlead
