// What happens to a server, and what follows: lists of events, lists of actions.
#include "runtime/device_servers/server_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using Life = ServerLife;
using Action = Life::Action;

constexpr Instant kNow{Duration(1'000'000s)};
constexpr InstanceId kA(1), kB(2), kC(3);
constexpr InvocationId kOne(11), kTwo(12), kThree(13);

class ServerLifeTest : public testing::Test {
 protected:
  explicit ServerLifeTest(bool is_shared = false) : life({}, is_shared) {}
  template <typename... Parameters, typename... Arguments>
  Life::Actions after(void (Life::*event)(Parameters...), Arguments&&... arguments) {
    Life::Actions out;
    (life.*event)(std::forward<Arguments>(arguments)..., out);
    return out;
  }
  void begin(InstanceId session, const std::string& tenant) {
    after(&Life::add_session, kNow, session, tenant);
    if (life.phase() == ServerPhase::kStarting) after(&Life::process_ready);
    after(&Life::constants_opened, session);
    after(&Life::session_ready, session);
  }
  Life::Actions call(InvocationId call, InstanceId session) {
    after(&Life::add_call, call, session);
    return after(&Life::inputs_opened, call);
  }
  void come_back(const std::vector<InstanceId>& sessions) {
    after(&Life::restart, kNow);
    after(&Life::process_ready);
    for (const InstanceId session : sessions) {
      after(&Life::constants_opened, session);
      after(&Life::session_ready, session);
    }
  }

  Life life;
};

TEST_F(ServerLifeTest, ASessionIsRegisteredWhenItsConstantsAndTheServerAreThere) {
  EXPECT_THAT(after(&Life::add_session, kNow, kA, "t"),
              ElementsAre(Action(Life::StartProcess{}), Action(Life::OpenConstants{kA})));
  EXPECT_THAT(after(&Life::add_session, kNow, kB, "t"), ElementsAre(Action(Life::OpenConstants{kB})));
  EXPECT_THAT(after(&Life::constants_opened, kA), IsEmpty());
  EXPECT_THAT(after(&Life::process_ready), ElementsAre(Action(Life::Register{kA})));
  EXPECT_THAT(after(&Life::constants_opened, kB), ElementsAre(Action(Life::Register{kB})));
  EXPECT_THAT(after(&Life::session_ready, kB), ElementsAre(Action(Life::Announce{kB})));
}

// The example of the header.
TEST_F(ServerLifeTest, OfTwoSuspectsEachRunsAloneAndTheOneThatEndsTheServerAgainFails) {
  begin(kA, "t");
  begin(kB, "t");
  EXPECT_THAT(call(kOne, kA), ElementsAre(Action(Life::Run{kOne})));
  EXPECT_THAT(call(kTwo, kB), ElementsAre(Action(Life::Run{kTwo})));
  EXPECT_THAT(after(&Life::process_gone, kNow), ElementsAre(Action(Life::RestartAfter{0s})));
  EXPECT_THAT(after(&Life::restart, kNow), ElementsAre(Action(Life::StartProcess{}), Action(Life::OpenConstants{kA}),
                                                       Action(Life::OpenConstants{kB}), Action(Life::OpenInputs{kOne}),
                                                       Action(Life::OpenInputs{kTwo})));
  after(&Life::process_ready);
  after(&Life::inputs_opened, kTwo);
  after(&Life::inputs_opened, kOne);
  after(&Life::constants_opened, kA);
  after(&Life::constants_opened, kB);
  EXPECT_THAT(after(&Life::session_ready, kA), ElementsAre(Action(Life::Run{kOne}), Action(Life::Announce{kA})));
  EXPECT_THAT(after(&Life::session_ready, kB), ElementsAre(Action(Life::Announce{kB}))) << "2 waits to be alone";
  EXPECT_THAT(after(&Life::end_call, kOne), ElementsAre(Action(Life::Run{kTwo})));
  EXPECT_THAT(after(&Life::process_gone, kNow),
              ElementsAre(Action(Life::Fail{kTwo, Life::Failure::kCausedEnd}), Action(Life::RestartAfter{100ms})));
}

TEST_F(ServerLifeTest, NothingOvertakesACallThatWaitsToBeAlone) {
  begin(kA, "t");
  begin(kB, "t");
  begin(kC, "t");
  call(kOne, kA);
  after(&Life::process_gone, kNow);
  come_back({kB, kC});
  call(kTwo, kB);  // 1's session is not ready yet
  after(&Life::inputs_opened, kOne);
  after(&Life::constants_opened, kA);
  EXPECT_THAT(after(&Life::session_ready, kA), ElementsAre(Action(Life::Announce{kA})));
  EXPECT_THAT(call(kThree, kC), IsEmpty());
  EXPECT_THAT(after(&Life::end_call, kTwo), ElementsAre(Action(Life::Run{kOne})));
  EXPECT_THAT(after(&Life::end_call, kOne), ElementsAre(Action(Life::Run{kThree})));
}

TEST_F(ServerLifeTest, ASessionThatBecameReadyIsForgivenTheEndsBefore) {
  after(&Life::add_session, kNow, kA, "t");
  after(&Life::process_ready);
  after(&Life::constants_opened, kA);
  EXPECT_EQ(after(&Life::process_gone, kNow).size(), 1u) << "suspected once";
  come_back({kA});
  EXPECT_EQ(after(&Life::process_gone, kNow).size(), 1u) << "it is ready";
  after(&Life::restart, kNow);
  after(&Life::process_ready);
  after(&Life::constants_opened, kA);
  EXPECT_EQ(after(&Life::process_gone, kNow).size(), 1u) << "suspected once again, and no session ends";
}

