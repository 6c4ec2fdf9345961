// Where the settings of a node come from, which of them counts, and what is said of those that are wrong.
#include "cli/serve_sources.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/read_file.h"
#include "cli/config_file.h"
#include "nlohmann/json.hpp"

namespace fairlead::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// A file that is there as long as this is.
class File {
 public:
  explicit File(const std::string& text) : path(testing::TempDir() + "fairlead-sources.toml") { write(text); }
  ~File() { std::filesystem::remove(path); }
  void write(const std::string& text) { std::ofstream(path) << text; }

  const std::string path;
};

std::string error(const ServeSources& sources) {
  const auto settled = settle(sources);
  return settled ? "" : settled.error().message;
}
std::string file_error(const std::string& text) {
  const File file(text);
  const std::string message = error({.config_path = file.path});
  const std::size_t folder = message.find(testing::TempDir());
  return folder == std::string::npos ? message : std::string(message).erase(folder, testing::TempDir().size());
}
GivenSetting said(const std::string& name, const std::string& value) {
  return {name, {{value, "command line"}}};
}

TEST(ServeSources, TheCommandLineWinsOverTheEnvironmentAndThatOverTheFile) {
  const File file("[serve]\npool = 4\nqueue-limit = 5\ndrain = 6\n");
  const ServeSources sources{.command_line = {said("pool", "10")},
                             .variables = {{"FAIRLEAD_SERVE_POOL", "7"}, {"FAIRLEAD_SERVE_QUEUE_LIMIT", "8"}},
                             .config_path = file.path};
  const auto settled = settle(sources);
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->options.instances_per_gpu, 10);
  EXPECT_EQ(settled->options.queue_limit, 8);
  EXPECT_EQ(settled->options.drain_seconds, 6);
  EXPECT_EQ(settled->options.policy, "mqfq-setup");
  EXPECT_EQ(settled->origins.at("pool"), "command line");
  EXPECT_EQ(settled->origins.at("queue-limit"), "FAIRLEAD_SERVE_QUEUE_LIMIT");
  EXPECT_EQ(settled->origins.at("drain"), file.path + ":4");
  EXPECT_FALSE(settled->origins.contains("policy"));
}

