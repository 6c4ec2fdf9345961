#include "cli/top_view.h"

#include <gmock/gmock.h>

#include <sstream>

#include "base/rng.h"
#include "cli/display_width.h"

namespace fairlead::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

json function(const std::string& name, double queued = 0, double calls = 0, double errors = 0) {
  return {{"name", name},
          {"tenant", "red"},
          {"state", "active"},
          {"queued", queued},
          {"in_flight", 1},
          {"stats", {{"invocations", calls}, {"errors", errors}, {"service_seconds", calls / 10}}},
          {"memory", {{"resident_bytes", 5.0 * (1 << 30)}}}};
}
json status_of(json functions) {
  return {{"version", "1.2"},
          {"policy", "mqfq"},
          {"uptime_seconds", 61},
          {"functions", std::move(functions)},
          {"gpus",
           {{{"id", 1},
             {"utilisation", 0.5},
             {"state", "serving"},
             {"slots", 2},
             {"slots_in_use", 1},
             {"memory_total_bytes", 16.0 * (1 << 30)}}}}};
}
std::vector<std::string> lines_of(const std::string& frame) {
  std::vector<std::string> lines;
  std::istringstream in(frame);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}
std::string without_colour(std::string text) {
  for (std::size_t at; (at = text.find('\x1b')) != std::string::npos;) text.erase(at, text.find('m', at) - at + 1);
  return text;
}
// Names in the order of their rows.
std::vector<std::string> names(const TopView& view, TerminalSize size = {80, 24}) {
  std::vector<std::string> found;
  bool rows = false;
  for (const std::string& line : lines_of(view.frame(Instant(0s), size))) {
    if (rows && !line.empty() && line[0] != '?') found.push_back(line.substr(0, line.find(' ')));
    rows = rows || line.starts_with("FUNCTION");
  }
  return found;
}

class TopViewTest : public testing::Test {
 protected:
  void see(json functions, Duration at = 0s, const json& recent = nullptr) {
    view.observe(Instant(at), status_of(std::move(functions)), recent, 1'000'000);
  }
  void press(std::initializer_list<const char*> keys) {
    for (const char* key : keys) EXPECT_TRUE(view.press(key)) << key;
  }
  std::string frame(std::size_t columns = 80, std::size_t lines = 24) {
    return view.frame(Instant(0s), {columns, lines});
  }
  TopView view{false};
};

TEST_F(TopViewTest, WhoHasMostQueuedIsFirst) {
  see({function("a", 1), function("b", 12), function("c", 3)});
  EXPECT_THAT(names(view), testing::ElementsAre("b", "c", "a"));
  press({"R"});
  EXPECT_THAT(names(view), testing::ElementsAre("a", "c", "b"));
  press({"n"});
  EXPECT_THAT(names(view), testing::ElementsAre("a", "b", "c"));
  press({"n"});
  EXPECT_THAT(names(view), testing::ElementsAre("c", "b", "a")) << "the same key again: the other way round";
}

TEST_F(TopViewTest, TheNextColumnOrders) {
  see({function("a", 1), function("b", 2)});
  EXPECT_THAT(frame(), HasSubstr("QUEUE*"));
  press({">"});
  EXPECT_THAT(frame(), HasSubstr("RUN*"));
  press({"<", "<"});
  EXPECT_THAT(frame(120), HasSubstr("ON HOS")) << "the last column, from the first one backwards";
}

TEST_F(TopViewTest, AFilterShowsNamesWithItAndEscapeAll) {
  see({function("resize"), function("chat"), function("chat-large")});
  press({"/", "c", "h", "x", "backspace", "q"});
  EXPECT_THAT(frame(), HasSubstr("no function has 'chq' in its name")) << "q is a letter of it";
  press({"backspace", "a", "\r"});
  EXPECT_THAT(names(view), testing::UnorderedElementsAre("chat", "chat-large"));
  EXPECT_THAT(frame(), HasSubstr("filter: cha"));
  press({"\x1b"});
  EXPECT_EQ(names(view).size(), 3u);
  EXPECT_FALSE(view.press("q"));
}

TEST_F(TopViewTest, RatesAreOfTheLastMinute) {
  see({function("a", 0, 1000, 10)}, 1s);
  see({function("a", 0, 1100, 20)}, 11s);
  EXPECT_THAT(frame(), AllOf(HasSubstr(" 10 "), HasSubstr("10%"), HasSubstr("100%")))
      << "10 calls/s, 1 error/s, 1 s of GPU time per second";
  for (int i = 12; i < 90; ++i) see({function("a", 0, 1100, 20)}, std::chrono::seconds(i));
  EXPECT_THAT(frame(), Not(HasSubstr("10%"))) << "that was more than a minute ago";
}

TEST_F(TopViewTest, ANodeThatWasStartedAgainHasNoNegativeRates) {
  see({function("a", 0, 1000)}, 1s);
  see({function("a", 0, 5)}, 2s);
  EXPECT_THAT(frame(), Not(HasSubstr("-9")));
  see({function("a", 0, 15)}, 3s);
  EXPECT_THAT(frame(), HasSubstr(" 10 "));
}

