// Batch: serve the whole flow that holds the oldest invocation (MQFQ-Sticky section 6, "Batch"). What that flow has queued
// at the moment it is chosen is one batch; while it lasts the flow stays first, then the next oldest invocation decides.
// Good locality, no fairness: a flow with a long queue keeps all others waiting for as long as its batch takes.
//
// Example: A has three queued, then B one, then A one more arrives while the batch runs: A A A B A.
//
// A batch whose flow cannot run just now is overtaken and goes on as soon as it can.
// Time, threads, determinism: as policy.h.
#pragma once

#include "queueing/keyed_policy.h"

namespace fairlead {

class Batch final : public KeyedPolicy<std::uint64_t> {
 public:
  using KeyedPolicy::KeyedPolicy;
  std::string_view name() const override { return "batch"; }

 protected:
  std::uint64_t key(const Flow& flow) const override { return flow.queue.front().sequence; }

  std::optional<Slot> pick(const Placeable& placeable) override {
    if (left_ > 0 && placeable.can_run(flows_[current_].id)) return current_;
    return KeyedPolicy::pick(placeable);
  }

  void on_dispatch(Slot slot) override {
    if (left_ == 0) {
      current_ = slot;
      left_ = flows_[slot].queue.size();
    } else if (slot == current_) {
      --left_;
    }
  }

  void on_idle(Slot slot) override {
    if (slot == current_) left_ = 0;
  }

 private:
  Slot current_ = 0;
  std::size_t left_ = 0;  // of the batch of current_, not chosen yet
};

}  // namespace fairlead
