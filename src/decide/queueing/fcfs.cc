// First come, first served over all flows: the baseline every fair policy is compared with. The oldest queued invocation
// whose flow can run is next; one that cannot (its flow's reserved concurrency, no device memory) is overtaken and stays
// the oldest. No fairness: a flow that sends twice as much gets twice as much.
//
// Of each flow only the head can be next, so the order is a heap of flows by the arrival number of their heads: 10,000
// queued invocations of 3 flows are a heap of 3.
//
// "fcfs-naive" is the same without a pool of warm instances: what a container per call costs (the paper's worst baseline).
//
// Time, threads, determinism: as flow_queue.h.
#include "decide/queueing/keyed_order.h"
#include "decide/queueing/policy.h"

namespace fairlead {
namespace {

class Fcfs final : public KeyedOrder<Fcfs, std::uint64_t> {
 public:
  using KeyedOrder::KeyedOrder;
  Key key(const Flow& flow) const { return flow.queue.front().sequence; }
};

}  // namespace

constinit const Policy fcfs_policy{.name = "fcfs", .next_is = "the oldest", .make = make_order<Fcfs>};
constinit const Policy fcfs_naive_policy{.name = "fcfs-naive",
                                         .next_is = "the oldest, each in an instance of its own",
                                         .make = make_order<Fcfs>,
                                         .keeps_instances = false};

}  // namespace fairlead