TEST(ServeSources, AFileHasEveryTypeOfValue) {
  const File file(
      "[serve]\nover-run = 2.5\ncold-duplicates = true\nobject-memory = \"2GiB\"\nobject-spill = 1073741824\n"
      "slots = \"auto:4\"\nlisten = [\"127.0.0.1:7\",\n  \"unix:/run/x\"]\ntenant = \"vision:2\"\n");
  const auto settled = settle(ServeSources{.config_path = file.path});
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->options.over_run_seconds, 2.5);
  EXPECT_TRUE(settled->options.cold_duplicates);
  EXPECT_EQ(settled->options.object_memory_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(settled->options.object_spill_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(settled->options.slots, (SlotChoice{.most = 4, .is_dynamic = true, .is_given = true}));
  EXPECT_THAT(settled->options.listen, ElementsAre("127.0.0.1:7", "unix:/run/x"));
  EXPECT_EQ(settled->options.tenants.front().name, "vision");
}

TEST(ServeSources, WhatIsWrongInAFileIsNamedWithItsLine) {
  EXPECT_EQ(
      file_error("[serve]\n\npool = 0\n"),
      "--pool is '0' (fairlead-sources.toml:3): it must be a whole number from 1 to 1024; correct it, or leave it out "
      "for the default, 32");
  EXPECT_THAT(file_error("[serve]\nlisten = [\"127.0.0.1:1\",\n \"nonsense\"]\n"),
              StartsWith("--listen is 'nonsense' (fairlead-sources.toml:3): address:"));
  EXPECT_THAT(file_error("[serve]\nlisten = []\n"), HasSubstr("--listen is an empty list"));
  EXPECT_EQ(file_error("[serve]\n\nslotts = 3\n"),
            "fairlead-sources.toml:3: 'slotts' is no setting of [serve]; did you mean 'slots'?");
  EXPECT_EQ(file_error("[serve]\nover_run = 3\n"),
            "fairlead-sources.toml:2: 'over_run' is no setting of [serve]; did you mean 'over-run'?");
  EXPECT_EQ(file_error("[serve]\nxyzzy = 3\n"), "fairlead-sources.toml:2: 'xyzzy' is no setting of [serve]");
  EXPECT_EQ(file_error("[serve]\npool = { most = 3 }\n"),
            "fairlead-sources.toml:2: pool must be a text, a number, true or false, or a list of them");
  EXPECT_THAT(file_error("[serve]\npool = [1, 2]\n"), StartsWith("--pool is given 2 times (fairlead-sources.toml:2)"));
  EXPECT_THAT(file_error("[serve]\npool = \n"), StartsWith("fairlead-sources.toml:2: "));
  EXPECT_THAT(file_error("[serve]\npool = 1\npool = 2\n"), StartsWith("fairlead-sources.toml:3: "));
  EXPECT_THAT(file_error("serve = 3\n"), HasSubstr("must be a section, [serve]"));
  EXPECT_EQ(file_error("[serve]\n[sim]\nx = 1\n"), "") << "of others";
  EXPECT_THAT(error({.config_path = "/nonexistent.toml"}), HasSubstr("/nonexistent.toml"));
}

TEST(ServeSources, VariablesAreReadByNameAndListsBySeparator) {
  const auto settled = settle(ServeSources{.variables = {{"FAIRLEAD_SERVE_LISTEN", "127.0.0.1:1,unix:/x"},
                                                         {"FAIRLEAD_SERVE_COLD_DUPLICATES", "on"},
                                                         {"FAIRLEAD_SERVE_POOL", ""}}});
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_THAT(settled->options.listen, ElementsAre("127.0.0.1:1", "unix:/x"));
  EXPECT_TRUE(settled->options.cold_duplicates);
  EXPECT_EQ(settled->options.instances_per_gpu, 32) << "an empty variable says nothing";
  EXPECT_THAT(error({.variables = {{"FAIRLEAD_SERVE_POOL", "many"}}}),
              StartsWith("--pool is 'many' (FAIRLEAD_SERVE_POOL): it must be a whole number"));
}

TEST(ServeSources, AVariableThatIsNearlyOneIsPointedOut) {
  EXPECT_THAT(
      mistyped_variables(
          {{"FAIRLEAD_SERVE_POOOL", "1"}, {"FAIRLEAD_SERVE_POOL", "1"}, {"FAIRLEAD_SERVE_SERVICE_HOST", "10.0.0.1"}}),
      ElementsAre("the variable FAIRLEAD_SERVE_POOOL is no setting and is not read; did you mean "
                  "'FAIRLEAD_SERVE_POOL'?"));
}

TEST(ServeSources, TogetherTheyMustFit) {
  EXPECT_THAT(error({.command_line = {said("slots", "33")}}), HasSubstr("--pool, which is 32"));
  EXPECT_EQ(error({.command_line = {said("slots", "33"), said("pool", "33")}}), "");
}

TEST(ServeSources, WhatIsPrintedIsAFileThatGivesTheSame) {
  const ServeSources sources{
      .command_line = {said("slots", "3"),
                       said("cold-duplicates", "true"),
                       said("cublas", "/opt/\"x\"\\y"),
                       said("task-trial", "2.5"),
                       said("history", "1GiB"),
                       {"tenant", {{"vision:2", "command line"}, {"batch:0.5:3", "command line"}}}},
      .variables = {{"FAIRLEAD_SERVE_POOL", "7"}}};
  const auto settled = settle(sources);
  ASSERT_TRUE(settled);
  const std::string text = config_text(*settled);
  EXPECT_THAT(text, AllOf(StartsWith("[serve]\n"), HasSubstr("\nslots = \"3\"  # command line\n"),
                          HasSubstr("\npool = \"7\"  # FAIRLEAD_SERVE_POOL\n"),
                          HasSubstr("\n# policy = \"mqfq-setup\"  # default\n"),
                          HasSubstr("\n# gpu-library-dir  # default: the system's\n")));
  const File file(text);
  const auto again = settle(ServeSources{.config_path = file.path});
  ASSERT_TRUE(again) << again.error().message;
  for (const ServeSetting& setting : serve_settings()) {
    EXPECT_EQ(setting.write(again->options), setting.write(settled->options)) << setting.name;
  }
  for (const auto& [name, origin] : again->origins) EXPECT_TRUE(settled->origins.contains(name)) << name;
}

TEST(ServeSources, AsJsonEverySettingHasAValueAndAnOrigin) {
  const auto settled = settle(ServeSources{.variables = {{"FAIRLEAD_SERVE_POOL", "7"}}});
  const auto json = nlohmann::json::parse(config_json(*settled)).at("serve");
  EXPECT_EQ(json.size(), serve_settings().size());
  EXPECT_EQ(json.at("pool").at("value"), "7");
  EXPECT_EQ(json.at("pool").at("origin"), "FAIRLEAD_SERVE_POOL");
  EXPECT_EQ(json.at("listen").at("value"), nlohmann::json::array({"127.0.0.1:9001"}));
  EXPECT_EQ(json.at("task-lanes").at("value"), nullptr);
  EXPECT_EQ(json.at("task-lanes").at("origin"), "default");
}

// `tools/settings-page` writes it.
TEST(ServeSources, ThePageHasTheTable) {
  const auto page = read_whole_file(SETTINGS_PAGE);
  ASSERT_TRUE(page);
  EXPECT_THAT(*page, EndsWith(settings_markdown())) << "run tools/settings-page";
}

TEST(ConfigFile, AFileInASectionOfAnotherCommandIsTheParsersToJudge) {
  EXPECT_THAT(*parse_serve_section("[invoke]\nx = 1\n", "f", {}), IsEmpty());
}

}  // namespace
}  // namespace fairlead::cli
