#include "node/ready_events.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fairlead {
namespace {

using Counts = std::map<std::string, std::size_t>;

std::size_t count_of(const Counts& counts, const std::string& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

void count_down(Counts& counts, const std::string& name) {
  const auto found = counts.find(name);
  FL_CHECK(found != counts.end(), "'{}' gives back a place that it does not have", name);
  if (--found->second == 0) counts.erase(found);
}

}  // namespace

void ReadyEvents::push(HeldEvent event) {
  ++waiting_;
  const std::string& name = event.record.invocation.function;
  auto place = functions_.find(name);
  if (place == functions_.end()) {
    auto turn = turns_.find(event.tenant);
    if (turn == turns_.end()) {
      turn = turns_.emplace(event.tenant, tenants_.insert(tenants_.end(), {event.tenant, {}})).first;
    }
    std::list<FunctionTurn>& functions = turn->second->functions;
    place = functions_.emplace(name, Place{turn->second, functions.insert(functions.end(), {name, {}})}).first;
  }
  place->second.function->events.push_back(std::move(event));
}

void ReadyEvents::forget_if_empty(std::list<TenantTurn>::iterator tenant) {
  if (!tenant->functions.empty()) return;
  turns_.erase(tenant->name);
  tenants_.erase(tenant);
}

bool ReadyEvents::may_run(const std::string& function) const {
  return count_of(running_of_function_, function) < places_ - running_;
}

std::optional<HeldEvent> ReadyEvents::take() {
  if (running_ >= places_) return std::nullopt;
  for (auto tenant = tenants_.begin(); tenant != tenants_.end(); ++tenant) {
    if (count_of(running_of_tenant_, tenant->name) >= 2 * (places_ - running_)) continue;
    auto event = take_of(*tenant);
    if (!event) continue;
    tenants_.splice(tenants_.end(), tenants_, tenant);
    forget_if_empty(tenant);
    return event;
  }
  return std::nullopt;
}

std::optional<HeldEvent> ReadyEvents::take_of(TenantTurn& tenant) {
  const auto function =
      std::ranges::find_if(tenant.functions, [&](const FunctionTurn& turn) { return may_run(turn.name); });
  if (function == tenant.functions.end()) return std::nullopt;
  HeldEvent event = std::move(function->events.front());
  function->events.pop_front();
  if (function->events.empty()) {
    functions_.erase(function->name);
    tenant.functions.erase(function);
  } else {
    tenant.functions.splice(tenant.functions.end(), tenant.functions, function);
  }
  --waiting_;
  ++running_;
  ++running_of_tenant_[event.tenant];
  ++running_of_function_[event.record.invocation.function];
  return event;
}

void ReadyEvents::give_back(const HeldEvent& event) {
  --running_;
  count_down(running_of_tenant_, event.tenant);
  count_down(running_of_function_, event.record.invocation.function);
}

std::vector<HeldEvent> ReadyEvents::remove_function(const std::string& function) {
  std::vector<HeldEvent> removed;
  const auto found = functions_.find(function);
  if (found == functions_.end()) return removed;
  const Place place = found->second;
  functions_.erase(found);
  std::ranges::move(place.function->events, std::back_inserter(removed));
  place.tenant->functions.erase(place.function);
  forget_if_empty(place.tenant);
  waiting_ -= removed.size();
  return removed;
}

}  // namespace fairlead
