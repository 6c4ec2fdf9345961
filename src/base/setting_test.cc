#include "base/setting.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

enum class Colour { kRed, kGreen };

struct Options {
  int pool = 32;
  double patience = 1.5;
  std::uint64_t memory = std::uint64_t{64} << 20;
  bool eager = false;
  Colour colour = Colour::kGreen;
  std::string folder;
  std::optional<int> lanes;
  std::vector<std::string> listen{"a"};
};
using Entry = Setting<Options>;

Status add(std::vector<std::string>& list, std::string one) {
  if (one == "refused") return fail(Errc::kInvalidArgument, "nobody answers there");
  list.push_back(std::move(one));
  return {};
}

const SettingTable<Options>& table() {
  static const SettingTable<Options> all{
      Entry("pool", &Options::pool, whole_number(1, 1024), "Instances").also("instances").live(),
      Entry("patience", &Options::patience, seconds_number(0, 60), "Patience"),
      Entry("memory", &Options::memory, size_in({std::uint64_t{8} << 20, std::uint64_t{1} << 40, true}), "Memory"),
      Entry("eager", &Options::eager, yes_or_no(), "Eager"),
      Entry("colour", &Options::colour, one_of<Colour>({{"red", Colour::kRed}, {"green", Colour::kGreen}}), "Colour"),
      Entry("folder", &Options::folder, any_text("FOLDER", "a folder"), "Folder").by_default("where it was started"),
      Entry("lanes", &Options::lanes, optional(whole_number(1, 8)), "Lanes").by_default("as many as pay"),
      Entry::list<std::string>("listen", &Options::listen, any_text("ADDRESS", "an address"), "Addresses", add),
  };
  return all;
}

using Given = std::vector<GivenSetting>;

Given given(const std::string& name, const std::string& value, const std::string& where = "here") {
  return {{name, {{value, where}}}};
}

Options settled(const std::vector<Given>& places) {
  const auto all = settle(table(), places);
  EXPECT_TRUE(all) << all.error().message;
  return all ? all->options : Options();
}

std::string error(const std::vector<Given>& places) {
  const auto all = settle(table(), places);
  if (all) return "";
  EXPECT_EQ(all.error().code, Errc::kInvalidArgument);
  return all.error().message;
}

TEST(Setting, WhatIsWrittenIsReadBack) {
  Options options;
  options.pool = 7;
  options.patience = 0.25;
  options.memory = (std::uint64_t{3} << 30) + 1;
  options.eager = true;
  options.colour = Colour::kRed;
  options.folder = "/x";
  options.lanes = 3;
  options.listen = {"b", "c"};
  Given written;
  for (const Entry& setting : table()) {
    written.push_back({setting.name, {}});
    for (const std::string& text : setting.write(options)) written.back().values.push_back({text, "here"});
  }
  const Options read = settled({written});
  EXPECT_EQ(read.pool, 7);
  EXPECT_EQ(read.patience, 0.25);
  EXPECT_EQ(read.memory, (std::uint64_t{3} << 30) + 1);
  EXPECT_TRUE(read.eager);
  EXPECT_EQ(read.colour, Colour::kRed);
  EXPECT_EQ(read.folder, "/x");
  EXPECT_EQ(read.lanes, 3);
  EXPECT_THAT(read.listen, ElementsAre("b", "c"));
}

TEST(Setting, ABoundIsWithinIt) {
  for (const char* edge : {"1", "1024"}) EXPECT_EQ(error({given("pool", edge)}), "") << edge;
  for (const char* wrong : {"0", "1025", "-1", "", "1x", " 1", "1.5", "99999999999999999999"}) {
    EXPECT_NE(error({given("pool", wrong)}), "") << wrong;
  }
  for (const char* edge : {"0", "60", "1e1", "0.5"}) EXPECT_EQ(error({given("patience", edge)}), "") << edge;
  for (const char* wrong : {"60.1", "-0.1", "nan", "inf", "soon"})
    EXPECT_NE(error({given("patience", wrong)}), "") << wrong;
  for (const char* edge : {"0", "8MiB", "1TiB", "8388608"}) EXPECT_EQ(error({given("memory", edge)}), "") << edge;
  for (const char* wrong : {"1", "8388607", "2TiB", "much", "8MiBs", "-8MiB", "1.5GiB", "99999999EiB"}) {
    EXPECT_NE(error({given("memory", wrong)}), "") << wrong;
  }
}

