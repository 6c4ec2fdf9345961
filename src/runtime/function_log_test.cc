// When what was written: the marks beside a log.
#include "runtime/function_log.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/read_file.h"

namespace fairlead {
namespace {

class FunctionLogTest : public ::testing::Test {
 protected:
  FunctionLogTest() {
    char pattern[] = "/tmp/fairlead-log-XXXXXX";
    folder_ = ::mkdtemp(pattern);
  }
  ~FunctionLogTest() override { std::filesystem::remove_all(folder_); }
  std::string times(const std::string& name = "f.log.times") {
    return read_whole_file(folder_ + "/" + name).value_or("none");
  }
  void write(FunctionLog& log, std::size_t bytes) {
    log.append(std::string(bytes, 'x'));
    log.flush();
  }

  std::string folder_;
  std::int64_t now_ms_ = 1'000'000;
};

TEST_F(FunctionLogTest, AFlushIsMarkedOnceASecondAndOnceThereIsSomething) {
  FunctionLog log(folder_, "f", mib(1), [this] { return now_ms_; });
  write(log, 100);
  EXPECT_EQ("0 1000000\n", times());
  now_ms_ += 999;
  write(log, 100);
  EXPECT_EQ("0 1000000\n", times()) << "within the second";
  now_ms_ += 1;
  write(log, 1);
  EXPECT_EQ("0 1000000\n200 1001000\n", times());
  now_ms_ += 59'999;
  write(log, 1);
  EXPECT_EQ("0 1000000\n200 1001000\n", times()) << "less than kMarkBytes since";
  now_ms_ += 1;
  write(log, 1);
  EXPECT_EQ("0 1000000\n200 1001000\n202 1061000\n", times());
}

TEST_F(FunctionLogTest, MarksAreRotatedWithTheirLog) {
  FunctionLog log(folder_, "f", Bytes(150), [this] { return now_ms_; });
  write(log, 100);
  now_ms_ += 5000;
  write(log, 100);
  EXPECT_EQ("0 1000000\n", times("f.log.1.times"));
  EXPECT_EQ("0 1005000\n", times());
}

TEST_F(FunctionLogTest, ALogThatGoesOnKeepsItsMarksAndOneThatIsNewHasItsOwn) {
  {
    FunctionLog log(folder_, "f", mib(1), [this] { return now_ms_; });
    write(log, 100);
  }
  now_ms_ += 1;
  {
    FunctionLog log(folder_, "f", mib(1), [this] { return now_ms_; });
    write(log, 100);
  }
  EXPECT_EQ("0 1000000\n100 1000001\n", times());
  ASSERT_EQ(0, ::unlink((folder_ + "/f.log").c_str()));
  FunctionLog log(folder_, "f", mib(1), [this] { return now_ms_; });
  write(log, 100);
  EXPECT_EQ("0 1000001\n", times());
}

TEST_F(FunctionLogTest, WhatWasNotWrittenIsNotMarked) {
  FunctionLog log(folder_ + "/missing", "f", mib(1), [this] { return now_ms_; });
  write(log, 100);
  EXPECT_EQ(100u, log.lost_bytes());
}

}  // namespace
}  // namespace fairlead
