// The settings of a scenario by name, for files, flags and sweeps alike: "workload.load" = "0.8".
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sim/scenario.h"

namespace fairlead::sim {

struct SettingHelp {
  std::string key, meaning;
};

// All there are, in the order in which they are best read.
std::vector<SettingHelp> settings();

// kInvalidArgument names the key, the value and what is allowed; an unknown key, those that come near.
Status set(Scenario& scenario, const std::string& key, const std::string& value);

}  // namespace fairlead::sim
