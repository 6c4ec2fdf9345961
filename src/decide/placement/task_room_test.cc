#include "decide/placement/task_room.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

constexpr InstanceId kA(1), kB(2), kC(3);
constexpr std::uint64_t kServer = 7;

SessionMemory needs(std::uint64_t object, Bytes constants, Bytes call = mib(2)) {
  return {.server = kServer, .device = mib(64), .constants = {{object, constants}}, .call = call};
}

TEST(TaskRoom, WhatDoesNotFitBesideWhatRunsIsRefused) {
  TaskRoom room;
  room.set(kA, needs(1, mib(20)));
  room.set(kB, needs(2, mib(20)));
  room.set(kC, needs(3, mib(20)));
  room.begin(kA);
  EXPECT_TRUE(room.fits(kB));
  room.begin(kB);
  EXPECT_FALSE(room.fits(kC)) << "44 MiB are held, 22 are needed, 64 are there";
  room.end(kA);
  EXPECT_TRUE(room.fits(kC));
}

TEST(TaskRoom, ASharedConstantCountsOnce) {
  TaskRoom room;
  room.set(kA, needs(1, mib(40)));
  room.set(kB, needs(1, mib(40)));
  room.begin(kA);
  EXPECT_TRUE(room.fits(kB));
  room.begin(kB);
  room.end(kA);
  room.set(kC, needs(2, mib(30)));
  EXPECT_FALSE(room.fits(kC)) << "B still uses it";
  room.remove(kB);
  EXPECT_TRUE(room.fits(kC));
}

TEST(TaskRoom, AloneEverythingRuns) {
  TaskRoom room;
  room.set(kA, needs(1, gib(1)));
  EXPECT_TRUE(room.fits(kA));
  EXPECT_TRUE(room.fits(kB)) << "nothing is known of it";
  SessionMemory elsewhere = needs(1, mib(60));
  elsewhere.server = kServer + 1;
  room.set(kB, elsewhere);
  room.begin(kB);
  EXPECT_TRUE(room.fits(kA)) << "another server's memory";
}

TEST(TaskRoom, ACopyIntoFreeMemoryEvictsNothing) {
  TaskRoom room;
  room.set(kA, needs(1, mib(20)));
  EXPECT_FALSE(room.evicts(kA));
  room.set_residence(kA, {.missing = mib(20), .resident = mib(40)});
  EXPECT_FALSE(room.evicts(kA));
  room.set_residence(kA, {.missing = mib(20), .resident = mib(43)});
  EXPECT_TRUE(room.evicts(kA));
  room.set_residence(kA, {.resident = mib(63)});
  EXPECT_FALSE(room.evicts(kA)) << "its own are there";
}

}  // namespace
}  // namespace fairlead
