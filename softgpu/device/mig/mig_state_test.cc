// The MIG state machine against counts and placements known from hardware.
#include "softgpu/device/mig/mig_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "softgpu/device/profile.h"

namespace softgpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Profile profile_named(const std::string& name) {
  return parse_profile(load_profile_text(name).value()).value();
}

MigState enabled(const Profile& profile) {
  MigState mig(profile.mig);
  EXPECT_TRUE(mig.set_mode(true, false, true));
  return mig;
}

struct Counts {
  std::set<std::vector<std::pair<std::string, unsigned>>> valid;    // sets of (profile, start), the empty one included
  std::set<std::vector<std::pair<std::string, unsigned>>> maximal;  // those to which nothing can be added
};

// Every set that can be reached by creating instances of these profiles in any order.
Counts count_sets(MigState mig, const std::vector<std::string>& names) {
  Counts counts;
  const std::function<void()> visit = [&] {
    std::vector<std::pair<std::string, unsigned>> key;
    for (const GpuInstance& instance : mig.instances()) key.emplace_back(instance.profile->name, instance.start);
    if (!counts.valid.insert(key).second) return;
    bool full = true;
    for (const std::string& name : names) {
      const MigProfile* profile = mig.geometry().find(name);
      for (const unsigned start : mig.free_starts(*profile)) {
        full = false;
        const unsigned id = mig.create(*profile, start).value();
        visit();
        EXPECT_TRUE(mig.destroy(id));
      }
    }
    if (full) counts.maximal.insert(key);
  };
  visit();
  return counts;
}

