#include "runtime/device_servers/server_recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/device_servers/quarantine.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using Action = ServerRecovery::Action;
using Send = ServerRecovery::Send;
using Fail = ServerRecovery::Fail;
using Forget = ServerRecovery::Forget;
using Suspect = ServerRecovery::Suspect;
using EndSession = ServerRecovery::EndSession;
using QuarantineOf = ServerRecovery::Quarantine;
using Restart = ServerRecovery::Restart;
using GiveUp = ServerRecovery::GiveUp;

constexpr Instant kStart{Duration(1'000'000s)};

ServerRecovery::SentCall call(std::uint64_t id, const std::string& tenant, int suspected = 0) {
  return {.call = InvocationId(id), .tenant = tenant, .suspected = suspected};
}
ServerRecovery::RegisteringSession session(std::uint64_t id, const std::string& tenant, int suspected = 0) {
  return {.session = InstanceId(id), .tenant = tenant, .suspected = suspected};
}
ServerRecovery::End end_of_shared(std::vector<ServerRecovery::SentCall> calls,
                                  std::vector<ServerRecovery::RegisteringSession> registering = {}) {
  return {.now = kStart + 1s,
          .was_ready = true,
          .is_shared = true,
          .calls = std::move(calls),
          .registering = std::move(registering)};
}
ServerRecovery::End naming(ServerRecovery::End end, std::set<InvocationId> named) {
  end.names_calls = true;
  end.named = std::move(named);
  return end;
}
std::vector<Action> after(const ServerRecovery::End& end) {
  ServerRecovery recovery;
  recovery.on_start(kStart);
  recovery.on_ready();
  return recovery.on_end(end);
}
Duration wait_after(ServerRecovery& recovery, const ServerRecovery::End& end) {
  return std::get<Restart>(recovery.on_end(end).back()).after;
}

TEST(ServerRecovery, TheOnlyCallThatAFaultNamesHasCausedIt) {
  EXPECT_THAT(after(naming(end_of_shared({call(1, "a"), call(2, "b")}), {InvocationId(1)})),
              ElementsAre(Action(Fail{InvocationId(1)}), Action(QuarantineOf{"a"}),
                          Action(Send{InvocationId(2), false}), Action(Restart{0s})));
}

TEST(ServerRecovery, OneOfSeveralRunsAgainAloneAndFailsTheSecondTime) {
  EXPECT_THAT(
      after(naming(end_of_shared({call(1, "a"), call(2, "b")}), {InvocationId(1), InvocationId(2)})),
      ElementsAre(Action(Send{InvocationId(1), true}), Action(Send{InvocationId(2), true}), Action(Restart{0s})));
  EXPECT_THAT(after(end_of_shared({call(1, "a", 1)})),
              ElementsAre(Action(Fail{InvocationId(1)}), Action(QuarantineOf{"a"}), Action(Restart{0s})));
}

TEST(ServerRecovery, AnEndWithoutAWordSuspectsEveryCall) {
  EXPECT_THAT(after(end_of_shared({call(1, "a")})),
              ElementsAre(Action(Send{InvocationId(1), true}), Action(Restart{0s})));
}

TEST(ServerRecovery, WhoIsGivenUpIsForgottenButNotForgiven) {
  auto end = naming(end_of_shared({call(1, "a")}), {InvocationId(1)});
  end.calls[0].given_up = true;
  EXPECT_THAT(after(end), ElementsAre(Action(Forget{InvocationId(1)}), Action(QuarantineOf{"a"}), Action(Restart{0s})));
}

TEST(ServerRecovery, ARegistrationThatEndsASharedServerAloneGetsOneOfItsOwn) {
  EXPECT_THAT(after(end_of_shared({}, {session(1, "a")})),
              ElementsAre(Action(Suspect{InstanceId(1)}), Action(QuarantineOf{"a"}), Action(Restart{0s})));
}

TEST(ServerRecovery, AndEndsThereWhenItEndsThatToo) {
  auto end = end_of_shared({}, {session(1, "a", 1)});
  end.is_shared = false;
  EXPECT_THAT(after(end), ElementsAre(Action(EndSession{InstanceId(1)}), Action(Restart{0s})));
}

