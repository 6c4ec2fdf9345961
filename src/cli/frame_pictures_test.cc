// Frames as text, picture and trace; and the command that shows them.
#include "cli/frame_pictures.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "cli/fake_node.h"
#include "cli/test_cli.h"

namespace fairlead::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kGpu = R"({"gpu": 2, "frame_us": 2000, "realtime": true, "late": 3,
  "instances": [
    {"id": 7, "function": "f", "compute_percent": 10, "quota_request": 40, "quota_limit": 60, "state": "open"},
    {"id": 8, "function": "<g>", "compute_percent": 100, "quota_request": 0, "quota_limit": 100, "state": "idle"}],
  "places": [
    {"id": 7, "compute_percent": 10, "begin_us_ago": 20000, "until_us_ago": 18000, "end_us_ago": 18000, "revoked": false},
    {"id": 7, "compute_percent": 10, "begin_us_ago": 15000, "until_us_ago": 13000, "end_us_ago": 12000, "revoked": true},
    {"id": 9, "compute_percent": 50, "begin_us_ago": 12000, "until_us_ago": 10000, "end_us_ago": 10000, "revoked": false}]})";

Json gpu() {
  return Json::parse(kGpu);
}
Json answer() {
  return {{"gpus", Json::array({gpu()})}};
}

TEST(FramePictures, TheTableSaysWhoHeldTheDeviceForHowLong) {
  const std::string text = frames_text(Json::array({gpu()}));
  EXPECT_THAT(text, HasSubstr("GPU 2: 3 places in 10.0 ms, frames of 2.0 ms, real-time priority, 3 decisions late"));
  EXPECT_THAT(text, testing::ContainsRegex("f \\(7\\) +10 % +40 % +60 % +open +2 +50.0 % +3.0 ms +1"));
  EXPECT_THAT(text, testing::ContainsRegex("<g> \\(8\\) +100 % +0 % +100 % +idle +0 +0.0 % +0.0 ms +0"));
  EXPECT_THAT(text, testing::ContainsRegex("gone \\(9\\) +- +- +- +gone +1 +20.0 % +2.0 ms +0"));
}

TEST(FramePictures, WithoutQuotasTheTableSaysSo) {
  EXPECT_EQ(frames_text(Json::array()), "no device has frames: nobody on one has a quota\n");
  EXPECT_THAT(frames_text(Json::array({Json{{"gpu", 0}}})), HasSubstr("GPU 0: 0 places in 0.0 ms"))
      << "a pacer that has just begun";
}

TEST(FramePictures, ThePictureHasARowForEachAndNamesStayNames) {
  const std::string picture = frames_svg(gpu());
  EXPECT_THAT(picture, AllOf(HasSubstr("<svg"), HasSubstr("Places on GPU 2"), HasSubstr("f (7), 40 % of 10 %"),
                             HasSubstr("gone (9)"), HasSubstr("&lt;g&gt;"), Not(HasSubstr("<g>"))));
  EXPECT_THAT(picture, HasSubstr("10 % of the SMs for 3.000 ms from 5.000 ms, revoked"));
  EXPECT_THAT(frames_svg(Json{{"gpu", 0}}), HasSubstr("<svg"));
}

TEST(FramePictures, TheTraceHasAThreadForEachInstance) {
  const Json trace = Json::parse(frames_trace(Json::array({gpu()})));
  std::size_t names = 0, places = 0;
  for (const Json& event : trace["traceEvents"]) {
    names += event["ph"] == "M" ? 1 : 0;
    if (event["ph"] != "X") continue;
    ++places;
    EXPECT_EQ(event["pid"], 2);
  }
  EXPECT_EQ(names, 4u);  // the device and three instances
  EXPECT_EQ(places, 3u);
  EXPECT_EQ(trace["traceEvents"][5]["ts"], 5000);
  EXPECT_EQ(trace["traceEvents"][5]["dur"], 3000);
}

TEST(FramePictures, DevicesOfOneTraceHaveOneClock) {
  Json later = gpu();
  later["gpu"] = 3;
  later["places"] = Json::array({gpu()["places"][2]});
  const Json trace = Json::parse(frames_trace(Json::array({gpu(), later})));
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["tid"] != 9) continue;
    EXPECT_EQ(event["ts"], 8000) << event["pid"];
  }
}

class FramesCommand : public testing::Test {
 protected:
  FramesCommand() { node_.answer("GET", "/fairlead/v1/frames", {200, {}, answer().dump()}); }
  Outcome run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--endpoint", node_.endpoint(), "frames"});
    return run_cli(std::move(arguments), "");
  }
  static std::string read(const std::filesystem::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  FakeNode node_;
  const std::filesystem::path folder_ = testing::TempDir();
};

TEST_F(FramesCommand, ShowsATableOrTheNodesAnswer) {
  EXPECT_THAT(run({}).out, HasSubstr("f (7)"));
  EXPECT_EQ(Json::parse(run_cli({"--endpoint", node_.endpoint(), "--json", "frames"}, "").out), Json::array({gpu()}));
}

TEST_F(FramesCommand, WritesAPictureOrATrace) {
  EXPECT_EQ(run({"-o", folder_ / "frames.svg"}).status, kOk);
  EXPECT_EQ(read(folder_ / "frames.svg"), frames_svg(gpu()));
  EXPECT_EQ(run({"--output", folder_ / "frames.json"}).status, kOk);
  EXPECT_EQ(read(folder_ / "frames.json"), frames_trace(Json::array({gpu()})));
}

TEST_F(FramesCommand, SaysWhatIsWrong) {
  const Outcome other = run({"--gpu", "1"});
  EXPECT_EQ(other.status, kNotFound);
  EXPECT_THAT(other.err, HasSubstr("GPU 1 has no frames"));
  EXPECT_THAT(run({"-o", "frames.png"}).err, HasSubstr("must end in .svg (a picture) or .json (a trace)"));
  EXPECT_THAT(run({"-o", "/nonexistent/frames.svg"}).err, HasSubstr("cannot be written"));
}

TEST(FramesCommandWithoutQuotas, HasNothingToDraw) {
  FakeNode node;
  node.answer("GET", "/fairlead/v1/frames", {200, {}, R"({"gpus": []})"});
  const std::string file = testing::TempDir() + "frames-without-quotas.svg";
  EXPECT_THAT(run_cli({"--endpoint", node.endpoint(), "frames", "-o", file}, "").err,
              HasSubstr("no GPU has frames: nobody has a quota"));
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(run_cli({"--endpoint", node.endpoint(), "frames"}, "").status, kOk);
}

}  // namespace
}  // namespace fairlead::cli
