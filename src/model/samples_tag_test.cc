#include "model/samples_tag.h"

#include <gmock/gmock.h>

#include "model/autoscale_tag.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

FunctionConfig with(std::string samples) {
  FunctionConfig config;
  config.tags = {{"gpu:objective-ms", "69"}, {"gpu:samples", std::move(samples)}};
  return config;
}

TEST(SamplesTag, IsAListOfPayloadsOrAFileOfTheCode) {
  EXPECT_FALSE(samples_of(FunctionConfig()).value());
  EXPECT_THAT(samples_of(with(R"([{"n": 1}, "x", 7])")).value()->payloads, ElementsAre(R"({"n":1})", "\"x\"", "7"));
  EXPECT_EQ(samples_of(with("samples-1.json")).value()->file, "samples-1.json");
}

TEST(SamplesTag, NamesNoFileOutsideOfTheTopOfTheCode) {
  for (const char* wrong : {"", ".", "..", ".hidden", "/etc/passwd", "a/b", "a\nb", "{}", "[]", "[1", "a b"}) {
    const auto read = samples_of(with(wrong));
    ASSERT_FALSE(read) << wrong;
    EXPECT_THAT(read.error().message, HasSubstr("tag gpu:samples")) << wrong;
  }
}

TEST(SamplesTag, IsBounded) {
  std::string many = "[1";
  for (int i = 1; i < 64; ++i) many += ",1";
  EXPECT_EQ(parse_samples(many + "]", "it").value().size(), 64u);
  EXPECT_THAT(parse_samples(many + ",1]", "it").error().message,
              HasSubstr("it must be a JSON array of 1 to 64 payloads"));
  EXPECT_THAT(parse_samples("[\"" + std::string(kMaxSamplesBytes, 'x') + "\"]", "it").error().message,
              HasSubstr("1048576 are the most"));
}

TEST(SamplesTag, WithAnObjectiveItStandsForAutoscaling) {
  EXPECT_EQ(autoscale_of(with("[1]")).value(), Autoscale::kOn);
  FunctionConfig config = with("[1]");
  config.tags["gpu:autoscale"] = "false";
  EXPECT_EQ(autoscale_of(config).value(), Autoscale::kOff);
  config.tags["gpu:autoscale"] = "pinned";
  EXPECT_EQ(autoscale_of(config).value(), Autoscale::kPinned);
  config = with("[1]");
  config.tags["gpu:replicas"] = "2";
  EXPECT_THAT(autoscale_of(config).error().message, HasSubstr("tag gpu:samples is there and gpu:replicas is '2'"));
  config = with("[1]");
  config.tags.erase("gpu:objective-ms");
  EXPECT_THAT(autoscale_of(config).error().message, HasSubstr("gpu:objective-ms is missing"));
}

}  // namespace
}  // namespace fairlead
