// Batch: serve the whole flow that holds the oldest invocation (MQFQ-Sticky section 6, "Batch"). What that flow has queued
// when its turn comes is one batch, and a batch belongs to one slot: the slot serves it to its end, one invocation after
// the other, and then takes the flow with the next oldest. Good locality, no fairness: a flow with a long queue keeps all
// others waiting for as long as its batch takes.
//
// Example: A has three queued, then B one, then A one more arrives while the batch runs: A A A B A. With two slots: A's
// three on the first, B and A's fourth (once the three are done) on the second; A never runs beside itself, which would
// cost a second instance of A, while others wait.
//
// A batch whose flow cannot run just now is overtaken and goes on as soon as it can. Where nothing else can run, a slot
// does not idle: it helps with a batch that is another's.
// Time, threads, determinism: as flow_queue.h.
#include "decide/queueing/keyed_order.h"
#include "decide/queueing/policy.h"

namespace fairlead {
namespace {

// What a slot that is free should do first.
enum class BatchTurn {
  kGoOn,  // with a batch that has begun and of which nothing runs
  kOpen,  // the batch of a flow that has none
  kHelp,  // with what another slot serves
};

struct BatchKey {
  BatchTurn turn;
  std::uint64_t order;  // of batches that have begun; otherwise the arrival of the oldest invocation
  auto operator<=>(const BatchKey&) const = default;
};

class Batch final : public KeyedOrder<Batch, BatchKey> {
 public:
  using KeyedOrder::KeyedOrder;

  void add(Row row) override {
    if (row >= open_.size()) open_.resize(row + 1);
    open_[row] = {};
  }

  Key key(const Flow& flow) const {
    const Open& open = open_[flows_.row_of(flow.id)];
    if (!flow.in_flight.empty()) return {BatchTurn::kHelp, flow.queue.front().sequence};
    if (open.left > 0) return {BatchTurn::kGoOn, open.number};
    return {BatchTurn::kOpen, flow.queue.front().sequence};
  }

  void began(const Pick& pick) override {
    Open& open = open_[pick.row];
    if (open.left > 0) {
      --open.left;
    } else {
      open = {flows_[pick.row].queue.size(), next_++};
    }
    settle(pick.row);
  }

  // A flow at its reserved concurrency goes on with its batch afterwards.
  void on_idle(Row row) {
    if (flows_[row].queue.empty()) open_[row].left = 0;
  }

 private:
  struct Open {
    std::size_t left = 0;  // of the batch, not chosen yet
    std::uint64_t number = 0;
  };
  std::vector<Open> open_;  // by row
  std::uint64_t next_ = 0;
};

}  // namespace

constinit const Policy batch_policy{
    .name = "batch", .next_is = "all that the flow with the oldest invocation has queued", .make = make_order<Batch>};

}  // namespace fairlead
