// fairlead.toml: what it says of the settings of a node, in [serve], and of the options that all commands share.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <istream>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/setting.h"

namespace fairlead::cli {

// The section [serve] of the file; its keys are in no order. kInvalidArgument: it is no TOML, has a key that is not of
// `known`, or a value that is no text, number, truth value or list of them; where, by line. kNotFound: it cannot be read.
Result<std::vector<GivenSetting>> read_serve_section(const std::string& path, const std::vector<std::string>& known);
Result<std::vector<GivenSetting>> parse_serve_section(std::string_view text, const std::string& path,
                                                      const std::vector<std::string>& known);

// How the parser of the command line reads the file, for all but [serve]. A variable of the environment wins over it.
class ConfigFile final : public CLI::Config {
 public:
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& in) const override;
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return ""; }

 private:
  const CLI::App& app_;
};

}  // namespace fairlead::cli
