// Which of the flows that wait could begin where, by what is on each GPU: the part of a policy that chooses flow and GPU
// together, as an index, so that a choice looks at heads of heaps and not at every flow on every GPU.
//
// A flow has a place on a GPU when it could run there without a cold start; its set-up there is the time to bring back what
// is missing of its data, 0 when all is there. A flow without any place is nobody here: the policy's own order has it.
//
//   resident on a GPU   heap of that GPU: goes there for nothing
//   homeless            resident nowhere: goes to the GPU where its set-up is least
//   settled             resident somewhere: goes elsewhere only where a GPU has nobody else, and only for a copy that
//                       evicts nothing, or when its head has waited long
//
// Order: the least virtual time after the set-up is paid for `patience` times over. So a flow that must load is passed over
// until those that are there were given that much more service, and each load pays for as much work. Who is on more GPUs
// counts as if served kServicesPerCopy times more for each: the others have nowhere else to go. Of two that must load, the one
// goes first whose load is shared by more calls that wait.
//
// Patience: a settled flow stays until its head has waited `patience` times as long as the quickest copy takes. Once is the
// ski rental rule, if the copy were all that it costs; but a copy also fills the link before others' inputs, and on a full
// device pushes out somebody who then loads, too. A copy into memory that is free does neither, and is made at once; a
// flow's third waits for a quarter of the time that it takes, its fourth for half, so that all get a second one first. That
// a settled flow goes only where nobody else is also keeps a backlog from making everybody leave at once, which would never
// be worked off.
//
// Worth: a homeless flow's load that pushes others' data out waits while those who were served there just now are expected back
// and have not been given `patience` loads more of service; where none of them waits for the GPU, at most for `patience` loads.
// A closed loop of one call is never queued when its GPU chooses; without this rule each choice would be the flow that must
// load. Where somebody's data idles, since they neither wait nor run nor are expected back, the load is made at once: of
// callers who call when they like there are some at any time. Memory is thereby a dimension of admission: what fits beside
// what runs, and is worth evicting.
//
// Example, patience 4: A and B are on a GPU and 0.1 s ahead of C, whose load takes 0.2 s. C goes when both are 0.8 s ahead.
//
// Cost: O(log flows) for each place of a flow that changes; a choice O(GPUs log flows), and a look at kLooks flows that load.
// What cannot be admitted (memory) is looked at and passed over.
// Time, threads, determinism: as flow_queue.h.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "decide/queueing/flow_table.h"
#include "decide/queueing/indexed_heap.h"
#include "decide/queueing/keyed_order.h"

namespace fairlead {

class ResidencyIndex {
 public:
  using Row = FlowTable::Row;

  explicit ResidencyIndex(double patience) : patience_(patience) {}

  // The flow's set-up on a GPU from now on; empty: no place there any more. The caller settles the flow afterwards.
  void set_setup(Row row, GpuId gpu, std::optional<Duration> setup);
  void forget(Row row);  // the flow is gone
  bool has_places(Row row) const { return row < places_.size() && !places_[row].empty(); }

  // The flow waits and may run, or changed while it does; it does not. REQUIRES of enter(): has_places.
  void enter(const Flow& flow, Row row);
  void leave(const Flow& flow, Row row);
  // One of its invocations begins; one is over, or was given back. Its data is not idle yet for as long again as loading it
  // would take.
  void on_begin(const Flow& flow, Row row) { expect(flow, row, Instant::max()); }
  void on_end(Instant now, const Flow& flow, Row row);

  struct Pick {
    Row row;
    GpuId gpu;
    Duration setup;
  };
  std::optional<Pick> pick(Instant now, const FlowTable& flows, const Placeable& placeable);

  // Where a flow that is not entered would go: where its data is, or where bringing it is worth it now; empty: nowhere.
  // REQUIRES: has_places; something is queued.
  std::optional<GpuId> place_of_one(Instant now, const Flow& flow, Row row, const Placeable& placeable);

  // Why a flow that waits and could run was not picked. REQUIRES: entered.
  enum class Unpicked {
    kNoPlaceIsFree,  // it could run by a cold start alone
    kKept,           // for the GPU that has its data, or until loading it is worth what it pushes out
    kNothing,        // it should have been
  };
  Unpicked why_unpicked(Instant now, const Flow& flow, Row row, const Placeable& placeable);

  // When a settled flow loses patience next.
  std::optional<Instant> next_chance() const;

  // Of the flows that wait, the first by order that `accept` takes.
  template <typename Predicate>
  std::optional<Row> find_first(Predicate accept) {
    return waiting_.find_first(accept);
  }

 private:
  static constexpr int kLooks = 8;
  static constexpr Duration::rep kServicesPerCopy = 4;

  struct Place {
    GpuId gpu;
    Duration setup;
  };
  struct Expected {
    Instant until;
    Duration reload{0};  // the longest set-up it ever had on a GPU
  };
  // How many GPUs have all its data, and how long the quickest further copy takes.
  struct Copies {
    std::size_t count = 0;
    Duration quickest = Duration::max();
    Duration::rep more() const { return count > 1 ? static_cast<Duration::rep>(count - 1) : 0; }
  };
  using Key = ByTime<Duration>;  // virtual time, the set-up paid for
  using Deadline = ByTime<Instant>;

  struct Candidate;

  void expect(const Flow& flow, Row row, Instant until);
  Copies copies_of(Row row) const;
  Duration paid(Duration setup) const;
  void stop_waiting(Row row);
  bool somebody_idles(Instant now, GpuId gpu);
  void lose_patience(Row row, const FlowTable& flows);
  void consider_residents(const std::vector<GpuId>& free, const FlowTable& flows, const Placeable& placeable,
                          std::optional<Candidate>& best);
  void consider_homeless(Instant now, const FlowTable& flows, const Placeable& placeable,
                         std::optional<Candidate>& best);
  std::optional<Pick> leave_home(const FlowTable& flows, const Placeable& placeable);
  std::optional<Pick> free_copy(const FlowTable& flows, const Placeable& placeable);
  template <typename Accept>
  std::optional<Placeable::Place> cheapest(FlowId flow, Row row, const Placeable& placeable, Accept accept) const;
  bool worth_evicting(Instant now, const Flow& flow, const Key& key, const Placeable::Place& place);

  const double patience_;
  std::vector<std::vector<Place>> places_;       // by row, by id of the GPU
  std::map<GpuId, IndexedHeap<Key>> residents_;  // flows that wait
  std::map<GpuId, IndexedHeap<Key>> expected_;   // flows that wait, run or were served just now
  std::map<GpuId, IndexedHeap<Deadline>>
      quiet_;                           // flows without queued work whose data is there: until when they are expected
  std::vector<Expected> expectations_;  // by row
  IndexedHeap<Deadline> settled_;       // when it may do the next of these
  IndexedHeap<Key> may_copy_;           // into free memory
  IndexedHeap<Key> may_evict_;          // for a copy, too
  IndexedHeap<Key> homeless_;
  IndexedHeap<Key> waiting_;  // all that wait
};

}  // namespace fairlead
