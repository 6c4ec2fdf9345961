#include "store/oci_image.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace fairlead::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const std::string kDigest = "sha256:" + std::string(64, '0');

std::string descriptor(const std::string& rest = "") {
  return R"({"digest":")" + kDigest + "\"" + rest + "}";
}

template <typename T>
std::string error_of(const Result<T>& result) {
  if (result) return "accepted";
  return result.error().code == Errc::kInvalidArgument ? result.error().message : "another code";
}

TEST(OciIndex, NamesOneManifest) {
  EXPECT_EQ(manifest_digest(R"({"manifests":[)" + descriptor() + "]}").value(), kDigest);
  EXPECT_THAT(error_of(manifest_digest("")), HasSubstr("index.json of 0 bytes is not JSON"));
  EXPECT_THAT(error_of(manifest_digest("[]")), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(manifest_digest("{}")), HasSubstr("names 0 manifests"));
  EXPECT_THAT(error_of(manifest_digest(R"({"manifests":{}})")), HasSubstr("manifests is not a list"));
  EXPECT_THAT(error_of(manifest_digest(R"({"manifests":[5]})")), HasSubstr("names 1 manifests, not one"));
  EXPECT_THAT(error_of(manifest_digest(R"({"manifests":[{}, {}]})")), HasSubstr("names 2 manifests"));
  EXPECT_THAT(error_of(manifest_digest(R"({"manifests":[{"digest":"sha256:../../../etc/passwd"}]})")),
              HasSubstr("manifests[0].digest is 'sha256:../../../etc/passwd'"));
  EXPECT_THAT(error_of(manifest_digest(std::string(5 << 20, ' '))), HasSubstr("may have at most 4194304"));
}

TEST(OciManifest, LayersAreSummedAndBounded) {
  const auto manifest = parse_manifest(R"({"config":)" + descriptor() + R"(,"layers":[{"size":5},{"size":7}]})");
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->config_digest, kDigest);
  EXPECT_EQ(manifest->layer_bytes, 12);
  const auto with_layers = [](const std::string& layers) {
    return error_of(parse_manifest(R"({"config":)" + descriptor() + R"(,"layers":)" + layers + "}"));
  };
  EXPECT_THAT(with_layers("[{}]"), HasSubstr("a size is missing"));
  EXPECT_THAT(with_layers(R"([{"size":-1}])"), HasSubstr("a size is missing"));
  EXPECT_THAT(with_layers(R"([{"size":10737418240},{"size":1}])"), HasSubstr("exceed 10737418240 bytes"));
  EXPECT_THAT(with_layers(R"([{"size":9223372036854775807},{"size":9223372036854775807}])"), HasSubstr("exceed"));
  EXPECT_THAT(with_layers("5"), HasSubstr("layers is not a list"));
  EXPECT_THAT(error_of(parse_manifest(R"({"layers":[]})")), HasSubstr("no config"));
  EXPECT_THAT(error_of(parse_manifest(R"({"config":)" + descriptor() + "}")), HasSubstr("no layers"));
}

std::string configuration(const std::string& config) {
  return R"({"os":"linux","architecture":"amd64","config":)" + config + "}";
}

TEST(OciConfiguration, SaysWhatToStart) {
  const auto parsed = parse_configuration(
      configuration(R"({"Entrypoint":["/e"],"Cmd":["a","b"],"WorkingDir":"/w","User":"app:1","Env":["A=b=c","E="]})"),
      "amd64");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_THAT(parsed->defaults.entry_point, ElementsAre("/e"));
  EXPECT_THAT(parsed->defaults.command, ElementsAre("a", "b"));
  EXPECT_EQ(parsed->defaults.working_directory, "/w");
  EXPECT_EQ(parsed->user, "app:1");
  EXPECT_THAT(parsed->defaults.environment, ElementsAre(Pair("A", "b=c"), Pair("E", "")));
  EXPECT_TRUE(parse_configuration(configuration(R"({"Entrypoint":null,"Cmd":null,"Env":null})"), "amd64"));
  EXPECT_TRUE(parse_configuration(configuration("null"), "amd64"));
}

