#include "node/cdi.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/log.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr const char* kYaml = R"(
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
    - path: /dev/dri/card1
      hostPath: /dev/dri/card0
    env: [ONLY=zero]
- name: all
containerEdits:
  env:
  - NVIDIA_VISIBLE_DEVICES=void
  deviceNodes:
  - path: /dev/nvidiactl
  mounts:
  - hostPath: /usr/lib/libcuda.so.570.1
    containerPath: /usr/lib64/libcuda.so.570.1
    options: [rw, nosuid]
  hooks:
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
)";

std::vector<std::string> binds_of(const CdiEdits& edits) {
  std::vector<std::string> texts;
  for (const auto& bind : edits.binds)
    texts.push_back(bind.source + " " + bind.target + (bind.writable ? " rw" : " ro"));
  return texts;
}

TEST(Cdi, ADeviceIsItsOwnEditsAndTheCommonOnes) {
  const auto spec = parse_cdi(kYaml, "nvidia.yaml");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->kind, "nvidia.com/gpu");
  const auto edits = spec->edits_for("0");
  ASSERT_TRUE(edits);
  EXPECT_THAT(binds_of(*edits), ElementsAre("/dev/nvidiactl /dev/nvidiactl rw",
                                            "/usr/lib/libcuda.so.570.1 /usr/lib64/libcuda.so.570.1 ro",
                                            "/dev/nvidia0 /dev/nvidia0 rw", "/dev/dri/card0 /dev/dri/card1 rw"));
  EXPECT_THAT(edits->environment, ElementsAre(Pair("NVIDIA_VISIBLE_DEVICES", "void"), Pair("ONLY", "zero")));
  EXPECT_EQ(spec->edits_for("all")->binds.size(), 2u);
  EXPECT_FALSE(spec->edits_for("1"));
}

TEST(Cdi, JsonIsReadTheSame) {
  const auto spec = parse_cdi(R"({"kind":"v.com/d","devices":[{"name":"x","containerEdits":
                                  {"deviceNodes":[{"path":"/dev/x"}],"env":["A=b=c"]}}]})",
                              "v.json");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_THAT(binds_of(*spec->edits_for("x")), ElementsAre("/dev/x /dev/x rw"));
  EXPECT_THAT(spec->edits_for("x")->environment, ElementsAre(Pair("A", "b=c")));
}

TEST(Cdi, WhatIsWrongIsNamed) {
  const auto error = [](const std::string& text) {
    const auto spec = parse_cdi(text, "f.yaml");
    return spec ? "accepted" : spec.error().message;
  };
  EXPECT_THAT(error(""), HasSubstr("CDI specification f.yaml: the document is not a map"));
  EXPECT_THAT(error("[1]"), HasSubstr("the document is not a map"));
  EXPECT_THAT(error("{a"), HasSubstr("f.yaml"));
  EXPECT_THAT(error("{}"), HasSubstr("kind is not a string"));
  EXPECT_THAT(error("{kind: [a]}"), HasSubstr("kind is not a string"));
  EXPECT_THAT(error("{kind: a, devices: 5}"), HasSubstr("devices is not a list"));
  EXPECT_THAT(error("{kind: a, devices: [5]}"), HasSubstr("devices is not a list of maps"));
  EXPECT_THAT(error("{kind: a, devices: [{}]}"), HasSubstr("devices.name is not a string"));
  EXPECT_THAT(error("{kind: a, containerEdits: []}"), HasSubstr("containerEdits is not a map"));
  const auto edits = [&](const std::string& text) { return error("{kind: a, containerEdits: {" + text + "}}"); };
  EXPECT_THAT(edits("mounts: [{hostPath: /a}]"), HasSubstr("mounts.containerPath is not"));
  EXPECT_THAT(edits("mounts: [{hostPath: /a, containerPath: b}]"), HasSubstr("an absolute path"));
  EXPECT_THAT(edits("mounts: [{hostPath: /a, containerPath: /b/../../c}]"), HasSubstr("without '..'"));
  EXPECT_THAT(edits("deviceNodes: [{path: /etc/shadow}]"), HasSubstr("below /dev"));
  EXPECT_THAT(edits("deviceNodes: [/dev/x]"), HasSubstr("a list of maps"));
  EXPECT_THAT(edits("env: [A]"), HasSubstr("a list of NAME=value"));
  EXPECT_THAT(edits("env: [{A: b}]"), HasSubstr("a list of NAME=value"));
  EXPECT_THAT(error(std::string(5 << 20, ' ')), HasSubstr("may have at most 4194304"));
}

RC_GTEST_PROP(Cdi, NoBytesBreakTheReader, (const std::string& noise)) {
  const std::string base = kYaml;
  const std::size_t cut = *rc::gen::inRange<std::size_t>(0, base.size());
  (void)parse_cdi(base.substr(0, cut) + noise, "f").has_value();
  (void)parse_cdi(base.substr(0, cut) + noise + base.substr(cut), "f").has_value();
}

class CdiFolders : public testing::Test {
 protected:
  static void SetUpTestSuite() { spdlog::set_level(spdlog::level::off); }
  void SetUp() override {
    char pattern[] = "/tmp/fairlead-cdi-XXXXXX";
    dir_ = ::mkdtemp(pattern);
    for (const char* name : {"etc", "run", "lib"}) fs::create_directory(dir_ + "/" + name);
  }
  void TearDown() override { fs::remove_all(dir_); }
  void write(const std::string& name, const std::string& text) { std::ofstream(dir_ + "/" + name) << text; }
  std::optional<CdiSpec> find(std::string_view kind) { return find_cdi({dir_ + "/etc", dir_ + "/run"}, kind); }

  std::string dir_;
};

TEST_F(CdiFolders, TheLaterFolderWinsAndDamagedFilesAreLeftOut) {
  EXPECT_FALSE(find("a.com/b"));
  write("etc/one.yaml", "{kind: a.com/b, devices: [{name: etc}]}");
  write("etc/notes.txt", "{kind: a.com/c}");
  write("run/broken.json", "{");
  write("run/other.json", R"({"kind": "a.com/d"})");
  EXPECT_TRUE(find("a.com/b")->devices.contains("etc"));
  EXPECT_FALSE(find("a.com/c"));
  write("run/two.json", R"({"kind": "a.com/b", "devices": [{"name": "run"}]})");
  EXPECT_TRUE(find("a.com/b")->devices.contains("run"));
}

TEST_F(CdiFolders, ALibraryIsMountedUnderItsShortNamesToo) {
  write("lib/libcuda.so.570.1", "library");
  write("lib/libother.so.1", "other");
  fs::create_symlink("libcuda.so.570.1", dir_ + "/lib/libcuda.so.1");
  fs::create_symlink("libcuda.so.1", dir_ + "/lib/libcuda.so");
  fs::create_symlink("libother.so.1", dir_ + "/lib/libcuda.so.9");
  const std::string library = dir_ + "/lib/libcuda.so.570.1";
  write("etc/n.yaml", "{kind: n, devices: [{name: '0'}], containerEdits: {mounts: [{hostPath: " + library +
                          ", containerPath: /usr/lib/libcuda.so.570.1}]}}");
  const auto edits = find("n")->edits_for("0");
  EXPECT_THAT(binds_of(*edits),
              ElementsAre(library + " /usr/lib/libcuda.so.570.1 ro", library + " /usr/lib/libcuda.so ro",
                          library + " /usr/lib/libcuda.so.1 ro"));
  EXPECT_THAT(edits->environment, ElementsAre(Pair("LD_LIBRARY_PATH", "/usr/lib")));
}

}  // namespace
}  // namespace fairlead
