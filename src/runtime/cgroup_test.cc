// Which files are written and read, on a folder that looks like a cgroup. That the kernel then enforces the limits is
// sandbox_test.cc's claim.
#include "runtime/cgroup.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace fairlead {
namespace {

namespace fs = std::filesystem;

class CgroupTest : public testing::Test {
 protected:
  CgroupTest() {
    char pattern[] = "/tmp/fairlead-cgroup-XXXXXX";
    dir_ = ::mkdtemp(pattern);
    fs::create_directories(dir_ + "/memory");
    fs::create_directories(dir_ + "/pids");
  }
  ~CgroupTest() override { fs::remove_all(dir_); }

  void make(const std::string& file, const std::string& text = "") { std::ofstream(dir_ + file) << text; }
  std::string text_of(const std::string& file) const {
    std::ifstream in(dir_ + file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string dir_;
};

TEST_F(CgroupTest, Version2LimitsLieInOneFolder) {
  for (const char* file : {"/memory/memory.max", "/memory/memory.swap.max", "/memory/pids.max"}) make(file);
  Cgroup group(CgroupVersion::kV2, dir_ + "/memory", "");
  ASSERT_TRUE(group.create());
  ASSERT_TRUE(group.set_limits(mib(64), 33));
  EXPECT_EQ(text_of("/memory/memory.max"), "67108864");
  EXPECT_EQ(text_of("/memory/memory.swap.max"), "0");
  EXPECT_EQ(text_of("/memory/pids.max"), "33");
}

TEST_F(CgroupTest, Version1LimitsLieInOneFolderPerController) {
  make("/memory/memory.limit_in_bytes");
  make("/pids/pids.max");
  Cgroup group(CgroupVersion::kV1, dir_ + "/memory", dir_ + "/pids");
  ASSERT_TRUE(group.set_limits(mib(64), 33));
  EXPECT_EQ(text_of("/memory/memory.limit_in_bytes"), "67108864");
  EXPECT_EQ(text_of("/pids/pids.max"), "33");
}

TEST_F(CgroupTest, ZeroIsNoLimit) {
  make("/memory/memory.max", "max");
  make("/memory/pids.max", "max");
  Cgroup group(CgroupVersion::kV2, dir_ + "/memory", "");
  ASSERT_TRUE(group.set_limits(Bytes(0), 0));
  EXPECT_EQ(text_of("/memory/memory.max"), "max");
  EXPECT_EQ(text_of("/memory/pids.max"), "max");
}

TEST_F(CgroupTest, ALimitThatCannotBeSetIsAnErrorThatNamesTheFile) {
  make("/memory/pids.max");
  Cgroup group(CgroupVersion::kV2, dir_ + "/memory", "");
  const Status status = group.set_limits(mib(64), 33);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("/memory/memory.max"), std::string::npos) << status.error().message;
}

TEST_F(CgroupTest, OutOfMemoryKillsAreCountedInTheEvents) {
  Cgroup v2(CgroupVersion::kV2, dir_ + "/memory", "");
  EXPECT_FALSE(v2.out_of_memory_killed());
  make("/memory/memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\n");
  EXPECT_FALSE(v2.out_of_memory_killed());
  make("/memory/memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n");
  EXPECT_TRUE(v2.out_of_memory_killed());
  Cgroup v1(CgroupVersion::kV1, dir_ + "/memory", dir_ + "/pids");
  make("/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  EXPECT_TRUE(v1.out_of_memory_killed());
}

TEST_F(CgroupTest, EmptyGroupsAreRemovedAtTheEnd) {
  {
    Cgroup group(CgroupVersion::kV1, dir_ + "/memory/1", dir_ + "/pids/1");
    ASSERT_TRUE(group.create());
    EXPECT_TRUE(fs::exists(dir_ + "/pids/1"));
  }
  EXPECT_FALSE(fs::exists(dir_ + "/memory/1"));
  EXPECT_FALSE(fs::exists(dir_ + "/pids/1"));
}

}  // namespace
}  // namespace fairlead
