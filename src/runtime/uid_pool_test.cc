#include "runtime/uid_pool.h"

#include <gtest/gtest.h>

#include "model/image_ids.h"

namespace fairlead {
namespace {

TEST(UidPool, GivesNoneTwice) {
  UidPool pool(1000, 3);
  EXPECT_EQ(pool.take(), 1000u);
  EXPECT_EQ(pool.take(), 1001u);
  EXPECT_EQ(pool.take(), 1002u);
  EXPECT_FALSE(pool.take()) << "all are taken";
  pool.give_back(1001);
  EXPECT_EQ(pool.take(), 1001u);
  EXPECT_FALSE(pool.take());
}

TEST(UidPool, OneThatCameBackIsTheLastToBeGivenOutAgain) {
  UidPool pool(1000, 3);
  pool.give_back(*pool.take());
  EXPECT_EQ(pool.take(), 1001u);
  EXPECT_EQ(pool.take(), 1002u);
  EXPECT_EQ(pool.take(), 1000u);
}

TEST(UidPool, WhatNobodyHasComesBackWithoutEffect) {
  UidPool pool(1000, 2);
  pool.give_back(1000);
  pool.give_back(7);
  EXPECT_EQ(pool.taken(), 0u);
  EXPECT_EQ(pool.take(), 1000u);
}

TEST(UidPool, ItsUsersAreNeitherImagesNorTheHosts) {
  EXPECT_EQ(UidPool::kFirst + UidPool::kCount, kImageIdBase);
  EXPECT_GT(UidPool::kFirst, 65536u);
}

}  // namespace
}  // namespace fairlead
