// MQFQ-Sticky (paper section 4, Algorithm 1): fair queueing that lets one function run a little ahead.
//
// Idea. A flow's virtual time (VT) counts the GPU service it was given, divided by its weight. Global_VT is the least VT
// of all flows that have work. A flow may run while it is at most T ahead of Global_VT; within that window it is served
// back to back, on its warm instance. Beyond it, it is throttled until the others have caught up. So no two flows that
// both have work drift apart by more than a constant, however much either sends.
//
// Example, T = 10 s, one slot, invocations of 4 s; A has six queued, B two. The longer queue is preferred:
//
//   choice   VT of A   VT of B   Global_VT
//   A           4         0          0
//   A           8         0          0
//   A          12         0          0      A is 12 s ahead: throttled
//   B          12         4          4      A is 8 s ahead: eligible again
//   A          16         4          4      throttled
//   B          16         8         16      B is empty: A alone has work
//   A A
//
// T = 0 (plain start-time fair queueing) serves A B A B A A A A.
//
// Starts ahead. Where instances start ahead of the choice, a flow whose first instance has yet to start waits on itself:
// it does not hold Global_VT, so nobody stands still for its start, and its waiting earns no credit: it joins at
// max(VT, Global_VT) when it can run. Three kinds of flows with work, then (Flow::contends):
//
//   an instance is free or busy       contends: holds Global_VT, is chosen in its turn
//   it waits for memory that a start  does not hold Global_VT while it does
//   has reserved
//   none has started                  does not hold Global_VT; starts in the policy's order, but one that has waited T goes
//                                     before all younger ones
//
// Who has waited 8 T for device memory claims it: others are let in only beside what it needs (claimant()), so it waits
// for what runs and starts, and for nothing that comes later.
//
// A search for a start passes over four flows that have no room, and every 10 s over all: so its cost does not depend on the
// number of flows, and whoever has room is found within 10 s, however many before him have none.
//
// Slots do not idle for the window's sake. Where no flow within the window can use a free slot, because each waits on its
// own busy instance, the window moves up to the next flow that can: those that wait on themselves are passed. Where one of
// them waits for memory, or for a slot of another GPU, the slot is used without moving the window. Example, two slots,
// T = 10 s: A has one instance and runs 60 s; B, warm, is 10 s ahead. B goes on all the same.
//
// A derived class may keep flows of its own order in an index instead of preferred_ (mqfq_setup.cc); all of the above holds for
// them as well.
//
// Decisions where the paper is silent or disagrees with itself (docs/explanation/core.md gives the reasons):
// - Global_VT is over flows with runnable work and never falls. A correction that pulls a flow below it makes that flow
//   eligible and moves nothing else. A flow that had no runnable work (empty, or at its own reserved concurrency) joins
//   at Global_VT or later: waiting on nobody but itself earns no credit.
// - The estimate tau / w is charged at dispatch and corrected at completion. Unknown tau is T / 10, at least 1 ms, so
//   that T = 0 charges something too.
//
// Cost: O(log n) per call. Measured with 10,000 backlogged flows: policy_bench.cc.
// Time, threads, determinism: as flow_queue.h. All arithmetic is on integer nanoseconds.
#pragma once

#include <functional>

#include "decide/queueing/keyed_order.h"
#include "decide/queueing/policy.h"
#include "decide/queueing/window.h"

namespace fairlead {

inline constexpr Parameter<double> kOverRunServices{"over_run_services", "T of MQFQ is at least so many mean services",
                                                    0, 1e6, 0};
inline constexpr Parameter<Duration> kFixedCharge{
    "fixed_charge_s", "virtual time grows by this per invocation, whatever it took", 1e-6, 1e9};

class MqfqSticky : public Order, public ByService, public Starts, public Patient {
 public:
  MqfqSticky(FlowTable& flows, const PolicyOptions& options);

  std::optional<Pick> pick(Instant now, const Placeable& placeable) override;
  void settle(Row row) final;
  void remove(Row row) override;
  void began(const Pick& pick) override;
  void ended(Row row, const Ended& end) override;

  std::optional<Row> pick_start(Instant now, const Placeable& startable) override;
  void charge_start(Flow& flow, Duration cost, bool is_ready) override;
  FlowId claimant() const override { return claimant_ ? flows_[*claimant_].id : FlowId(); }

  Duration global_virtual_time() const override { return global_; }
  Duration window() const override { return over_run_; }
  bool is_throttled(const Flow& flow) const override { return !flow.queue.empty() && !within_window(flow); }
  std::optional<Instant> next_chance() const override { return next_chance_; }

