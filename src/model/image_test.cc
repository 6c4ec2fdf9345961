#include "model/image.h"

#include <gmock/gmock.h>

#include "model/function.h"
#include "model/image_ids.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kDigest = "sha256:" + std::string(64, 'a');

std::string source_of(const std::string& text) {
  const auto reference = parse_image_reference("--image", text);
  return reference ? reference->source : "refused: " + reference.error().message;
}

TEST(ImageReference, ARegistryIsWhatIsNotALayout) {
  EXPECT_EQ(source_of("python"), "docker://python");
  EXPECT_EQ(source_of("python:3.12-slim"), "docker://python:3.12-slim");
  EXPECT_EQ(source_of("docker://quay.io/team/app:v1"), "docker://quay.io/team/app:v1");
  EXPECT_EQ(source_of("localhost:5000/app"), "docker://localhost:5000/app");
  EXPECT_EQ(source_of("app@" + kDigest), "docker://app@" + kDigest);
}

TEST(ImageReference, OfTagAndDigestTheDigestCounts) {
  const auto reference = parse_image_reference("f", "host:5000/a/b:tag@" + kDigest);
  ASSERT_TRUE(reference);
  EXPECT_EQ(reference->source, "docker://host:5000/a/b@" + kDigest);
  EXPECT_EQ(reference->repository, "host:5000/a/b");
  EXPECT_TRUE(reference->layout_dir.empty());
}

TEST(ImageReference, ALayoutIsAFolderAndATag) {
  const auto reference = parse_image_reference("f", "oci:/srv/images/app:v1");
  ASSERT_TRUE(reference);
  EXPECT_EQ(reference->source, "oci:/srv/images/app:v1");
  EXPECT_EQ(reference->layout_dir, "/srv/images/app");
  EXPECT_EQ(reference->repository, "oci:/srv/images/app");
  EXPECT_EQ(source_of("oci:/srv/images/app"), "oci:/srv/images/app");
}

TEST(ImageReference, WhatIsNeitherIsRefusedByName) {
  for (const std::string text : {"oci:relative:tag", "oci:",     "oci:/",     "oci:/a:", "oci:/a:b:c", "oci:/a:-x",
                                 "http://host/app",  "dir:/srv", "UPPER",     "app:",    "app:ta g",   "app@sha256:12",
                                 "app@md5:aa",       "/app",     "app/",      "a//b",    "a/-b c",     "-x",
                                 "--help",           "app\n",    "docker://", "a@b@c"}) {
    const auto reference = parse_image_reference("Code.ImageUri", text);
    if (text == "dir:/srv") continue;  // a host "dir" with an empty port: the registry client's to refuse
    ASSERT_FALSE(reference) << text << " became " << reference->source;
    EXPECT_EQ(reference.error().code, Errc::kInvalidArgument);
    EXPECT_THAT(reference.error().message, HasSubstr("Code.ImageUri is '")) << text;
  }
  EXPECT_THAT(source_of(""), HasSubstr("--image is empty"));
  EXPECT_THAT(source_of(std::string(2000, 'a')), HasSubstr("has 2000 bytes; it may have at most 1024"));
}

TEST(ImageArguments, EachOverrideReplacesItsOwnPart) {
  const ImageDefaults image{.entry_point = {"e"}, .command = {"c", "d"}};
  EXPECT_THAT(image_arguments(image, {}), ElementsAre("e", "c", "d"));
  EXPECT_THAT(image_arguments(image, {.entry_point = {"x", "y"}}), ElementsAre("x", "y", "c", "d"));
  EXPECT_THAT(image_arguments(image, {.command = {"z"}}), ElementsAre("e", "z"));
  EXPECT_THAT(image_arguments({}, {}), ElementsAre());
}