TEST_F(TopViewTest, PercentilesAreOfCallsThatEndedInTheLastMinute) {
  json calls = json::array();
  for (int i = 1; i <= 100; ++i)
    calls.push_back({{"function", "a"}, {"at_ms", 999'000}, {"queue_s", i / 1000.0}, {"run_s", 0}});
  calls.push_back({{"function", "a"}, {"at_ms", 900'000}, {"queue_s", 30}});
  see({function("a")}, 1s, {{"calls", calls}});
  EXPECT_THAT(frame(), testing::ContainsRegex("50 ms +99 ms")) << frame();
  EXPECT_THAT(frame(), Not(HasSubstr("no percentiles")));
  see({function("a")}, 2s, nullptr);
  EXPECT_THAT(frame(), HasSubstr("no percentiles"));
}

TEST(TopNumbers, QuantilesAndSparklines) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({3}, 0.99), 3);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.5), 2);
  EXPECT_EQ(sparkline({0, 1, 4, 8}, 8), " ▁▄█");
  EXPECT_EQ(sparkline({5, 1, 2}, 2), "▄█");
  EXPECT_EQ(sparkline({}, 5), "");
}

TEST_F(TopViewTest, ANodeThatDoesNotAnswerIsSaidAndWhatWasSeenStays) {
  see({function("a", 3)});
  view.failed(Instant(12s), "no node answers at http://127.0.0.1:9001");
  const std::string text = view.frame(Instant(12s), {80, 24});
  EXPECT_THAT(text, AllOf(HasSubstr("NO ANSWER"), HasSubstr("no node answers"), HasSubstr("FUNCTION")));
  see({function("a", 3)}, 13s);
  EXPECT_THAT(frame(), Not(HasSubstr("NO ANSWER")));
}

TEST_F(TopViewTest, OtherRowsAreReachedAndTheLastPageIsFull) {
  json many = json::array();
  for (int i = 0; i < 200; ++i) many.push_back(function(fmt::format("f{:03}", i), 200 - i));
  see(many);
  const std::size_t page = names(view).size();
  EXPECT_GT(page, 10u);
  EXPECT_THAT(frame(), HasSubstr(fmt::format("1-{} of 200", page)));
  press({"page-down"});
  EXPECT_EQ(names(view).front(), fmt::format("f{:03}", page));
  press({"end"});
  EXPECT_EQ(names(view).back(), "f199");
  EXPECT_EQ(names(view).size(), page);
  press({"down", "page-down"});
  EXPECT_EQ(names(view).back(), "f199");
  press({"home", "up"});
  EXPECT_EQ(names(view).front(), "f000");
}

TEST_F(TopViewTest, ColoursAreThereOnlyWhereTheyAreWanted) {
  see({function("a", 3)});
  EXPECT_THAT(frame(), Not(HasSubstr("\x1b")));
  TopView painted(true);
  painted.observe(Instant(), status_of({function("a", 3)}), nullptr, 0);
  EXPECT_THAT(painted.frame(Instant(), {80, 24}), HasSubstr("\x1b[33ma"));
  EXPECT_EQ(without_colour(painted.frame(Instant(), {80, 24})), frame());
}

// Whatever is there and however small the terminal: no line is longer, and there are no more lines.
TEST_F(TopViewTest, EachLineFits) {
  json all = json::array();
  all.push_back(function(std::string(64, 'x'), 1e9, 1e12, 1e11));
  all.push_back(function("模型-大きな関数-🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀", 5));
  all.push_back(function("bad\x1b[2J", 5));
  for (int i = 0; i < 50; ++i) all.push_back(function(fmt::format("f{}", i), i));
  json status = status_of(all);
  for (int i = 2; i < 9; ++i)
    status["gpus"].push_back(
        {{"id", i}, {"state", "drained"}, {"reason", std::string(300, 'y')}, {"utilisation", 7e9}});
  for (int i = 0; i < 30; ++i) view.observe(Instant(std::chrono::seconds(i)), status, nullptr, 0);
  for (const char* mode : {"", "?", "/"}) {
    if (*mode != '\0') view.press(mode);
    for (std::size_t columns = 1; columns < 200; ++columns) {
      const std::size_t height = 1 + columns % 40;
      const auto lines = lines_of(frame(columns, height));
      EXPECT_LE(lines.size(), height);
      for (const std::string& line : lines) {
        ASSERT_LE(display_width(line), columns) << columns << ": " << line;
        ASSERT_THAT(line, Not(HasSubstr("\x1b")));
      }
    }
    view.press(" ");
  }
}

TEST_F(TopViewTest, AtFortyColumnsWhatSaysMostIsThere) {
  see({function("transformer", 7)});
  const std::string text = frame(40);
  EXPECT_THAT(text, AllOf(HasSubstr("QUEUE*"), HasSubstr("RUN"), HasSubstr("CALLS/s"), Not(HasSubstr("ON GPU")),
                          HasSubstr("transf")));
}

TEST_F(TopViewTest, NonsenseOfANodeIsZero) {
  for (const json& status :
       {json(), json(7), json::array({1}),
        json{{"functions", {1, nullptr, {{"name", 3}}}}, {"gpus", {"x", {{"id", -5}}}}, {"draining", "yes"}}}) {
    view.observe(Instant(1s), status, json{{"calls", {1, {{"function", 4}}}}}, 0);
    EXPECT_THAT(frame(), HasSubstr("FUNCTION"));
  }
}

}  // namespace
}  // namespace fairlead::cli
