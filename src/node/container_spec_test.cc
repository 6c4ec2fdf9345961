#include "node/container_spec.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

FunctionRecord example() {
  FunctionRecord record{.name = "f"};
  record.config.package_type = PackageType::kImage;
  record.code_path = "/state/images/ab";
  record.image = FunctionImage{.uri = "app:1"};
  record.image->defaults = {.entry_point = {"/bin/server"},
                            .command = {"run"},
                            .working_directory = "/srv",
                            .environment = {{"A", "image"}, {"LD_LIBRARY_PATH", "/usr/lib/x"}},
                            .uid = 7,
                            .gid = 8};
  return record;
}

InstanceSpec described(const FunctionRecord& record, const std::map<std::string, std::string>& platform = {}) {
  InstanceSpec spec;
  describe_container(record, platform, spec);
  return spec;
}

TEST(ContainerSpec, TheAuthorWinsOverThePlatformAndThatOverTheImage) {
  FunctionRecord record = example();
  EXPECT_EQ(described(record).environment["A"], "image");
  EXPECT_EQ(described(record, {{"A", "platform"}}).environment["A"], "platform");
  record.config.environment["A"] = "author";
  EXPECT_EQ(described(record, {{"A", "platform"}}).environment["A"], "author");
}

TEST(ContainerSpec, ThePlatformsLibrariesComeBeforeTheImages) {
  auto environment = described(example(), {{"LD_LIBRARY_PATH", "/opt/gpu/lib"}, {"LD_PRELOAD", "/p.so"}}).environment;
  EXPECT_EQ(environment["LD_LIBRARY_PATH"], "/opt/gpu/lib:/usr/lib/x");
  EXPECT_EQ(environment["LD_PRELOAD"], "/p.so");
}

TEST(ContainerSpec, OverridesReplaceWhatTheImageSays) {
  FunctionRecord record = example();
  InstanceSpec spec = described(record);
  EXPECT_EQ(spec.container->rootfs, "/state/images/ab/rootfs");
  EXPECT_THAT(spec.container->arguments, ElementsAre("/bin/server", "run"));
  EXPECT_EQ(spec.container->working_directory, "/srv");
  EXPECT_EQ(spec.container->uid, 7u);
  EXPECT_EQ(spec.handler, "run");
  record.config.image_config = {.entry_point = {"/x"}, .command = {"a.b"}, .working_directory = "/w"};
  spec = described(record);
  EXPECT_THAT(spec.container->arguments, ElementsAre("/x", "a.b"));
  EXPECT_EQ(spec.container->working_directory, "/w");
  EXPECT_EQ(spec.handler, "a.b");
}

TEST(ContainerSpec, TheTagElseTheImageDecidesHowItIsReached) {
  FunctionRecord record = example();
  EXPECT_EQ(described(record).container->http_port, 8080);
  record.config.tags[kContractTag] = "lambda";
  EXPECT_FALSE(described(record).container->http_port);
  record.config.tags.clear();
  record.image->defaults.entry_point = {"python3", "-m", "awslambdaric"};
  EXPECT_FALSE(described(record).container->http_port);
  record.config.tags[kContractTag] = "http";
  EXPECT_EQ(described(record).container->http_port, 8080);
}

TEST(ContainerSpec, ThePortIsTheAuthorsElseTheImages) {
  FunctionRecord record = example();
  record.image->defaults.environment["PORT"] = "9000";
  EXPECT_EQ(described(record).container->http_port, 9000);
  record.config.environment["PORT"] = "9999";
  EXPECT_EQ(described(record).container->http_port, 9999);
}

TEST(ContainerGpuAccess, IsTheGpusOwnCdiDeviceElseWhatSandboxesGet) {
  GpuAccess access{.binds = {{"/dev/nvidia0", "/dev/nvidia0", true}}, .environment = {{"CUDA_X", "1"}}, .cdi = {}};
  GpuAccess result = container_gpu_access(access, 1);
  EXPECT_EQ(result.binds.size(), 1u);
  EXPECT_EQ(result.environment["CUDA_VISIBLE_DEVICES"], "1");
  access.cdi =
      parse_cdi("{kind: n, devices: [{name: '1', containerEdits: {deviceNodes: [{path: /dev/nvidia1}]}}]}", "f")
          .value();
  result = container_gpu_access(access, 1);
  ASSERT_EQ(result.binds.size(), 1u);
  EXPECT_EQ(result.binds[0].source, "/dev/nvidia1");
  EXPECT_EQ(result.environment["CUDA_VISIBLE_DEVICES"], "0");
  EXPECT_EQ(result.environment["CUDA_X"], "1");
  EXPECT_EQ(container_gpu_access(access, 0).binds[0].source, "/dev/nvidia0");
}

TEST(ContainerSpec, AnImageWithoutAProgramIsRefused) {
  FunctionRecord record = example();
  EXPECT_TRUE(check_image_program(record));
  EXPECT_TRUE(check_image_program(FunctionRecord{}));
  record.image->defaults.entry_point.clear();
  record.image->defaults.command.clear();
  EXPECT_THAT(check_image_program(record).error().message, HasSubstr("image app:1 names no program"));
  record.config.image_config.command = {"/x"};
  EXPECT_TRUE(check_image_program(record));
}

}  // namespace
}  // namespace fairlead
