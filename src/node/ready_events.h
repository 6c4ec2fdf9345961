// Asynchronous invocations that may be submitted now, in turns, so that nobody's flood is in front of another's event.
//
//   tenants take turns ──> a tenant's functions take turns ──> a function's events go in the order of their arrival
//
// Turns alone are not enough where those that run take long: places would go to who has the most to run, and stay there. So nobody
// may hold more places than in proportion to what is left free (dynamic thresholds; Choudhury and Hahne, 1998): a function as many
// as are free, a tenant twice as many.
//
// Example, 256 places: a function alone gets 128 of them. Another one of its tenant finds a place at once; together they get 171.
// Another tenant finds 85 free, and gets 43 of them for one function.
//
// Not thread-safe. The cost of take() is that of the functions which are passed over, at most as many as run.
#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "store/store.h"

namespace fairlead {

struct HeldEvent {
  QueuedEvent record;                 // as on disk
  std::string tenant;                 // of its function
  std::size_t bytes = 0;              // that are counted for it
  Instant accepted;                   // may lie before the clock began
  Instant deadline = Instant::max();  // its caller's; max: none
  Instant due;                        // of the next attempt
  int postponed = 0;                  // in a row
};

class ReadyEvents {
 public:
  explicit ReadyEvents(std::size_t places) : places_(places) {}
  ReadyEvents(const ReadyEvents&) = delete;  // places point into lists
  ReadyEvents& operator=(const ReadyEvents&) = delete;

  void push(HeldEvent event);
  // The next one in turn that may have a place, which it has from now on.
  std::optional<HeldEvent> take();
  void give_back(const HeldEvent& event);                               // its place. REQUIRES: take() gave it
  std::vector<HeldEvent> remove_function(const std::string& function);  // of those that wait

  std::size_t waiting() const { return waiting_; }
  std::size_t running() const { return running_; }

 private:
  struct FunctionTurn {
    std::string name;
    std::deque<HeldEvent> events;  // never empty
  };
  struct TenantTurn {
    std::string name;
    std::list<FunctionTurn> functions;  // never empty; who has waited longest for a turn is first
  };

  struct Place {
    std::list<TenantTurn>::iterator tenant;
    std::list<FunctionTurn>::iterator function;
  };

  bool may_run(const std::string& function) const;
  std::optional<HeldEvent> take_of(TenantTurn& tenant);
  void forget_if_empty(std::list<TenantTurn>::iterator tenant);

  const std::size_t places_;
  std::list<TenantTurn> tenants_;                                 // who has waited longest for a turn is first
  std::map<std::string, std::list<TenantTurn>::iterator> turns_;  // by tenant
  std::map<std::string, Place> functions_;                        // by name, which no two tenants share
  std::map<std::string, std::size_t> running_of_tenant_, running_of_function_;
  std::size_t waiting_ = 0;
  std::size_t running_ = 0;
};

}  // namespace fairlead
