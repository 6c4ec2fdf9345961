#include "shim/memory/ledger.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <thread>
#include <vector>

namespace fairlead::shim::memory {
namespace {

using Kind = Ledger::Kind;

TEST(Ledger, RemembersUntilItIsTold) {
  Ledger ledger;
  Ledger::Entry entry;
  EXPECT_FALSE(ledger.find(7, &entry));
  EXPECT_TRUE(ledger.insert({7, 100, nullptr, Kind::kOurs}, &entry));
  EXPECT_EQ(entry.key, 0U);
  EXPECT_FALSE(ledger.remove(7, Kind::kRecorded, &entry)) << "another kind";
  EXPECT_TRUE(ledger.remove(7, Kind::kOurs, &entry));
  EXPECT_EQ(entry.bytes, 100U);
  EXPECT_FALSE(ledger.find(7, &entry));
}

TEST(Ledger, AnEntryOfTheSameKeyIsReplaced) {
  Ledger ledger;
  Ledger::Entry replaced;
  ledger.insert({7, 100, nullptr, Kind::kRecorded}, &replaced);
  ledger.insert({7, 200, nullptr, Kind::kRecorded}, &replaced);
  EXPECT_EQ(replaced.bytes, 100U);
  EXPECT_FALSE(ledger.insert({0, 1, nullptr, Kind::kRecorded}, &replaced)) << "0 is no key";
}

TEST(Ledger, ForgetsAllOfOneContext) {
  Ledger ledger;
  Ledger::Entry entry;
  const auto one = reinterpret_cast<CUcontext>(std::uintptr_t{1});
  const auto two = reinterpret_cast<CUcontext>(std::uintptr_t{2});
  for (std::uint64_t key = 1; key <= 20'000; ++key)
    ledger.insert({key, 3, key % 4 == 0 ? two : one, Kind::kOurs}, &entry);
  EXPECT_EQ(ledger.remove_all(one), 3 * 15'000U);
  EXPECT_FALSE(ledger.find(1, &entry));
  EXPECT_TRUE(ledger.find(4, &entry));
  EXPECT_EQ(ledger.remove_all(two), 3 * 5'000U);
}

TEST(Ledger, ThreadsDoNotLoseEachOthersEntries) {
  Ledger ledger;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&ledger, t] {
      Ledger::Entry entry;
      for (std::uint64_t i = 1; i < 5000; ++i) {
        EXPECT_TRUE(ledger.insert({t << 32 | i, i, nullptr, Kind::kOurs}, &entry));
        if (i % 3 == 0) {
          EXPECT_TRUE(ledger.remove(t << 32 | (i - 1), Kind::kOurs, &entry));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Ledger::Entry entry;
  for (std::uint64_t t = 1; t <= 4; ++t) {
    for (std::uint64_t i = 1; i < 5000; ++i) {
      const bool removed = i % 3 == 2 && i != 4999;
      EXPECT_EQ(ledger.find(t << 32 | i, &entry), !removed) << t << " " << i;
    }
  }
}

RC_GTEST_PROP(LedgerProperty, AgreesWithAMap, (const std::vector<std::pair<std::uint8_t, std::uint16_t>>& steps)) {
  Ledger ledger;
  std::map<std::uint64_t, std::size_t> model;
  for (const auto& [key8, bytes] : steps) {
    const std::uint64_t key = std::uint64_t{key8} * 4096 + 1;
    Ledger::Entry entry;
    if (bytes % 2 == 0) {
      RC_ASSERT(ledger.insert({key, bytes, nullptr, Kind::kOurs}, &entry));
      RC_ASSERT((entry.key != 0) == (model.count(key) != 0));
      model[key] = bytes;
    } else {
      RC_ASSERT(ledger.remove(key, Kind::kOurs, &entry) == (model.erase(key) != 0));
    }
    for (const auto& [known, size] : model) RC_ASSERT(ledger.find(known, &entry) && entry.bytes == size);
  }
}

}  // namespace
}  // namespace fairlead::shim::memory
