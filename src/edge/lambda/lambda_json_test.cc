#include "edge/lambda/lambda_json.h"

#include <gmock/gmock.h>

#include "base/base64.h"

namespace fairlead {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr bool kLocal = true, kRemote = false;

FunctionRecord record() {
  FunctionRecord made{.name = "f", .code_sha256 = "hash", .code_bytes = 7, .revision_id = "r1"};
  made.config.handler = "app.handler";
  made.config.description = "what it does";
  made.last_modified_ms = 1'769'903'999'123;
  return made;
}

std::string error_of(const json& body, FunctionConfig config = {}) {
  const Status applied = apply_configuration(body, config);
  if (applied) return "accepted";
  return applied.error().code == Errc::kInvalidArgument ? applied.error().message : "another code";
}

TEST(LambdaJson, TimesAreWrittenAsLambdaDoes) {
  EXPECT_EQ(lambda_timestamp(1'769'903'999'123), "2026-01-31T23:59:59.123+0000");
  EXPECT_EQ(lambda_timestamp(1000), "1970-01-01T00:00:01.000+0000");
}

TEST(LambdaJson, AConfigurationHasWhatWaitersAndToolsLookAt) {
  const json written = configuration_json(record());
  EXPECT_EQ(written["FunctionName"], "f");
  EXPECT_EQ(written["FunctionArn"], function_arn("f"));
  EXPECT_EQ(written["State"], "Active");
  EXPECT_EQ(written["LastUpdateStatus"], "Successful");
  EXPECT_EQ(written["PackageType"], "Zip");
  EXPECT_EQ(written["Runtime"], "provided.al2023");
  EXPECT_EQ(written["Handler"], "app.handler");
  EXPECT_EQ(written["CodeSize"], 7);
  EXPECT_EQ(written["MemorySize"], 512);
  EXPECT_EQ(written["Timeout"], 60);
  EXPECT_EQ(written["EphemeralStorage"]["Size"], 512);
  EXPECT_EQ(written["LastModified"], "2026-01-31T23:59:59.123+0000");
  EXPECT_FALSE(written.contains("Environment")) << "left out where it is empty";
}

TEST(LambdaJson, AnImageHasNoRuntimeAndSaysWhereItIsFrom) {
  FunctionRecord image = record();
  image.config.package_type = PackageType::kImage;
  image.image = FunctionImage{.uri = "quay.io/app:v1", .resolved_uri = "quay.io/app@sha256:1"};
  EXPECT_FALSE(configuration_json(image).contains("ImageConfigResponse"));
  image.config.image_config = {.entry_point = {"/run"}, .command = {}, .working_directory = "/w"};
  const json written = function_json(image);
  EXPECT_EQ(written["Configuration"]["PackageType"], "Image");
  EXPECT_FALSE(written["Configuration"].contains("Runtime"));
  EXPECT_EQ(written["Configuration"]["ImageConfigResponse"]["ImageConfig"],
            (json{{"EntryPoint", {"/run"}}, {"WorkingDirectory", "/w"}}));
  EXPECT_EQ(written["Code"]["ImageUri"], "quay.io/app:v1");
  EXPECT_EQ(written["Code"]["ResolvedImageUri"], "quay.io/app@sha256:1");
}

TEST(LambdaJson, TagsAndConcurrencyStandBesideTheConfigurationWhereThereAreAny) {
  FunctionRecord tagged = record();
  EXPECT_FALSE(function_json(tagged).contains("Tags"));
  EXPECT_FALSE(function_json(tagged).contains("Concurrency"));
  tagged.config.tags = {{"gpu:weight", "2"}};
  tagged.config.environment = {{"KEY", "value"}};
  tagged.reserved_concurrency = 0;
  const json written = function_json(tagged);
  EXPECT_EQ(written["Tags"], (json{{"gpu:weight", "2"}}));
  EXPECT_EQ(written["Concurrency"]["ReservedConcurrentExecutions"], 0);
  EXPECT_EQ(written["Configuration"]["Environment"]["Variables"], (json{{"KEY", "value"}}));
}

TEST(LambdaJson, WhatABodyLeavesOutStays) {
  FunctionConfig config;
  config.handler = "before";
  config.environment = {{"OLD", "1"}};
  ASSERT_TRUE(apply_configuration({{"Timeout", 7}, {"EphemeralStorage", {{"Size", 100}}}}, config));
  EXPECT_EQ(config.timeout_seconds, 7);
  EXPECT_EQ(config.ephemeral_storage_mib, 100);
  EXPECT_EQ(config.handler, "before");
  EXPECT_EQ(config.memory_mib, 512);
  EXPECT_EQ(config.environment.size(), 1u);
  ASSERT_TRUE(apply_configuration({{"Handler", "after"}, {"Environment", {{"Variables", {{"NEW", "2"}}}}}}, config));
  EXPECT_EQ(config.handler, "after");
  EXPECT_EQ(config.environment, (std::map<std::string, std::string>{{"NEW", "2"}})) << "in place of what was";
}

TEST(LambdaJson, AnAcceleratorsGibAreATagsMib) {
  FunctionConfig config;
  ASSERT_TRUE(apply_configuration({{"AcceleratorConfig", {{"AcceleratorMemorySize", 3}}}}, config));
  EXPECT_EQ(config.tags.at("gpu:memory-mib"), "3072");
}

TEST(LambdaJson, AnImagesPartsAreAppliedToImages) {
  FunctionConfig config{.package_type = PackageType::kImage};
  ASSERT_TRUE(apply_configuration(
      {{"ImageConfig", {{"EntryPoint", {"/run"}}, {"Command", {"a", "b"}}, {"WorkingDirectory", "/w"}}}}, config));
  EXPECT_THAT(config.image_config.entry_point, ElementsAre("/run"));
  EXPECT_THAT(config.image_config.command, ElementsAre("a", "b"));
  EXPECT_EQ(config.image_config.working_directory, "/w");
  EXPECT_THAT(error_of({{"Handler", "x"}}, config), HasSubstr("Handler is set, but PackageType is Image"));
  EXPECT_THAT(error_of({{"Runtime", "x"}}, config), HasSubstr("Runtime is set"));
}

TEST(LambdaJson, WhatANodeDoesNotHaveIsRefusedAndWhatMeansNothingIsNot) {
  EXPECT_THAT(error_of({{"Layers", {"a"}}}), HasSubstr("Layers is not supported"));
  EXPECT_THAT(error_of({{"FileSystemConfigs", {1}}}), HasSubstr("FileSystemConfigs is not supported"));
  EXPECT_THAT(error_of({{"Architectures", {"riscv64"}}}), HasSubstr("Architectures is 'riscv64'"));
  EXPECT_THAT(error_of({{"Timeout", "long"}}), HasSubstr("Timeout"));
  EXPECT_EQ(error_of({{"VpcConfig", {{"SubnetIds", {"a"}}}}, {"KMSKeyArn", "k"}}), "accepted");
}

TEST(LambdaJson, APackageIsAZipUnlessItSaysImage) {
  EXPECT_EQ(read_package_type(json::object()).value(), PackageType::kZip);
  EXPECT_EQ(read_package_type({{"PackageType", "Zip"}}).value(), PackageType::kZip);
  EXPECT_EQ(read_package_type({{"PackageType", "Image"}}).value(), PackageType::kImage);
  EXPECT_THAT(read_package_type({{"PackageType", "Jar"}}).error().message, HasSubstr("is 'Jar'"));
}

TEST(LambdaJson, AZipIsCodeOfAnybodyAndAFolderOfThisMachine) {
  const auto read = [](const json& body, bool local) { return read_code(body, "Code.", PackageType::kZip, local); };
  EXPECT_EQ(read({{"ZipFile", base64_encode("PK")}}, kRemote)->zip, "PK");
  EXPECT_EQ(read({{"Folder", "/code"}}, kLocal)->folder, "/code");
  EXPECT_THAT(read({{"Folder", "/code"}}, kRemote).error().message, HasSubstr("Code.Folder is for operators on"));
  EXPECT_THAT(read(json::object(), kLocal).error().message, HasSubstr("Code.ZipFile: send the package"));
  EXPECT_FALSE(read({{"Folder", "/code"}, {"ZipFile", "UEs="}}, kLocal)) << "one of the two";
  EXPECT_THAT(read({{"ZipFile", "!"}}, kLocal).error().message, HasSubstr("Code.ZipFile"));
  EXPECT_THAT(read({{"S3Bucket", "b"}}, kLocal).error().message, HasSubstr("Code.S3Bucket is not supported"));
  EXPECT_THAT(read({{"ImageUri", "quay.io/app"}}, kLocal).error().message, HasSubstr("PackageType is Zip"));
}

TEST(LambdaJson, AZipHasABound) {
  const json body{{"ZipFile", base64_encode(std::string(kMaxZippedCodeBytes + 1, 'x'))}};
  EXPECT_EQ(read_code(body, "", PackageType::kZip, kRemote).error().code, Errc::kTooLarge);
}

TEST(LambdaJson, AnImageIsARegistrysForAnybodyAndALayoutOnThisMachine) {
  const auto read = [](const json& body, bool local) { return read_code(body, "Code.", PackageType::kImage, local); };
  EXPECT_EQ(read({{"ImageUri", "quay.io/app:v1"}}, kRemote)->image, "quay.io/app:v1");
  EXPECT_EQ(read({{"ImageUri", "oci:/images/app:v1"}}, kLocal)->image, "oci:/images/app:v1");
  EXPECT_THAT(read({{"ImageUri", "oci:/images/app:v1"}}, kRemote).error().message, HasSubstr("node's own machine"));
  EXPECT_THAT(read({{"ImageUri", "quay.io/app"}, {"Folder", "/code"}}, kLocal).error().message,
              HasSubstr("Code.Folder is set, but PackageType is Image"));
  EXPECT_FALSE(read(json::object(), kLocal));
}

}  // namespace
}  // namespace fairlead
