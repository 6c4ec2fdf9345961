#include "node/reload.h"

#include <fmt/ranges.h>

#include "node/serve_settings.h"

namespace fairlead {
namespace {

std::string value_text(const ServeSetting& setting, const ServeOptions& options) {
  const std::vector<std::string> texts = setting.write(options);
  if (texts.empty()) return "the default (" + setting.default_text() + ")";
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Reload plan_reload(const ServeOptions& running, const ServeOptions& wanted) {
  Reload plan{running, {}, {}};
  for (const ServeSetting& setting : serve_settings()) {
    if (setting.write(running) == setting.write(wanted)) continue;
    const std::string was = value_text(setting, running), is = value_text(setting, wanted);
    if (setting.can_live && setting.can_live(running, wanted)) {
      setting.copy(wanted, plan.options);
      plan.changed.push_back(fmt::format("--{} is {}, it was {}", setting.name, is, was));
    } else {
      plan.unchanged.push_back(
          fmt::format("--{} is {} after a restart; the node runs on with {}", setting.name, is, was));
    }
  }
  return plan;
}

}  // namespace fairlead
