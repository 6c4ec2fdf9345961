#include "store/segmented_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "store/test_folder.h"

namespace fairlead::store {
namespace {

std::string all_of(const SegmentedLog& log, std::size_t most = 1 << 20) {
  std::string all;
  for (std::uint64_t from = 0;;) {
    const auto page = log.read(from, most);
    EXPECT_TRUE(page) << page.error().message;
    if (!page || page->lines.empty()) return all;
    all += page->lines;
    from = page->next;
  }
}

std::string line(int i) {
  return "line " + std::to_string(1'000'000 + i) + "\n";  // 13 bytes
}

TEST(SegmentedLog, GivesBackWhatWasAppendedInPagesOfWholeLines) {
  const TestFolder folder;
  auto log = SegmentedLog::open(folder.path() + "/log", 1 << 20);
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ("", log->read(0, 100)->lines);
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(log->append(line(i)));
    expected += line(i);
  }
  EXPECT_EQ(expected, all_of(*log));
  const auto page = log->read(0, 5000);
  EXPECT_EQ(13u * (5000 / 13), page->next);
  EXPECT_EQ('\n', page->lines.back());
}

TEST(SegmentedLog, KeepsTheNewestWithinItsBound) {
  const TestFolder folder;
  const std::string path = folder.path() + "/log";
  auto log = SegmentedLog::open(path, 8 * 1300);
  ASSERT_TRUE(log);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(log->append(line(i)));
  std::uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(path)) bytes += file.file_size();
  EXPECT_LE(bytes, 8u * 1300);
  const std::string kept = all_of(*log);
  EXPECT_EQ(bytes, kept.size());
  EXPECT_GE(kept.size(), 7u * 1300);
  EXPECT_EQ(line(4999), kept.substr(kept.size() - 13));
}

TEST(SegmentedLog, OffsetsOutliveARestart) {
  const TestFolder folder;
  std::uint64_t next = 0;
  {
    auto log = SegmentedLog::open(folder.path(), 8 * 100);
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(log->append(line(i)));
    for (auto page = log->read(0, 1); !page->lines.empty(); page = log->read(next, 1)) next = page->next;
  }
  auto log = SegmentedLog::open(folder.path(), 8 * 100);
  ASSERT_TRUE(log);
  EXPECT_EQ("", log->read(next, 100)->lines);
  ASSERT_TRUE(log->append(line(30)));
  EXPECT_EQ(line(30), log->read(next, 100)->lines);
  EXPECT_EQ("", log->read(next + 1'000'000, 100)->lines);
}

TEST(SegmentedLog, ALineCutShortByACrashIsRemoved) {
  const TestFolder folder;
  { ASSERT_TRUE(SegmentedLog::open(folder.path(), 1 << 20)->append(line(1) + line(2))); }
  std::ofstream(folder.path() + "/00000000000000000000.csv", std::ios::app) << "line 1000";
  auto log = SegmentedLog::open(folder.path(), 1 << 20);
  ASSERT_TRUE(log) << log.error().message;
  ASSERT_TRUE(log->append(line(3)));
  EXPECT_EQ(line(1) + line(2) + line(3), all_of(*log));
}

TEST(SegmentedLog, FilesOfOthersAreLeftAlone) {
  const TestFolder folder;
  std::ofstream(folder.path() + "/notes.txt") << "mine";
  auto log = SegmentedLog::open(folder.path(), 8 * 20);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(log->append(line(i)));
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/notes.txt"));
}

TEST(SegmentedLog, AFolderThatCannotBeMadeIsAnError) {
  const auto log = SegmentedLog::open("/proc/no/such", 1 << 20);
  ASSERT_FALSE(log);
  EXPECT_NE(std::string::npos, log.error().message.find("/proc/no/such"));
}

}  // namespace
}  // namespace fairlead::store
