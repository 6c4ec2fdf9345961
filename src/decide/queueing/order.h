// Which flow is next: the part of a policy that is its own. What every policy has (queues, what runs, charges, states of
// flows) is the queue's (flow_queue.h), which asks an order and tells it what changed.
//
// An order sees its flows in a FlowTable and says who is next. Most are a key per flow (keyed_order.h), and that is all of
// them. What only some need is an interface of its own, which an order has as a second base; the queue asks for it once:
//
//   ByService   flows have virtual time, which the queue charges
//   Starts      whose instance starts next is not simply who is next; starts are charged
//   Patient     it may leave work waiting for a while though it could run
//   DataPlaces  it knows where flows have data
//
// Time, threads, determinism: as flow_queue.h.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "decide/queueing/flow_table.h"
#include "decide/queueing/placeable.h"

namespace fairlead {

class Order {
 public:
  using Row = FlowTable::Row;

  explicit Order(FlowTable& flows) : flows_(flows) {}
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;
  virtual ~Order() = default;

  // Who is next, of the flows that have runnable work and that `placeable` lets run. It has not begun by that.
  struct Pick {
    Row row;
    GpuId gpu = {};        // where; none: wherever it begins soonest
    Duration expected{0};  // GPU time that it is charged until its own is known (ByService)
  };
  virtual std::optional<Pick> pick(Instant now, const Placeable& placeable) = 0;

  // The flow changed (what is queued, what runs, its limit, what it has to run on): puts it where it belongs.
  virtual void settle(Row row) = 0;
  // The flow goes; it is in the table still.
  virtual void remove(Row row) = 0;

  // A flow came. `row` may have been another's.
  virtual void add(Row) {}
  // Its weight, its objective or its set-up changed.
  virtual void reweighed(Row row) { settle(row); }
  // What pick() gave has begun.
  virtual void began(const Pick& pick) { settle(pick.row); }
  // An invocation is not in flight any more. It was answered, or else it was given back or its instance never started.
  struct Ended {
    Instant now;
    bool answered = false;
    Duration service{0};  // of one that was answered, as both of these
    Duration latency{0};  // from its arrival
  };
  virtual void ended(Row row, const Ended&) { settle(row); }

 protected:
  FlowTable& flows_;
};

// Flows have virtual time: service received over weight. The queue charges it: what is expected when an invocation begins,
// put right when it ends.
class ByService {
 public:
  explicit ByService(std::optional<Duration> charge = std::nullopt) : fixed_charge(charge) {}
  virtual ~ByService() = default;

  // The least of the flows that have work, as far as it is known; never falls.
  virtual Duration global_virtual_time() const = 0;
  // T: how far ahead of that a flow is and may begin still.
  virtual Duration window() const { return Duration(0); }
  virtual bool is_throttled(const Flow&) const { return false; }

  const std::optional<Duration> fixed_charge;  // of every invocation, whatever it took
};

// An order without it starts whom it would choose, and charges nothing for it.
class Starts {
 public:
  virtual ~Starts() = default;

  // The flow whose instance should start next (FlowQueue::next_start).
  virtual std::optional<FlowTable::Row> pick_start(Instant now, const Placeable& startable) = 0;
  // A start of the flow took `cost` of virtual time, or kept that from others: its instance is ready, or never will be.
  virtual void charge_start(Flow& flow, Duration cost, bool is_ready) = 0;
  // FlowQueue::claimant.
  virtual FlowId claimant() const { return FlowId(); }
};

class Patient {
 public:
  virtual ~Patient() = default;
  virtual std::optional<Instant> next_chance() const = 0;  // FlowQueue::next_chance
};

class DataPlaces {
 public:
  virtual ~DataPlaces() = default;
  virtual void set_setup_on(FlowTable::Row row, GpuId gpu, std::optional<Duration> setup) = 0;  // FlowQueue's
};

// What a policy is to everybody else; one for each, in the policy's file (policies.inc).
struct Policy {
  std::string_view name;
  std::string_view next_is;  // for people: whom it chooses
  std::unique_ptr<Order> (*make)(FlowTable& flows, const PolicyOptions& options);
  bool keeps_instances = true;  // false: every invocation gets an instance of its own, which goes after its answer
  bool one_function_per_gpu =
      false;  // a GPU has instances of one function at a time; others' go before its first starts
  bool looks_at_every_flow = false;  // a choice costs as much as there are flows that wait: for tens of them
  std::array<const ParameterInfo*, 6> parameters = {};  // those that it looks at, then nulls
};

// For Policy::make, of an order that is made of its flows alone, or of these and the options.
template <typename MadeOrder>
std::unique_ptr<Order> make_order(FlowTable& flows, const PolicyOptions& options) {
  if constexpr (std::is_constructible_v<MadeOrder, FlowTable&, const PolicyOptions&>) {
    return std::make_unique<MadeOrder>(flows, options);
  } else {
    return std::make_unique<MadeOrder>(flows);
  }
}

}  // namespace fairlead
