// Who is next among events that may be submitted. Planted and caught: tenants in one line; a tenant's bound left out; a function's
// bound left out; a place that is not given back; a tenant that keeps its turn.
#include "node/ready_events.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace fairlead {
namespace {

using testing::ElementsAre;

HeldEvent event(const std::string& tenant, const std::string& function, const std::string& id = "") {
  HeldEvent held{.tenant = tenant};
  held.record.invocation = {.request_id = id.empty() ? function : id, .function = function};
  return held;
}

std::vector<std::string> ids_of(ReadyEvents& ready) {
  std::vector<std::string> ids;
  while (const auto next = ready.take()) ids.push_back(next->record.invocation.request_id);
  return ids;
}

TEST(ReadyEvents, TenantsAndTheirFunctionsTakeTurns) {
  ReadyEvents ready(1000);
  for (const char* id : {"a1", "a2", "a3"}) ready.push(event("acme", "a", id));
  ready.push(event("acme", "b"));
  ready.push(event("other", "c"));
  EXPECT_EQ(ready.waiting(), 5u);
  EXPECT_THAT(ids_of(ready), ElementsAre("a1", "c", "b", "a2", "a3"));
  EXPECT_EQ(ready.waiting(), 0u);
  EXPECT_EQ(ready.running(), 5u);
}

TEST(ReadyEvents, PlacesAreSharedAsTheExampleSays) {
  ReadyEvents ready(256);
  const auto flood = [&](const std::string& tenant, const std::string& function) {
    for (int i = 0; i < 300; ++i) ready.push(event(tenant, function));
    return ids_of(ready).size();
  };
  EXPECT_EQ(flood("acme", "slow"), 128u);
  EXPECT_EQ(flood("acme", "slower"), 43u) << "171 of the tenant, 85 free";
  EXPECT_EQ(flood("other", "f"), 43u);
  EXPECT_EQ(flood("third", "g"), 21u);
  EXPECT_EQ(ready.running(), 235u);
}

TEST(ReadyEvents, OnePlaceIsForAnybody) {
  ReadyEvents ready(1);
  ready.push(event("acme", "a"));
  ready.push(event("acme", "b"));
  const HeldEvent first = *ready.take();
  EXPECT_FALSE(ready.take());
  ready.give_back(first);
  EXPECT_EQ(ready.take()->record.invocation.function, "b");
}

TEST(ReadyEvents, ADeletedFunctionLeavesNothing) {
  ReadyEvents ready(10);
  for (const char* id : {"1", "2"}) ready.push(event("acme", "a", id));
  ready.push(event("other", "b"));
  EXPECT_EQ(ready.remove_function("a").size(), 2u);
  EXPECT_EQ(ready.remove_function("a").size(), 0u);
  EXPECT_THAT(ids_of(ready), ElementsAre("b"));
  ready.push(event("acme", "a", "3"));
  EXPECT_THAT(ids_of(ready), ElementsAre("3"));
}

// Whatever comes and ends in whatever order.
RC_GTEST_PROP(ReadyEvents, NobodyIsKeptOutWhileAPlaceIsFree, ()) {
  const auto places = *rc::gen::inRange<std::size_t>(1, 20);
  ReadyEvents ready(places);
  std::map<std::string, std::size_t> waiting, running;
  std::vector<HeldEvent> taken;
  for (int step = 0; step < 200; ++step) {
    const int what = *rc::gen::inRange(0, 10);
    const std::string function = std::to_string(*rc::gen::inRange(0, 6));
    const std::string tenant = std::to_string(std::stoi(function) / 2);
    if (what < 4) {
      ready.push(event(tenant, function));
      ++waiting[function];
    } else if (what < 6 && !taken.empty()) {
      const std::size_t one = *rc::gen::inRange<std::size_t>(0, taken.size());
      ready.give_back(taken[one]);
      --running[taken[one].record.invocation.function];
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(one));
    } else if (what == 6) {
      RC_ASSERT(ready.remove_function(function).size() == waiting[function]);
      waiting[function] = 0;
    } else if (auto next = ready.take()) {
      --waiting[next->record.invocation.function];
      ++running[next->record.invocation.function];
      taken.push_back(*std::move(next));
    } else {
      for (const auto& [name, count] : waiting) {
        const bool has_nothing_running = running[name] == 0 && running[std::to_string(std::stoi(name) ^ 1)] == 0;
        RC_ASSERT(count == 0 || !has_nothing_running || ready.running() == places);
      }
    }
    RC_ASSERT(ready.running() == taken.size());
    RC_ASSERT(ready.running() <= places);
  }
}

}  // namespace
}  // namespace fairlead
