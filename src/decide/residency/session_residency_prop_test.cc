#include "decide/residency/session_residency.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace fairlead {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Missing = SessionResidency::Missing;

constexpr ObjectId kShared(1), kOwn(2);

TEST(SessionResidency, TellsEverySessionOfWhatItsConstantsMiss) {
  SessionResidency residency;
  residency.add(1, {{kShared, Bytes(2000), false}, {kOwn, Bytes(1000), true}});
  residency.add(2, {{kShared, Bytes(2000), false}});
  EXPECT_THAT(residency.take_changes(), ElementsAre(Missing{1, Bytes(2000)}, Missing{2, Bytes(2000)}));
  residency.moved(kShared, true);
  EXPECT_THAT(residency.take_changes(), ElementsAre(Missing{1, Bytes(0)}, Missing{2, Bytes(0)}));
  residency.moved(kOwn, false);
  residency.moved(ObjectId(99), false);
  EXPECT_THAT(residency.take_changes(), ElementsAre(Missing{1, Bytes(1000)}));
  residency.moved(kOwn, true);
  residency.moved(kOwn, false);
  EXPECT_THAT(residency.take_changes(), IsEmpty()) << "as it was";
  residency.remove(1);
  residency.moved(kShared, false);
  EXPECT_THAT(residency.take_changes(), ElementsAre(Missing{2, Bytes(2000)}));
}

TEST(SessionResidency, ANewSessionIsToldOfEvenIfNothingIsMissing) {
  SessionResidency residency;
  residency.add(1, {});
  residency.add(2, {{kOwn, Bytes(5), true}, {kOwn, Bytes(5), true}});
  EXPECT_THAT(residency.take_changes(), ElementsAre(Missing{1, Bytes(0)}, Missing{2, Bytes(0)}));
  residency.moved(kOwn, false);
  EXPECT_THAT(residency.take_changes(), ElementsAre(Missing{2, Bytes(10)}));
  residency.remove(2);
  EXPECT_THAT(residency.take_changes(), IsEmpty());
}

// Against adding everything up.
RC_GTEST_PROP(SessionResidency, WhatItToldIsTheSumOfWhatIsNotThere, ()) {
  SessionResidency residency;
  std::map<std::uint64_t, std::vector<SessionResidency::Constant>> sessions;
  std::map<std::uint64_t, Bytes> told;
  std::set<ObjectId> there;
  const auto steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < steps; ++step) {
    const auto session = *rc::gen::inRange<std::uint64_t>(1, 5);
    const ObjectId object(*rc::gen::inRange<std::uint64_t>(1, 6));
    switch (*rc::gen::inRange(0, 5)) {
      case 0: {
        auto& constants = sessions[session];
        constants.clear();
        for (const std::uint64_t id : *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange(1, 6)))
          constants.push_back({ObjectId(id), Bytes(static_cast<std::int64_t>(100 * id)), there.contains(ObjectId(id))});
        residency.add(session, constants);
        break;
      }
      case 1:
        residency.remove(session);
        sessions.erase(session);
        told.erase(session);
        break;
      default:
        if (there.erase(object) == 0) there.insert(object);
        residency.moved(object, there.contains(object));
    }
    for (const Missing& missing : residency.take_changes()) told[missing.session] = missing.bytes;
    RC_ASSERT(told.size() == sessions.size());
    for (const auto& [id, constants] : sessions) {
      Bytes expected{0};
      for (const auto& constant : constants) {
        if (!there.contains(constant.object)) expected += constant.bytes;
      }
      RC_ASSERT(told.at(id) == expected);
    }
  }
}

}  // namespace
}  // namespace fairlead
