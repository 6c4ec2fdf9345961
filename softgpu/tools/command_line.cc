#include <algorithm>
#include <cstdio>

#include "softgpu/tools/command.h"

namespace softgpu::tools {

int fail(const std::string& message) {
  std::fprintf(stderr, "softgpu: %s\n", message.c_str());
  return 1;
}

Result<CommandLine> parse_command_line(Arguments arguments, std::vector<std::string_view> valued,
                                       std::vector<std::string_view> flags) {
  const auto listed = [](const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  CommandLine line;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with("--")) {
      line.words.push_back(arguments[i]);
      continue;
    }
    const std::string name = arguments[i].substr(2);
    std::string value;
    if (listed(valued, name)) {
      if (++i == arguments.size()) return failure("--" + name + " needs a value");
      value = arguments[i];
    } else if (!listed(flags, name)) {
      return failure("--" + name + " is not an option of this command");
    }
    if (!line.options.emplace(name, value).second) return failure("--" + name + " is given twice");
  }
  return line;
}

}  // namespace softgpu::tools
