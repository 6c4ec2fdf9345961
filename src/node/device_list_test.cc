#include "node/device_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fairlead {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DeviceListTest : public ::testing::Test {
 protected:
  // "+1:a" for what appeared, "-1" for what went.
  std::vector<std::string> look(const std::vector<std::string>& uuids) {
    std::vector<Device> listed;
    for (const std::string& uuid : uuids) listed.push_back({.uuid = uuid, .gpu_uuid = uuid});
    const DeviceList::Change change = list_.look(std::move(listed));
    std::vector<std::string> lines;
    for (const Device& device : change.appeared)
      lines.push_back("+" + std::to_string(device.id.value()) + ":" + device.uuid);
    for (const GpuId id : change.went) lines.push_back("-" + std::to_string(id.value()));
    return lines;
  }

  DeviceList list_;
};

TEST_F(DeviceListTest, IdsFollowTheDriversOrder) {
  EXPECT_THAT(look({"b", "a"}), ElementsAre("+1:b", "+2:a"));
  EXPECT_THAT(look({"a", "b"}), IsEmpty()) << "its order may change";
  EXPECT_THAT(look({"c", "a", "b"}), ElementsAre("+3:c"));
}

TEST_F(DeviceListTest, MissingTwiceRunningIsGone) {
  look({"a", "b"});
  EXPECT_THAT(look({"b"}), IsEmpty());
  EXPECT_THAT(look({"a", "b"}), IsEmpty()) << "it was only in the middle of a change";
  EXPECT_THAT(look({"b"}), IsEmpty());
  EXPECT_THAT(look({"b"}), ElementsAre("-1"));
  EXPECT_THAT(look({"b"}), IsEmpty());
}

TEST_F(DeviceListTest, OneThatComesBackIsAnother) {
  look({"a"});
  look({});
  EXPECT_THAT(look({}), ElementsAre("-1"));
  EXPECT_THAT(look({"a"}), ElementsAre("+2:a"));
}

TEST(DeviceList, ASliceOfAnotherProfileUnderTheSameUuidIsAnotherDevice) {
  DeviceList list;
  Device slice{.name = "A100", .uuid = "MIG-1", .gpu_uuid = "GPU-1", .memory = gib(40)};
  slice.slice = Slice{.profile = "3g.40gb", .start = 0, .size = 4};
  const auto first = list.look({slice}).appeared.at(0).id;
  EXPECT_TRUE(list.look({slice}).appeared.empty());
  slice.slice->profile = "4g.40gb";
  const auto change = list.look({slice});
  ASSERT_EQ(change.went.size(), 1u);
  EXPECT_EQ(change.went[0], first);
  ASSERT_EQ(change.appeared.size(), 1u);
  EXPECT_NE(change.appeared[0].id, first);
}

}  // namespace
}  // namespace fairlead
