#include "softgpu/device/state_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "softgpu/device/device_testing.h"

namespace softgpu {
namespace {

using testing::as_client;
using testing::Child;
using testing::Client;
using ::testing::HasSubstr;
using testing::kSmall;
using testing::open_client;
using testing::TemporaryHome;

const std::string kOld = "version = 2\nid = 7\ndevices = 1\nmode = fast\n--- profile\nname = an old one\n";

void write(const TemporaryHome& home, const char* name, const std::string& text) {
  std::ofstream(home.path() + "/" + name) << text;
}

TEST(StateFolder, OfAnotherVersionIsStartedAfreshWhereNobodyLives) {
  const TemporaryHome home(kSmall);
  write(home, "machine", kOld);
  write(home, "device0.control", "an old layout");
  write(home, "notes", "somebody's own");
  EXPECT_EQ(state_version(home.path()), "2");
  as_client([](Client& client) { EXPECT_NE(client.machine.id, 7U); });
  EXPECT_EQ(state_version(home.path()), std::to_string(kStateVersion));
  EXPECT_TRUE(std::filesystem::exists(home.path() + "/notes"));
}

TEST(StateFolder, OfAnotherVersionIsRefusedWhileAProcessLivesThere) {
  const TemporaryHome home(kSmall);
  Child old([] { open_client(); });
  write(home, "machine", kOld);
  const auto refused = open_machine();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error(), HasSubstr("is of version 2"));
  EXPECT_THAT(refused.error(), HasSubstr("this library's is " + std::to_string(kStateVersion)));
  EXPECT_EQ(state_version(home.path()), "2");
  old.kill();
  EXPECT_TRUE(open_machine());
}

// Looking must not cost a process its own place.
TEST(StateFolder, AskingKeepsTheCallersSlot) {
  const TemporaryHome home(kSmall);
  EXPECT_FALSE(state_in_use(home.path()));
  as_client([](Client& client) {
    EXPECT_TRUE(state_in_use(client.machine.home));
    EXPECT_TRUE(client.clients->alive(client.self));
    EXPECT_TRUE(state_in_use(client.machine.home));
  });
  EXPECT_FALSE(state_in_use(home.path()));
}

TEST(StateFolder, ADescriptionThatIsNotOursIsLeftAlone) {
  const TemporaryHome home;
  write(home, "machine", "version = 2\ncolour = red\n");
  EXPECT_FALSE(state_version(home.path()));
  EXPECT_FALSE(open_machine());
  EXPECT_TRUE(std::filesystem::exists(home.path() + "/machine"));
}

}  // namespace
}  // namespace softgpu
