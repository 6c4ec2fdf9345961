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
    const Row row = flows_.row_of(flow);
    flows_.set_share(row, share);
    settle(row);
  }

  void set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) override {
    const Row row = flows_.row_of(flow);
    flows_[row].max_concurrency = limit.value_or(std::numeric_limits<std::size_t>::max());
    settle(row);
  }

  void set_setup(FlowId flow, Duration setup) override {
    const Row row = flows_.row_of(flow);
    flows_[row].setup = setup;
    settle(row);
  }

  void set_supply(FlowId flow, Supply supply) override {
    const Row row = flows_.row_of(flow);
    flows_[row].supply = supply;
    flows_.note_contention(row);
  }

  void remove_flow(FlowId flow) override {
    const Row row = flows_.row_of(flow);
    order_.erase(row);
    on_idle(row);
    flows_.remove(flow);
  }

  void on_arrival(Instant now, FlowId flow, InvocationId invocation) override {
    const Row row = flows_.row_of(flow);
    flows_.arrive(now, row, invocation);
    settle(row);
  }

  bool cancel(Instant now, FlowId flow, InvocationId invocation) override {
    const Row row = flows_.row_of(flow);
    if (!flows_.cancel(now, row, invocation)) return false;
    settle(row);
    return true;
  }

  std::optional<Choice> choose(Instant, const Placeable& placeable) override {
    const auto row = pick(placeable);
    if (!row) return std::nullopt;
    const InvocationId invocation = flows_.dispatch(*row, Duration(0));
    on_dispatch(*row);
    settle(*row);
    return Choice{flows_[*row].id, invocation};
  }

  std::optional<FlowId> next_start(Instant, const Placeable& startable) override {
    if (!startable.may_start()) return std::nullopt;
    const auto row = pick(startable);
    return row ? std::optional(flows_[*row].id) : std::nullopt;
  }

  void on_started(FlowId, Duration) override {}

  std::optional<InvocationId> fail_head(Instant now, FlowId flow, Duration) override {
    const Row row = flows_.row_of(flow);
    const auto head = flows_.drop_head(now, row);
    settle(row);
    return head;
  }

  void on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service) override {
    const Row row = flows_.row_of(flow);
    flows_.finish(now, row, invocation);
    flows_.record_service(row, service);
    settle(row);
  }

  void on_requeue(Instant, FlowId flow, InvocationId invocation) override {
    const Row row = flows_.row_of(flow);
    flows_.requeue(row, invocation);
    settle(row);
  }

  void on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration) override {
    const Row row = flows_.row_of(flow);
    flows_.finish(now, row, invocation);
    settle(row);
  }

  std::optional<Instant> next_expiry() const override { return flows_.next_expiry(); }
  void expire(Instant now) override { flows_.expire(now); }
  std::size_t queued() const override { return flows_.queued(); }
  std::size_t queued(FlowId flow) const override { return flows_.queued(flow); }
  FlowView view(FlowId flow) const override { return flows_.view(flows_.row_of(flow), false); }
  Duration global_virtual_time() const override { return Duration(0); }
  bool contends() const override { return flows_.contends(); }

 protected:
  using Row = FlowTable::Row;

  // REQUIRES: the flow has runnable work.
  virtual Key key(const Flow& flow) const = 0;

  // For policies that remember more than a key: which row is next; a row was just chosen; a row begins to have runnable
  // work; it has none (any more).
  virtual std::optional<Row> pick(const Placeable& placeable) {
    return order_.find_first([&](Row row) { return placeable.can_run(flows_[row].id); });
  }
  virtual void on_dispatch(Row) {}
  virtual void on_waiting(Row) {}
  virtual void on_idle(Row) {}

  // Puts a flow that changed where it belongs.
  void settle(Row row) {
    if (flows_[row].runnable()) {
      if (!order_.contains(row)) on_waiting(row);
      order_.set(row, key(flows_[row]));
    } else {
      order_.erase(row);
      on_idle(row);
    }
    flows_.note_contention(row);
  }

  FlowTable flows_;
  IndexedHeap<Key> order_;  // flows with runnable work
};

}  // namespace fairlead
