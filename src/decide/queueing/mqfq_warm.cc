// MQFQ, the warm first: the window of MQFQ-Sticky, and within it flows that could begin at once go before flows that would
// need a cold start; among each the paper's order (fewest in flight, longest queue, least served).
//
// Idea. The paper prefers long queues because they amortise a start, but a cold flow with the longest queue still holds a
// slot for its whole start while warm work waits. Taking the warm first costs the cold flow nothing in the end: its
// virtual time stands still, so when the warm flows are T ahead it is the only one eligible, and by then more of its calls
// share the one start. Fairness is the window's, whatever the order within it.
//
// Example, T = 10 s, one slot, all queued at 0 s: A is cold (start 9 s, tau 1 s) with three, B is warm (tau 2 s) with two.
// MQFQ-Sticky begins with A: answers at 10, 11, 12, 14 and 16 s, mean 12.6 s. Here B goes first: 2, 4, 14, 15 and 16 s,
// mean 10.2 s.
#include "decide/queueing/mqfq_sticky.h"

namespace fairlead {
namespace {

class MqfqWarm final : public MqfqSticky {
 public:
  using MqfqSticky::MqfqSticky;

 protected:
  Preference preference(const Flow& flow) const override {
    const std::uint64_t cold = flow.setup > Duration(0) ? kCold : 0;
    return objectives_first(flow, cold | MqfqSticky::preference(flow).rank);
  }

 private:
  static constexpr std::uint64_t kCold = std::uint64_t{1} << 62;  // above any number in flight
};

}  // namespace

constinit const Policy mqfq_warm_policy{
    .name = "mqfq-warm",
    .next_is = "within the window: flows that could begin at once before those that need a start",
    .make = make_order<MqfqWarm>,
    .parameters = {&kOverRun, &kOverRunServices, &kFixedCharge}};

}  // namespace fairlead
