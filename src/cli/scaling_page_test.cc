// The page about scaling and the page about GPUs, of what a node says: numbers are where they belong, and names stay names.
#include "cli/scaling_page.h"

#include <gmock/gmock.h>

#include "cli/status_page.h"

namespace fairlead::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class ScalingPage : public testing::Test {
 protected:
  ScalingPage() {
    report.now_ms = 1'700'000'020'000;
    report.functions = Json::parse(R"([{
        "function": "<b>f", "state": "scaled", "lacking": "", "objective_ms": 69, "width_percent": 24, "quota_percent": 50,
        "rate_per_s": 71.4, "execution_ms": 14, "seats": 2,
        "totals": {"arrived": 400, "answered": 400, "late": 8, "held_gpu_seconds": 12, "bound_gpu_seconds": 10},
        "seconds": [{"at_s": 1700000000, "arrived": 10, "late": 3, "seats": 1}, {"at_s": 1700000001, "arrived": 30, "late": 0, "seats": 2}],
        "notes": [{"at_ms": 1700000001500, "saw": "30 <requests>", "did": ["an instance starts on GPU 1"],
                   "rejected": ["number 3: no GPU has room for it & more"]}]}])");
    report.placements = Json::parse(R"([
        {"at_ms": 1700000000500, "function": "<b>f", "width_percent": 24, "quota_percent": 50, "seats": {"1": 1}},
        {"at_ms": 1700000001500, "function": "<b>f", "width_percent": 24, "quota_percent": 50, "seats": {"1": 1, "2": 1}}])");
    report.status = Json::parse(R"({"version": "1", "gpus": [{"id": 1}, {"id": 2}], "functions": [
        {"name": "<b>f", "queued": 4, "instances": {"busy": 2}, "share": {"seats": [1, 2], "compute_percent": 100, "quota_request_percent": 0}},
        {"name": "byhand", "queued": 0, "share": {"seats": [2], "compute_percent": 40, "quota_request_percent": 30}},
        {"name": "idle", "queued": 0, "share": {"seats": []}}]})");
    FunctionProfile profile{.function = "<b>f", .code_sha256 = "c", .device = "V100"};
    profile.trials = {{.rate_per_s = 71.4, .error = 0.02}};
    profile.work_ms = 311;
    profile.saturation_percent = 24;
    report.profiles["<b>f"] = profile;
  }
  ScalingReport report;
};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST_F(ScalingPage, SaysWhatWasChosenAndWhatItCost) {
  const std::string page = scaling_page(report);
  EXPECT_THAT(page, HasSubstr("24 % x 50 %"));
  EXPECT_THAT(page, HasSubstr("<td>2.00 %</td><td>12.0</td><td>10.0</td><td>1.20</td>"));
  EXPECT_THAT(page, HasSubstr("0.60 GPUs held in the mean of 20 s; 0.50 are the bound"));
  EXPECT_THAT(page, HasSubstr("chosen: 24 % of the SMs x 50 % of the time"));
  EXPECT_THAT(page, HasSubstr("<b>1.5 s</b> saw 30 &lt;requests&gt;"));
  EXPECT_THAT(page, HasSubstr("10 came, 3 were late; 1 seats"));
}

TEST_F(ScalingPage, WhatOthersWroteIsEscaped) {
  const std::string page = scaling_page(report);
  EXPECT_THAT(page, Not(HasSubstr("<b>f")));
  EXPECT_THAT(page, Not(HasSubstr("<requests>")));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;f"));
}

TEST_F(ScalingPage, EachGpuIsDrawnAtItsMoments) {
  const std::string page = scaling_page(report);
  EXPECT_THAT(page, HasSubstr("GPU 1: what is promised"));
  EXPECT_THAT(page, HasSubstr("GPU 2: what is promised"));
  EXPECT_EQ(count(page, ">at 0.5 s<"), 2u) << "a title and a text, of GPU 1, on which nothing changes later";
  EXPECT_EQ(count(page, ">at 1.5 s<"), 2u) << "of GPU 2";
}

TEST_F(ScalingPage, WhoWaitsSaysForWhat) {
  const std::string table = waiting_table(report.status, report.functions);
  EXPECT_THAT(table, HasSubstr("no GPU has room for it &amp; more"));
  EXPECT_THAT(table, Not(HasSubstr("idle")));
  report.functions[0]["notes"] = Json::array();
  EXPECT_THAT(waiting_table(report.status, report.functions), HasSubstr("its own instances, which are all busy"));
  report.status["functions"][0]["queued"] = 0;
  EXPECT_EQ(waiting_table(report.status, report.functions), "");
}

TEST_F(ScalingPage, SeatsAreOfTheSizeThatTheNodeFoundOrTheAuthorSaid) {
  const auto now = seats_now(report.status, report.functions);
  EXPECT_THAT(now.at(1), testing::ElementsAre(SeatGroup{"<b>f", 24, 50, 1}));
  EXPECT_THAT(now.at(2), testing::ElementsAre(SeatGroup{"<b>f", 24, 50, 1}, SeatGroup{"byhand", 40, 30, 1}));
}

TEST_F(ScalingPage, AGpuPageHasEachGpuAndWhoWaits) {
  report.status["gpus"].push_back({{"id", 3}});
  const std::string page = status_page(report.status, report.functions);
  EXPECT_EQ(count(page, "<svg"), 3u) << "one on which nothing is promised, too";
  EXPECT_THAT(page, HasSubstr("byhand: 1 x (40 % of the SMs, 30 % of the time)"));
  EXPECT_THAT(page, HasSubstr("calls that wait"));
}

// A node of another version, or one that lies: no field of the type that is expected.
TEST(ScalingPageOfAnything, NothingIsTakenForGranted) {
  for (
      const char* odd :
      {"[]", "[1, null, \"x\"]", R"([{"function": 7, "totals": [], "seconds": {}, "notes": "n"}])",
       R"([{"function": "f", "seconds": [1], "notes": [null, {"did": [1], "rejected": {}}], "seats": {"x": -1}, "at_ms": "now"}])"}) {
    ScalingReport report;
    report.functions = report.placements = Json::parse(odd);
    report.status = Json{{"functions", Json::parse(odd)}, {"gpus", Json::parse(odd)}};
    EXPECT_THAT(scaling_page(report), HasSubstr("</html>")) << odd;
    EXPECT_THAT(status_page(report.status, report.functions), HasSubstr("</html>")) << odd;
  }
}

}  // namespace
}  // namespace fairlead::cli