TEST(OciConfiguration, WrongTypesAndBoundsAreNamed) {
  const auto error = [](const std::string& config) {
    return error_of(parse_configuration(configuration(config), "amd64"));
  };
  EXPECT_THAT(error("[]"), HasSubstr("config is not an object"));
  EXPECT_THAT(error(R"({"Entrypoint":"/e"})"), HasSubstr("config.Entrypoint is not a list"));
  EXPECT_THAT(error(R"({"Cmd":[1]})"), HasSubstr("config.Cmd is not a list of strings"));
  EXPECT_THAT(error(R"({"WorkingDir":5})"), HasSubstr("config.WorkingDir is not a string"));
  EXPECT_THAT(error(R"({"User":0})"), HasSubstr("config.User is not a string"));
  EXPECT_THAT(error(R"({"Env":["NAME"]})"), HasSubstr("config.Env has 'NAME', not NAME=value"));
  EXPECT_THAT(error(R"({"Env":["=x"]})"), HasSubstr("config.Env has '=x'"));
  EXPECT_THAT(error(R"({"Env":["A=)" + std::string(30'000, 'x') + "\"]}"), HasSubstr("of 30003 bytes"));
  EXPECT_THAT(error(R"({"WorkingDir":"relative"})"), HasSubstr("WorkingDirectory is 'relative'"));
  EXPECT_THAT(error_of(parse_configuration(configuration("{}"), "arm64")),
              HasSubstr("linux/amd64; this node runs linux/arm64"));
  EXPECT_THAT(error_of(parse_configuration("{}", "amd64")), HasSubstr("the image is for /"));
}

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/:/bin/sh\nbad line\napp:x:1000:100:App:/:/bin/sh\nbig:x:99999:1::\n";
constexpr std::string_view kGroup = "root:x:0:\nstaff:x:50:app\n";

TEST(OciUser, IsANumberOrANameOfTheImages) {
  const auto ids = [](const std::string& user) {
    const auto resolved = resolve_user(user, kPasswd, kGroup);
    return resolved ? fmt::format("{}:{}", resolved->uid, resolved->gid) : resolved.error().message;
  };
  EXPECT_EQ(ids(""), "0:0");
  EXPECT_EQ(ids("app"), "1000:100");
  EXPECT_EQ(ids("1000"), "1000:100");
  EXPECT_EQ(ids("7"), "7:0");
  EXPECT_EQ(ids("app:staff"), "1000:50");
  EXPECT_EQ(ids("app:9"), "1000:9");
  EXPECT_EQ(ids("65535:65535"), "65535:65535");
  EXPECT_THAT(ids("nobody"), HasSubstr("User is 'nobody'"));
  EXPECT_THAT(ids("app:wheel"), HasSubstr("wheel is neither a number"));
  EXPECT_THAT(ids("65536"), HasSubstr("at most 65535"));
  EXPECT_THAT(ids("-1"), HasSubstr("-1 is neither"));
  EXPECT_THAT(ids("big"), HasSubstr("big is neither"));
}

RC_GTEST_PROP(OciDocuments, NoBytesBreakTheReaders, (const std::string& noise)) {
  const std::string base = configuration(R"({"Entrypoint":["/e"],"Env":["A=b"]})");
  const std::size_t cut = *rc::gen::inRange<std::size_t>(0, base.size() + 1);
  const std::string text = base.substr(0, cut) + noise + base.substr(std::min(cut + noise.size(), base.size()));
  (void)manifest_digest(text).has_value();
  (void)parse_manifest(text).has_value();
  (void)parse_configuration(text, "amd64").has_value();
  (void)resolve_user(noise, text, noise).has_value();
}

}  // namespace
}  // namespace fairlead::store
