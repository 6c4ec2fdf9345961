// Every setting of a node, described once (base/setting.h). From this table come the options of `fairlead serve` and their help,
// the keys of [serve] in fairlead.toml, the FAIRLEAD_SERVE_* variables, docs/reference/settings.md, every error about a value, and what a
// reload may change.
//
// A new setting is a field of ServeOptions with its default, and an entry here.
#pragma once

#include <string>
#include <string_view>

#include "base/setting.h"
#include "node/serve_options.h"

namespace fairlead {

using ServeSetting = Setting<ServeOptions>;
using ServeSettings = SettingTable<ServeOptions>;

// In the order in which they are best read; those of one group follow each other.
const ServeSettings& serve_settings();

// The variable of a name: "over-run" is FAIRLEAD_SERVE_OVER_RUN.
inline constexpr std::string_view kServeVariablePrefix = "FAIRLEAD_SERVE_";
std::string serve_variable(std::string_view name);

// What no setting alone can see. kInvalidArgument names both settings, their values and what to do.
Status check_together(const ServeOptions& options);

}  // namespace fairlead