TEST(MigState, AnA100HasNineteenMaximalPartitions) {
  const Profile profile = profile_named("a100-40");
  const Counts counts = count_sets(enabled(profile), {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"});
  EXPECT_EQ(counts.maximal.size(), 19U);
  EXPECT_EQ(counts.valid.size(), 298U);
}

TEST(MigState, WithDoubleMemoryThereAreSeventyEight) {
  const Profile profile = profile_named("h100-80");
  const Counts counts =
      count_sets(enabled(profile), {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"});
  EXPECT_EQ(counts.maximal.size(), 78U);
  EXPECT_EQ(counts.valid.size(), 723U);
}

TEST(MigState, AnA30HasFiveMaximalPartitions) {
  const Profile profile = profile_named("a30");
  EXPECT_EQ(count_sets(enabled(profile), {"1g.6gb", "2g.12gb", "4g.24gb"}).maximal.size(), 5U);
}

TEST(MigState, ComputeSlicesNeverExceedWhatTheGpuHas) {
  for (const char* name : {"a100-40", "a100-80", "a30", "h100-80", "h200-141"}) {
    const Profile profile = profile_named(name);
    std::vector<std::string> names;
    unsigned most = 0;
    for (const MigProfile& slice : profile.mig.profiles) {
      most = std::max(most, slice.compute_slices);
      if (!slice.has_media()) names.push_back(slice.name);
    }
    for (const auto& set : count_sets(enabled(profile), names).valid) {
      unsigned slices = 0;
      unsigned sms = 0;
      for (const auto& [slice, start] : set) {
        slices += profile.mig.find(slice)->compute_slices;
        sms += profile.mig.find(slice)->sm_count;
      }
      EXPECT_LE(slices, most) << name;
      EXPECT_LE(sms, profile.sm_count) << name;
    }
  }
}

std::vector<unsigned> ids_of_creating(const std::vector<std::string>& names) {
  const Profile profile = profile_named("a100-40");
  MigState mig = enabled(profile);
  std::vector<unsigned> ids;
  for (const std::string& name : names) ids.push_back(mig.create(*profile.mig.find(name)).value());
  return ids;
}

TEST(MigState, PlacesAndNumbersAsTheVendorsTool) {
  EXPECT_THAT(ids_of_creating(std::vector<std::string>(7, "1g.5gb")), ElementsAre(13, 11, 12, 7, 8, 9, 10));
  EXPECT_THAT(ids_of_creating({"3g.20gb", "3g.20gb"}), ElementsAre(2, 1));
  EXPECT_THAT(ids_of_creating({"3g.20gb", "2g.10gb", "1g.5gb"}), ElementsAre(2, 3, 9));
}

TEST(MigState, RefusesWhatOverlapsAndWhatDoesNotExist) {
  const Profile profile = profile_named("a100-40");
  MigState mig = enabled(profile);
  const MigProfile& three = *profile.mig.find("3g.20gb");
  ASSERT_EQ(mig.create(three, 4).value(), 2U);
  EXPECT_EQ(mig.create(three, 4).error(), MigError::kInsufficient);
  EXPECT_EQ(mig.create(three, 2).error(), MigError::kInvalid);
  EXPECT_EQ(mig.create(*profile.mig.find("7g.40gb")).error(), MigError::kInsufficient);
  EXPECT_THAT(mig.free_starts(*profile.mig.find("2g.10gb")), ElementsAre(0, 2));
  EXPECT_EQ(mig.remaining(*profile.mig.find("1g.5gb")), 4U);
  EXPECT_EQ(mig.destroy(7).error(), MigError::kNotFound);
}

TEST(MigState, OnlyOneInstanceHasTheMediaEngines) {
  const Profile profile = profile_named("a100-40");
  MigState mig = enabled(profile);
  const MigProfile& media = *profile.mig.find("1g.5gb+me");
  EXPECT_EQ(mig.remaining(media), 1U);
  ASSERT_TRUE(mig.create(media));
  EXPECT_EQ(mig.remaining(media), 0U);
  EXPECT_EQ(mig.create(media).error(), MigError::kInsufficient);
  EXPECT_EQ(mig.remaining(*profile.mig.find("1g.5gb")), 6U);
}

TEST(MigState, CreatesAllOrNothingAndFindsTheOrderThatFits) {
  const Profile profile = profile_named("a100-40");
  MigState mig = enabled(profile);
  const auto named = [&](const char* name) { return profile.mig.find(name); };
  // One by one in this order the 1g instances would be in the way.
  const auto ids = mig.create_all({named("1g.5gb"), named("1g.5gb"), named("1g.5gb"), named("4g.20gb")});
  ASSERT_TRUE(ids);
  EXPECT_EQ((*ids)[3], 1U);
  EXPECT_EQ(mig.create_all({named("1g.5gb"), named("1g.5gb")}).error(), MigError::kInsufficient);
  EXPECT_EQ(mig.instances().size(), 4U);
}

TEST(MigState, ModeWaitsForAResetBeforeHopperAndIsRefusedFromThenOn) {
  const Profile profile = profile_named("a100-40");
  MigState mig(profile.mig);
  EXPECT_EQ(mig.create(profile.mig.profiles.front()).error(), MigError::kNotEnabled);
  EXPECT_EQ(mig.set_mode(true, true, true).error(), MigError::kResetRequired);
  EXPECT_FALSE(mig.enabled());
  EXPECT_TRUE(mig.pending());
  mig.reset();
  EXPECT_TRUE(mig.enabled());
  const unsigned id = mig.create(profile.mig.profiles.front()).value();
  EXPECT_EQ(mig.set_mode(false, false, true).error(), MigError::kInUse);
  EXPECT_TRUE(mig.destroy(id));
  EXPECT_TRUE(mig.set_mode(false, false, true));

  MigState hopper(profile.mig);
  EXPECT_EQ(hopper.set_mode(true, true, false).error(), MigError::kInUse);
  EXPECT_FALSE(hopper.pending());
}

TEST(MigState, AGpuWithoutMigSaysSo) {
  const Profile profile = profile_named("v100-16");
  MigState mig(profile.mig);
  EXPECT_EQ(mig.set_mode(true, false, true).error(), MigError::kNotSupported);
  EXPECT_EQ(mig.create_all({}).error(), MigError::kNotSupported);
}

TEST(MigState, ComputeInstancesSplitTheSms) {
  const Profile profile = profile_named("a100-40");
  MigState mig = enabled(profile);
  const unsigned id = mig.create(*profile.mig.find("3g.20gb")).value();
  const Uuid uuid = {};
  EXPECT_EQ(mig.create_compute(id, 2, uuid).value(), 0U);
  EXPECT_EQ(mig.create_compute(id, 2, uuid).error(), MigError::kInsufficient);
  EXPECT_EQ(mig.create_compute(id, 1, uuid, 1).error(), MigError::kInsufficient);
  EXPECT_EQ(mig.create_compute(id, 4, uuid).error(), MigError::kInvalid);
  EXPECT_EQ(mig.create_compute(id, 1, uuid).value(), 1U);
  EXPECT_EQ(instance_name(*mig.find(id), mig.find(id)->compute.front()), "2c.3g.20gb");
  EXPECT_EQ(profile.mig.compute_sm_count(*mig.find(id)->profile, 2), 28U);
  EXPECT_EQ(profile.mig.compute_sm_count(*mig.find(id)->profile, 3), 42U);
  EXPECT_EQ(mig.destroy(id).error(), MigError::kInUse);
  EXPECT_TRUE(mig.destroy_compute(id, 0));
  EXPECT_EQ(mig.create_compute(id, 1, uuid).value(), 0U);  // ids are reused
  EXPECT_THAT(MigState::free_compute_starts(*mig.find(id), 1), ElementsAre(1));
  EXPECT_THAT(MigState::possible_compute_starts(*mig.find(id), 7), IsEmpty());
}

TEST(MigState, ComputeInstancesLeaveRoomForLargerOnes) {
  const Profile profile = profile_named("a100-40");
  MigState mig = enabled(profile);
  const unsigned id = mig.create(*profile.mig.find("3g.20gb")).value();
  ASSERT_TRUE(mig.create_compute(id, 1, {}));
  EXPECT_EQ(mig.find(id)->compute.front().start, 2U);
  EXPECT_TRUE(mig.create_compute(id, 2, {}));
}

TEST(MigGeometry, RefusesLinesThatCannotBe) {
  const auto error_of = [](const char* line) {
    KeyValues values = {{"mig_memory_slices", "8"}, {"mig_1g.5gb", line}};
    const auto geometry = take_mig_geometry(values);
    return geometry ? std::string() : geometry.error();
  };
  EXPECT_EQ(error_of("19 1 1 14 4864 1 0 0 1 2 3"), "");
  EXPECT_THAT(error_of("19 1 1 14"), ::testing::HasSubstr("seven numbers"));
  EXPECT_THAT(error_of("19 1 1 14 4864 1 0 7 3"), ::testing::HasSubstr("ascending"));
  EXPECT_THAT(error_of("19 1 1 14 4864 1 0 8"), ::testing::HasSubstr("end within"));
  EXPECT_THAT(error_of("19 1 2 14 4864 1 0 1"), ::testing::HasSubstr("multiples"));
  EXPECT_THAT(error_of("19 1 1 14 4864 1 0 0 0"), ::testing::HasSubstr("ascending"));
  EXPECT_THAT(error_of("19 1 1 14 4864 1 0 0 x"), ::testing::HasSubstr("start is 'x'"));
  EXPECT_THAT(error_of("19 -1 1 14 4864 1 0 0"), ::testing::HasSubstr("compute slices is '-1'"));
  EXPECT_THAT(error_of("19 1 1 0 4864 1 0 0"), ::testing::HasSubstr("SMs is '0'"));
  EXPECT_THAT(error_of("19 1 1 14 4864 1 0 4294967295"), ::testing::HasSubstr("between 0 and 16"));
}

}  // namespace
}  // namespace softgpu
