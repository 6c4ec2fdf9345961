#include "node/history.h"

#include <gtest/gtest.h>

#include "store/test_folder.h"

namespace fairlead {
namespace {

InvocationRecord record_at(std::int64_t at_us) {
  InvocationRecord record{.at_us = at_us, .outcome = OutcomeKind::kSuccess, .start = StartKind::kDeviceWarm};
  record.set_function("fft");
  record.run = std::chrono::milliseconds(20);
  return record;
}

std::vector<InvocationRecord> read_all(boost::asio::io_context& io, History& history) {
  std::vector<InvocationRecord> records;
  std::uint64_t from = 0;
  for (bool more = true; more;) {
    bool answered = false;
    history.read(from, 1 << 20, [&](Result<HistoryPage> page) {
      ASSERT_TRUE(page) << page.error().message;
      answered = true;
      more = !page->lines.empty();
      from = page->next;
      for (std::size_t begin = 0, end; (end = page->lines.find('\n', begin)) != std::string::npos; begin = end + 1) {
        const auto record = record_of(std::string_view(page->lines).substr(begin, end - begin));
        ASSERT_TRUE(record) << record.error().message;
        records.push_back(*record);
      }
    });
    while (!answered) io.run_one();
  }
  return records;
}

TEST(History, WhatWasAddedIsReadAtOnceAndInOrder) {
  const store::TestFolder folder;
  boost::asio::io_context io;
  const auto work = boost::asio::make_work_guard(io);
  auto history = History::open(io, folder / "history", 1 << 24);
  ASSERT_TRUE(history) << history.error().message;
  const auto count = static_cast<std::int64_t>(History::kBatch + 10);
  for (std::int64_t i = 0; i < count; ++i) (*history)->add(record_at(i));
  const auto records = read_all(io, **history);
  ASSERT_EQ(static_cast<std::size_t>(count), records.size());
  for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(record_at(i), records[static_cast<std::size_t>(i)]);
}

TEST(History, IsThereAgainAfterARestart) {
  const store::TestFolder folder;
  boost::asio::io_context io;
  const auto work = boost::asio::make_work_guard(io);
  for (int run = 0; run < 3; ++run) {
    auto history = History::open(io, folder / "history", 1 << 24);
    ASSERT_TRUE(history);
    EXPECT_EQ(static_cast<std::size_t>(run), read_all(io, **history).size());
    (*history)->add(record_at(run));
  }
}

TEST(History, MoreThanTheDiskTakesIsDroppedAndCounted) {
  const store::TestFolder folder;
  boost::asio::io_context io;  // runs nothing: to the core thread, no batch is ever written
  auto history = History::open(io, folder / "history", 1 << 28);
  ASSERT_TRUE(history);
  for (std::size_t i = 0; i < (History::kMaxBatches + 2) * History::kBatch; ++i) (*history)->add(record_at(1));
  EXPECT_EQ(2 * History::kBatch, (*history)->lost());
}

}  // namespace
}  // namespace fairlead
