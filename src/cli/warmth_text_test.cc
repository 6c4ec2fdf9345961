#include "cli/warmth_text.h"

#include <gmock/gmock.h>

namespace fairlead::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

json status_with(json instances) {
  return {{"functions", {{{"name", "chat"}, {"tenant", "red"}}, {{"name", "hello"}, {"tenant", "default"}}}},
          {"instances", std::move(instances)}};
}
const json kMemory{{"held_bytes", 5 << 20}, {"resident_bytes", 4 << 20}, {"away_bytes", 1 << 20}};

TEST(WarmthText, EachInstanceIsShownWithWhereItIsAndWhatItTakes) {
  const std::string text = warmth_text(status_with({{{"id", 7},
                                                     {"function", "chat"},
                                                     {"gpu", 2},
                                                     {"state", "idle"},
                                                     {"memory", kMemory},
                                                     {"pinned", "device"},
                                                     {"kept_seconds", 580.0}}}));
  EXPECT_THAT(text, testing::ContainsRegex("chat +red +7 +GPU 2 +4.0 MiB +1.0 MiB +9m 40s +device\n"));
  EXPECT_THAT(text, testing::ContainsRegex("hello +default +- +cold"));
  EXPECT_THAT(text, HasSubstr("1 instances hold 5.0 MiB of device memory, 1.0 MiB of it moved to the host"));
}

TEST(WarmthText, HoldsAreJoinedByTheInstance) {
  const json status = status_with({{{"id", 7}, {"function", "chat"}}, {{"id", 8}, {"function", "chat"}}, 5});
  const json all = with_holds(
      status,
      {{"instances", {{{"id", 8}, {"pinned", "host"}, {"kept_seconds", 2}}, {{"id", 99}, {"pinned", "device"}}}}});
  EXPECT_EQ(pinned_text(all["instances"][0]), "none");
  EXPECT_EQ(pinned_text(all["instances"][1]), "host");
  EXPECT_EQ(with_holds(status, nullptr), status);
  EXPECT_EQ(with_holds(7, {{"instances", 3}}), json(7));
}

TEST(WarmthText, OneThatHasNoDeviceMemoryThereIsOnTheHost) {
  const json away{{"resident_bytes", 0}, {"away_bytes", 1 << 20}};
  EXPECT_EQ(
      warmth_of(status_with(
          {{{"function", "chat"}, {"state", "idle"}, {"memory", away}}}))["functions"][0]["instances"][0]["where"],
      "host");
  EXPECT_EQ(
      warmth_of(status_with({{{"function", "chat"}, {"state", "starting"}}}))["functions"][0]["instances"][0]["where"],
      "starting");
}

TEST(WarmthText, WhatIsKeptAndWhatIsNotHeldSayWhy) {
  EXPECT_EQ(kept_text({{"seated", true}, {"kept_seconds", 3}}), "always");
  EXPECT_EQ(kept_text({{"kept_seconds", 0}}), "0 s");
  EXPECT_EQ(kept_text(json::object()), "-");
  EXPECT_EQ(pinned_text({{"pinned", "host"}}), "host");
  EXPECT_THAT(pinned_text({{"pinned", "none"}, {"over_pin_bound", true}}), HasSubstr("--pin-memory"));
}

TEST(WarmthText, OfANodeThatSaysNothingOrNonsense) {
  for (const json& status : {json::object(), json{{"functions", 7}, {"instances", "none"}}}) {
    EXPECT_EQ(warmth_text(status), "no functions\n");
  }
  const std::string text = warmth_text({{"functions", {{{"name", 3}}}}, {"instances", {{{"id", "x"}, {"memory", 1}}}}});
  EXPECT_THAT(text, AllOf(HasSubstr("FUNCTION"), HasSubstr("0")));
}

}  // namespace
}  // namespace fairlead::cli