 protected:
  // Who goes first within the window: the least.
  struct Preference {
    std::uint64_t rank;
    Duration virtual_time;
    FlowId flow;
    auto operator<=>(const Preference&) const = default;
  };

  // Section 4.3: fewest in flight, then longest queue, then smallest VT, then lowest id. REQUIRES: runnable.
  virtual Preference preference(const Flow& flow) const;

  // The first of preferred_ that can run.
  virtual std::optional<Row> first_preferred(const Placeable& placeable);

  // For orders that choose the GPU too, and keep an index of flows that are then not in preferred_.
  // Who goes where, of the eligible flows. Where it finds nobody, it has looked at each of them (look_at).
  virtual std::optional<Pick> pick_place(Instant now, const Placeable& placeable);
  // Where a flow beyond the window may use a slot that nobody else can; empty: nowhere.
  virtual std::optional<GpuId> place_beyond_window(Row row, const Placeable& placeable);
  // Of the flows in the index, the first that `accept` takes.
  virtual std::optional<Row> find_indexed(const std::function<bool(Row)>&) { return std::nullopt; }
  // A flow is eligible with an instance to run on, or changed while it is; it is not any more.
  virtual void on_eligible(Row row) { preferred_.set(row, preference(flows_[row])); }
  virtual void on_ineligible(Row row) { preferred_.erase(row); }
  Instant now() const { return now_; }  // of the choice, or start, that is being looked for

  // A function with an objective (its answer is wanted within so long) as a class of its own, for orders that have it:
  // what is due soonest, before all flows that have none. `rank`: among those. REQUIRES: rank < 2^63.
  static Preference objectives_first(const Flow& flow, std::uint64_t rank);

  // What keeps the flow from running, and what follows from that for those who wait (claims, Global_VT).
  Obstacle look_at(const Placeable& placeable, Row row);
  bool can_run(const Placeable& placeable, Row row) { return look_at(placeable, row) == Obstacle::kNothing; }

  IndexedHeap<Preference> preferred_;  // eligible flows that have an instance to run on, but those that an index has
  bool one_waits_elsewhere_ = false;   // of the flows that pick_place() looked at: for memory, or a slot of another GPU

 private:
  using ByVirtualTime = ByTime<Duration>;
  using ByAge = ByTime<Instant>;

  bool within_window(const Flow& flow) const { return flow.virtual_time - global_ <= over_run_; }
  Duration estimate(const Flow& flow) const;
  void catch_up(Flow& flow);
  void enter_heaps(Row row);
  void leave_heaps(Row row);
  std::optional<Duration> least_virtual_time() const;
  void advance_global();
  bool promote(IndexedHeap<ByVirtualTime>& throttled);
  bool adapt_window(Duration service);
  bool starts_ahead() const { return flows_.supply_is_told(); }  // else this is the paper's algorithm and no more

  std::optional<Pick> pick_beyond_window(const Placeable& placeable);
  void move_window_to(Row row);
  bool set_aside_behind_starts();
  void review_claim();
  void may_claim(Row row, Obstacle obstacle);

  bool is_overdue(const Flow& flow) const { return now_ - flow.waits_since() > over_run_; }
  void begin_search();
  bool ends_search(int passed_over);
  std::optional<Row> overdue_start(const Placeable& startable);
  std::optional<Row> preferred_start(const Placeable& startable);
  std::optional<Row> start_for_free_slot(const Placeable& startable);

  const Duration least_over_run_;
  const double over_run_services_;
  Duration over_run_;         // T
  Duration mean_service_{0};  // over all flows; kept only where T follows it
  Duration global_{0};        // Global_VT

  // Each runnable flow is in exactly one of preferred_ (or an index), to_start_ and the two of throttled flows.
  IndexedHeap<Preference> to_start_;             // eligible, without an instance to run on
  IndexedHeap<ByVirtualTime> throttled_;         // beyond the window, with an instance
  IndexedHeap<ByVirtualTime> throttled_starts_;  // beyond the window, without
  IndexedHeap<ByVirtualTime> least_served_;      // of the eligible, those that contend: they hold Global_VT
  IndexedHeap<ByAge> by_age_;                    // those of to_start_, by how long they wait for a start

  Instant now_{};  // of the choice, or start, that is being looked for
  std::optional<Row> claimant_;
  std::optional<Instant> next_chance_;  // when the oldest of those that wait for a start has waited for T
  int most_passed_over_ = 0;            // in this search for a start
  bool some_not_looked_at_ = false;     // in the last one
  Instant next_wide_search_{};
  std::vector<Row> changed_standing_;  // those whose behind_starts pick() found different
};

}  // namespace fairlead
