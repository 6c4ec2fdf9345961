#include "store/object_ledger.h"

#include <gmock/gmock.h>

#include <utility>

namespace fairlead::store {
namespace {

using testing::HasSubstr;
using enum ObjectLedger::Writer;

struct ObjectLedgerTest : testing::Test {
  void request(ObjectLedger::Id id, std::int64_t bytes, ObjectLedger::Writer writer = kStore) {
    ASSERT_TRUE(ledger.request(id, "acme", Bytes(bytes), writer, actions));
  }
  void put(ObjectLedger::Id id, std::int64_t bytes) {
    request(id, bytes);
    ledger.settle(id, actions);
    actions.clear();
  }
  // "grant 1, spill 2, refuse 3", and forgets them.
  std::string taken() {
    std::string text;
    for (const ObjectLedger::Action& action : std::exchange(actions, {})) {
      if (!text.empty()) text += ", ";
      if (const auto* grant = std::get_if<ObjectLedger::Grant>(&action)) text += fmt::format("grant {}", grant->id);
      if (const auto* spill = std::get_if<ObjectLedger::Spill>(&action)) text += fmt::format("spill {}", spill->id);
      if (const auto* refuse = std::get_if<ObjectLedger::Refuse>(&action)) {
        text += fmt::format("refuse {}", refuse->id);
        last_refusal = refuse->why.message;
      }
    }
    return text;
  }

  ObjectLedger ledger{{.memory = Bytes(100), .spill = Bytes(200), .tenant = Bytes(250)}};
  ObjectLedger::Actions actions;
  std::string last_refusal;
};

TEST_F(ObjectLedgerTest, TheLeastRecentlyUsedMakesRoom) {
  put(1, 60);
  put(2, 30);
  request(3, 50);
  EXPECT_EQ("spill 1", taken());
  ledger.spilled(1, actions);
  EXPECT_EQ("grant 3", taken());
  EXPECT_EQ(Bytes(80), ledger.memory_used());
  EXPECT_EQ(Bytes(60), ledger.disk_used());
}

TEST_F(ObjectLedgerTest, UseProtects) {
  put(1, 50);
  put(2, 50);
  ledger.touch(1);
  request(3, 10);
  EXPECT_EQ("spill 2", taken());
}

TEST_F(ObjectLedgerTest, WhatComesBackMakesRoomToo) {
  put(1, 60);
  put(2, 30);
  request(3, 50);
  ledger.spilled(1, actions);
  ledger.settle(3, actions);
  taken();
  ledger.request_back(1, actions);
  EXPECT_EQ("spill 2, spill 3", taken());
  ledger.spilled(2, actions);
  EXPECT_EQ("", taken());
  ledger.spilled(3, actions);
  EXPECT_EQ("grant 1", taken());
  ledger.settle(1, actions);
  EXPECT_EQ(Bytes(60), ledger.memory_used());
  EXPECT_EQ(Bytes(80), ledger.disk_used());
}

TEST_F(ObjectLedgerTest, WaitsForBytesThatAreJustBeingWritten) {
  request(1, 90);
  EXPECT_EQ("grant 1", taken());
  request(2, 50);
  EXPECT_EQ("", taken());
  ledger.settle(1, actions);
  EXPECT_EQ("spill 1", taken());
}

TEST_F(ObjectLedgerTest, DoesNotWaitForAClientThatMayTakeForEver) {
  request(1, 90, kClient);
  EXPECT_EQ("grant 1", taken());
  request(2, 50);
  EXPECT_EQ("refuse 2", taken());
  EXPECT_THAT(last_refusal, HasSubstr("memory for objects holds 90 of 100 bytes"));
}

TEST_F(ObjectLedgerTest, ALargeRequestIsNotOvertaken) {
  request(1, 60);
  request(2, 50);
  request(3, 10);
  EXPECT_EQ("grant 1", taken());
  ledger.drop(1, actions);
  EXPECT_EQ("grant 2, grant 3", taken());
}

TEST_F(ObjectLedgerTest, AFullDiskRefusesWhoWaitsAndKeepsTheObject) {
  put(1, 90);
  request(2, 50);
  EXPECT_EQ("spill 1", taken());
  ledger.spill_failed(1, {Errc::kResourceExhausted, "No space left on device"}, actions);
  EXPECT_EQ("refuse 2", taken());
  EXPECT_THAT(last_refusal, HasSubstr("could not be spilled: No space left on device"));
  EXPECT_EQ(Bytes(90), ledger.memory_used());
  EXPECT_EQ(Bytes(0), ledger.disk_used());
  EXPECT_EQ(Bytes(90), ledger.tenant_used("acme"));
}

TEST_F(ObjectLedgerTest, TheSpillLimitHolds) {
  ledger.adopt(1, "other", Bytes(150), ObjectLedger::Place::kDisk, actions);
  put(2, 60);
  request(3, 50);
  EXPECT_EQ("refuse 3", taken());
  EXPECT_THAT(last_refusal, HasSubstr("the disk 150 of 200"));
}

TEST_F(ObjectLedgerTest, AQuotaCoversAllPlaces) {
  ledger.adopt(1, "acme", Bytes(170), ObjectLedger::Place::kDisk, actions);
  put(2, 60);
  const Status refused = ledger.request(3, "acme", Bytes(21), kStore, actions);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("tenant 'acme' holds 230 bytes, and with 21 more exceeds its quota"));
  EXPECT_TRUE(ledger.request(3, "other", Bytes(21), kStore, actions));
}

TEST_F(ObjectLedgerTest, LargerThanMemoryIsAnErrorAtOnce) {
  EXPECT_EQ(Errc::kTooLarge, ledger.request(1, "acme", Bytes(101), kStore, actions).error().code);
}

TEST_F(ObjectLedgerTest, ALoweredLimitSpillsWhatIsFound) {
  ledger.adopt(1, "acme", Bytes(80), ObjectLedger::Place::kMemory, actions);
  ledger.adopt(2, "acme", Bytes(90), ObjectLedger::Place::kMemory, actions);
  EXPECT_EQ("spill 1", taken());
}

}  // namespace
}  // namespace fairlead::store
