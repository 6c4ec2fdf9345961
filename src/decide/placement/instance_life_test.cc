#include "decide/placement/instance_life.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace fairlead {
namespace {

using enum InstanceEvent;
using Phase = InstanceLife::Phase;

// In the order in which events lead there.
std::vector<InstanceLife> reachable_states() {
  std::vector<InstanceLife> states = {InstanceLife()};
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (int event = 0; event < kInstanceEvents; ++event) {
      const auto next = step(states[i], static_cast<InstanceEvent>(event));
      if (next && std::find(states.begin(), states.end(), *next) == states.end()) states.push_back(*next);
    }
  }
  return states;
}

// What an event makes of the phase, or -- where it is refused. Columns: the events in their order. The second letter: Ahead, Prepares,
// Unused, Idle, reTurning; Starting, Chosen, Returning and chosen; rUnning, Working, asKed.
const std::map<std::string, std::vector<std::string>> kTable = {
    //      its start        bound       goes on            ends  goes
    //      pre  rdy  una  bnd  ltd  dlv  lod  ans  ask  end  ret
    {"-A", {"-P", "-U", "--", "+S", "--", "--", "--", "--", "--", "--", "--"}},
    {"-P", {"--", "-U", "-I", "--", "--", "--", "--", "--", "--", "--", "--"}},
    {"-U", {"--", "--", "--", "+C", "+C", "--", "--", "--", "--", "--", "--"}},
    {"-I", {"--", "--", "--", "+C", "+C", "--", "--", "--", "--", "--", "--"}},
    {"-T", {"--", "--", "--", "+R", "+R", "--", "--", "--", "-I", "--", "--"}},
    {"+S", {"--", "--", "--", "--", "--", "+U", "--", "--", "--", "-T", "+S"}},
    {"+C", {"--", "--", "--", "--", "--", "+U", "--", "--", "--", "--", "--"}},
    {"+R", {"--", "--", "--", "--", "--", "+U", "--", "--", "--", "-T", "+R"}},
    {"+U", {"--", "--", "--", "--", "--", "--", "+U", "+W", "--", "-T", "+U"}},
    {"+W", {"--", "--", "--", "--", "--", "--", "+W", "--", "+K", "-T", "+W"}},
    {"+K", {"--", "--", "--", "--", "--", "--", "+K", "--", "--", "-T", "+K"}},
};

// The first character: whether it holds a slot.
std::string code(const InstanceLife& life) {
  return {life.holds_slot() ? '+' : '-', "APUITSCRUWK"[static_cast<int>(life.phase())]};
}

TEST(InstanceLife, EveryEventInEveryStateDoesWhatTheTableSays) {
  for (const InstanceLife& life : reachable_states()) {
    for (int number = 0; number < kInstanceEvents; ++number) {
      const auto event = static_cast<InstanceEvent>(number);
      SCOPED_TRACE(life.text() + ": " + std::string(name_of(event)));
      const std::string next = kTable.at(code(life)).at(static_cast<std::size_t>(number));
      const bool refused = next == "--" || (event == kLoaded && !life.loads()) || (event == kEnded && life.retires());
      const auto after = step(life, event);
      ASSERT_EQ(after.has_value(), !refused);
      if (!after) continue;
      EXPECT_EQ(code(*after), next);
      EXPECT_EQ(after->loads(), event == kBoundToLoad || (life.loads() && event != kLoaded && event != kEnded));
      EXPECT_EQ(after->retires(), event == kRetired || life.retires());
    }
  }
}

TEST(InstanceLife, TheLegalStatesAreThoseThatEventsLeadTo) {
  const std::vector<InstanceLife> reached = reachable_states();
  EXPECT_EQ(reached.size(), 25u);
  for (const InstanceLife& life : reached) EXPECT_TRUE(life.is_legal()) << life.text();
  std::map<Phase, int> states_of;
  for (const InstanceLife& life : reached) ++states_of[life.phase()];
  EXPECT_EQ(states_of.size(), static_cast<std::size_t>(InstanceLife::kPhases));
  for (const auto& [phase, states] : states_of) {
    const bool has_nothing_bound = phase <= Phase::kReturning;
    const bool is_brief = phase == Phase::kStarting || phase == Phase::kChosen;
    EXPECT_EQ(states, has_nothing_bound ? 1 : is_brief ? 2 : 4) << name_of(phase);
  }
}

// Nobody is bound to what goes, and what is bound keeps it from going.
TEST(InstanceLife, AnInstanceStartsOrHoldsASlotOrMayGo) {
  for (const InstanceLife& life : reachable_states()) {
    EXPECT_EQ(life.starts_ahead() + life.holds_slot() + life.spare(), 1) << life.text();
    EXPECT_FALSE(life.retires() && life.spare()) << life.text();
  }
}

}  // namespace
}  // namespace fairlead