TEST_F(ServerLifeTest, WhatIsOverdueIsTheOnlySuspectAndTheOthersRunBesideEachOther) {
  begin(kA, "t");
  begin(kB, "t");
  call(kOne, kA);
  call(kTwo, kB);
  EXPECT_THAT(after(&Life::overdue, kOne), ElementsAre(Action(Life::EndProcess{})));
  EXPECT_THAT(after(&Life::process_gone, kNow),
              ElementsAre(Action(Life::Fail{kOne, Life::Failure::kCausedEnd}), Action(Life::RestartAfter{0s})));
  EXPECT_EQ(life.calls().find(kTwo)->suspected, 0);
}

TEST_F(ServerLifeTest, ACallWhoseSessionEndsIsForgottenWhenTheDeviceHasIt) {
  begin(kA, "t");
  call(kOne, kA);
  EXPECT_THAT(after(&Life::remove_session, kA), ElementsAre(Action(Life::DropSession{kA})));
  EXPECT_THAT(after(&Life::end_call, kOne), ElementsAre(Action(Life::WatchIdle{})));
  EXPECT_THAT(after(&Life::idle_over), ElementsAre(Action(Life::EndProcess{})));
  EXPECT_THAT(after(&Life::process_gone, kNow), ElementsAre(Action(Life::Retire{})));
}

TEST_F(ServerLifeTest, ASessionThatComesWhileAnIdleServerIsEndedIsNoSuspect) {
  begin(kA, "t");
  after(&Life::remove_session, kA);
  EXPECT_THAT(after(&Life::idle_over), ElementsAre(Action(Life::EndProcess{})));
  after(&Life::add_session, kNow, kB, "t");
  EXPECT_THAT(after(&Life::constants_opened, kB), ElementsAre(Action(Life::Register{kB})));
  after(&Life::process_gone, kNow);
  after(&Life::restart, kNow);
  after(&Life::process_ready);
  after(&Life::constants_opened, kB);
  EXPECT_THAT(after(&Life::process_gone, kNow), ElementsAre(Action(Life::RestartAfter{100ms}))) << "suspected once";
}

TEST_F(ServerLifeTest, ObjectsThatAreMissingAgainAndAgainHaveNoRoom) {
  begin(kA, "t");
  call(kOne, kA);
  for (int i = 0; i < ServerCalls::kMaxReopened; ++i) {
    EXPECT_THAT(after(&Life::objects_missing, kOne), ElementsAre(Action(Life::OpenInputs{kOne})));
    EXPECT_THAT(after(&Life::inputs_opened, kOne), ElementsAre(Action(Life::Run{kOne})));
  }
  EXPECT_THAT(after(&Life::objects_missing, kOne), ElementsAre(Action(Life::Fail{kOne, Life::Failure::kNoRoom})));
}

TEST_F(ServerLifeTest, ASessionOnTrialIsNoSuspect) {
  after(&Life::add_session, kNow, kA, "t");
  after(&Life::process_ready);
  after(&Life::constants_opened, kA);
  life.session_on_trial(kA, true);
  for (int ends = 0; ends < 3; ++ends) {
    EXPECT_EQ(after(&Life::process_gone, kNow).size(), 1u) << "RestartAfter, and no session ends";
    after(&Life::restart, kNow);
    after(&Life::process_ready);
    after(&Life::constants_opened, kA);
    life.session_on_trial(kA, true);
  }
}

TEST_F(ServerLifeTest, AServerThatNeverStartsEndsItsSessionsAndOneThatComesThenStartsItAnew) {
  after(&Life::add_session, kNow, kA, "t");
  for (const Duration wait : {0ms, 100ms}) {
    EXPECT_THAT(after(&Life::process_gone, kNow), ElementsAre(Action(Life::RestartAfter{wait})));
    after(&Life::restart, kNow);
  }
  EXPECT_THAT(after(&Life::process_gone, kNow),
              ElementsAre(Action(Life::EndSession{kA, Life::SessionEnd::kNoServer}), Action(Life::Retire{})));
  EXPECT_THAT(after(&Life::add_session, kNow, kB, "t"),
              ElementsAre(Action(Life::StartProcess{}), Action(Life::OpenConstants{kB})));
  after(&Life::remove_session, kA);
  EXPECT_THAT(after(&Life::process_gone, kNow), ElementsAre(Action(Life::RestartAfter{0s})));
}

class SharedLifeTest : public ServerLifeTest {
 protected:
  SharedLifeTest() : ServerLifeTest(/*is_shared=*/true) {}
};

TEST_F(SharedLifeTest, AQuarantinedTenantTakesAlongWhatWaits) {
  begin(kA, "bad");
  begin(kB, "good");
  call(kOne, kA);
  call(kTwo, kB);
  life.process_faulted({kOne});
  EXPECT_THAT(after(&Life::process_gone, kNow),
              ElementsAre(Action(Life::Fail{kOne, Life::Failure::kCausedEnd}), Action(Life::Quarantine{"bad"}),
                          Action(Life::RestartAfter{0s})));
  after(&Life::add_call, kThree, kA);  // its caller has heard of the failure already
  Life own({}, /*is_shared=*/false);
  Life::Actions of_own;
  life.move_tenant(kNow, "bad", own, of_own);
  EXPECT_THAT(of_own, ElementsAre(Action(Life::StartProcess{}), Action(Life::OpenConstants{kA}),
                                  Action(Life::OpenInputs{kThree})));
  EXPECT_THAT(after(&Life::restart, kNow), ElementsAre(Action(Life::StartProcess{}), Action(Life::OpenConstants{kB}),
                                                       Action(Life::OpenInputs{kTwo})));
  EXPECT_EQ(life.calls().find(kThree), nullptr);
}

}  // namespace
}  // namespace fairlead
