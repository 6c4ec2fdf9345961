#include "cli/sim_scenario.h"

#include <fmt/format.h>

#include <filesystem>
#include <ostream>

namespace fairlead::cli {

Result<sim::Scenario> named_scenario(Cli& cli, const std::string& name) {
  std::error_code ignored;
  const bool is_there = std::filesystem::exists(name, ignored);
  if (is_there && !sim::is_built_in(name)) return sim::read_scenario(name, *sim::built_in_scenario("zipf"));
  if (is_there)
    cli.err() << fmt::format("{} is the built-in scenario; what lies here under that name is ./{}\n", name, name);
  return sim::built_in_scenario(name);
}

}  // namespace fairlead::cli
