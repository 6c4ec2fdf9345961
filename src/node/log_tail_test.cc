// The end of a log with its times, across a rotation, and where the times are damaged.
#include "node/log_tail.h"

#include <gtest/gtest.h>

#include "store/test_folder.h"

namespace fairlead {
namespace {

using Marks = std::vector<std::pair<std::size_t, std::int64_t>>;

class LogTailTest : public ::testing::Test {
 protected:
  Marks marks(std::size_t bytes) {
    const auto log = timed_log(folder_.path(), "f", bytes);
    Marks all;
    for (const TimedLog::Mark& mark : log->marks) all.emplace_back(mark.at, mark.written_ms);
    return all;
  }
  store::TestFolder folder_;
};

TEST_F(LogTailTest, MarksStandWhereTheirBytesDo) {
  folder_.write("f.log", "0123456789");
  folder_.write("f.log.times", "0 100\n4 200\n8 300\n");
  EXPECT_EQ((Marks{{0, 100}, {4, 200}, {8, 300}}), marks(100));
  EXPECT_EQ("456789", timed_log(folder_.path(), "f", 6)->text);
  EXPECT_EQ((Marks{{0, 200}, {4, 300}}), marks(6));
  EXPECT_EQ((Marks{{0, 200}, {3, 300}}), marks(5)) << "the last mark before the tail says when it begins";
}

TEST_F(LogTailTest, TheOlderFileComesFirst) {
  folder_.write("f.log.1", "abcd");
  folder_.write("f.log.1.times", "0 10\n2 20\n");
  folder_.write("f.log", "ef");
  folder_.write("f.log.times", "0 30\n");
  EXPECT_EQ("abcdef", timed_log(folder_.path(), "f", 100)->text);
  EXPECT_EQ((Marks{{0, 10}, {2, 20}, {4, 30}}), marks(100));
  EXPECT_EQ((Marks{{0, 20}, {1, 30}}), marks(3));
  EXPECT_EQ("abcdef", log_tail(folder_.path(), "f", 100));
}

TEST_F(LogTailTest, WhatIsDamagedIsPassedOver) {
  folder_.write("f.log", "0123456789");
  EXPECT_EQ(Marks{}, marks(100));
  folder_.write("f.log.times", "99 1\n2 5\n1 4\n3 6\nx y\n4 7\n");
  EXPECT_EQ((Marks{{2, 5}, {3, 6}}), marks(100));
  EXPECT_EQ("", timed_log(folder_.path(), "other", 100)->text);
}

}  // namespace
}  // namespace fairlead
