// Plans for one more seat: the example, that who runs stays, and that every plan fits when it is carried out.
#include "decide/packing/room_plan.h"

#include <gmock/gmock.h>

#include "base/rng.h"

namespace fairlead {
namespace {

using testing::ElementsAre;

SeatTaken seat(std::string function, int width, int request, std::uint64_t gpu, bool may_move) {
  return {std::move(function), {.width_percent = width, .request_percent = request}, GpuId(gpu), may_move};
}

std::map<GpuId, DeviceRoom> devices(std::uint64_t count) {
  std::map<GpuId, DeviceRoom> made;
  for (std::uint64_t i = 1; i <= count; ++i) made[GpuId(i)] = {.clients = 0};
  return made;
}

PacedShare share(int width, int request) {
  return {.width_percent = width, .request_percent = request};
}

TEST(RoomPlan, WhoIsIdleMakesRoom) {
  const auto plan =
      plan_room(devices(2), {seat("runs", 100, 50, 1, false), seat("idle", 100, 30, 2, true)}, share(100, 70));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->gpu, GpuId(2));
  EXPECT_THAT(plan->moves, ElementsAre(SeatMove{"idle", GpuId(2), GpuId(1)}));
}

TEST(RoomPlan, WhoRunsStays) {
  EXPECT_FALSE(
      plan_room(devices(2), {seat("runs", 100, 50, 1, false), seat("too", 100, 30, 2, false)}, share(100, 70)));
}

TEST(RoomPlan, WhereThereIsRoomNobodyMoves) {
  EXPECT_FALSE(plan_room(devices(2), {seat("idle", 100, 50, 1, true)}, share(100, 20)));
}

TEST(RoomPlan, SeatsThatDoNotFitTheirDeviceAnyMoreMakeNoPlan) {
  EXPECT_FALSE(plan_room(devices(1), {seat("a", 100, 80, 1, true), seat("b", 100, 80, 1, true)}, share(100, 10)));
  EXPECT_FALSE(plan_room(devices(1), {seat("gone", 100, 80, 7, true)}, share(100, 10)))
      << "on a device that is not there";
}

TEST(PlanEmptying, TheDeviceWithTheLeastOnItIsEmptied) {
  EXPECT_THAT(plan_emptying(devices(2), {seat("a", 100, 50, 1, true), seat("b", 100, 30, 2, true)}),
              ElementsAre(SeatMove{"b", GpuId(2), GpuId(1)}));
  EXPECT_THAT(plan_emptying(devices(2), {seat("a", 100, 30, 1, true), seat("b", 100, 50, 2, true)}),
              ElementsAre(SeatMove{"a", GpuId(1), GpuId(2)}));
}

TEST(PlanEmptying, WhoRunsKeepsItsDevice) {
  EXPECT_THAT(plan_emptying(devices(2), {seat("a", 100, 50, 1, true), seat("runs", 100, 10, 2, false),
                                         seat("b", 100, 10, 2, true)}),
              ElementsAre(SeatMove{"a", GpuId(1), GpuId(2)}));
  EXPECT_TRUE(plan_emptying(devices(2), {seat("runs", 100, 50, 1, false), seat("too", 100, 30, 2, false)}).empty());
}

TEST(PlanEmptying, NobodyGoesToADeviceThatIsEmptyOrHasNoRoom) {
  EXPECT_TRUE(plan_emptying(devices(3), {seat("a", 100, 50, 1, true)}).empty());
  EXPECT_TRUE(plan_emptying(devices(2), {seat("a", 100, 60, 1, true), seat("b", 100, 50, 2, true)}).empty());
}

TEST(PlanEmptying, MovesThatCostMoreThanADeviceAreNotMade) {
  std::vector<SeatTaken> seats{seat("holds", 100, 40, 1, false)};
  for (int i = 0; i < 4; ++i) seats.push_back(seat("f", 100, 5, 2, true));
  EXPECT_EQ(plan_emptying(devices(2), seats).size(), 4u);
  seats.push_back(seat("f", 100, 5, 2, true));
  EXPECT_TRUE(plan_emptying(devices(2), seats).empty()) << "five fifths of a device";
}

bool fits(const std::vector<SeatTaken>& seats, GpuId gpu, const PacedShare* more) {
  Admission admission({.clients = 0});
  std::vector<PacedShare> shares;
  for (const SeatTaken& one : seats) {
    if (one.gpu == gpu) shares.push_back(one.share);
  }
  if (more != nullptr) shares.push_back(*more);
  return admission.ask(shares).fits();
}

// Random nodes: a plan, carried out move by move and then placed, never has a device over any dimension, and moves nobody who runs.
TEST(RoomPlan, EveryPlanHolds) {
  Rng rng(5);
  int plans = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<SeatTaken> seats;
    for (int i = 0; i < 14; ++i) {
      SeatTaken one = seat("f" + std::to_string(i), static_cast<int>(20 + 20 * rng.below(5)),
                           static_cast<int>(10 + 10 * rng.below(6)), 1 + rng.below(3), rng.below(2) == 0);
      if (fits(seats, one.gpu, &one.share)) seats.push_back(one);
    }
    const PacedShare wanted = share(static_cast<int>(40 + 20 * rng.below(4)), static_cast<int>(20 + 10 * rng.below(6)));
    const auto plan = plan_room(devices(3), seats, wanted);
    if (!plan) continue;
    ++plans;
    ASSERT_LE(plan->moves.size(), 2u);
    for (const SeatMove& move : plan->moves) {
      const auto moved =
          std::find_if(seats.begin(), seats.end(), [&](const SeatTaken& one) { return one.function == move.function; });
      ASSERT_NE(moved, seats.end());
      ASSERT_TRUE(moved->may_move);
      ASSERT_EQ(moved->gpu, move.from);
      moved->gpu = move.to;
    }
    for (std::uint64_t gpu = 1; gpu <= 3; ++gpu) {
      ASSERT_TRUE(fits(seats, GpuId(gpu), plan->gpu == GpuId(gpu) ? &wanted : nullptr)) << "round " << round;
    }
  }
  EXPECT_GT(plans, 20);
}

}  // namespace
}  // namespace fairlead
