// A policy that is one key per flow: of the flows with runnable work, the placeable one with the least key is next. Most
// policies are that and a sentence; the base class keeps the books. To add one: derive, give name() and key(), list it in
// policy.cc, and it is in every table and on every command line. Example, shortest job first:
//
//   class Shortest final : public KeyedPolicy<ByTime<Duration>> {
//     std::string_view name() const override { return "shortest"; }
//     Key key(const Flow& flow) const override { return {flow.service.value_or(Duration(0)), flow.id}; }
//   };
//
// A key may depend on anything of its own flow; it is asked for again whenever the flow changes. What depends on time or
// on other flows needs more than a key (sjf.h, batch.h).
//
// Time, threads, determinism: as policy.h.
#pragma once

#include "queueing/flow_table.h"
#include "queueing/indexed_heap.h"
#include "queueing/policy.h"

namespace fairlead {

// A total order: by a time, then by id.
template <typename Time>
struct ByTime {
  Time time;
  FlowId flow;
  auto operator<=>(const ByTime&) const = default;
};

template <typename FlowKey>
class KeyedPolicy : public QueuePolicy {
 public:
  using Key = FlowKey;

  explicit KeyedPolicy(const PolicyOptions& options) : flows_(options) {}

  void add_flow(FlowId flow, const FlowShare& share) override { flows_.add(flow, share); }

  void set_share(FlowId flow, const FlowShare& share) override {
    const Slot slot = flows_.slot_of(flow);
    flows_.set_share(slot, share);
    settle(slot);
  }

  void set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) override {
    const Slot slot = flows_.slot_of(flow);
    flows_[slot].max_concurrency = limit.value_or(std::numeric_limits<std::size_t>::max());
    settle(slot);
  }

  void set_setup(FlowId flow, Duration setup) override {
    const Slot slot = flows_.slot_of(flow);
    flows_[slot].setup = setup;
    settle(slot);
  }

  void set_supply(FlowId flow, Supply supply) override {
    const Slot slot = flows_.slot_of(flow);
    flows_[slot].supply = supply;
    flows_.note_contention(slot);
  }

  void remove_flow(FlowId flow) override {
    const Slot slot = flows_.slot_of(flow);
    order_.erase(slot);
    on_idle(slot);
    flows_.remove(flow);
  }

  void on_arrival(Instant now, FlowId flow, InvocationId invocation) override {
    const Slot slot = flows_.slot_of(flow);
    flows_.arrive(now, slot, invocation);
    settle(slot);
  }

  bool cancel(Instant now, FlowId flow, InvocationId invocation) override {
    const Slot slot = flows_.slot_of(flow);
    if (!flows_.cancel(now, slot, invocation)) return false;
    settle(slot);
    return true;
  }

  std::optional<Choice> choose(Instant, const Placeable& placeable) override {
    const auto slot = pick(placeable);
    if (!slot) return std::nullopt;
    const InvocationId invocation = flows_.dispatch(*slot, Duration(0));
    on_dispatch(*slot);
    settle(*slot);
    return Choice{flows_[*slot].id, invocation};
  }

  std::optional<FlowId> next_start(Instant, const Placeable& startable) override {
    if (!startable.may_start()) return std::nullopt;
    const auto slot = pick(startable);
    return slot ? std::optional(flows_[*slot].id) : std::nullopt;
  }

  void on_started(FlowId, Duration) override {}

  std::optional<InvocationId> fail_head(Instant now, FlowId flow, Duration) override {
    const Slot slot = flows_.slot_of(flow);
    const auto head = flows_.drop_head(now, slot);
    settle(slot);
    return head;
  }

  void on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service) override {
    const Slot slot = flows_.slot_of(flow);
    flows_.finish(now, slot, invocation);
    flows_.record_service(slot, service);
    settle(slot);
  }

  void on_requeue(Instant, FlowId flow, InvocationId invocation) override {
    const Slot slot = flows_.slot_of(flow);
    flows_.requeue(slot, invocation);
    settle(slot);
  }

  void on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration) override {
    const Slot slot = flows_.slot_of(flow);
    flows_.finish(now, slot, invocation);
    settle(slot);
  }

  std::optional<Instant> next_expiry() const override { return flows_.next_expiry(); }
  void expire(Instant now) override { flows_.expire(now); }
  std::size_t queued() const override { return flows_.queued(); }
  std::size_t queued(FlowId flow) const override { return flows_.queued(flow); }
  FlowView view(FlowId flow) const override { return flows_.view(flows_.slot_of(flow), false); }
  Duration global_virtual_time() const override { return Duration(0); }
  bool contends() const override { return flows_.contends(); }

 protected:
  using Slot = FlowTable::Slot;

  // REQUIRES: the flow has runnable work.
  virtual Key key(const Flow& flow) const = 0;

  // For policies that remember more than a key: which slot is next; a slot was just chosen; a slot begins to have runnable
  // work; it has none (any more).
  virtual std::optional<Slot> pick(const Placeable& placeable) {
    return order_.find_first([&](Slot slot) { return placeable.can_run(flows_[slot].id); });
  }
  virtual void on_dispatch(Slot) {}
  virtual void on_waiting(Slot) {}
  virtual void on_idle(Slot) {}

  // Puts a flow that changed where it belongs.
  void settle(Slot slot) {
    if (flows_[slot].runnable()) {
      if (!order_.contains(slot)) on_waiting(slot);
      order_.set(slot, key(flows_[slot]));
    } else {
      order_.erase(slot);
      on_idle(slot);
    }
    flows_.note_contention(slot);
  }

  FlowTable flows_;
  IndexedHeap<Key> order_;  // flows with runnable work
};

}  // namespace fairlead
