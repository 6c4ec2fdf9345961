// What every policy knows of its flows: who waits, who runs, how often invocations come, how long they take, and when an
// empty flow has been quiet for so long that its device memory may go. No order between flows: that is the policy.
//
// Estimates (MQFQ-Sticky section 4): inter-arrival time and service are moving averages, 0.9 old + 0.1 new. Arrivals 10 s
// apart and alpha = 2 keep an empty flow active for 20 s after its last invocation (anticipation).
//
// Threads: not thread-safe. Determinism: integer arithmetic.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/id_map.h"
#include "base/ids.h"
#include "base/units.h"
#include "decide/queueing/fifo.h"
#include "decide/queueing/flow_family.h"
#include "decide/queueing/flow_view.h"
#include "decide/queueing/indexed_heap.h"
#include "model/policy_options.h"
#include "model/standing.h"

namespace fairlead {

struct QueuedInvocation {
  InvocationId invocation;
  Instant arrived;
  std::uint64_t sequence = 0;  // arrival order over all flows
};

struct InFlight {
  QueuedInvocation queued;
  Duration charged{0};     // virtual time added at dispatch
  bool is_seated = false;  // it takes no slot
};

// What a flow pays for GPU time.
struct FlowPrice {
  std::uint32_t weight = 0;  // fixed point, Flow::kWeightOne is 1.0
  int width_percent = 100;   // of the SMs that it takes
};

// What it may have in flight at most, alone or with its family.
struct FlowLimit {
  std::size_t in_flight = std::numeric_limits<std::size_t>::max();
  FlowFamily* family = nullptr;  // null: alone
};

struct Flow {
  FlowId id;
  Duration virtual_time{0};  // service received x width / weight; kept by fair policies only
  FlowPrice price;
  TenantId tenant;
  std::optional<Duration> objective;
  Duration setup{0};               // FlowQueue::set_setup
  Supply supply = Supply::kReady;  // FlowQueue::set_supply
  Instant last_turn{};             // when it was last chosen, or given a start ahead
  bool behind_starts = false;      // the instance that it has waits for memory that a start has reserved
  bool borrowed = false;           // it ran beyond the window, and is beyond it still
  Duration passed{0};              // FlowView
  bool contending = false;         // contends(), as of the last FlowTable::note_contention
  bool in_heaps = false;           // of MqfqSticky
  FlowLimit limit;
  Fifo<QueuedInvocation> queue;
  std::vector<InFlight> in_flight;  // unordered; as many as slots and seats at most

  std::optional<Duration> service;        // tau; empty until the first completion
  std::optional<Duration> inter_arrival;  // empty until the second arrival
  std::optional<Instant> last_arrival;
  bool inactive = true;  // empty, nothing in flight, TTL over

  static constexpr std::uint32_t kWeightOne = 1 << 16;

  bool holds_slots() const {
    return std::any_of(in_flight.begin(), in_flight.end(), [](const InFlight& i) { return !i.is_seated; });
  }
  bool is_below_limit() const { return (limit.family ? limit.family->in_flight : in_flight.size()) < limit.in_flight; }
  // Has work that its own reserved concurrency lets run, in a slot.
  bool runnable() const { return !queue.empty() && is_below_limit() && supply != Supply::kSeats; }

  // Waits for others, so that they must not run away from it. A flow whose instance has yet to start, or waits for a start
  // of another, does not: nothing that others leave undone helps it. What runs in seats takes nothing from anybody's turn.
  bool contends() const {
    if (!runnable()) return false;
    return holds_slots() || (supply == Supply::kReady && !behind_starts);
  }

  // Since when it waits for its turn: one that had a turn waits anew, however old its queue is.
  // REQUIRES: something is queued.
  Instant waits_since() const { return std::max(queue.front().arrived, last_turn); }

