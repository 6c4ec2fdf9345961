#include "runtime/instance_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace fairlead {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

class InstanceLogTest : public testing::Test {
 protected:
  InstanceLogTest() {
    char pattern[] = "/tmp/fairlead-log-XXXXXX";
    dir_ = ::mkdtemp(pattern);
  }
  ~InstanceLogTest() override { std::filesystem::remove_all(dir_); }

  static Instant at_ms(std::int64_t ms) { return Instant(std::chrono::seconds(10) + std::chrono::milliseconds(ms)); }

  std::string dir_;
};

TEST_F(InstanceLogTest, FileNeverGrowsBeyondItsLimitAndKeepsOnePredecessor) {
  FunctionLog log(dir_, "f", Bytes(1000));
  for (int i = 0; i < 100; ++i) {
    log.append(std::string(99, 'a' + i % 26) + "\n");
    log.flush();
    EXPECT_LE(std::filesystem::file_size(log.path()), 1000u);
  }
  EXPECT_EQ(std::filesystem::file_size(log.path() + ".1"), 1000u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 4) << "each with its times";
}

TEST_F(InstanceLogTest, RestartContinuesTheFile) {
  FunctionLog(dir_, "f", Bytes(1000)).append("one\n");
  FunctionLog(dir_, "f", Bytes(1000)).append("two\n");
  EXPECT_EQ(read_file(dir_ + "/f.log"), "one\ntwo\n");
}

TEST_F(InstanceLogTest, UnwritableFileLosesBytesAndCountsThem) {
  FunctionLog log(dir_ + "/absent", "f", Bytes(1000));
  log.append("12345");
  log.flush();
  EXPECT_EQ(log.lost_bytes(), 5u);
  std::filesystem::create_directory(dir_ + "/absent");
  log.append("678");
  log.flush();
  EXPECT_EQ(log.lost_bytes(), 5u) << "it recovers by itself";
}

TEST_F(InstanceLogTest, FullDiskLosesBytesAndCountsThem) {
  std::filesystem::create_symlink("/dev/full", dir_ + "/g.log");
  FunctionLog log(dir_, "g", Bytes(1000));
  log.append("12345");
  log.flush();
  EXPECT_EQ(log.lost_bytes(), 5u);
}

TEST_F(InstanceLogTest, OutputAboveTheRateIsDroppedAndCounted) {
  FunctionLog file(dir_, "f", mib(1));
  InstanceLog log(file, Bytes(10));
  log.output("12345678", at_ms(0));
  log.output("abcdefgh", at_ms(900));
  EXPECT_EQ(log.tail(), "12345678ab");
  EXPECT_EQ(log.taken_this_second(at_ms(900)), 16);
  log.output("new", at_ms(1000));
  EXPECT_THAT(std::string(log.tail()), HasSubstr("dropped 6 bytes"));
  EXPECT_THAT(std::string(log.tail()), EndsWith("new"));
}

TEST_F(InstanceLogTest, TailIsTheLast4KiBSinceTheDelivery) {
  FunctionLog file(dir_, "f", mib(1));
  InstanceLog log(file, mib(1));
  log.output("from the start of the function\n", at_ms(0));
  log.start_line("r1");
  EXPECT_EQ(log.tail(), "START RequestId: r1 Version: $LATEST\n");
  std::string expected = std::string(log.tail());
  for (int i = 0; i < 1000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    log.output(line, at_ms(0));
    expected += line;
  }
  EXPECT_EQ(log.tail(), expected.substr(expected.size() - kTailBytes));
  log.output(std::string(3 * kTailBytes, 'x'), at_ms(0));
  EXPECT_EQ(log.tail(), std::string(kTailBytes, 'x'));
}

TEST_F(InstanceLogTest, EndAndReportLinesAreThoseOfLambda) {
  FunctionLog file(dir_, "f", mib(1));
  InstanceLog log(file, mib(1));
  log.start_line("r1");
  log.end_lines({.request_id = "r1",
                 .duration = std::chrono::microseconds(12'345),
                 .init_duration = std::chrono::microseconds(1'500),
                 .memory_limit = mib(512),
                 .memory_peak = Bytes((30 << 20) + 1),
                 .failure = {}});
  EXPECT_EQ(log.tail(),
            "START RequestId: r1 Version: $LATEST\nEND RequestId: r1\n"
            "REPORT RequestId: r1\tDuration: 12.35 ms\tBilled Duration: 13 ms\tMemory Size: 512 MB\t"
            "Max Memory Used: 31 MB\tInit Duration: 1.50 ms\t\n");
}

TEST_F(InstanceLogTest, FailureIsNamedAndAnOpenLineIsEndedFirst) {
  FunctionLog file(dir_, "f", mib(1));
  InstanceLog log(file, mib(1));
  log.start_line("r1");
  log.output("no newline", at_ms(0));
  log.end_lines({.request_id = "r1", .failure = "exit status 3"});
  const std::string tail(log.tail());
  EXPECT_THAT(tail, HasSubstr("no newline\nRequestId: r1 Error: Runtime exited: exit status 3\nEND RequestId: r1\n"));
  EXPECT_THAT(tail, EndsWith("Error Type: Runtime.ExitError\n"));
  EXPECT_THAT(tail, Not(HasSubstr("Init Duration")));
}

}  // namespace
}  // namespace fairlead
