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
// Time, threads, determinism: as policy.h.
#pragma once

#include "queueing/keyed_policy.h"

namespace fairlead {

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

class Batch final : public KeyedPolicy<BatchKey> {
 public:
  using KeyedPolicy::KeyedPolicy;
  std::string_view name() const override { return "batch"; }

  void add_flow(FlowId flow, const FlowShare& share) override {
    KeyedPolicy::add_flow(flow, share);
    const Row row = flows_.row_of(flow);
    if (row >= open_.size()) open_.resize(row + 1);
    open_[row] = {};
  }

 protected:
  Key key(const Flow& flow) const override {
    const Open& open = open_[flows_.row_of(flow.id)];
    if (!flow.in_flight.empty()) return {BatchTurn::kHelp, flow.queue.front().sequence};
    if (open.left > 0) return {BatchTurn::kGoOn, open.number};
    return {BatchTurn::kOpen, flow.queue.front().sequence};
  }

  void on_dispatch(Row row) override {
    Open& open = open_[row];
    if (open.left > 0) {
      --open.left;
    } else {
      open = {flows_[row].queue.size(), next_++};
    }
  }

  // A flow at its reserved concurrency goes on with its batch afterwards.
  void on_idle(Row row) override {
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

}  // namespace fairlead
