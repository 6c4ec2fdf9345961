#include "shim/settings.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace fairlead::shim {
namespace {

std::map<std::string, std::string> environment;
std::string complaints;

const char* get(const char* name) {
  const auto found = environment.find(name);
  return found != environment.end() ? found->second.c_str() : nullptr;
}

Settings read(const std::map<std::string, std::string>& values) {
  environment = values;
  complaints.clear();
  return read_settings(get, [](const char* line) { complaints += line; });
}

TEST(Settings, AnEmptyEnvironmentMovesAndCapsNothing) {
  const Settings settings = read({});
  EXPECT_EQ(settings.socket, nullptr);
  EXPECT_EQ(settings.memory_cap, 0U);
  EXPECT_EQ(settings.backend, wire::MemoryBackend::kNone);
  EXPECT_EQ(settings.uvm, wire::UvmMode::kPrefetchSwap);
  EXPECT_EQ(complaints, "");
}

TEST(Settings, EveryVariableIsRead) {
  const Settings settings = read({{"FAIRLEAD_SHIM_SOCKET", "/run/node"},
                                  {"FAIRLEAD_SHIM_TOKEN", "18446744073709551615"},
                                  {"FAIRLEAD_SHIM_MEMORY_CAP", "1024"},
                                  {"FAIRLEAD_SHIM_BACKEND", "uvm"},
                                  {"FAIRLEAD_SHIM_UVM", "advise"}});
  EXPECT_STREQ(settings.socket, "/run/node");
  EXPECT_EQ(settings.token, UINT64_MAX);
  EXPECT_EQ(settings.memory_cap, 1024U);
  EXPECT_EQ(settings.backend, wire::MemoryBackend::kUvm);
  EXPECT_EQ(settings.uvm, wire::UvmMode::kAdvise);
  EXPECT_EQ(complaints, "");
}

TEST(Settings, WhatCannotBeReadIsNamedAndIgnored) {
  for (const char* value : {"18446744073709551616", "-1", "1G", " 1", "0x10"}) {
    EXPECT_EQ(read({{"FAIRLEAD_SHIM_MEMORY_CAP", value}}).memory_cap, 0U) << value;
    EXPECT_EQ(complaints, "fairlead-shim: FAIRLEAD_SHIM_MEMORY_CAP is \"" + std::string(value) +
                              "\", must be a whole number from 0 to 18446744073709551615; ignored\n");
  }
  EXPECT_EQ(read({{"FAIRLEAD_SHIM_BACKEND", "VMM"}}).backend, wire::MemoryBackend::kNone);
  EXPECT_EQ(complaints, "fairlead-shim: FAIRLEAD_SHIM_BACKEND is \"VMM\", must be none, vmm or uvm; ignored\n");
  EXPECT_EQ(read({{"FAIRLEAD_SHIM_SOCKET", "/" + std::string(107, 'x')}}).socket, nullptr);
  EXPECT_NE(complaints.find("at most 107 bytes"), std::string::npos);
}

TEST(Settings, AnEmptyValueIsNone) {
  EXPECT_EQ(read({{"FAIRLEAD_SHIM_SOCKET", ""}, {"FAIRLEAD_SHIM_MEMORY_CAP", ""}}).socket, nullptr);
  EXPECT_EQ(complaints, "");
}

}  // namespace
}  // namespace fairlead::shim
