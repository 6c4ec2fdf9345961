#include "decide/residency/record_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string>
#include <vector>

namespace fairlead {
namespace {

using enum RecordEvent;
using Motion = RecordState::Motion;

// In the order in which events lead there.
std::vector<RecordState> reachable_states() {
  std::vector<RecordState> states = {RecordState()};
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (int event = 0; event < kRecordEvents; ++event) {
      const auto next = step(states[i], static_cast<RecordEvent>(event));
      if (next && std::find(states.begin(), states.end(), *next) == states.end()) states.push_back(*next);
    }
  }
  return states;
}

// What an event makes of activity and motion, or -- where it is refused. Columns: the events in their order.
//   starting, Running, Answered, Idle, X: stopping; unreported, still, leaving, returning
const std::map<std::string, std::vector<std::string>> kTable = {
    //      what becomes of it       what it says           a move begins   a move ends
    //      rdy  cho  res  unu  stp  rep  wan  dou  sat  lvs  ret  ahd  lft  not  rtd  ful  fai  cut
    {"Su",
     {"Ru", "--", "--", "--", "Xu", "Ss", "Su", "Su", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--"}},
    {"Ss",
     {"Rs", "--", "--", "--", "Xs", "Ss", "Ss", "Ss", "--", "--", "Sr", "--", "--", "--", "--", "--", "--", "--"}},
    {"Sr",
     {"Rr", "--", "--", "--", "Xs", "Sr", "Sr", "Sr", "--", "--", "--", "--", "--", "--", "Ss", "Ss", "Ss", "Ss"}},
    {"Ru",
     {"--", "--", "Au", "Iu", "Xu", "Rs", "Ru", "Ru", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--"}},
    {"Rs",
     {"--", "--", "As", "Is", "Xs", "Rs", "Rs", "Rs", "--", "--", "Rr", "--", "--", "--", "--", "--", "--", "--"}},
    {"Rl",
     {"--", "--", "Al", "Il", "Xs", "Rl", "Rl", "Rl", "--", "--", "--", "--", "Rs", "Rs", "--", "--", "--", "--"}},
    {"Rr",
     {"--", "--", "Ar", "Ir", "Xs", "Rr", "Rr", "Rr", "--", "--", "--", "--", "--", "--", "Rs", "Rs", "Rs", "Rs"}},
    {"Au",
     {"--", "Ru", "--", "--", "Xu", "Is", "Au", "Au", "Au", "--", "--", "--", "--", "--", "--", "--", "--", "--"}},
    {"As",
     {"--", "Rs", "--", "--", "Xs", "Is", "As", "As", "As", "Al", "Ar", "Ar", "--", "--", "--", "--", "--", "--"}},
    {"Al",
     {"--", "Rl", "--", "--", "Xs", "Il", "Al", "Al", "--", "--", "--", "--", "As", "As", "--", "--", "--", "--"}},
    {"Ar",
     {"--", "Rr", "--", "--", "Xs", "Ir", "Ar", "Ar", "--", "--", "--", "--", "--", "--", "As", "As", "As", "As"}},
    {"Iu",
     {"--", "Ru", "--", "--", "Xu", "Is", "Iu", "Iu", "Iu", "--", "--", "--", "--", "--", "--", "--", "--", "--"}},
    {"Is",
     {"--", "Rs", "--", "--", "Xs", "Is", "Is", "Is", "Is", "Il", "Ir", "Ir", "--", "--", "--", "--", "--", "--"}},
    {"Il",
     {"--", "Rl", "--", "--", "Xs", "Il", "Il", "Il", "--", "--", "--", "--", "Is", "Is", "--", "--", "--", "--"}},
    {"Ir",
     {"--", "Rr", "--", "--", "Xs", "Ir", "Ir", "Ir", "--", "--", "--", "--", "--", "--", "Is", "Is", "Is", "Is"}},
    {"Xu",
     {"--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--"}},
    {"Xs",
     {"--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--", "--"}},
};

std::string code(const RecordState& state) {
  return {"SRAIX"[static_cast<int>(state.activity())], "uslr"[static_cast<int>(state.motion())]};
}

// Open, doubted, full (u), failed; --: refused. Of events that are not here, the way back stays as it is.
const std::map<RecordEvent, std::string> kWayBack = {{kStopped, "oooo"}, {kReported, "oduo"}, {kWants, "oooo"},
                                                     {kLeaves, "oouf"},  {kReturns, "ooo-"},  {kReturnsAhead, "ooo-"},
                                                     {kFull, "u---"},    {kFailed, "f---"},   {kSatisfied, "o-uf"}};
// None, waits, served, again.
const std::map<RecordEvent, std::string> kWaiter = {{kChosen, "nnnn"}, {kStopped, "nnnn"},   {kWants, "wwaa"},
                                                    {kDoubts, "wwaa"}, {kSatisfied, "-n-s"}, {kReturned, "nsns"}};

char looked_up(const std::map<RecordEvent, std::string>& table, RecordEvent event, std::size_t now,
               const std::string& letters) {
  const auto found = table.find(event);
  return found == table.end() ? letters[now] : found->second[now];
}
char way_back_letter(const RecordState& state) {
  return "oduf"[static_cast<int>(state.way_back())];
}
char waiter_letter(const RecordState& state) {
  return "nwsa"[static_cast<int>(state.waiter())];
}

char way_back_after(const RecordState& state, RecordEvent event) {
  if (event == kDoubts) return state.motion() == Motion::kStill ? 'd' : 'o';
  return looked_up(kWayBack, event, static_cast<std::size_t>(state.way_back()), "oduf");
}
char waiter_after(const RecordState& state, RecordEvent event) {
  if ((event == kWants || event == kDoubts) && !state.idle()) return 'n';
  return looked_up(kWaiter, event, static_cast<std::size_t>(state.waiter()), "nwsa");
}

TEST(RecordState, EveryEventInEveryStateDoesWhatTheTablesSay) {
  int accepted = 0;
  for (const RecordState& state : reachable_states()) {
    for (int number = 0; number < kRecordEvents; ++number) {
      const auto event = static_cast<RecordEvent>(number);
      SCOPED_TRACE(state.text() + ": " + record_event_name(event));
      const std::string next = kTable.at(code(state)).at(static_cast<std::size_t>(number));
      const char way_back = way_back_after(state, event), waiter = waiter_after(state, event);
      const bool refused = next == "--" || way_back == '-' || waiter == '-' || (event == kLeaves && state.unmovable());
      const auto after = step(state, event);
      ASSERT_EQ(after.has_value(), !refused);
      if (!after) continue;
      ++accepted;
      EXPECT_EQ(code(*after), next);
      EXPECT_EQ(way_back_letter(*after), way_back);
      EXPECT_EQ(waiter_letter(*after), waiter);
      const bool forgets = event == kChosen || event == kStopped;
      EXPECT_EQ(after->unmovable(), event == kNotLeft || (state.unmovable() && !forgets));
      EXPECT_EQ(after->prefetched(), event == kReturnsAhead || (state.prefetched() && !forgets && event != kLeaves));
    }
  }
  EXPECT_GT(accepted, 1000);
}

// Only bits make a state that no event leads to.
TEST(RecordState, TheLegalStatesAreThoseThatEventsLeadTo) {
  static_assert(sizeof(RecordState) == 6);
  const std::vector<RecordState> reached = reachable_states();
  std::size_t legal = 0;
  for (unsigned i = 0; i < 1280; ++i) {
    const std::array<std::uint8_t, 6> bytes = {
        static_cast<std::uint8_t>(i / 256),    static_cast<std::uint8_t>(i / 64 % 4),
        static_cast<std::uint8_t>(i / 16 % 4), static_cast<std::uint8_t>(i / 4 % 4),
        static_cast<std::uint8_t>(i / 2 % 2),  static_cast<std::uint8_t>(i % 2)};
    const auto state = std::bit_cast<RecordState>(bytes);
    const bool is_reached = std::find(reached.begin(), reached.end(), state) != reached.end();
    EXPECT_EQ(state.is_legal(), is_reached) << state.text();
    legal += state.is_legal();
  }
  EXPECT_EQ(legal, reached.size());
  EXPECT_EQ(legal, 198u);
}

// Nothing stays barred for ever: whatever has happened, a few events later its memory may leave and return.
TEST(RecordState, FromEveryStateMemoryMayLeaveAndReturnAgain) {
  for (const RecordState& from : reachable_states()) {
    if (from.stopping()) continue;
    RecordState state = from;
    for (const RecordEvent event : {kReady, kRested, kNotLeft, kFailed, kReported, kChosen, kRested}) {
      state = step(state, event).value_or(state);
    }
    EXPECT_TRUE(step(state, kLeaves) && step(state, kReturns)) << from.text() << " became " << state.text();
  }
}

RecordState after(const std::vector<RecordEvent>& events) {
  RecordState state;
  for (const RecordEvent event : events) {
    const auto next = step(state, event);
    EXPECT_TRUE(next) << state.text() << ": " << record_event_name(event);
    state = next.value_or(state);
  }
  return state;
}

// The example at the head of the header.
TEST(RecordState, WhatIsCalledWhileItLeavesComesBackWhenItHasLeft) {
  const std::vector<RecordEvent> left = {kReported, kReady, kRested, kReported, kLeaves, kChosen, kLeft};
  EXPECT_EQ(after(left).text(), "running, still");
  RecordState state = after(left);
  EXPECT_FALSE(step(state, kLeaves));
  state = step(state, kReturns).value();
  EXPECT_EQ(state.text(), "running, returning");
  EXPECT_EQ(step(state, kReturned)->text(), "running, still");
}

TEST(RecordState, WhoseThreadWasServedMayWaitAgain) {
  const std::vector<RecordEvent> served = {kReported, kReady, kUnused, kLeaves, kLeft, kWants, kReturns, kReturned};
  EXPECT_EQ(after(served).text(), "idle, still, served");
  RecordState state = step(*step(*step(after(served), kLeaves), kLeft), kWants).value();
  EXPECT_EQ(state.text(), "idle, still, waits again");
  EXPECT_TRUE(state.was_served() && state.wants());
  EXPECT_EQ(step(state, kSatisfied)->text(), "idle, still, served");
}

TEST(RecordState, StoppingForgetsAllButThatItHasReported) {
  EXPECT_EQ(after({kStopped}).text(), "stopping, unreported");
  EXPECT_EQ(after({kReported, kReady, kRested, kLeaves, kNotLeft, kWants, kReturnsAhead, kFull, kStopped}).text(),
            "stopping, still");
}

}  // namespace
}  // namespace fairlead
