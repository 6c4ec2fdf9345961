#include "base/id_map.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>

#include "base/ids.h"

namespace fairlead {
namespace {

TEST(IdMap, NothingIsThereAtFirst) {
  const IdMap<FlowId, int> map;
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.find(FlowId(1)), nullptr);
  EXPECT_EQ(map.find(FlowId()), nullptr);
}

TEST(IdMap, SecondOfAnIdIsNotPutThere) {
  IdMap<FlowId, std::string> map;
  EXPECT_TRUE(map.try_emplace(FlowId(1), "first").second);
  const auto [value, is_new] = map.try_emplace(FlowId(1), "second");
  EXPECT_FALSE(is_new);
  EXPECT_EQ(*value, "first");
}

TEST(IdMap, ValuesStayWhereTheyAreUntilErased) {
  IdMap<FlowId, std::string> map;
  const std::string& first = map[FlowId(1)] = "first";
  for (std::uint64_t id = 2; id < 1000; ++id) map[FlowId(id)] = "other";
  for (std::uint64_t id = 2; id < 1000; ++id) map.erase(FlowId(id));
  EXPECT_EQ(&map.at(FlowId(1)), &first);
  EXPECT_EQ(first, "first");
}

TEST(IdMap, ErasedValuesLetGoOfWhatTheyHeld) {
  IdMap<FlowId, std::shared_ptr<int>> map;
  const auto held = std::make_shared<int>(1);
  map[FlowId(1)] = held;
  map.erase(FlowId(1));
  EXPECT_EQ(held.use_count(), 1);
}

// Few ids, so that they meet often, or many of them that count up; against std::map.
RC_GTEST_PROP(IdMap, IsAMap, (std::vector<std::pair<bool, std::uint8_t>> steps, std::uint64_t stride)) {
  IdMap<InvocationId, int> map;
  std::map<InvocationId, int> model;
  const std::uint64_t apart = stride == 0 ? 1 : stride;
  int number = 0;
  for (const auto& [is_erased, low] : steps) {
    const InvocationId id(1 + low * apart);
    if (!id) continue;
    if (is_erased) {
      RC_ASSERT(map.erase(id) == (model.erase(id) == 1));
    } else {
      RC_ASSERT(map.try_emplace(id, number).second == model.try_emplace(id, number).second);
    }
    ++number;
    RC_ASSERT(map.size() == model.size());
  }
  std::vector<InvocationId> ids;
  for (const auto& [id, value] : model) {
    ids.push_back(id);
    RC_ASSERT(map.at(id) == value);
  }
  RC_ASSERT(map.ids() == ids);
}

// A window of live ids that moves on, as invocations come and go.
TEST(IdMap, WindowThatMovesOnIsFound) {
  IdMap<InvocationId, std::uint64_t> map;
  for (std::uint64_t id = 1; id <= 100'000; ++id) {
    map[InvocationId(id)] = id;
    EXPECT_EQ(map.erase(InvocationId(id - 100)), id > 100);
  }
  EXPECT_EQ(map.size(), 100u);
  for (const InvocationId id : map.ids()) EXPECT_EQ(map.at(id), id.value());
}

}  // namespace
}  // namespace fairlead