TEST(ServerRecovery, ARegistrationInAServerOfOneTenantMayFailOnce) {
  auto end = end_of_shared({}, {session(1, "a")});
  end.is_shared = false;
  EXPECT_THAT(after(end), ElementsAre(Action(Suspect{InstanceId(1)}), Action(Restart{0s})));
}

TEST(ServerRecovery, ACallBesideARegistrationIsNoSuspectHoweverOftenItWasOne) {
  EXPECT_THAT(after(end_of_shared({call(1, "b", 1)}, {session(2, "a")})),
              ElementsAre(Action(Send{InvocationId(1), false}), Action(Suspect{InstanceId(2)}), Action(Restart{0s})));
}

TEST(ServerRecovery, AFaultThatNamesCallsSuspectsNoRegistration) {
  EXPECT_THAT(after(naming(end_of_shared({call(1, "a")}, {session(2, "b", 1)}), {InvocationId(1)})),
              ElementsAre(Action(Fail{InvocationId(1)}), Action(QuarantineOf{"a"}), Action(Restart{0s})));
}

// Whoever registers beside the one that ends servers: two ends, and that one is in a server of its own.
TEST(ServerRecovery, TwoEndsSettleWhichOfManyRegistrationsItWas) {
  for (std::size_t others = 0; others < 5; ++others) {
    ServerRecovery recovery;
    recovery.on_start(kStart);
    std::vector<ServerRecovery::RegisteringSession> registering = {session(1, "culprit")};
    for (std::size_t i = 0; i < others; ++i) registering.push_back(session(2 + i, "other"));
    bool is_alone = false;
    for (int ends = 0; ends < 2 && !is_alone; ++ends) {
      for (const Action& action : recovery.on_end(end_of_shared({}, registering))) {
        is_alone |= action == Action(QuarantineOf{"culprit"});
        EXPECT_FALSE(std::holds_alternative<EndSession>(action))
            << "a session of a shared server ends in its own first";
        if (const auto* again = std::get_if<Suspect>(&action)) ++registering[again->session.value() - 1].suspected;
      }
    }
    EXPECT_TRUE(is_alone) << others;
  }
}

TEST(ServerRecovery, WaitsDoubleUpToALimitAndCalmEndsThem) {
  ServerRecovery recovery;
  recovery.on_start(kStart);
  auto end = end_of_shared({});
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 10; ++i) {
    waits.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(wait_after(recovery, end)).count());
    recovery.on_start(end.now);
    recovery.on_ready();
    end.now += 1s;
  }
  EXPECT_THAT(waits, ElementsAre(0, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000));
  end.now += 60s;
  EXPECT_EQ(wait_after(recovery, end), 0s);
}

TEST(ServerRecovery, WhoKeepsItsServerToItselfWaitsThoughTheCauseIsKnown) {
  ServerRecovery recovery;
  recovery.on_start(kStart);
  auto end = naming(end_of_shared({call(1, "a")}), {InvocationId(1)});
  end.is_shared = false;
  EXPECT_EQ(wait_after(recovery, end), 0s);
  EXPECT_EQ(wait_after(recovery, end), 100ms);
}

TEST(ServerRecovery, OthersDoNotWaitForWhomTheyNoLongerShareWith) {
  ServerRecovery recovery;
  recovery.on_start(kStart);
  const auto end = naming(end_of_shared({call(1, "a")}), {InvocationId(1)});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(wait_after(recovery, end), 0s);
}

TEST(ServerRecovery, AServerThatNeverStartsIsGivenUp) {
  ServerRecovery recovery;
  recovery.on_start(kStart);
  ServerRecovery::End end{.now = kStart + 1s};
  EXPECT_EQ(wait_after(recovery, end), 0s);
  EXPECT_EQ(wait_after(recovery, end), 100ms);
  EXPECT_THAT(recovery.on_end(end), ElementsAre(Action(GiveUp{})));
}

TEST(Quarantine, LastsUntilATenantHasEndedNoServerForAWhile) {
  Quarantine quarantine(600s);
  EXPECT_FALSE(quarantine.has("a", kStart));
  quarantine.add("a", kStart);
  quarantine.add("a", kStart + 300s);
  EXPECT_TRUE(quarantine.has("a", kStart + 899s));
  EXPECT_FALSE(quarantine.has("b", kStart + 899s));
  EXPECT_FALSE(quarantine.has("a", kStart + 900s));
}

}  // namespace
}  // namespace fairlead
