// Fair between tenants first, then by any policy between the functions of each: the second level of a FlowQueue. A tenant
// that floods a hundred functions gets what a tenant with one gets, times their weights; without this level it gets a
// hundred times as much.
//
// Idea. Each tenant has an order of its own for its flows, and a virtual time: the GPU service of all its flows, divided
// by its weight. The least served tenant that has something to run is next; its order says what. What an invocation is
// expected to take is charged when it begins, and replaced by what it took when it is over.
//
// A tenant that had nothing to run joins at the least virtual time of those that had, what they have in flight left out:
// neither idleness nor a start that all its flows wait for earns credit. Nor does what it has in seats, which waits for
// nobody's turn. What is in flight is left out because its charge is a guess: who joined at a guess of 10 s for what then
// took 1 ms would wait until the others had used the rest of it up.
//
// Example: tenant A has 100 invocations queued in each of 100 functions, and two in flight, when B sends one. B joins at what
// A was served before these two, so B has the first slot that is free, not the 10,001st.
//
// Starts ahead are given in turn: to the tenant that was given one longest ago. By virtual time, a tenant whose functions
// start for long and hardly run would have all starts.
//
// Over the nodes of a cluster a tenant counts less or more by a factor that may change five times a second (decide/cluster/tenant_clocks.h). Its
// weight is multiplied by the factor, and both are kept apart: neither a new share nor a new factor touches the other. Virtual time is
// service over weight, so a tenant that is ahead of the others when its factor changes stays ahead by the same service, and so does what
// its invocations in flight were charged.
//
// Example: A ran for 1 s at a factor of 0.001 and is 1,000 s ahead. Its factor is 1 again: it is 1 s ahead, not 1,000.
//
// Time, threads, determinism: as flow_queue.h.
#pragma once

#include <unordered_map>
#include <vector>

#include "base/id_map.h"
#include "decide/queueing/flow_table.h"
#include "decide/queueing/flow_view.h"
#include "decide/queueing/indexed_heap.h"

namespace fairlead {

class TenantLevel {
 public:
  using Row = IndexedHeap<int>::Row;

  Row row_of(TenantId tenant);  // made if it is new, then the next one: 0, 1, 2, ...
  void set_share(Row row, const TenantShare& share);
  // From now on the weight counts times `factor`. REQUIRES: above 0. Settle afterwards.
  void set_factor(Row row, double factor);
  TenantUse use(TenantId tenant) const;  // of one that is not there: nothing

  // To be called when the tenant or its flows changed.
  void settle(Row row, const FlowTable& flows);

  // Of the tenants with something queued for slots and below their limit, the first that `accept` takes: by service, or by when they
  // were last given a start.
  template <typename Accept>
  std::optional<Row> first_by_service(Accept accept) {
    return least_served_.find_first(accept);
  }
  template <typename Accept>
  std::optional<Row> first_by_start(Accept accept) {
    return by_start_.find_first(accept);
  }
  void give_start(Instant now, Row row) { tenants_[row].start_given = now; }

  // An invocation of the tenant's begins, expected to take so long (nothing: its flow was never measured), or in a seat; it is over,
  // and took so long. Settle afterwards.
  void begin(Row row, InvocationId invocation, std::optional<Duration> expected);
  void begin_seated(Row row, InvocationId invocation);
  void end(Row row, InvocationId invocation, Duration service);
  // A start took so long, or kept slots from others for so long. Settle afterwards.
  void charge_start(Row row, Duration cost);

  bool is_at_limit(Row row) const;
  Duration global_virtual_time() const { return global_; }

 private:
  struct Tenant {
    TenantId id;
    TenantShare share;
    double factor = 1;   // of the weight
    Duration served{0};  // of all its flows
    Duration virtual_time{0};
    Duration guessed{0};  // of it, for what is in flight
    std::size_t in_flight = 0;
    std::size_t seated = 0;  // of these, in seats: they count for its limit alone
    bool waits_for_others = false;
    Instant start_given{};  // when one of its flows was last given a start
  };
  struct ByStart {
    Instant given;
    TenantId tenant;
    auto operator<=>(const ByStart&) const = default;
  };
  struct ByVirtualTime {
    Duration virtual_time;
    TenantId tenant;
    auto operator<=>(const ByVirtualTime&) const = default;
  };

  struct Charge {
    Duration cost{0};
    double factor = 1;  // at which it was charged
    bool is_seated = false;
  };

  static Duration cost(const Tenant& tenant, Duration service);
  void begin_virtual_time_anew();

  std::vector<Tenant> tenants_;
  std::unordered_map<TenantId, Row> rows_;   // tenant 0 too
  IdMap<InvocationId, Charge> charged_;      // of what is in flight
  IndexedHeap<ByVirtualTime> least_served_;  // tenants with something queued for slots, below their limit
  IndexedHeap<ByStart> by_start_;            // the same, whoever was given a start longest ago first
  // Of these, those whose flows do not all wait for starts, by their virtual time less what is guessed: they hold global_.
  IndexedHeap<ByVirtualTime> contending_;
  Duration global_{0};
};

}  // namespace fairlead
