#include "runtime/device_server/command_line.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using testing::ElementsAre;

// As `fairlead device-server` reads it (cli/setting_options.h).
Result<SettledSettings<DeviceServerOptions>> read(const std::vector<std::string>& words) {
  std::vector<GivenSetting> given;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name = words[i].substr(2);
    const bool is_flag = find_setting(device_server_settings(), name)->is_flag;
    given.push_back({name, {{is_flag ? "true" : words.at(++i), "command line"}}});
  }
  return settle(device_server_settings(), {given});
}

TEST(DeviceServerCommandLine, WhatTheNodeWritesIsWhatTheServerReads) {
  DeviceServerOptions options;
  options.library_dir = "/opt/gpu";
  options.cache.device = mib(512);
  options.cache.host = Bytes(12345);
  options.cache.eviction = CacheEviction::kSingleUse;
  options.spaces = AddressSpaces::kPerTenant;
  options.launching = Launching::kPlain;
  options.cublas = "/opt/libcublas.so.12";
  options.trials = true;
  const auto read_back = read(device_server_arguments(options));
  ASSERT_TRUE(read_back) << read_back.error().message;
  EXPECT_EQ(read_back->options.library_dir, "/opt/gpu");
  EXPECT_EQ(read_back->options.cache.device, mib(512));
  EXPECT_EQ(read_back->options.cache.host, Bytes(12345));
  EXPECT_EQ(read_back->options.cache.eviction, CacheEviction::kSingleUse);
  EXPECT_EQ(read_back->options.spaces, AddressSpaces::kPerTenant);
  EXPECT_EQ(read_back->options.launching, Launching::kPlain);
  EXPECT_EQ(read_back->options.cublas, "/opt/libcublas.so.12");
  EXPECT_TRUE(read_back->options.trials);
}

TEST(DeviceServerCommandLine, WhatIsNotSaidIsNotWritten) {
  EXPECT_THAT(device_server_arguments({.cache = {}}),
              ElementsAre("--memory", "0", "--host-memory", "0", "--eviction", "cost", "--isolation", "process",
                          "--launching", "graphs", "--cublas", "off"));
}

TEST(DeviceServerCommandLine, ABadValueIsRefused) {
  const auto wrong = settle(device_server_settings(), {{{"eviction", {{"fifo", "command line"}}}}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(
      wrong.error().message,
      "--eviction is 'fifo' (command line): it must be one of single-use, lru, cost; correct it, or leave it out for "
      "the default, cost");
}

}  // namespace
}  // namespace fairlead