  // Virtual time that `service_time` costs: service x width / weight.
  Duration cost(Duration service_time) const {
    constexpr __int128 kWholeWidth = 100;
    return Duration(static_cast<Duration::rep>(static_cast<__int128>(service_time.count()) * price.width_percent *
                                               kWeightOne / (kWholeWidth * price.weight)));
  }
  // GPU time of the whole device that it is.
  Duration of_whole_device(Duration service_time) const { return service_time * price.width_percent / 100; }
};

class FlowTable {
 public:
  using Row = IndexedHeap<int>::Row;

  explicit FlowTable(const PolicyOptions& options) : options_(options) {}

  // Rows are dense and reused. REQUIRES: weight > 0; add: the flow is not there; row_of, remove: it is.
  Row add(FlowId flow, const FlowShare& share);
  void remove(FlowId flow);
  Row row_of(FlowId flow) const {
    const Row* found = rows_.find(flow);
    FL_CHECK(found != nullptr, "flow {} was not added", flow.value());
    return *found;
  }
  void set_share(Row row, const FlowShare& share);

  // The flow's virtual time, or what it has in flight, changed: its family has the same time. Calls `changed` for each of the others.
  template <typename Changed>
  void tell_family(Row row, Changed changed) {
    const FlowFamily* const family = flows_[row].limit.family;
    if (family == nullptr) [[likely]]
      return;
    for (const Row other : family->rows) {
      if (other == row) continue;
      flows_[other].virtual_time = flows_[row].virtual_time;
      changed(other);
    }
  }

  Flow& operator[](Row row) { return flows_[row]; }
  const Flow& operator[](Row row) const { return flows_[row]; }

  void arrive(Instant now, Row row, InvocationId invocation);
  bool cancel(Instant now, Row row, InvocationId invocation);  // O(queued of the flow)

  std::optional<InvocationId> drop_head(Instant now, Row row);  // empty: nothing was queued

  // Head of the queue to in flight, in a slot or in a seat. REQUIRES: the queue is not empty.
  InvocationId dispatch(Row row, Duration charged, bool is_seated = false);

  // In flight to gone, or back to the head of the queue. Both give what it was. REQUIRES: it is in flight.
  InFlight finish(Instant now, Row row, InvocationId invocation);
  InFlight requeue(Row row, InvocationId invocation);

  void record_service(Row row, Duration service);

  void set_supply(Row row, Supply supply);
  bool supply_is_told() const { return supply_is_told_; }  // of any flow, ever

  // To be called when a flow has changed. True: it contends from now on, and did not before.
  bool note_contention(Row row);
  bool contends() const { return contending_ > 0; }  // any flow

  std::optional<Instant> next_expiry() const;
  void expire(Instant now);

  std::size_t queued() const { return queued_; }
  std::size_t queued_for_slots() const { return queued_ - queued_for_seats_; }  // of flows that are not all in seats
  std::size_t queued(FlowId flow) const;

  // `throttled` is the policy's word; the rest of the state is known here.
  FlowView view(Row row, bool throttled) const;
  FlowState state(Row row, bool throttled) const {
    return throttled ? FlowState::kThrottled : flows_[row].inactive ? FlowState::kInactive : FlowState::kActive;
  }

 private:
  struct ExpiryKey {
    Instant at;
    FlowId flow;
    auto operator<=>(const ExpiryKey&) const = default;
  };

  void count_queued(const Flow& flow, std::ptrdiff_t change);
  InFlight take_in_flight(Row row, InvocationId invocation);
  void start_ttl_if_empty(Instant now, Row row);
  Duration ttl(const Flow& flow) const;

  const PolicyOptions options_;
  std::vector<Flow> flows_;
  std::vector<Row> free_rows_;
  IdMap<FlowId, Row> rows_;
  FlowFamilies families_;
  IndexedHeap<ExpiryKey> expiries_;  // empty flows within their TTL
  std::size_t queued_ = 0, queued_for_seats_ = 0;
  std::size_t contending_ = 0;
  bool supply_is_told_ = false;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace fairlead
