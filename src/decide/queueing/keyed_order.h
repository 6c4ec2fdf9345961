// An order that is one key per flow: of the flows with runnable work, the placeable one with the least key is next. Most
// policies are that and a sentence. To add one: derive, give key(), and say what it is called. Shortest job first:
//
//   class Shortest final : public KeyedOrder<Shortest, ByTime<Duration>> {
//    public:
//     using KeyedOrder::KeyedOrder;
//     Key key(const Flow& flow) const { return {flow.service.value_or(Duration(0)), flow.id}; }
//   };
//   constinit const Policy shortest_policy{.name = "shortest", .next_is = "the shortest", .make = make_order<Shortest>};
//
// and the line FL_POLICY(shortest) in policies.inc. A key may depend on anything of its own flow; it is asked for again
// whenever the flow changes. What depends on time or on other flows needs more than a key (sjf.cc, batch.cc).
//
// Time, threads, determinism: as flow_queue.h.
#pragma once

#include "decide/queueing/indexed_heap.h"
#include "decide/queueing/order.h"

namespace fairlead {

// A total order: by a time, then by id.
template <typename Time>
struct ByTime {
  Time time;
  FlowId flow;
  auto operator<=>(const ByTime&) const = default;
};

// Derived has key(const Flow&) -> FlowKey. REQUIRES of a call: the flow has runnable work. It may also have on_waiting(row),
// a flow begins to have runnable work, and on_idle(row), it has none (any more).
template <typename Derived, typename FlowKey>
class KeyedOrder : public Order {
 public:
  using Key = FlowKey;
  using Order::Order;

  std::optional<Pick> pick(Instant, const Placeable& placeable) override {
    const auto row = order_.find_first([&](Row candidate) { return placeable.can_run(flows_[candidate].id); });
    return row ? std::optional(Pick{*row}) : std::nullopt;
  }

  void settle(Row row) final {
    if (flows_[row].runnable()) {
      if (!order_.contains(row)) derived().on_waiting(row);
      order_.set(row, derived().key(flows_[row]));
    } else {
      order_.erase(row);
      derived().on_idle(row);
    }
    flows_.note_contention(row);
  }

  void remove(Row row) override {
    order_.erase(row);
    derived().on_idle(row);
  }

 protected:
  void on_waiting(Row) {}
  void on_idle(Row) {}

  IndexedHeap<Key> order_;  // flows with runnable work

 private:
  Derived& derived() { return static_cast<Derived&>(*this); }
};

}  // namespace fairlead
