#include "edge/console/live_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/rng.h"

namespace fairlead {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

// What a browser makes of frames.
class Reader {
 public:
  void take(const LiveView& view) {
    const Json frame = Json::parse(view.text_since(seen_));
    if (frame["full"]) shown.clear();
    for (const auto& [name, item] : frame["set"].items()) shown[name] = item.dump();
    for (const std::string name : frame["gone"]) shown.erase(name);
    seen_ = view.frame();
  }
  LiveView::Items shown;

 private:
  std::uint64_t seen_ = 0;
};

TEST(LiveView, TheFirstFrameHasAllAndLaterOnesWhatChanged) {
  LiveView view;
  view.update({{"a", "1"}, {"b", "2"}});
  EXPECT_EQ(R"({"full":true,"set":{"a":1,"b":2},"gone":[]})", view.text_since(0));
  view.update({{"a", "1"}, {"b", "3"}});
  EXPECT_EQ(2u, view.frame());
  EXPECT_EQ(R"({"full":false,"set":{"b":3},"gone":[]})", view.text_since(1));
}

TEST(LiveView, WhereNothingChangesThereIsNoFrame) {
  LiveView view;
  view.update({});
  EXPECT_EQ(1u, view.frame()) << "that there is nothing is news, once";
  view.update({});
  EXPECT_EQ(1u, view.frame());
}

TEST(LiveView, WhoMissedFramesIsBroughtUpToDateByOne) {
  LiveView view;
  view.update({{"a", "1"}, {"b", "1"}, {"c", "1"}});
  view.update({{"a", "2"}, {"b", "1"}, {"c", "1"}});
  view.update({{"a", "2"}, {"b", "1"}});
  EXPECT_EQ(R"({"full":false,"set":{"a":2},"gone":["c"]})", view.text_since(1));
  view.update({{"a", "2"}, {"b", "1"}, {"c", "9"}});
  EXPECT_EQ(R"({"full":false,"set":{"a":2,"c":9},"gone":[]})", view.text_since(1)) << "it is there again";
}

TEST(LiveView, AFrameThatIsYetToComeIsNobodys) {
  LiveView view;
  view.update({{"a", "1"}});
  EXPECT_TRUE(Json::parse(view.text_since(2))["full"]);
  EXPECT_TRUE(Json::parse(view.text_since(~0ull))["full"]);
}

TEST(LiveView, WhoMayHaveForgottenNamesGetsAll) {
  LiveView view;
  view.update({{"a", "1"}});
  for (std::size_t i = 0; i <= LiveView::kMostGone; ++i) view.update({{fmt::format("n{}", i), "1"}});
  EXPECT_TRUE(Json::parse(view.text_since(1))["full"]);
  EXPECT_FALSE(Json::parse(view.text_since(view.frame() - 1))["full"]);
  EXPECT_LE(view.text_since(view.frame() - 1).size(), 100u);
}

TEST(LiveView, NamesAreQuoted) {
  LiveView view;
  view.update({{"fn/\"</script>\n", "1"}});
  EXPECT_EQ(1, Json::parse(view.text_since(0))["set"]["fn/\"</script>\n"]);
}

// Readers that look now and then see the same as the view, whatever came and went.
TEST(LiveView, ReadersThatSkipEndWhereTheOthersAre) {
  Rng rng(7);
  LiveView view;
  LiveView::Items items;
  Reader each, some;
  for (int turn = 0; turn < 20'000; ++turn) {
    const std::string name = std::to_string(rng.below(40));
    if (rng.below(3) == 0) {
      items.erase(name);
    } else {
      items[name] = std::to_string(rng.below(4));
    }
    view.update(items);
    each.take(view);
    ASSERT_EQ(items, each.shown) << turn;
    if (rng.below(50) != 0) continue;
    some.take(view);
    ASSERT_EQ(items, some.shown) << turn;
  }
}

}  // namespace
}  // namespace fairlead
