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

}  // namespace
}  // namespace fairlead