TEST(SpeaksLambda, ARuntimeClientOrABootstrapIsRecognised) {
  EXPECT_TRUE(speaks_lambda({}, {"/lambda_entrypoint.sh", "python", "-m", "awslambdaric"}));
  EXPECT_TRUE(speaks_lambda({}, {"python3", "-m", "awslambdaric", "a.b"}));
  EXPECT_TRUE(speaks_lambda({}, {"/usr/local/bin/aws-lambda-ric"}));
  EXPECT_TRUE(speaks_lambda({}, {"/var/task/bootstrap"}));
  EXPECT_TRUE(speaks_lambda({.environment = {{"LAMBDA_TASK_ROOT", "/var/task"}}}, {"anything"}));
  EXPECT_FALSE(speaks_lambda({}, {"/usr/sbin/nginx", "-g", "daemon off;"}));
  EXPECT_FALSE(speaks_lambda({}, {"bootstrapper"}));
}

TEST(ImageOverrides, BoundsAreQuoted) {
  const auto error = [](ImageOverrides overrides) {
    const Status status = validate_overrides(overrides);
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(error({.entry_point = {"a"}, .command = {"", "b"}, .working_directory = "/"}),
            "ImageConfig.Command[0] is empty");
  EXPECT_THAT(error({.entry_point = std::vector<std::string>(1501, "a")}),
              HasSubstr("has 1501 items; it may have at most 1500"));
  EXPECT_THAT(error({.command = {std::string(16 << 10, 'a')}}), HasSubstr("16385 bytes; they may have at most 16384"));
  EXPECT_THAT(error({.command = {std::string("a\0", 2)}}), HasSubstr("ImageConfig.Command contains a NUL"));
  EXPECT_THAT(error({.working_directory = "w"}), HasSubstr("WorkingDirectory is 'w'; it must begin with '/'"));
  EXPECT_THAT(error({.working_directory = "/" + std::string(1000, 'a')}), HasSubstr("1001 bytes"));
}

TEST(ImageConfig, PackageTypesDoNotMix) {
  const auto error = [](const FunctionConfig& config) {
    const Status status = validate_config(config);
    return status ? "" : status.error().message;
  };
  FunctionConfig zip, image;
  image.package_type = PackageType::kImage;
  EXPECT_EQ(error(zip), "");
  EXPECT_EQ(error(image), "");
  zip.image_config.command = {"a"};
  EXPECT_THAT(error(zip), HasSubstr("ImageConfig is set, but PackageType is Zip"));
  zip.image_config = {};
  zip.tags[kContractTag] = "http";
  EXPECT_THAT(error(zip), HasSubstr("PackageType is Zip"));
  image.tags[kContractTag] = "http";
  EXPECT_EQ(error(image), "");
  image.tags[kContractTag] = "grpc";
  EXPECT_THAT(error(image), HasSubstr("tag image:contract is 'grpc'; it must be lambda, http or openfaas"));
  image.tags.clear();
  image.handler = "a.b";
  EXPECT_THAT(error(image), HasSubstr("Handler is 'a.b'"));
}

TEST(ImageIds, EveryIdHasOnePlaceAndTheProgramsIsTheFunctions) {
  EXPECT_THAT(image_id_map(0, 65530), ElementsAre(IdRange{0, 65530, 1}, IdRange{1, kImageIdBase + 1, kImageIds - 1}));
  EXPECT_THAT(image_id_map(1000, 65530), ElementsAre(IdRange{0, kImageIdBase, 1000}, IdRange{1000, 65530, 1},
                                                     IdRange{1001, kImageIdBase + 1001, kImageIds - 1001}));
  EXPECT_THAT(image_id_map(65535, 7), ElementsAre(IdRange{0, kImageIdBase, 65535}, IdRange{65535, 7, 1}));
  for (const std::uint32_t program : {0u, 33u, 65535u}) {
    for (const std::uint32_t id : {0u, 1u, 33u, 65534u, 65535u}) {
      std::vector<std::uint32_t> places;
      for (const IdRange& range : image_id_map(program, 65530)) {
        if (id >= range.inside && id - range.inside < range.count) places.push_back(range.outside + id - range.inside);
      }
      EXPECT_THAT(places, ElementsAre(host_id(id, program, 65530))) << program << " " << id;
    }
  }
  EXPECT_EQ(host_id(1'000'000, 0, 65530), kImageIdBase + 65534);
}

}  // namespace
}  // namespace fairlead
