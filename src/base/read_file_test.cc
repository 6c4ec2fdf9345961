#include "base/read_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace fairlead {
namespace {

namespace fs = std::filesystem;

class ReadWholeFile : public testing::Test {
 protected:
  ReadWholeFile() : folder_(fs::temp_directory_path() / ("read_file." + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~ReadWholeFile() override { fs::remove_all(folder_); }

  const fs::path folder_;
};

TEST_F(ReadWholeFile, GivesEveryByteOfALargeFile) {
  std::string content;
  for (int i = 0; i < 200'000; ++i) content.push_back(static_cast<char>(i));
  std::ofstream(folder_ / "file", std::ios::binary) << content;
  EXPECT_EQ(read_whole_file(folder_ / "file").value(), content);
  std::ofstream(folder_ / "empty", std::ios::binary);
  EXPECT_EQ(read_whole_file(folder_ / "empty").value(), "");
}

TEST_F(ReadWholeFile, SaysWhyNot) {
  const auto missing = read_whole_file(folder_ / "missing");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("missing"), std::string::npos);
  EXPECT_FALSE(read_whole_file(folder_)) << "a folder";
}

// /proc files have no size, and of a process that has ended they open and do not read.
TEST_F(ReadWholeFile, OfAProcessThatHasEndedItReturnsAnError) {
  EXPECT_FALSE(read_whole_file("/proc/self/comm").value().empty());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  const auto environment = read_whole_file("/proc/" + std::to_string(child) + "/environ");
  EXPECT_TRUE(!environment || environment->empty());
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace fairlead