TEST(Setting, ErrorsNameValuePlaceBoundAndDefault) {
  EXPECT_EQ(
      error({given("pool", "0", "fairlead.toml:4")}),
      "--pool is '0' (fairlead.toml:4): it must be a whole number from 1 to 1024; correct it, or leave it out for the "
      "default, 32");
  EXPECT_EQ(error({given("instances", "0")}),
            "--instances is '0' (here): it must be a whole number from 1 to 1024; correct it, or leave it out for the "
            "default, 32")
      << "as it was written";
  EXPECT_EQ(
      error({given("patience", "soon")}),
      "--patience is 'soon' (here): it must be a number of seconds from 0 to 60; correct it, or leave it out for the "
      "default, 1.5");
  EXPECT_EQ(
      error({given("memory", "1")}),
      "--memory is '1' (here): it must be 0, or a size from 8MiB to 1TiB; correct it, or leave it out for the default, "
      "64MiB");
  EXPECT_EQ(error({given("eager", "maybe")}),
            "--eager is 'maybe' (here): it must be true or false; correct it, or leave it out for the default, false");
  EXPECT_EQ(
      error({given("colour", "blue")}),
      "--colour is 'blue' (here): it must be one of red, green; correct it, or leave it out for the default, green");
  EXPECT_EQ(
      error({given("lanes", "9")}),
      "--lanes is '9' (here): it must be a whole number from 1 to 8; correct it, or leave it out for the default, as "
      "many as pay");
  EXPECT_EQ(error({given("listen", "refused")}),
            "--listen is 'refused' (here): nobody answers there; correct it, or leave it out for the default, a");
  EXPECT_EQ(error({given("poool", "1")}), "--poool is no setting; did you mean 'pool'?");
}

TEST(Setting, ThePlaceThatCountsMostWinsAndIsNamed) {
  const auto all =
      settle(table(), {given("pool", "1", "file"), given("pool", "2", "variable"), given("pool", "3", "line")});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->options.pool, 3);
  EXPECT_THAT(all->origins, ElementsAre(testing::Pair("pool", "line")));
  EXPECT_EQ(settled({given("pool", "1"), given("eager", "true")}).pool, 1);
  EXPECT_EQ(settled({}).pool, 32);
}

TEST(Setting, ABadValueIsRefusedAlsoWhereAnotherPlaceWouldWin) {
  EXPECT_THAT(error({given("pool", "0", "file"), given("pool", "3", "line")}), testing::HasSubstr("'0' (file)"));
}

TEST(Setting, OtherNamesWorkEverywhereAndOnlyOneOfThemInOnePlace) {
  EXPECT_EQ(settled({given("instances", "5"), given("pool", "6")}).pool, 6);
  EXPECT_EQ(settled({given("pool", "6"), given("instances", "5")}).pool, 5);
  Given both = given("pool", "6");
  both.push_back(given("instances", "5").front());
  EXPECT_EQ(error({both}), "--pool and --instances are names of one setting (here); give it once");
  EXPECT_EQ(find_setting(table(), "instances"), find_setting(table(), "pool"));
  EXPECT_EQ(find_setting(table(), "pol"), nullptr);
}

TEST(Setting, AListIsTakenWholeFromOnePlaceAndAScalarOnce) {
  const Given two{{"listen", {{"x", "file"}, {"y", "file"}}}};
  EXPECT_THAT(settled({two, given("listen", "z")}).listen, ElementsAre("z"));
  EXPECT_THAT(settled({two}).listen, ElementsAre("x", "y"));
  EXPECT_THAT(settled({Given{{"listen", {}}}}).listen, IsEmpty());
  EXPECT_EQ(error({Given{{"pool", {{"1", "here"}, {"2", "here"}}}}}), "--pool is given 2 times (here); give it once");
  EXPECT_EQ(error({Given{{"pool", {}}}}), "--pool is given 0 times (an empty list); give it once");
}

TEST(Setting, FlagsTakeTheUsualWords) {
  for (const char* yes : {"true", "yes", "on", "1", "True"}) EXPECT_TRUE(settled({given("eager", yes)}).eager) << yes;
  for (const char* no : {"false", "no", "off", "0"}) EXPECT_FALSE(settled({given("eager", no)}).eager) << no;
}

TEST(Setting, SizesHaveUnitsOf1024) {
  EXPECT_EQ(size_from("8GiB"), std::uint64_t{8} << 30);
  EXPECT_EQ(size_from("8gb"), std::uint64_t{8} << 30);
  EXPECT_EQ(size_from("8 G"), std::uint64_t{8} << 30);
  EXPECT_EQ(size_from("12b"), 12u);
  EXPECT_EQ(size_from("15EiB"), std::uint64_t{15} << 60);
  EXPECT_EQ(size_from("16EiB"), std::nullopt) << "more than 64 bits hold";
  EXPECT_EQ(size_from("GiB"), std::nullopt);
  for (const std::uint64_t bytes : {0ull, 1ull, 1023ull, 1024ull, 1536ull, 8ull << 30, ~0ull}) {
    EXPECT_EQ(size_from(size_text(bytes)), bytes);
  }
  EXPECT_EQ(size_text(std::uint64_t{8} << 30), "8GiB");
  EXPECT_EQ(size_text(1537), "1537");
}

TEST(Setting, OneIsCopiedWithoutTheOthers) {
  Options from, to;
  from.pool = 5;
  from.listen = {"q"};
  find_setting(table(), "pool")->copy(from, to);
  EXPECT_EQ(to.pool, 5);
  EXPECT_THAT(to.listen, ElementsAre("a"));
  find_setting(table(), "listen")->copy(from, to);
  EXPECT_THAT(to.listen, ElementsAre("q"));
}

}  // namespace
}  // namespace fairlead
