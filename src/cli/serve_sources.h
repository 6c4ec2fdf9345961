// Where the settings of a node come from, and what follows from all of it: the command line wins over the environment, that
// over the file, that over the defaults. A list is taken whole from one place.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "node/serve_settings.h"

namespace fairlead::cli {

struct ServeSources {
  std::vector<GivenSetting> command_line;
  std::map<std::string, std::string> variables;  // FAIRLEAD_SERVE_*, by name
  std::string config_path;                       // "": no file
};

// Those of this process.
std::map<std::string, std::string> serve_variables();

// What was given in variables; a list is separated by commas. One that is empty says nothing.
std::vector<GivenSetting> given_by_variables(const std::map<std::string, std::string>& variables);

// Variables that no setting reads though their name is nearly that of one, each as a warning. Others may be anybody's:
// Kubernetes makes some for a service that is called fairlead-serve.
std::vector<std::string> mistyped_variables(const std::map<std::string, std::string>& variables);

// Reads the file, now. Every value of every place is checked, then all together (check_together).
Result<SettledSettings<ServeOptions>> settle(const ServeSources& sources);

// All settings as a file that gives the same again, each with where its value stands; defaults are comments.
std::string config_text(const SettledSettings<ServeOptions>& settled);
std::string config_json(const SettledSettings<ServeOptions>& settled);

// A file for --config to begin with: every setting explained, and none of them set.
std::string config_template();

// The table of docs/reference/settings.md.
std::string settings_markdown();

}  // namespace fairlead::cli
